//! The proxy cuts, holds, counts, and stops at a chosen message.

use std::time::Duration;

use stanchion_testkit::{
    postgres::{ADMIN, ADMIN_PASSWORD, Database, Version},
    proxy::{Cut, Kind, Message, Point, Proxy, Stop},
    wait::eventually,
};
use tokio_postgres::{Client, NoTls};

use crate::DEADLINE;

async fn proxied() -> (Database<'static>, Proxy) {
    let database = Database::of(Version::V15).await;
    let proxy = Proxy::postgres(database.server().address()).await;
    (database, proxy)
}

async fn connect(proxy: &Proxy, database: &Database<'_>) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::Config::new()
        .host("127.0.0.1")
        .port(proxy.port())
        .user(ADMIN)
        .password(ADMIN_PASSWORD)
        .dbname(database.name())
        .connect(NoTls)
        .await?;
    tokio::spawn(connection);
    Ok(client)
}

#[tokio::test]
async fn it_passes_through_and_counts() {
    let (database, proxy) = proxied().await;
    let client = connect(&proxy, &database).await.unwrap();
    proxy.forget();
    client.batch_execute("SELECT 1; SELECT 2").await.unwrap();
    client.batch_execute("SELECT 3").await.unwrap();
    let seen = proxy.seen();
    assert_eq!(seen.round_trips, 2);
    assert_eq!(seen.open, 1);
    let sql: Vec<_> = seen
        .messages
        .iter()
        .filter_map(|message| message.sql.as_deref())
        .collect();
    assert_eq!(sql, ["SELECT 1; SELECT 2", "SELECT 3"]);
    assert!(seen.messages.iter().all(Message::is_statement));
}

#[tokio::test]
async fn a_cut_ends_sessions_and_refuses_new_ones_until_restored() {
    let (database, proxy) = proxied().await;
    for how in [Cut::Refuse, Cut::Close] {
        let client = connect(&proxy, &database).await.unwrap();
        proxy.forget();
        proxy.cut(how).await;
        assert!(client.batch_execute("SELECT 1").await.is_err());
        assert!(connect(&proxy, &database).await.is_err());
        assert_eq!(proxy.seen().attempts.len(), usize::from(how == Cut::Close));
        proxy.restore().await;
        connect(&proxy, &database)
            .await
            .unwrap()
            .batch_execute("SELECT 1")
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn held_data_arrives_when_restored() {
    let (database, proxy) = proxied().await;
    let client = connect(&proxy, &database).await.unwrap();
    proxy.hold();
    let query = tokio::spawn(async move { client.batch_execute("SELECT 1").await });
    database.execute("SELECT 'directly'").await;
    assert!(!query.is_finished());
    proxy.restore().await;
    query.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn each_direction_can_be_delayed() {
    // A server in the same runtime, so that both use the paused clock.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let (mut reader, mut writer) = socket.split();
        tokio::io::copy(&mut reader, &mut writer).await.unwrap();
    });
    let proxy = Proxy::start(target, stanchion_testkit::proxy::Framing::Raw).await;
    proxy.delay(Duration::from_secs(3), Duration::from_secs(4));
    let mut socket = tokio::net::TcpStream::connect(proxy.address()).await.unwrap();
    let started = tokio::time::Instant::now();
    tokio::io::AsyncWriteExt::write_all(&mut socket, b"ping")
        .await
        .unwrap();
    let mut echo = [0; 4];
    tokio::io::AsyncReadExt::read_exact(&mut socket, &mut echo)
        .await
        .unwrap();
    assert_eq!(&echo, b"ping");
    assert!(
        started.elapsed() >= Duration::from_secs(7),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn stopped_before_a_statement_it_is_not_executed_and_after_it_is() {
    let (database, proxy) = proxied().await;
    database.execute("CREATE TABLE t (a int)").await;
    for (point, rows) in [(Point::Before, "0"), (Point::After, "1")] {
        let client = connect(&proxy, &database).await.unwrap();
        proxy.stop(Stop::at(2, point).counting(Message::is_statement));
        client.batch_execute("SELECT 'first'").await.unwrap();
        assert!(client.batch_execute("INSERT INTO t VALUES (1)").await.is_err());
        assert_eq!(
            proxy.stopped().await.sql.as_deref(),
            Some("INSERT INTO t VALUES (1)")
        );
        assert_eq!(
            database.scalar("SELECT count(*) FROM t").await.as_deref(),
            Some(rows),
            "{point:?}"
        );
        connect(&proxy, &database)
            .await
            .expect("only the one connection is lost");
    }
}

#[tokio::test]
async fn every_message_of_a_session_can_be_the_last() {
    let (database, proxy) = proxied().await;
    let session = async || -> Result<(), tokio_postgres::Error> {
        let client = connect(&proxy, &database).await?;
        client.query("SELECT $1::int", &[&1]).await.map(drop)
    };
    session().await.unwrap();
    // Its terminate message comes late, and would be the first message to count.
    eventually(DEADLINE, "the session to be gone", || async {
        proxy.seen().open == 0
    })
    .await;
    let messages: Vec<_> = proxy.seen().messages.iter().map(|message| message.kind).collect();
    assert_eq!(messages[0], Kind::Startup);
    // The last messages are close and terminate: losing them causes no failure.
    let needed = messages
        .iter()
        .position(|&kind| kind == Kind::Typed('E'))
        .unwrap()
        + 1;
    for nth in 1..=needed {
        proxy.stop(Stop::at(nth, Point::Before).and_stay_cut());
        assert!(session().await.is_err(), "message {nth} of {messages:?}");
        proxy.stopped().await;
        assert!(session().await.is_err(), "it stays cut");
        proxy.restore().await;
    }
    session().await.unwrap();
}
