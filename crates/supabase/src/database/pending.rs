//! Computes what is left to do in a database: a pure function of the request and the current state.

use rand::CryptoRng;
use secrecy::SecretString;
use stanchion_kernel::Problem;
use stanchion_postgres::{Level, Server, Statement};

use super::catalog::Catalog;
use super::created_objects;
use super::isolation;
use super::logins;
use super::ownership;
use super::privileges;
use super::request::{Note, Request};
use super::roles::{Login, Names};
use super::steps::{Need, Place, Roles, Step, TABLE, When, optional_extensions};

/// The record of the executed steps, with their text's hash. Only the administrator can read its schema.
const RECORD: [&str; 4] = [
    "CREATE TABLE IF NOT EXISTS _stanchion.installation (\
       only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row), \
       project text NOT NULL, suffix text NOT NULL)",
    "CREATE TABLE IF NOT EXISTS _stanchion.steps (\
       number integer PRIMARY KEY, name text NOT NULL, hash text NOT NULL, \
       skipped text, seen text NOT NULL, \
       run_at timestamptz NOT NULL DEFAULT now(), run_by text NOT NULL DEFAULT current_user)",
    "CREATE TABLE IF NOT EXISTS _stanchion.logins (role text PRIMARY KEY, verifier text NOT NULL)",
    "COMMENT ON SCHEMA _stanchion IS \
       'What Stanchion did to make this the database of a Supabase. See the table steps.'",
];

/// What is left to do.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) names: Names,
    pub(super) statements: Vec<Statement>,
    /// The step of each statement, if any.
    pub(super) blame: Vec<Option<&'static Step>>,
    /// Whether the internal database is needed and missing.
    pub(super) creates_database: bool,
    /// The remaining steps in the internal database.
    pub(super) internal: Vec<&'static Step>,
    pub(super) notes: Vec<Note>,
    /// The server's properties, for steps that it does not allow.
    pub(super) seen: String,
    /// The server, and the administrator's properties there.
    pub(super) server: Server,
}

impl Pending {
    pub(super) fn is_empty(&self) -> bool {
        self.statements.is_empty() && !self.creates_database && self.internal.is_empty()
    }

    /// The names of the steps that will run.
    pub(super) fn steps(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.blame.iter().flatten().map(|step| step.name).collect();
        names.dedup();
        names
    }

    fn push(&mut self, statements: impl IntoIterator<Item = Statement>, step: Option<&'static Step>) {
        for statement in statements {
            self.statements.push(statement);
            self.blame.push(step);
        }
    }
}

/// Compares, and refuses what cannot be done.
pub(super) fn pending(
    catalog: &Catalog,
    request: &Request,
    random: &mut dyn CryptoRng,
) -> Result<Pending, Problem> {
    privileges::check(catalog, request)?;
    let names = privileges::names(catalog, request);
    let roles = logins::changes(catalog, request, &names, random)?;
    let seen = seen(catalog);
    let internal_missing = !catalog.database.internal.contains_key(&names.internal_database());
    let left = |place| {
        let wanted = TABLE.iter().filter(move |step| step.place == place);
        let left = wanted.filter(|step| wants(step, catalog, request) && !is_done(step, catalog, &seen));
        left.collect::<Vec<_>>()
    };
    let mut pending = Pending {
        creates_database: request.wants_internal_database() && internal_missing,
        // A new database has none of the recorded objects.
        internal: if internal_missing {
            let all = TABLE.iter().filter(|step| step.place == Place::Internal);
            all.filter(|step| wants(step, catalog, request)).collect()
        } else {
            left(Place::Internal)
        },
        notes: notes(catalog, request),
        names,
        statements: Vec::new(),
        blame: Vec::new(),
        seen: seen.clone(),
        server: catalog.server.clone(),
    };
    let steps = left(Place::Project);
    pending.notes.extend(roles.notes);
    if catalog.installation.is_none() {
        // Not IF NOT EXISTS: a schema that appeared since the check would be somebody else's.
        let schema = (!isolation::has_record_schema(&catalog.found))
            .then(|| Statement::new("CREATE SCHEMA _stanchion"));
        pending.push(schema, None);
        pending.push(record(&request.project, pending.names.suffix()), None);
    }
    pending.push(marks(catalog, request, &pending.names), None);
    let inherited = inherited(&roles.inherited, catalog, request, &pending.names);
    let makes = roles.creates || !steps.is_empty() || !inherited.is_empty();
    if makes {
        pending.push(created_objects::before(), None);
    }
    pending.push(roles.statements, None);
    if !catalog.database.reads_verifiers {
        pending.push(roles.verifiers.iter().map(remember), None);
    }
    if !steps.is_empty() {
        pending.push([settings(&pending.names)], None);
    }
    for step in &steps {
        // A step that acts for a login runs with that login's privileges.
        let login = step.run_as.filter(|_| catalog.server.attributes.superuser);
        let login = login
            .map(|login| pending.names.of(login))
            .filter(|role| isolation::is_for(step, &catalog.found, role));
        let roles = login.as_deref().map(|of_step| Roles {
            of_step,
            of_session: &catalog.server.role,
        });
        pending.push(step.statements(&seen, roles.as_ref()), Some(step));
    }
    if makes {
        pending.push([created_objects::after(&pending.names)], None);
        pending.push(inherited, None);
    }
    if !pending.is_empty() {
        isolation::check_steps(&catalog.found, &catalog.server, &pending.names, steps)?;
    }
    Ok(pending)
}

/// Marks the project's databases as its own. Only an owner may comment on a database.
fn marks(catalog: &Catalog, request: &Request, names: &Names) -> Vec<Statement> {
    let database = &catalog.database;
    let name = names.internal_database();
    let internal = database
        .internal
        .get(&name)
        .filter(|found| request.wants_internal_database() && found.ours);
    ownership::mark(&database.name, &database.comment, request)
        .into_iter()
        .chain(internal.and_then(|found| ownership::mark(&name, &found.comment, request)))
        .collect()
}

/// Records what the operator created for an earlier database of the project, which somebody dropped with its record: the
/// logins, and the internal database.
fn inherited(
    logins: &[(String, u32)],
    catalog: &Catalog,
    request: &Request,
    names: &Names,
) -> Vec<Statement> {
    let mut statements: Vec<Statement> = logins
        .iter()
        .map(|(login, _)| created_objects::login(login))
        .collect();
    let internal = names.internal_database();
    let is_ours = |oid: u32| {
        let of = |(_, earlier): &(String, u32)| {
            created_objects::database_oid(&request.project, *earlier, &internal) == oid
        };
        logins.iter().any(of)
    };
    let found = catalog.database.internal.get(&internal);
    if found.is_some_and(|found| is_ours(found.oid)) {
        statements.push(created_objects::database(&internal));
    }
    statements
}

/// Creates the record and its owner.
fn record(project: &str, suffix: &str) -> impl Iterator<Item = Statement> + use<> {
    let installation = Statement::new("INSERT INTO _stanchion.installation (project, suffix) VALUES (")
        .literal(project)
        .sql(", ")
        .literal(suffix)
        .sql(")");
    RECORD.into_iter().map(Statement::new).chain([installation])
}

/// The names of the logins, as settings for the steps until the end of the transaction.
pub(super) fn settings(names: &Names) -> Statement {
    Statement::new("SELECT ").list(", ", Login::ALL, |statement, login| {
        statement
            .sql("pg_catalog.set_config(")
            .literal(login.setting())
            .sql(", ")
            .literal(&names.of(login))
            .sql(", true)")
    })
}

fn remember((role, verifier): &(String, SecretString)) -> Statement {
    Statement::new("INSERT INTO _stanchion.logins (role, verifier) VALUES (")
        .literal(role)
        .sql(", ")
        .secret(verifier)
        .sql(") ON CONFLICT (role) DO UPDATE SET verifier = excluded.verifier")
}

/// Whether a step applies here.
fn wants(step: &Step, catalog: &Catalog, request: &Request) -> bool {
    match step.when {
        When::Always => true,
        When::Available(extension) => catalog.database.available.contains(extension),
        When::Login(login) => request.passwords.contains_key(&login),
    }
}

/// A step that has run is not run again, even if its text has changed. One that the server did not allow is retried
/// when the server's properties change.
fn is_done(step: &Step, catalog: &Catalog, seen: &str) -> bool {
    catalog
        .steps
        .get(&step.number)
        .is_some_and(|recorded| recorded.skipped.is_none() || recorded.seen == seen)
}

/// The properties that decide whether an optional step can succeed.
fn seen(catalog: &Catalog) -> String {
    let level = match catalog.server.level() {
        Level::Superuser => "superuser".to_owned(),
        Level::CloudAdmin(admin) => admin,
        Level::CreateRole | Level::Plain => "no superuser".to_owned(),
    };
    let extensions: Vec<_> = catalog.database.available.iter().map(String::as_str).collect();
    format!(
        "{} ({level}), PostgreSQL {}, {}",
        catalog.server.role,
        catalog.server.version / 10_000,
        extensions.join(" ")
    )
}

/// The internal database, if the administrator may not mark it.
fn unmarked(catalog: &Catalog, request: &Request) -> Option<Note> {
    let name = privileges::names(catalog, request).internal_database();
    let found = catalog.database.internal.get(&name)?;
    let role = &catalog.server.role;
    let is_unmarked = request.wants_internal_database()
        && !found.ours
        && ownership::mark(&name, &found.comment, request).is_some();
    is_unmarked.then(|| Note {
        about: format!("database {name}"),
        message: format!(
            "it belongs to {:?}, so {role:?} cannot mark it as this project's, and a PostgresUser of another namespace could \
             claim it; as a superuser: ALTER DATABASE \"{name}\" OWNER TO \"{role}\"",
            found.owner
        ),
    })
}

/// What does not work on this server, independent of the steps.
fn notes(catalog: &Catalog, request: &Request) -> Vec<Note> {
    let mut notes = Vec::new();
    if catalog.database.wal_level != "logical" && request.passwords.contains_key(&Login::Realtime) {
        notes.push(Note {
            about: "wal_level".to_owned(),
            message: format!(
                "it is {:?}, so Realtime cannot follow changes of tables; set it to logical and restart PostgreSQL",
                catalog.database.wal_level
            ),
        });
    }
    if catalog
        .roles
        .get("supabase_admin")
        .is_some_and(|role| role.superuser)
    {
        notes.push(Note {
            about: "role supabase_admin".to_owned(),
            message: "it is a superuser and owns what Realtime migrates, so Realtime's login can act as it; nothing that \
                      Realtime does needs that: ALTER ROLE supabase_admin NOSUPERUSER, once nothing else relies on it"
                .to_owned(),
        });
    }
    if !catalog.database.keeps_quiet {
        let role = &catalog.server.role;
        notes.push(Note {
            about: "server log".to_owned(),
            message: format!(
                "{role:?} may not switch logging off for a statement, so verifiers of passwords can be in the server's log; as a \
                 superuser: GRANT SET ON PARAMETER log_statement, log_min_messages, log_min_error_statement, \
                 log_min_duration_statement TO \"{role}\""
            ),
        });
    }
    let connected = TABLE.iter().find(|step| step.name == "who may connect");
    if catalog.database.public_connects
        && connected.is_some_and(|step| catalog.steps.contains_key(&step.number))
    {
        let name = &catalog.database.name;
        notes.push(Note {
            about: format!("database {name}"),
            message: format!(
                "PUBLIC may connect again, so a login of another project on this server can read the tables of this one: \
                 REVOKE CONNECT ON DATABASE \"{name}\" FROM PUBLIC"
            ),
        });
    }
    notes.extend(unmarked(catalog, request));
    for (extension, consequence) in optional_extensions() {
        if !catalog.database.available.contains(extension) {
            notes.push(Note {
                about: format!("extension {extension}"),
                message: format!("the server does not have it, so {consequence}"),
            });
        }
    }
    for step in TABLE {
        let Some(recorded) = catalog.steps.get(&step.number) else {
            continue;
        };
        if let (Need::Optional(consequence), Some(why)) = (step.need, &recorded.skipped) {
            notes.push(Note {
                about: step.name.to_owned(),
                message: format!("{why}; so {consequence}"),
            });
        }
        if recorded.hash != step.hash() {
            notes.push(Note {
                about: step.name.to_owned(),
                message: "another version of the operator ran this step; this version does not run it again"
                    .to_owned(),
            });
        }
    }
    notes
}

#[cfg(test)]
mod tests;
