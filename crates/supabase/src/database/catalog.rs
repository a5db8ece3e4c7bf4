//! Reads the server, the administrator's privileges, the roles, and the record of executed steps. Two round trips, no
//! writes.

use std::collections::{BTreeMap, BTreeSet};

use secrecy::SecretString;
use stanchion_kernel::Problem;
use stanchion_postgres::server::Powers;
use stanchion_postgres::types::FromSql;
use stanchion_postgres::{Error, Query, ReadSession, Row, RowError, Server, Transaction};

use super::isolation::{self, Found};
use super::mark;
use super::roles::{Names, TABLE};
use super::steps::{REQUIRED_EXTENSIONS, optional_extensions};

/// The state of the server and the database.
#[derive(Debug)]
pub(super) struct Catalog {
    pub(super) server: Server,
    pub(super) database: DatabaseFacts,
    pub(super) roles: BTreeMap<String, RoleFacts>,
    /// The project that owns the database, and the suffix of its logins.
    pub(super) installation: Option<(String, String)>,
    pub(super) steps: BTreeMap<i32, Recorded>,
    /// The stored verifiers: those of the server if they can be read, otherwise those that were set last.
    pub(super) verifiers: BTreeMap<String, SecretString>,
    /// Whether all of them are known to match the passwords.
    pub(super) proven: bool,
    /// The existing objects that the steps use.
    pub(super) found: Vec<Found>,
}

/// Properties of the database.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "they are the server's columns")]
pub(super) struct DatabaseFacts {
    pub(super) name: String,
    pub(super) oid: u32,
    pub(super) owner: String,
    /// Whether the administrator may act as its owner.
    pub(super) ours: bool,
    /// Whether the administrator may create schemas in it.
    pub(super) may_create: bool,
    /// The owner of the schema public, if it exists, and whether the administrator may act as that owner.
    pub(super) public: Option<(String, bool)>,
    /// Whether the record exists.
    pub(super) recorded: bool,
    pub(super) wal_level: String,
    /// Whether `pg_authid` can be read.
    pub(super) reads_verifiers: bool,
    /// The known extensions that are available on the server.
    pub(super) available: BTreeSet<String>,
    /// Whether PUBLIC may connect.
    pub(super) public_connects: bool,
    /// Whether the administrator can keep verifiers out of the server's log.
    pub(super) keeps_quiet: bool,
    /// Its comment.
    pub(super) comment: String,
    /// The existing internal databases.
    pub(super) internal: BTreeMap<String, Internal>,
}

/// An internal database, of analytics and the pooler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Internal {
    pub(super) oid: u32,
    pub(super) owner: String,
    /// Whether its owner is a superuser.
    pub(super) superuser: bool,
    /// Whether the administrator may do what the owner may.
    pub(super) ours: bool,
    pub(super) comment: String,
}

/// Properties of a role.
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "they are the server's columns")]
pub(super) struct RoleFacts {
    pub(super) superuser: bool,
    pub(super) login: bool,
    pub(super) create_db: bool,
    pub(super) create_role: bool,
    pub(super) replication: bool,
    pub(super) bypass_rls: bool,
    pub(super) comment: String,
    /// Whether the database that the comment's mark names still exists.
    pub(super) marked_database_exists: bool,
    /// The administrator's privileges on it.
    pub(super) powers: Powers,
}

/// A step that has run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) hash: String,
    /// Why it was skipped, if it was.
    pub(super) skipped: Option<String>,
    /// The server's properties at that time.
    pub(super) seen: String,
}

const DATABASE: &str = "\
SELECT d.datname::pg_catalog.text, d.oid, pg_catalog.pg_get_userbyid(d.datdba)::pg_catalog.text, \
       pg_catalog.pg_has_role(d.datdba, 'USAGE'), pg_catalog.has_database_privilege(d.oid, 'CREATE'), \
       (SELECT pg_catalog.pg_get_userbyid(n.nspowner)::pg_catalog.text FROM pg_catalog.pg_namespace n \
        WHERE n.nspname = 'public'), \
       (SELECT pg_catalog.pg_has_role(n.nspowner, 'USAGE') FROM pg_catalog.pg_namespace n WHERE n.nspname = 'public'), \
       EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
               WHERE n.nspname = '_stanchion' AND c.relname = 'installation'), \
       pg_catalog.current_setting('wal_level'), \
       pg_catalog.has_table_privilege('pg_catalog.pg_authid', 'SELECT'), \
       ARRAY(SELECT a.name::pg_catalog.text FROM pg_catalog.pg_available_extensions() a WHERE a.name = ANY ($1)), \
       EXISTS (SELECT FROM pg_catalog.aclexplode(coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba))) a \
               WHERE a.grantee = 0 AND a.privilege_type = 'CONNECT'), \
       pg_catalog.has_parameter_privilege('log_statement', 'SET') \
         AND pg_catalog.has_parameter_privilege('log_min_messages', 'SET') \
         AND pg_catalog.has_parameter_privilege('log_min_error_statement', 'SET') \
         AND pg_catalog.has_parameter_privilege('log_min_duration_statement', 'SET'), \
       coalesce(pg_catalog.shobj_description(d.oid, 'pg_database'), '') \
FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()";

const ROLES: &str = "\
SELECT r.rolname::pg_catalog.text, r.rolsuper, r.rolcanlogin, r.rolcreatedb, r.rolcreaterole, r.rolreplication, \
       r.rolbypassrls, coalesce(pg_catalog.shobj_description(r.oid, 'pg_authid'), ''), \
       EXISTS (SELECT FROM pg_catalog.pg_database d WHERE d.oid::pg_catalog.text = \
               pg_catalog.substring(pg_catalog.shobj_description(r.oid, 'pg_authid'), $2)) \
FROM pg_catalog.pg_roles r WHERE r.rolname = ANY ($1)";

const INTERNAL: &str = "\
SELECT d.datname::pg_catalog.text, d.oid, r.rolname::pg_catalog.text, r.rolsuper, \
       pg_catalog.pg_has_role(d.datdba, 'USAGE'), \
       coalesce(pg_catalog.shobj_description(d.oid, 'pg_database'), '') \
FROM pg_catalog.pg_database d JOIN pg_catalog.pg_roles r ON r.oid = d.datdba WHERE d.datname = ANY ($1)";

const INSTALLATION: &str = "SELECT project, suffix FROM _stanchion.installation";
const STEPS: &str = "SELECT number, hash, skipped, seen FROM _stanchion.steps";
const STORED: &str =
    "SELECT rolname::pg_catalog.text, rolpassword FROM pg_catalog.pg_authid WHERE rolname = ANY ($1)";
const REMEMBERED: &str = "SELECT role, verifier FROM _stanchion.logins WHERE role = ANY ($1)";

/// The source of the queries: a session, which sees one moment, or a transaction that holds the lock.
pub(super) enum Source<'a> {
    Session(&'a ReadSession),
    Transaction(&'a Transaction<'a>),
}

impl Source<'_> {
    async fn read(&self, queries: &[Query]) -> Result<Vec<Vec<Row>>, Error> {
        match self {
            Self::Session(session) => session.snapshot(queries).await,
            Self::Transaction(transaction) => transaction.read(queries).await,
        }
    }
}

/// The columns of a row, in the order of the query.
pub(super) struct Columns<'a> {
    row: &'a Row,
    next: usize,
}

impl<'a> Columns<'a> {
    /// The next column.
    pub(super) fn next<T: FromSql<'a>>(&mut self) -> Result<T, RowError> {
        let index = self.next;
        self.next += 1;
        self.row.try_get(index)
    }
}

/// Decodes rows.
pub(super) fn decode<T, All: FromIterator<T>>(
    rows: &[Row],
    of: impl Fn(&mut Columns<'_>) -> Result<T, RowError>,
) -> Result<All, RowError> {
    rows.iter().map(|row| of(&mut Columns { row, next: 0 })).collect()
}

/// The first round trip: queries that work on any database.
pub(super) fn questions(project: &str) -> Vec<Query> {
    let optional = optional_extensions().map(|(name, _)| name);
    let known = REQUIRED_EXTENSIONS.iter().copied().chain(optional);
    let [internal, roles] = on_server(project);
    vec![
        Server::query(),
        Query::new(DATABASE).texts(known.map(str::to_owned).collect()),
        internal,
        roles,
        Powers::query(role_names(project)),
        isolation::question(),
    ]
}

/// The queries for what a project has on the server, beside its database: internal databases and roles.
pub(super) fn on_server(project: &str) -> [Query; 2] {
    let both = [Names::with_suffix(""), Names::apart(project)];
    let internal = both.iter().map(Names::internal_database).collect();
    [
        Query::new(INTERNAL).texts(internal),
        Query::new(ROLES).texts(role_names(project)).text(mark::PATTERN),
    ]
}

/// Every possible role name of this project.
fn role_names(project: &str) -> Vec<String> {
    let (plain, apart) = (Names::with_suffix(""), Names::apart(project));
    let names = TABLE.iter().flat_map(|role| [plain.role(role), apart.role(role)]);
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Decodes the answers, and queries what they show to exist.
pub(super) async fn read(
    source: &Source<'_>,
    project: &str,
    answers: &[Vec<Row>],
) -> Result<Option<Catalog>, Problem> {
    let session = match source {
        Source::Session(session) => session,
        Source::Transaction(transaction) => transaction.session(),
    };
    let not_understood = |error: RowError| session.error(stanchion_postgres::Doing::Reading, &error);
    let Some(mut catalog) = first(answers).map_err(not_understood)? else {
        return Ok(None);
    };
    isolation::check_record(&catalog.found, &catalog.server)?;
    let mut more = Vec::new();
    if catalog.database.recorded {
        more.extend([Query::new(INSTALLATION), Query::new(STEPS)]);
    }
    if catalog.database.reads_verifiers {
        more.push(Query::new(STORED).texts(role_names(project)));
    } else if catalog.database.recorded {
        more.push(Query::new(REMEMBERED).texts(role_names(project)));
    }
    if !more.is_empty() {
        second(&mut catalog, &source.read(&more).await?).map_err(not_understood)?;
    }
    Ok(Some(catalog))
}

/// `None` if the administrator's own role no longer exists.
fn first(answers: &[Vec<Row>]) -> Result<Option<Catalog>, RowError> {
    let [server, database, internal, roles, powers, found] = answers else {
        return Ok(None);
    };
    let (Some(server), Some(database)) = (server.first(), database.first()) else {
        return Ok(None);
    };
    let powers = Powers::of_rows(powers)?;
    let mut roles = roles_of(roles)?;
    for (name, facts) in &mut roles {
        facts.powers = powers.get(name).copied().unwrap_or_default();
    }
    let internal = internal_of(internal)?;
    Ok(Some(Catalog {
        server: Server::of_row(server)?,
        database: database_facts(database, internal)?,
        roles,
        installation: None,
        steps: BTreeMap::new(),
        verifiers: BTreeMap::new(),
        proven: false,
        found: isolation::of_rows(found)?,
    }))
}

/// Decodes roles, without the administrator's privileges on them.
pub(super) fn roles_of(rows: &[Row]) -> Result<BTreeMap<String, RoleFacts>, RowError> {
    decode(rows, |columns| {
        let name: String = columns.next()?;
        let facts = RoleFacts {
            superuser: columns.next()?,
            login: columns.next()?,
            create_db: columns.next()?,
            create_role: columns.next()?,
            replication: columns.next()?,
            bypass_rls: columns.next()?,
            comment: columns.next()?,
            marked_database_exists: columns.next()?,
            powers: Powers::default(),
        };
        Ok((name, facts))
    })
}

/// Decodes internal databases.
pub(super) fn internal_of(rows: &[Row]) -> Result<BTreeMap<String, Internal>, RowError> {
    decode(rows, |columns| {
        let name: String = columns.next()?;
        let facts = Internal {
            oid: columns.next()?,
            owner: columns.next()?,
            superuser: columns.next()?,
            ours: columns.next()?,
            comment: columns.next()?,
        };
        Ok((name, facts))
    })
}

fn database_facts(row: &Row, internal: BTreeMap<String, Internal>) -> Result<DatabaseFacts, RowError> {
    let mut columns = Columns { row, next: 0 };
    let columns = &mut columns;
    let (name, oid, owner, ours, may_create) = (
        columns.next()?,
        columns.next()?,
        columns.next()?,
        columns.next()?,
        columns.next()?,
    );
    let public_owner: Option<String> = columns.next()?;
    let public_ours: Option<bool> = columns.next()?;
    Ok(DatabaseFacts {
        name,
        oid,
        owner,
        ours,
        may_create,
        public: public_owner.zip(public_ours),
        recorded: columns.next()?,
        wal_level: columns.next()?,
        reads_verifiers: columns.next()?,
        available: columns.next::<Vec<String>>()?.into_iter().collect(),
        public_connects: columns.next()?,
        keeps_quiet: columns.next()?,
        comment: columns.next()?,
        internal,
    })
}

fn second(catalog: &mut Catalog, answers: &[Vec<Row>]) -> Result<(), RowError> {
    let mut answers = answers.iter();
    let mut next = || answers.next().map_or(&[][..], Vec::as_slice);
    if catalog.database.recorded {
        let mut found: Vec<(String, String)> =
            decode(next(), |columns| Ok((columns.next()?, columns.next()?)))?;
        catalog.installation = found.pop();
        catalog.steps = decode(next(), |columns| {
            let number: i32 = columns.next()?;
            let recorded = Recorded {
                hash: columns.next()?,
                skipped: columns.next()?,
                seen: columns.next()?,
            };
            Ok((number, recorded))
        })?;
    }
    let verifiers: Vec<(String, Option<String>)> =
        decode(next(), |columns| Ok((columns.next()?, columns.next()?)))?;
    catalog.verifiers = verifiers
        .into_iter()
        .filter_map(|(role, verifier)| Some((role, verifier?.into())))
        .collect();
    Ok(())
}

/// An empty database with a superuser, for tests of the plan.
#[cfg(test)]
pub(super) fn fresh(version: u32, attributes: stanchion_postgres::server::Attributes) -> Catalog {
    Catalog {
        server: Server {
            version,
            in_recovery: false,
            role: "boss".to_owned(),
            login: "boss".to_owned(),
            attributes,
            cloud_admin_of: Vec::new(),
            self_grant: stanchion_postgres::server::SelfGrant::default(),
            keeps_log_clean: true,
        },
        database: DatabaseFacts {
            name: "shop".to_owned(),
            oid: 16384,
            owner: "boss".to_owned(),
            ours: true,
            may_create: true,
            public: Some(("pg_database_owner".to_owned(), true)),
            recorded: false,
            wal_level: "logical".to_owned(),
            reads_verifiers: attributes.superuser,
            available: REQUIRED_EXTENSIONS.iter().map(ToString::to_string).collect(),
            public_connects: false,
            keeps_quiet: attributes.superuser,
            comment: String::new(),
            internal: BTreeMap::new(),
        },
        roles: BTreeMap::new(),
        installation: None,
        steps: BTreeMap::new(),
        verifiers: BTreeMap::new(),
        proven: false,
        found: Vec::new(),
    }
}
