//! Interrupted before or after every statement, and run again: the result is the same.

use stanchion_testkit::postgres::Version;
use stanchion_testkit::proxy::{Message, Point, Proxy, Stop};

use crate::database_dump;
use crate::database_env::{self, DatabaseEnv, full_request, pools};

async fn at_every_statement(version: Version) {
    let mut db_env = DatabaseEnv::new(version).await;
    let (expected, statements) = {
        let proxy = Proxy::postgres(db_env.server.address()).await;
        database_env::initialise(&pools(), &db_env.through(&proxy), &full_request())
            .await
            .unwrap();
        let seen = proxy.seen().messages;
        (
            database_dump::of(&db_env).await,
            seen.iter().filter(|message| message.is_statement()).count(),
        )
    };
    assert!(statements > 10, "{statements}");
    for nth in 1..=statements {
        for point in [Point::Before, Point::After] {
            db_env.renew("shop").await;
            let proxy = Proxy::postgres(db_env.server.address()).await;
            proxy.stop(
                Stop::at(nth, point)
                    .counting(Message::is_statement)
                    .and_stay_cut(),
            );
            let first = database_env::initialise(&pools(), &db_env.through(&proxy), &full_request()).await;
            assert!(
                first.is_err() || nth == statements,
                "statement {nth} was not the last"
            );
            let again = db_env.initialise(&full_request()).await;
            again.unwrap_or_else(|problem| panic!("{point:?} statement {nth} of {statements}: {problem:?}"));
            assert_eq!(
                database_dump::of(&db_env).await,
                expected,
                "{point:?} statement {nth} of {statements}"
            );
        }
    }
}

#[tokio::test]
async fn at_every_statement_on_15() {
    at_every_statement(Version::V15).await;
}

#[tokio::test]
async fn at_every_statement_on_18() {
    at_every_statement(Version::V18).await;
}
