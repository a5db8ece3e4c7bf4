//! Verifiers against the server that checks them.

use secrecy::{ExposeSecret, SecretString};
use stanchion_postgres::scram::{self, Encoding};
use stanchion_postgres::{Batch, Class, Statement, quote};
use stanchion_testkit::postgres::{Database, versions};
use stanchion_testkit::unique;

use crate::support::{SALT, connect, session, target};

const PASSWORDS: &[&str] = &[
    "simple",
    "p' SUPERUSER VALID UNTIL 'infinity",
    r#"back\slash "quotes" $$ -- /* */ ; \'"#,
    "@:/?#[]%20&=+",
    " spaces around ",
    "pässwörd ✓ 密码",
    "\u{2168} roman nine",
    "non\u{a0}breaking",
    "soft\u{ad}hyphen",
    "bell\u{7}",
    "😀 emoji",
    "\u{1f130} squared",
    "\u{ad}",
];

#[tokio::test]
async fn our_verifier_logs_in_and_the_servers_own_matches() {
    for version in versions() {
        let database = Database::of(version).await;
        let mut session = session(&database).await;
        for password in PASSWORDS {
            let role = unique::name("scram");
            let verifier = scram::verifier(&(*password).into(), &SALT);
            let create = Statement::new("CREATE ROLE ")
                .ident(&role)
                .sql(" LOGIN PASSWORD ")
                .secret(&verifier);
            session.apply(&Batch::new(vec![create])).await.unwrap();
            // The driver prepares these two differently from PostgreSQL and libpq.
            if !["\u{ad}", "\u{1f130} squared"].contains(password) {
                connect(&target(&database.url_of(&role, password))).await.unwrap();
            }
            let wrong = connect(&target(&database.url_of(&role, "wrong")))
                .await
                .unwrap_err();
            assert_eq!(
                (wrong.sqlstate(), wrong.class()),
                (Some("28P01"), Class::Dependency)
            );

            // The server computes the same from the cleartext password.
            database
                .execute(&format!(
                    "ALTER ROLE {role} PASSWORD {}",
                    quote::literal(password)
                ))
                .await;
            let stored = database
                .scalar(&format!(
                    "SELECT rolpassword FROM pg_authid WHERE rolname = '{role}'"
                ))
                .await;
            let stored: SecretString = stored.unwrap().into();
            assert_eq!(scram::encoding(&stored), Encoding::Scram);
            assert_eq!(
                scram::matches(&(*password).into(), stored.expose_secret()),
                Some(true),
                "{password:?}"
            );
            assert_eq!(
                scram::matches(&"wrong".into(), stored.expose_secret()),
                Some(false)
            );
        }
    }
}
