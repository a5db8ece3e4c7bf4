//! Plans privileges: desired, missing and surplus ones.

use std::collections::BTreeSet;

use stanchion_api::user::{AppliedGrant, GrantKind};
use stanchion_postgres::Statement;

use super::Change;
use crate::user::catalog::databases::{Contents, DatabaseFacts, Held};
use crate::user::schemas::is_closed;
use crate::user::target::{DatabaseRequest, SchemaRequest};

/// Every privilege that is ever granted. A value from a status becomes part of a statement only if it is listed here.
const WORDS: &[&str] = &[
    "CONNECT",
    "CREATE",
    "TEMPORARY",
    "USAGE",
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "TRUNCATE",
    "REFERENCES",
    "TRIGGER",
    "EXECUTE",
];

/// Everything that the role gets in one database; nothing in a schema of the server, whatever a request says.
pub(crate) fn wanted(
    database: &str,
    role: &str,
    request: &DatabaseRequest,
    facts: &DatabaseFacts,
    contents: &Contents,
) -> Vec<AppliedGrant> {
    let mut all = vec![grant(
        GrantKind::Database,
        database,
        None,
        None,
        &request.privileges,
    )];
    for (name, schema) in request.schemas.iter().filter(|(name, _)| !is_closed(name)) {
        let parts = [
            (GrantKind::Schema, None, &schema.schema),
            (GrantKind::Tables, Some(GrantKind::DefaultTables), &schema.tables),
            (
                GrantKind::Sequences,
                Some(GrantKind::DefaultSequences),
                &schema.sequences,
            ),
            (
                GrantKind::Functions,
                Some(GrantKind::DefaultFunctions),
                &schema.functions,
            ),
        ];
        let owners = default_owners(role, (name, schema), request.owner, facts, contents);
        for (kind, default, words) in parts {
            all.push(grant(kind, database, Some(name), None, words));
            if let Some(default) = default {
                all.extend(
                    owners
                        .iter()
                        .map(|owner| grant(default, database, Some(name), Some(owner), words)),
                );
            }
        }
    }
    all.retain(|grant| !grant.privileges.is_empty());
    all
}

/// The owners whose future objects the privileges apply to: those that the spec names, otherwise the owners of schema
/// and database, as far as the administrator may act for them. The predefined `pg_…` roles own no future objects.
fn default_owners(
    role: &str,
    (name, schema): (&str, &SchemaRequest),
    becomes_owner: bool,
    facts: &DatabaseFacts,
    contents: &Contents,
) -> BTreeSet<String> {
    if !schema.default_for.is_empty() {
        return schema.default_for.iter().cloned().collect();
    }
    let of_schema = contents
        .schemas
        .get(name)
        .filter(|facts| facts.acting)
        .map(|facts| &facts.owner);
    // The role becomes the owner of the database, so the previous owner's future tables do not matter.
    let of_database = (facts.acting && !becomes_owner).then_some(&facts.owner);
    of_schema
        .into_iter()
        .chain(of_database)
        .filter(|owner| *owner != role && !owner.starts_with("pg_"))
        .cloned()
        .collect()
}

fn grant(
    kind: GrantKind,
    database: &str,
    schema: Option<&str>,
    owner: Option<&str>,
    words: &BTreeSet<&'static str>,
) -> AppliedGrant {
    AppliedGrant {
        kind,
        database: Some(database.into()),
        schema: schema.map(Into::into),
        name: owner.map(Into::into),
        privileges: words.iter().map(ToString::to_string).collect(),
    }
}

/// Grants what is missing, and revokes what was granted before and is no longer requested.
pub(crate) fn diff(
    role: &str,
    wanted: &[AppliedGrant],
    before: &[AppliedGrant],
    facts: &DatabaseFacts,
    contents: &Contents,
) -> Vec<Change> {
    let missing = wanted.iter().filter_map(|grant| {
        let words: Vec<&str> = words(grant)
            .into_iter()
            .filter(|word| !is_held(grant, word, facts, contents))
            .collect();
        (!words.is_empty()).then(|| Change::privilege(describe(grant, &words), give(grant, &words, role)))
    });
    let left_over = before.iter().filter_map(|grant| {
        let keep: BTreeSet<&str> = wanted
            .iter()
            .filter(|other| same_object(other, grant))
            .flat_map(words)
            .collect();
        let words: Vec<&str> = words(grant)
            .into_iter()
            .filter(|word| {
                !keep.contains(word)
                    && is_there(grant, contents)
                    && !comes_with_ownership(grant, role, facts, contents)
                    && is_on_any(grant, word, facts, contents)
            })
            .collect();
        (!words.is_empty()).then(|| Change::privilege(describe(grant, &words), take(grant, &words, role)))
    });
    // Revocations come first: a privilege may move from one schema to another.
    left_over.chain(missing).collect()
}

/// The grants in one database.
pub(crate) fn within(database: &str, grants: &[AppliedGrant]) -> Vec<AppliedGrant> {
    let here = |grant: &&AppliedGrant| grant.database.as_deref() == Some(database);
    grants.iter().filter(here).cloned().collect()
}

/// The databases of some grants.
pub(crate) fn databases(grants: &[AppliedGrant]) -> BTreeSet<String> {
    grants.iter().filter_map(|grant| grant.database.clone()).collect()
}

fn same_object(a: &AppliedGrant, b: &AppliedGrant) -> bool {
    (a.kind, &a.database, &a.schema, &a.name) == (b.kind, &b.database, &b.schema, &b.name)
}

fn words(grant: &AppliedGrant) -> Vec<&'static str> {
    WORDS
        .iter()
        .filter(|word| grant.privileges.iter().any(|given| given == *word))
        .copied()
        .collect()
}

fn is_there(grant: &AppliedGrant, contents: &Contents) -> bool {
    grant
        .schema
        .as_ref()
        .is_none_or(|schema| contents.schemas.contains_key(schema))
}

/// Whether the role has the privilege as the owner of the object. Revoking it would leave the owner with less than one
/// that was never granted anything.
fn comes_with_ownership(
    grant: &AppliedGrant,
    role: &str,
    facts: &DatabaseFacts,
    contents: &Contents,
) -> bool {
    let owner = match grant.kind {
        GrantKind::Database => Some(&facts.owner),
        GrantKind::Schema => {
            let schema = grant.schema.as_ref().and_then(|name| contents.schemas.get(name));
            schema.map(|schema| &schema.owner)
        }
        _ => None,
    };
    owner.is_some_and(|owner| owner == role)
}

fn is_held(grant: &AppliedGrant, word: &str, facts: &DatabaseFacts, contents: &Contents) -> bool {
    if grant.kind == GrantKind::Database {
        return facts.granted.contains(word);
    }
    is_in(&contents.held, grant, word)
}

/// Whether anything is left to revoke: a later table may lack what all others have.
fn is_on_any(grant: &AppliedGrant, word: &str, facts: &DatabaseFacts, contents: &Contents) -> bool {
    match grant.kind {
        GrantKind::Database => facts.revocable.contains(word),
        GrantKind::Schema | GrantKind::Tables | GrantKind::Sequences | GrantKind::Functions => {
            is_in(&contents.partly, grant, word)
        }
        GrantKind::DefaultTables
        | GrantKind::DefaultSequences
        | GrantKind::DefaultFunctions
        | GrantKind::Membership
        | GrantKind::Parameter => is_held(grant, word, facts, contents),
    }
}

fn is_in(held: &BTreeSet<Held>, grant: &AppliedGrant, word: &str) -> bool {
    held.iter().any(|held| {
        held.kind == grant.kind
            && Some(&held.schema) == grant.schema.as_ref()
            && held.owner == grant.name
            && held.word == word
    })
}

/// The part of `wanted` that the operator may revoke later. A role that existed before may already hold some of it:
/// that stays, unless an earlier reconcile granted it. Where a schema has no tables, the role holds a privilege on all of
/// them, but nobody granted it.
pub(crate) fn ours(
    wanted: Vec<AppliedGrant>,
    before: &[AppliedGrant],
    facts: &DatabaseFacts,
    contents: &Contents,
) -> Vec<AppliedGrant> {
    let given = |grant: &AppliedGrant, word: &str| {
        before
            .iter()
            .any(|other| same_object(other, grant) && other.privileges.iter().any(|given| given == word))
    };
    let mut ours = wanted;
    for grant in &mut ours {
        let mut words = std::mem::take(&mut grant.privileges);
        let of_many = matches!(
            grant.kind,
            GrantKind::Tables | GrantKind::Sequences | GrantKind::Functions
        );
        let had = |word: &str| {
            is_on_any(grant, word, facts, contents) || (!of_many && is_held(grant, word, facts, contents))
        };
        words.retain(|word| given(grant, word) || !had(word));
        grant.privileges = words;
    }
    ours.retain(|grant| !grant.privileges.is_empty());
    ours
}

/// All of both, without duplicates.
pub(crate) fn union(a: &[AppliedGrant], b: &[AppliedGrant]) -> Vec<AppliedGrant> {
    let mut all = a.to_vec();
    for grant in b {
        match all.iter_mut().find(|other| same_object(other, grant)) {
            Some(other) => {
                let more = grant.privileges.iter().cloned();
                let words: BTreeSet<String> = other.privileges.drain(..).chain(more).collect();
                other.privileges = words.into_iter().collect();
            }
            None => all.push(grant.clone()),
        }
    }
    all
}

fn describe(grant: &AppliedGrant, words: &[&str]) -> String {
    let on = match grant.kind {
        GrantKind::Database => "database",
        GrantKind::Schema => "schema",
        GrantKind::Tables | GrantKind::DefaultTables => "tables of",
        GrantKind::Sequences | GrantKind::DefaultSequences => "sequences of",
        GrantKind::Functions | GrantKind::DefaultFunctions => "functions of",
        GrantKind::Membership => "role",
        GrantKind::Parameter => "parameter",
    };
    let name = grant
        .schema
        .as_ref()
        .or(grant.database.as_ref())
        .or(grant.name.as_ref());
    format!("{} on {on} {}", words.join(", "), name.map_or("", String::as_str))
}

fn give(grant: &AppliedGrant, words: &[&'static str], role: &str) -> Statement {
    statement(grant, "GRANT ", words, " TO ", role)
}

fn take(grant: &AppliedGrant, words: &[&'static str], role: &str) -> Statement {
    statement(grant, "REVOKE ", words, " FROM ", role)
}

fn statement(
    grant: &AppliedGrant,
    verb: &'static str,
    words: &[&'static str],
    preposition: &'static str,
    role: &str,
) -> Statement {
    let schema = grant.schema.as_deref().unwrap_or_default();
    let database = grant.database.as_deref().unwrap_or_default();
    let owner = grant.name.as_deref().unwrap_or_default();
    let verb_and_words = |start: Statement| start.list(", ", words.iter().copied(), Statement::sql);
    let direct = || verb_and_words(Statement::new(verb));
    let default = || {
        let start = Statement::new("ALTER DEFAULT PRIVILEGES FOR ROLE ").ident(owner);
        verb_and_words(start.sql(" IN SCHEMA ").ident(schema).sql(" ").sql(verb))
    };
    let on = match grant.kind {
        GrantKind::Schema => direct().sql(" ON SCHEMA ").ident(schema),
        GrantKind::Tables => direct().sql(" ON ALL TABLES IN SCHEMA ").ident(schema),
        GrantKind::Sequences => direct().sql(" ON ALL SEQUENCES IN SCHEMA ").ident(schema),
        GrantKind::Functions => direct().sql(" ON ALL ROUTINES IN SCHEMA ").ident(schema),
        GrantKind::DefaultTables => default().sql(" ON TABLES"),
        GrantKind::DefaultSequences => default().sql(" ON SEQUENCES"),
        GrantKind::DefaultFunctions => default().sql(" ON ROUTINES"),
        GrantKind::Database | GrantKind::Membership | GrantKind::Parameter => {
            direct().sql(" ON DATABASE ").ident(database)
        }
    };
    on.sql(preposition).ident(role)
}
