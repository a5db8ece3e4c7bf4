//! Databases: their own properties, which every database shows, and their contents for a role, which only a session in
//! them shows: schemas, privileges on what is in them, and default privileges.

use std::collections::{BTreeMap, BTreeSet};

use stanchion_api::user::GrantKind;
use stanchion_kernel::Problem;
use stanchion_kernel::marks::{Bearer, Found};
use stanchion_postgres::{Query, ReadSession, Row};

use super::{Unexpected, Viewer};
use crate::rules::Whose;

/// `aclexplode` of an expression. It decompresses its argument for every row that it returns, which takes tens of
/// milliseconds for a thousand grantees; a list that was just concatenated is not compressed. It is concatenated from
/// two arrays, because an array with one appended element is flattened again for every row. The entry that is appended
/// for that has no relevant grantee or privilege.
macro_rules! exploded {
    ($acl:literal) => {
        concat!(
            "pg_catalog.aclexplode(",
            $acl,
            " || ARRAY[pg_catalog.makeaclitem(4294967295, 4294967295, 'SELECT', false)])"
        )
    };
}

/// Whether a REVOKE of the administrator takes the grant `a` from the list of an object. PostgreSQL revokes the grants of
/// one grantor: a superuser and the owner act as the owner, and everybody else as themselves if they have the grant option,
/// or else as the owner if they are a member of it.
macro_rules! revocable {
    ($owner:literal, $acl:literal) => {
        concat!(
            "a.grantor = (SELECT CASE WHEN me.rolsuper OR me.oid = ",
            $owner,
            " THEN ",
            $owner,
            " WHEN EXISTS (SELECT FROM ",
            exploded!($acl),
            " o WHERE o.grantee = me.oid AND o.is_grantable AND o.privilege_type = a.privilege_type) THEN me.oid \
              WHEN pg_catalog.pg_has_role(",
            $owner,
            ", 'USAGE') THEN ",
            $owner,
            " ELSE me.oid END FROM pg_catalog.pg_roles me WHERE me.rolname = current_user)"
        )
    };
}

/// Properties of a database.
#[derive(Clone, Debug)]
pub struct DatabaseFacts {
    pub oid: u32,
    pub owner: String,
    /// Whether it accepts connections.
    pub open: bool,
    /// Whether the administrator may change the owner's default privileges, and the owner is not another namespace's.
    pub acting: bool,
    /// Whether it is a template.
    pub template: bool,
    /// The user's part of its comment.
    pub text: String,
    /// Its owner, by its mark.
    pub mark: Option<Found>,
    /// The mark of its owner.
    pub owner_mark: Option<Found>,
    /// Privileges of the role itself.
    pub granted: BTreeSet<String>,
    /// Those of them that a REVOKE of the administrator takes.
    pub revocable: BTreeSet<String>,
    /// Privileges of PUBLIC.
    pub public: BTreeSet<String>,
}

/// An owner's own privileges are in the ACL only after somebody has changed it; `acldefault` adds them.
const DATABASES: &str = concat!(
    "SELECT d.datname::pg_catalog.text, pg_catalog.pg_get_userbyid(d.datdba)::pg_catalog.text, d.datallowconn, \
       coalesce(held.ours, '{}'), coalesce(held.public, '{}'), pg_catalog.pg_has_role(d.datdba, 'USAGE'), d.oid, d.datistemplate, \
       coalesce(pg_catalog.shobj_description(d.oid, 'pg_database'), ''), \
       coalesce(pg_catalog.shobj_description(d.datdba, 'pg_authid'), ''), coalesce(held.revocable, '{}') \
     FROM pg_catalog.pg_database d CROSS JOIN LATERAL ( \
       SELECT pg_catalog.array_agg(a.privilege_type) FILTER (WHERE a.grantee <> 0) AS ours, \
              pg_catalog.array_agg(a.privilege_type) FILTER (WHERE a.grantee = 0) AS public, \
              pg_catalog.array_agg(a.privilege_type) FILTER (WHERE a.grantee <> 0 AND ",
    revocable!(
        "d.datdba",
        "coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba))"
    ),
    ") AS revocable FROM ",
    exploded!("coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba))"),
    " a WHERE a.grantee IN (0, (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = $2))) held \
     WHERE d.datname = ANY ($1)"
);

/// The query for the properties of some databases.
pub(super) fn query<'a>(names: impl Iterator<Item = &'a String>, role: &str) -> Query {
    Query::new(DATABASES).texts(names.cloned().collect()).text(role)
}

/// Decodes one database.
pub(super) fn database(viewer: &Viewer, row: &Row) -> Result<(String, DatabaseFacts), Unexpected> {
    let words = |column: usize| -> Result<BTreeSet<String>, Unexpected> {
        let words: Vec<String> = row.try_get(column)?;
        Ok(words.into_iter().collect())
    };
    let (name, owner): (String, String) = (row.try_get(0)?, row.try_get(1)?);
    let (comment, of_owner): (String, String) = (row.try_get(8)?, row.try_get(9)?);
    let marks = &viewer.marks;
    let (text, mark) = marks.read(&comment, Bearer::Database(&name));
    let owner_mark = marks.read(&of_owner, Bearer::Role(&owner)).1;
    let acting: bool = row.try_get(5)?;
    let facts = DatabaseFacts {
        acting: acting && viewer.rules.whose(owner_mark.as_ref()) != Whose::Theirs,
        owner,
        open: row.try_get(2)?,
        granted: words(3)?,
        public: words(4)?,
        revocable: words(10)?,
        oid: row.try_get(6)?,
        template: row.try_get(7)?,
        text: text.to_owned(),
        mark,
        owner_mark,
    };
    Ok((name, facts))
}

/// The state inside one database.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// The requested schemas that exist.
    pub schemas: BTreeMap<String, SchemaFacts>,
    /// The existing extensions.
    pub extensions: BTreeSet<String>,
    /// What the role holds: a privilege on a schema's tables counts if no table lacks it.
    pub held: BTreeSet<Held>,
    /// What a REVOKE of the administrator takes: a privilege on the schema, or on any of its tables, sequences and functions,
    /// whose grantor the administrator acts as. A grant must cover all of them, and a revocation must leave none. What
    /// another grantor granted stays: only that one could revoke it.
    pub partly: BTreeSet<Held>,
    /// Whether PUBLIC may create in the schema `public`.
    pub public_creates: bool,
}

/// Properties of a schema.
#[derive(Clone, Debug)]
pub struct SchemaFacts {
    pub owner: String,
    /// Whether the administrator may change the owner's default privileges, and the owner is not another namespace's.
    pub acting: bool,
}

/// One privilege that the role holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// The kind of object.
    pub kind: GrantKind,
    pub schema: String,
    /// The owner of future objects, for default privileges.
    pub owner: Option<String>,
    /// The privilege.
    pub word: String,
}

const SCHEMAS: &str = "\
SELECT nspname::pg_catalog.text, pg_catalog.pg_get_userbyid(nspowner)::pg_catalog.text, \
       pg_catalog.pg_has_role(nspowner, 'USAGE'), \
       coalesce(pg_catalog.shobj_description(nspowner, 'pg_authid'), '') \
FROM pg_catalog.pg_namespace WHERE nspname = ANY ($1)";

const EXTENSIONS: &str = "SELECT extname::pg_catalog.text FROM pg_catalog.pg_extension";

const PUBLIC_CREATES: &str = concat!(
    "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace n, ",
    exploded!("coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner))"),
    " a WHERE n.nspname = 'public' AND a.grantee = 0 AND a.privilege_type = 'CREATE')"
);

/// The last column says whether a REVOKE takes the privilege.
const ON_SCHEMAS: &str = concat!(
    "SELECT 'Schema', n.nspname::pg_catalog.text, NULL::pg_catalog.text, a.privilege_type, ",
    revocable!(
        "n.nspowner",
        "coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner))"
    ),
    " FROM pg_catalog.pg_namespace n CROSS JOIN LATERAL ",
    exploded!("coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner))"),
    " a WHERE a.grantee = (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = $2) AND n.nspname = ANY ($1)"
);

/// A privilege on a schema's tables (sequences, functions) is held if none of them lacks it, also if there are none.
const ON_RELATIONS: &str = concat!(
    "SELECT CASE k.kind WHEN 'r' THEN 'Tables' ELSE 'Sequences' END, n.nspname::pg_catalog.text, \
       NULL::pg_catalog.text, w.word \
     FROM pg_catalog.pg_namespace n \
     CROSS JOIN (VALUES ('r'::pg_catalog.\"char\"), ('s')) AS k (kind) \
     CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE'), ('TRUNCATE'), ('REFERENCES'), ('TRIGGER'), \
                        ('USAGE')) AS w (word) \
     JOIN pg_catalog.pg_roles r ON r.rolname = $2 \
     WHERE n.nspname = ANY ($1) AND NOT EXISTS ( \
       SELECT FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid AND c.relowner <> r.oid \
       AND CASE k.kind WHEN 's' THEN c.relkind = 'S' ELSE c.relkind IN ('r', 'p', 'v', 'm', 'f') END \
       AND NOT EXISTS (SELECT FROM ",
    exploded!("c.relacl"),
    " a WHERE a.grantee = r.oid AND a.privilege_type = w.word))"
);

const ON_FUNCTIONS: &str = concat!(
    "SELECT 'Functions', n.nspname::pg_catalog.text, NULL::pg_catalog.text, 'EXECUTE' \
     FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_roles r ON r.rolname = $2 \
     WHERE n.nspname = ANY ($1) AND NOT EXISTS ( \
       SELECT FROM pg_catalog.pg_proc p WHERE p.pronamespace = n.oid AND p.proowner <> r.oid \
       AND NOT EXISTS (SELECT FROM ",
    exploded!("p.proacl"),
    " a WHERE a.grantee = r.oid AND a.privilege_type = 'EXECUTE'))"
);

const ON_ANY_RELATION: &str = concat!(
    "SELECT DISTINCT CASE c.relkind WHEN 'S' THEN 'Sequences' ELSE 'Tables' END, n.nspname::pg_catalog.text, \
       NULL::pg_catalog.text, a.privilege_type \
     FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace CROSS JOIN LATERAL ",
    exploded!("c.relacl"),
    " a WHERE a.grantee = (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = $2) AND a.grantee <> c.relowner \
      AND n.nspname = ANY ($1) AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND ",
    revocable!("c.relowner", "c.relacl")
);

const ON_ANY_FUNCTION: &str = concat!(
    "SELECT DISTINCT 'Functions', n.nspname::pg_catalog.text, NULL::pg_catalog.text, a.privilege_type \
     FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace CROSS JOIN LATERAL ",
    exploded!("p.proacl"),
    " a WHERE a.grantee = (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = $2) AND a.grantee <> p.proowner \
      AND n.nspname = ANY ($1) AND ",
    revocable!("p.proowner", "p.proacl")
);

const DEFAULTS: &str = concat!(
    "SELECT CASE d.defaclobjtype WHEN 'r' THEN 'DefaultTables' WHEN 'S' THEN 'DefaultSequences' \
              ELSE 'DefaultFunctions' END, \
       n.nspname::pg_catalog.text, pg_catalog.pg_get_userbyid(d.defaclrole)::pg_catalog.text, a.privilege_type \
     FROM pg_catalog.pg_default_acl d JOIN pg_catalog.pg_namespace n ON n.oid = d.defaclnamespace \
     CROSS JOIN LATERAL ",
    exploded!("d.defaclacl"),
    " a WHERE a.grantee = (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = $2) AND n.nspname = ANY ($1) \
      AND d.defaclobjtype IN ('r', 'S', 'f')"
);

/// The queries about some schemas, for a pipeline.
pub(crate) fn queries(role: &str, schemas: &[String]) -> Vec<Query> {
    let about = |sql| Query::new(sql).texts(schemas.to_vec());
    let mut queries = vec![about(SCHEMAS), Query::new(EXTENSIONS), Query::new(PUBLIC_CREATES)];
    let held = [
        ON_SCHEMAS,
        DEFAULTS,
        ON_RELATIONS,
        ON_FUNCTIONS,
        ON_ANY_RELATION,
        ON_ANY_FUNCTION,
    ];
    queries.extend(held.map(|sql| about(sql).text(role)));
    queries
}

/// Reads the contents of a session's database.
pub(crate) async fn read(
    session: &ReadSession,
    viewer: &Viewer,
    role: &str,
    schemas: &[String],
) -> Result<Contents, Problem> {
    let results = session.snapshot(&queries(role, schemas)).await?;
    Ok(answer(viewer, &results)?)
}

/// Decodes the answers to [`queries`].
pub(crate) fn answer(viewer: &Viewer, results: &[Vec<Row>]) -> Result<Contents, Unexpected> {
    let [
        schemas,
        extensions,
        public,
        on_schemas,
        held @ ..,
        any_relation,
        any_function,
    ] = results
    else {
        return Err(Unexpected);
    };
    let mut revocable = Vec::new();
    for row in on_schemas {
        if row.try_get(4)? {
            revocable.push(row);
        }
    }
    let held = on_schemas.iter().chain(held.iter().flatten());
    let partly = revocable.into_iter().chain(any_relation).chain(any_function);
    Ok(Contents {
        schemas: schemas
            .iter()
            .map(|row| schema(viewer, row))
            .collect::<Result<_, _>>()?,
        extensions: extensions
            .iter()
            .map(|row| row.try_get(0))
            .collect::<Result<_, _>>()?,
        public_creates: public.first().ok_or(Unexpected)?.try_get(0)?,
        held: held.map(one).collect::<Result<_, _>>()?,
        partly: partly.map(one).collect::<Result<_, _>>()?,
    })
}

fn schema(viewer: &Viewer, row: &Row) -> Result<(String, SchemaFacts), Unexpected> {
    let (owner, acting): (String, bool) = (row.try_get(1)?, row.try_get(2)?);
    let comment: String = row.try_get(3)?;
    let mark = viewer.marks.read(&comment, Bearer::Role(&owner)).1;
    Ok((
        row.try_get(0)?,
        SchemaFacts {
            owner,
            acting: acting && viewer.rules.whose(mark.as_ref()) != Whose::Theirs,
        },
    ))
}

fn one(row: &Row) -> Result<Held, Unexpected> {
    let kind: &str = row.try_get(0)?;
    Ok(Held {
        kind: match kind {
            "Schema" => GrantKind::Schema,
            "Tables" => GrantKind::Tables,
            "Sequences" => GrantKind::Sequences,
            "Functions" => GrantKind::Functions,
            "DefaultTables" => GrantKind::DefaultTables,
            "DefaultSequences" => GrantKind::DefaultSequences,
            "DefaultFunctions" => GrantKind::DefaultFunctions,
            _ => return Err(Unexpected),
        },
        schema: row.try_get(1)?,
        owner: row.try_get(2)?,
        word: row.try_get(3)?,
    })
}
