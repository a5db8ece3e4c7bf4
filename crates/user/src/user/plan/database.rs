//! Plans databases: their creation, and the role's privileges in them.

use std::collections::BTreeSet;

use stanchion_api::user::GrantKind;
use stanchion_kernel::Problem;
use stanchion_kernel::marks::{Bearer, Mark, Origin, Seal};
use stanchion_kernel::problem::Cause;
use stanchion_postgres::Statement;

use super::{Change, grants};
use crate::user::catalog::Catalog;
use crate::user::catalog::databases::{Contents, DatabaseFacts};
use crate::user::guards;
use crate::user::target::{DatabaseRequest, Wanted};

/// The statements that create the database, if necessary: one for each oid that it can have, of which the first that
/// succeeds is enough. None of them can run in a transaction.
pub(crate) fn creation(wanted: &Wanted, catalog: &Catalog) -> Result<Vec<Change>, Problem> {
    for name in wanted.databases.keys() {
        if catalog.databases.contains_key(name) {
            continue;
        }
        let create = wanted
            .create_database
            .as_ref()
            .filter(|_| *name == wanted.database);
        let Some(create) = create else {
            return Err(Problem::dependency(
                "DatabaseNotFound",
                format!("database {name:?} does not exist; create it, or set createDatabase.enabled"),
            )
            .with_cause(Cause::Privileges));
        };
        let make = |oid: u32| {
            let statement = Statement::new("CREATE DATABASE ")
                .ident(name)
                .sql(" OID ")
                .number(oid.into());
            let statement = match &create.template {
                Some(template) => statement.sql(" TEMPLATE ").ident(template),
                None => statement,
            };
            Change::privilege(format!("database {name}"), statement)
        };
        let oids = guards::database_oids(&catalog.viewer.marks, &wanted.identity.uid, name);
        return Ok(oids.map(make).into());
    }
    Ok(Vec::new())
}

/// The state of a database right after its creation.
pub(crate) fn fresh(catalog: &Catalog) -> (DatabaseFacts, Contents) {
    let facts = DatabaseFacts {
        oid: guards::FRESH,
        owner: catalog.server.role.clone(),
        open: true,
        acting: true,
        template: false,
        text: String::new(),
        mark: None,
        owner_mark: None,
        granted: BTreeSet::new(),
        revocable: BTreeSet::new(),
        public: ["CONNECT", "TEMPORARY"].map(Into::into).into(),
    };
    (facts, Contents::default())
}

/// The differences in an existing database.
pub(crate) fn diff(
    name: &str,
    wanted: &Wanted,
    request: &DatabaseRequest,
    facts: &DatabaseFacts,
    contents: &Contents,
    catalog: &Catalog,
) -> Vec<Change> {
    let role = &wanted.username;
    let mut changes = Vec::new();
    changes.extend(mark(name, wanted, facts, catalog));
    if request.owner && facts.owner != *role {
        let statement = Statement::new("ALTER DATABASE ")
            .ident(name)
            .sql(" OWNER TO ")
            .ident(role);
        changes.push(Change::privilege(format!("owner of database {name}"), statement));
    }
    if request.revoke_public {
        changes.extend(revoke_public(name, facts, contents));
    }
    changes.extend(extensions(request, contents, catalog));
    for schema in request
        .schemas
        .iter()
        .filter(|(name, request)| request.create && !contents.schemas.contains_key(*name))
    {
        // The owner of the database owns the schemas that are created in it.
        let statement = Statement::new("CREATE SCHEMA IF NOT EXISTS ")
            .ident(schema.0)
            .when(request.owner, |sql| sql.sql(" AUTHORIZATION ").ident(role));
        changes.push(Change::privilege(format!("schema {}", schema.0), statement));
    }
    let asked = grants::wanted(name, role, request, facts, contents);
    let mut before = grants::within(name, &wanted.before.grants);
    // What a future owner of the database was granted there comes with the ownership.
    before.retain(|grant| !(request.owner && grant.kind == GrantKind::Database));
    changes.extend(grants::diff(role, &asked, &before, facts, contents));
    changes.into_iter().map(|change| change.within(name)).collect()
}

/// Waits for the schemas that somebody else creates.
pub(crate) fn check_schemas(
    name: &str,
    request: &DatabaseRequest,
    contents: &Contents,
) -> Result<(), Problem> {
    let mut asked = request.schemas.iter();
    match asked.find(|(schema, request)| !request.create && !contents.schemas.contains_key(*schema)) {
        None => Ok(()),
        Some((schema, _)) => Err(Problem::dependency(
            "SchemaNotFound",
            format!(
                "schema {schema:?} does not exist in database {name:?}; create it, or set create: true for it"
            ),
        )
        .with_cause(Cause::Privileges)),
    }
}

/// Whether the missing extensions may be created, and can be.
pub(crate) fn check_extensions(
    request: &DatabaseRequest,
    contents: &Contents,
    catalog: &Catalog,
) -> Result<(), Problem> {
    check_trust(request, contents, catalog)?;
    check_requirements(request, contents, catalog)
}

/// Missing extensions are created if PostgreSQL trusts them, or the instance allows them.
fn check_trust(request: &DatabaseRequest, contents: &Contents, catalog: &Catalog) -> Result<(), Problem> {
    let rules = &catalog.viewer.rules;
    let mut missing = request.extensions.difference(&contents.extensions);
    // The server refuses an extension that it does not have.
    let is_untrusted = |name: &str| catalog.extensions.get(name).is_some_and(|facts| !facts.trusted);
    match missing.find(|name| is_untrusted(name) && !rules.opens_extension(name)) {
        None => Ok(()),
        Some(name) => Err(Problem::human(
            "ExtensionNotAllowed",
            format!(
                "PostgreSQL does not mark extension {name:?} as trusted; add it to the instance's spec.extensions (for the \
                 operator's default server, --postgres-extensions), or ask an administrator to create it in the database"
            ),
        )),
    }
}

/// What a missing extension requires must be in the database already, or in the spec.
fn check_requirements(
    request: &DatabaseRequest,
    contents: &Contents,
    catalog: &Catalog,
) -> Result<(), Problem> {
    for name in request.extensions.difference(&contents.extensions) {
        let requires = catalog
            .extensions
            .get(name)
            .map(|facts| facts.requires.as_slice());
        let known =
            |other: &String| request.extensions.contains(other) || contents.extensions.contains(other);
        if let Some(other) = requires.unwrap_or_default().iter().find(|other| !known(other)) {
            return Err(Problem::human(
                "ExtensionRequired",
                format!("extension {name:?} requires extension {other:?}; add that to extensions, too"),
            ));
        }
    }
    Ok(())
}

/// The mark of a database that the operator created. It is written before another owner could write one.
fn mark(name: &str, wanted: &Wanted, facts: &DatabaseFacts, catalog: &Catalog) -> Option<Change> {
    let is_marked = facts.mark.as_ref().is_some_and(|found| found.seal == Seal::Valid);
    if is_marked || !guards::is_database_of(name, wanted, facts, catalog) {
        return None;
    }
    let mark = Mark {
        owner: wanted.identity.owner(),
        origin: Origin::Created,
    };
    let comment = catalog
        .viewer
        .marks
        .join(&facts.text, &mark, Bearer::Database(name));
    let statement = Statement::new("COMMENT ON DATABASE ")
        .ident(name)
        .sql(" IS ")
        .literal(&comment);
    Some(Change::role(format!("mark of database {name}"), statement))
}

/// Revokes everything in a database that the spec no longer names.
pub(crate) fn leave(name: &str, wanted: &Wanted, facts: &DatabaseFacts, contents: &Contents) -> Vec<Change> {
    let before = grants::within(name, &wanted.before.grants);
    grants::diff(&wanted.username, &[], &before, facts, contents)
        .into_iter()
        .map(|change| change.within(name))
        .collect()
}

/// Extensions without a schema go into `public`, and not into `pg_catalog`, which is the search path of our sessions.
fn extensions(request: &DatabaseRequest, contents: &Contents, catalog: &Catalog) -> Vec<Change> {
    let mut ordered = Vec::new();
    for name in request.extensions.difference(&contents.extensions) {
        after_requirements(name, request, contents, catalog, &mut Vec::new(), &mut ordered);
    }
    let mut changes: Vec<Change> = ordered
        .into_iter()
        .map(|extension| {
            let statement = Statement::new("CREATE EXTENSION IF NOT EXISTS ").ident(extension);
            Change::privilege(format!("extension {extension}"), statement)
        })
        .collect();
    if let Some(Change {
        setting: [before, _], ..
    }) = changes.first_mut()
    {
        *before = Some(Statement::new("SET LOCAL search_path TO \"public\""));
    }
    if let Some(Change {
        setting: [_, after], ..
    }) = changes.last_mut()
    {
        *after = Some(Statement::new("SET LOCAL search_path TO pg_catalog, pg_temp"));
    }
    changes
}

/// Adds a missing extension after those that it requires. `above` ends a circle, which the server would refuse.
fn after_requirements<'a>(
    name: &'a String,
    request: &'a DatabaseRequest,
    contents: &Contents,
    catalog: &Catalog,
    above: &mut Vec<&'a String>,
    ordered: &mut Vec<&'a String>,
) {
    if contents.extensions.contains(name) || ordered.contains(&name) || above.contains(&name) {
        return;
    }
    above.push(name);
    let requires = catalog
        .extensions
        .get(name)
        .map(|facts| facts.requires.as_slice());
    for other in requires.unwrap_or_default() {
        if let Some(other) = request.extensions.get(other) {
            after_requirements(other, request, contents, catalog, above, ordered);
        }
    }
    above.pop();
    ordered.push(name);
}

fn revoke_public(name: &str, facts: &DatabaseFacts, contents: &Contents) -> Vec<Change> {
    let mut changes = Vec::new();
    if ["CONNECT", "TEMPORARY"]
        .into_iter()
        .any(|word| facts.public.contains(word))
    {
        let statement = Statement::new("REVOKE CONNECT, TEMPORARY ON DATABASE ")
            .ident(name)
            .sql(" FROM PUBLIC");
        changes.push(Change::privilege(format!("PUBLIC on database {name}"), statement));
    }
    if contents.public_creates {
        let statement = Statement::new("REVOKE CREATE ON SCHEMA \"public\" FROM PUBLIC");
        changes.push(Change::privilege("PUBLIC on schema public", statement));
    }
    changes
}
