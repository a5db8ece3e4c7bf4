//! What is left to do, for constructed catalogs.

use std::sync::{Arc, LazyLock};

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use secrecy::ExposeSecret as _;
use stanchion_kernel::redact::FingerprintKey;
use stanchion_postgres::server::Attributes;

use super::*;
use crate::database::catalog::{Internal, Recorded, RoleFacts, fresh};
use crate::database::mark::{self, Mark};
use crate::database::roles;

static KEY: LazyLock<Arc<FingerprintKey>> = LazyLock::new(|| Arc::new(FingerprintKey::generate()));

const SUPERUSER: Attributes = Attributes {
    superuser: true,
    create_role: true,
    create_db: true,
    bypass_rls: true,
    replication: true,
};

fn random() -> StdRng {
    StdRng::seed_from_u64(1)
}

fn request() -> Request {
    Request {
        project: "default/shop".to_owned(),
        uid: "uid".to_owned(),
        passwords: [(Login::Rest, "a password".to_owned().into())].into(),
        key: Arc::clone(&KEY),
    }
}

/// A database in which everything is done.
fn done() -> Catalog {
    let mut catalog = fresh(180_000, SUPERUSER);
    let seen = seen(&catalog);
    catalog.installation = Some(("default/shop".to_owned(), String::new()));
    for step in TABLE {
        let recorded = Recorded {
            hash: step.hash(),
            skipped: None,
            seen: seen.clone(),
        };
        catalog.steps.insert(step.number, recorded);
    }
    let marked = ownership::mark("shop", "", &request()).unwrap().to_string();
    let comment = marked.split_once(" IS '").unwrap().1.strip_suffix('\'').unwrap();
    comment.clone_into(&mut catalog.database.comment);
    let verifier = stanchion_postgres::scram::verifier(&"a password".to_owned().into(), &[7; 16]);
    catalog.verifiers.insert("authenticator".to_owned(), verifier);
    for role in roles::TABLE.iter().filter(|role| role.always) {
        let mark = Mark::new("default/shop", catalog.database.oid, role.name, true, &KEY);
        let facts = RoleFacts {
            login: role.login == Some(Login::Rest),
            create_db: true,
            create_role: true,
            replication: true,
            bypass_rls: true,
            comment: role.login.map(|_| mark::join("", &mark)).unwrap_or_default(),
            marked_database_exists: true,
            ..RoleFacts::default()
        };
        catalog.roles.insert(role.name.to_owned(), facts);
    }
    catalog
}

fn left(catalog: &Catalog) -> Vec<String> {
    let pending = pending(catalog, &request(), &mut random()).unwrap();
    pending.statements.iter().map(ToString::to_string).collect()
}

#[test]
fn nothing_is_left_where_everything_is_done() {
    let pending = pending(&done(), &request(), &mut random()).unwrap();
    assert!(pending.is_empty(), "{pending:?}");
}

#[test]
fn a_role_gains_what_it_lacks_and_loses_nothing() {
    let mut catalog = done();
    let role = catalog.roles.get_mut("authenticator").unwrap();
    (role.login, role.create_db) = (false, true);
    catalog.roles.get_mut("service_role").unwrap().bypass_rls = false;
    catalog.verifiers.clear();
    assert_eq!(
        left(&catalog),
        [
            r#"ALTER ROLE "service_role" BYPASSRLS"#,
            r#"ALTER ROLE "authenticator" LOGIN PASSWORD '[redacted]'"#
        ]
    );
}

#[test]
fn a_skipped_step_waits_for_another_server() {
    let mut catalog = done();
    let recorded = catalog.steps.get_mut(&80).unwrap();
    recorded.skipped = Some("permission denied".to_owned());
    let waiting = pending(&catalog, &request(), &mut random()).unwrap();
    assert!(waiting.is_empty());
    assert!(waiting.notes.iter().any(|note| note.about == "schema reload"));
    catalog.steps.get_mut(&80).unwrap().seen = "somebody else".to_owned();
    assert_eq!(
        pending(&catalog, &request(), &mut random()).unwrap().steps(),
        ["schema reload"]
    );
}

#[test]
fn an_internal_database_that_is_gone_is_made_anew() {
    let mut request = request();
    request
        .passwords
        .insert(Login::Pooler, "another".to_owned().into());
    let pending = pending(&done(), &request, &mut random()).unwrap();
    assert!(pending.creates_database);
    let names: Vec<_> = pending.internal.iter().map(|step| step.name).collect();
    assert_eq!(names, ["schema of the pooler", "objects of the pooler"]);
}

/// Only an owner may comment on a database: another administrator's would fail the whole transaction.
#[test]
fn an_internal_database_of_another_owner_is_not_marked() {
    let mut request = request();
    request
        .passwords
        .insert(Login::Pooler, "another".to_owned().into());
    let marks = |ours: bool| {
        let mut catalog = done();
        let found = Internal {
            oid: 99,
            owner: "earlier".to_owned(),
            superuser: true,
            ours,
            comment: String::new(),
        };
        catalog.database.internal.insert("_supabase".to_owned(), found);
        let pending = pending(&catalog, &request, &mut random()).unwrap();
        let statements = pending.statements.iter().map(ToString::to_string);
        let marked = statements
            .filter(|statement| statement.contains(r#"COMMENT ON DATABASE "_supabase""#))
            .count();
        let remedy = r#"ALTER DATABASE "_supabase" OWNER TO "boss""#;
        let notes = pending.notes.iter();
        (marked, notes.filter(|note| note.message.contains(remedy)).count())
    };
    assert_eq!((marks(true), marks(false)), ((1, 0), (0, 1)));
}

/// The record of what the operator created is lost with a database; the marks of the logins are not.
#[test]
fn what_was_created_for_an_earlier_database_is_recorded_in_the_new_one() {
    let (earlier, internal) = (1234, "_supabase");
    let recorded = |mark: Mark, internal_oid: u32| {
        let mut catalog = done();
        catalog.installation = None;
        catalog.steps.clear();
        let role = catalog.roles.get_mut("authenticator").unwrap();
        role.comment = mark::join("", &mark);
        role.marked_database_exists = false;
        let found = Internal {
            oid: internal_oid,
            owner: "boss".to_owned(),
            superuser: true,
            ours: true,
            comment: String::new(),
        };
        catalog.database.internal.insert(internal.to_owned(), found);
        let all = left(&catalog).into_iter();
        all.filter(|statement| {
            statement.contains("VALUES ('role'") || statement.contains("VALUES ('database'")
        })
        .collect::<Vec<_>>()
    };
    let of = |created| Mark::new("default/shop", earlier, "authenticator", created, &KEY);
    let ours = created_objects::database_oid("default/shop", earlier, internal);
    let insert = |kind: &str, name: &str| {
        format!("INSERT INTO _stanchion.made (kind, name) VALUES ('{kind}', '{name}') ON CONFLICT DO NOTHING")
    };
    assert_eq!(
        recorded(of(true), ours),
        [insert("role", "authenticator"), insert("database", internal)]
    );
    assert_eq!(recorded(of(true), 99), [insert("role", "authenticator")]);
    assert_eq!(
        recorded(of(false), ours),
        [""; 0],
        "it was there before the project"
    );
}

#[test]
fn the_same_random_numbers_make_the_same_verifiers() {
    let verifier = |seed| {
        let mut random = StdRng::seed_from_u64(seed);
        let roles = logins::changes(
            &fresh(180_000, SUPERUSER),
            &request(),
            &Names::default(),
            &mut random,
        );
        roles.unwrap().verifiers[0].1.expose_secret().to_owned()
    };
    assert_eq!(verifier(1), verifier(1));
    assert_ne!(verifier(1), verifier(2));
}
