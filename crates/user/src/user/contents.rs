//! What one database shows of a role: its schemas, privileges on their contents, and default privileges; together with
//! the catalog in one round trip.

use std::collections::{BTreeMap, BTreeSet};

use stanchion_api::user::GrantKind;
use stanchion_kernel::Problem;
use stanchion_kernel::marks::Bearer;
use stanchion_postgres::{Query, ReadSession, Row};

use super::catalog::{Catalog, CatalogQuery, Unexpected, Viewer, exploded};
use super::target::Wanted;
use crate::rules::Whose;

/// The state inside one database.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// The requested schemas that exist.
    pub schemas: BTreeMap<String, SchemaFacts>,
    /// The existing extensions.
    pub extensions: BTreeSet<String>,
    /// What the role holds: a privilege on a schema's tables counts if no table lacks it.
    pub held: BTreeSet<Held>,
    /// The same for single tables, sequences and functions: it counts if any of them has it. A grant must cover all of
    /// them, and a revocation must leave none.
    pub partly: BTreeSet<Held>,
    /// Whether PUBLIC may create in the schema `public`.
    pub public_creates: bool,
}

/// Properties of a schema.
#[derive(Clone, Debug)]
pub struct SchemaFacts {
    /// Its owner.
    pub owner: String,
    /// Whether the administrator may change the owner's default privileges, and the owner is not another namespace's.
    pub acting: bool,
}

/// One privilege that the role holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// The kind of object.
    pub kind: GrantKind,
    /// The schema.
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

const ON_SCHEMAS: &str = concat!(
    "SELECT 'Schema', n.nspname::pg_catalog.text, NULL::pg_catalog.text, a.privilege_type \
     FROM pg_catalog.pg_namespace n, ",
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
      AND n.nspname = ANY ($1) AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')"
);

const ON_ANY_FUNCTION: &str = concat!(
    "SELECT DISTINCT 'Functions', n.nspname::pg_catalog.text, NULL::pg_catalog.text, a.privilege_type \
     FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace CROSS JOIN LATERAL ",
    exploded!("p.proacl"),
    " a WHERE a.grantee = (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = $2) AND a.grantee <> p.proowner \
      AND n.nspname = ANY ($1)"
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
fn queries(role: &str, schemas: &[String]) -> Vec<Query> {
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
pub async fn read(
    session: &ReadSession,
    viewer: &Viewer,
    role: &str,
    schemas: &[String],
) -> Result<Contents, Problem> {
    let results = session.snapshot(&queries(role, schemas)).await?;
    Ok(answer(viewer, &results)?)
}

/// Decodes the answers to [`queries`].
fn answer(viewer: &Viewer, results: &[Vec<Row>]) -> Result<Contents, Unexpected> {
    let [schemas, extensions, public, held @ .., any_relation, any_function] = results else {
        return Err(Unexpected);
    };
    let all = |rows: &[&Vec<Row>]| {
        rows.iter()
            .flat_map(|rows| rows.iter())
            .map(one)
            .collect::<Result<_, _>>()
    };
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
        held: all(&held.iter().collect::<Vec<_>>())?,
        partly: all(&[any_relation, any_function])?,
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

/// The inspection of one database, for one role.
pub struct SnapshotQuery {
    query: CatalogQuery,
    /// The schemas to inspect; `None` if only the database itself matters.
    schemas: Option<Vec<String>>,
}

/// The result of an inspection.
pub struct Snapshot {
    /// The server, the role, and the databases themselves.
    pub catalog: Catalog,
    /// The contents of the database.
    pub contents: Contents,
}

impl SnapshotQuery {
    /// The inspection for this role in this database.
    pub fn at(wanted: &Wanted, viewer: &Viewer, database: &str) -> Self {
        let schemas = schemas_of(wanted, database);
        Self {
            query: query(wanted, viewer),
            schemas: reads_contents(wanted, database, &schemas).then_some(schemas),
        }
    }

    /// The queries, for a pipeline.
    pub fn queries(&self) -> Vec<Query> {
        let mut all = self.query.queries();
        if let Some(schemas) = &self.schemas {
            all.extend(queries(&self.query.role, schemas));
        }
        all
    }

    /// Decodes the answers to [`Self::queries`].
    pub fn answer(&self, results: &[Vec<Row>]) -> Result<Snapshot, Unexpected> {
        let (catalog, contents) = results
            .split_at_checked(CatalogQuery::ANSWERS)
            .ok_or(Unexpected)?;
        Ok(Snapshot {
            catalog: self.query.answer(catalog)?,
            contents: match self.schemas {
                Some(_) => answer(&self.query.viewer, contents)?,
                None => Contents::default(),
            },
        })
    }
}

/// The databases that the spec or an earlier spec names.
pub fn databases_of(wanted: &Wanted) -> Vec<String> {
    let mut databases: Vec<String> = wanted.databases.keys().cloned().collect();
    databases.extend(
        wanted
            .before
            .grants
            .iter()
            .filter_map(|grant| grant.database.clone()),
    );
    databases.sort();
    databases.dedup();
    databases
}

/// The catalog queries for a wanted role.
pub fn query(wanted: &Wanted, viewer: &Viewer) -> CatalogQuery {
    let requests = || wanted.databases.values();
    let owners = requests()
        .flat_map(|request| request.schemas.values())
        .flat_map(|schema| schema.default_for.iter());
    let mut roles: Vec<String> = wanted
        .member_of
        .iter()
        .map(|membership| &membership.role)
        .chain(owners)
        .cloned()
        .collect();
    roles.sort();
    roles.dedup();
    let parameters = wanted.role.parameters.keys();
    CatalogQuery {
        viewer: viewer.clone(),
        role: wanted.username.clone(),
        roles,
        databases: databases_of(wanted),
        template: wanted
            .create_database
            .as_ref()
            .and_then(|create| create.template.clone()),
        parameters: parameters.map(|name| name.to_ascii_lowercase()).collect(),
        extensions: requests()
            .flat_map(|request| request.extensions.iter().cloned())
            .collect(),
    }
}

/// The schemas of a database that the spec or an earlier spec names.
pub fn schemas_of(wanted: &Wanted, database: &str) -> Vec<String> {
    let asked = wanted
        .databases
        .get(database)
        .into_iter()
        .flat_map(|request| request.schemas.keys().cloned());
    let before = wanted
        .before
        .grants
        .iter()
        .filter(|grant| grant.database.as_deref() == Some(database));
    let mut all: Vec<String> = asked
        .chain(before.filter_map(|grant| grant.schema.clone()))
        .collect();
    all.sort();
    all.dedup();
    all
}

/// Whether more than the database itself matters.
pub fn reads_contents(wanted: &Wanted, database: &str, schemas: &[String]) -> bool {
    let request = wanted.databases.get(database);
    !schemas.is_empty()
        || request.is_some_and(|request| !request.extensions.is_empty() || request.revoke_public)
}
