//! Hostile servers, simulated by the test: their data is measured, and refused before it is kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stanchion_postgres::network::AllowedNetworks;
use stanchion_postgres::{
    Batch, Class, ConnectionConfig, Error, Kind, Limits, PoolSettings, Pools, Query, Security, Session,
    Statement, Terms, TlsMode,
};
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD, Postgres, Tls, Version};
use stanchion_testkit::unique;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{connect, target};

pub(crate) const LOGGED_IN: [u8; 4] = [0, 0, 0, 0];

pub(crate) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = i32::try_from(body.len() + 4).unwrap();
    [&[tag], length.to_be_bytes().as_slice(), body].concat()
}

pub(crate) fn row(values: &[&str]) -> Vec<u8> {
    let mut body = u16::try_from(values.len()).unwrap().to_be_bytes().to_vec();
    for value in values {
        body.extend(i32::try_from(value.len()).unwrap().to_be_bytes());
        body.extend(value.as_bytes());
    }
    message(b'D', &body)
}

pub(crate) fn columns(count: u16) -> Vec<u8> {
    let mut body = count.to_be_bytes().to_vec();
    for _ in 0..count {
        body.extend(b"c\0");
        body.extend([
            0, 0, 0, 0, 0, 0, 0, 0, 0, 25, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0,
        ]);
    }
    message(b'T', &body)
}

pub(crate) fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

/// The behaviour of a hostile server.
#[derive(Clone)]
enum Malice {
    /// Sends these bytes in answer to the startup message, repeatedly.
    AtLogin(Vec<u8>),
    /// Sends the first bytes once, and then the second ones repeatedly, in answer to the first query after the login.
    AtQuestion(Vec<u8>, Vec<u8>),
    /// Accepts a login without a password, and reports a system identifier of its choice.
    Says(&'static str),
}

/// Serves one kind of behaviour to all clients. Returns the target, and the number of sent bytes.
async fn serve(malice: Malice) -> (ConnectionConfig, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sent);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(attack(stream, malice.clone(), Arc::clone(&counter)));
        }
    });
    let target = ConnectionConfig::new("127.0.0.1", port, "d", "u").unwrap();
    (target.with_password("hunter2-hunter2".into()), sent)
}

async fn attack(mut stream: TcpStream, malice: Malice, sent: Arc<AtomicUsize>) -> Option<()> {
    let mut buffer = vec![0; 65536];
    // No TLS here.
    let begun = stream.read(&mut buffer).await.ok()?;
    if begun == 8 {
        stream.write_all(b"N").await.ok()?;
        let _ = stream.read(&mut buffer).await.ok()?;
    }
    let flood = match &malice {
        Malice::AtLogin(flood) => flood,
        Malice::AtQuestion(..) | Malice::Says(_) => {
            let system = if let Malice::Says(system) = malice {
                system
            } else {
                "1"
            };
            let welcome = [
                message(b'R', &LOGGED_IN),
                message(b'K', &[0, 0, 0, 1, 0, 0, 0, 2]),
                ready(),
            ];
            stream.write_all(&welcome.concat()).await.ok()?;
            let _ = stream.read(&mut buffer).await.ok()?;
            let identity = [
                columns(4),
                row(&[system, "5", "d", "150004"]),
                message(b'C', b"SELECT 1\0"),
                ready(),
            ];
            stream.write_all(&identity.concat()).await.ok()?;
            let Malice::AtQuestion(first, flood) = &malice else {
                while stream.read(&mut buffer).await.ok()? > 0 {}
                return None;
            };
            let _ = stream.read(&mut buffer).await.ok()?;
            stream.write_all(first).await.ok()?;
            flood
        }
    };
    // Many at a time: the test measures the client, not this server.
    let piece = flood.repeat((65536 / flood.len()).max(1));
    loop {
        stream.write_all(&piece).await.ok()?;
        sent.fetch_add(piece.len(), Ordering::Relaxed);
    }
}

async fn ask(malice: Vec<u8>) -> (Error, usize) {
    ask_after(Vec::new(), malice).await
}

async fn ask_after(first: Vec<u8>, flood: Vec<u8>) -> (Error, usize) {
    let (target, sent) = serve(Malice::AtQuestion(first, flood)).await;
    let session = connect(&target).await.unwrap();
    let error = session.query(&Query::new("SELECT 1")).await.unwrap_err();
    assert!(!session.is_reusable());
    drop(session);
    (error, sent.load(Ordering::Relaxed))
}

/// What the sockets between both sides may hold, in addition to what was accepted.
const SOCKETS: usize = 16 << 20;

#[tokio::test]
async fn rows_without_end() {
    for row in [row(&["x"]), row(&[&"x".repeat(1000)]), message(b'D', &[0, 0])] {
        let columns = columns(u16::from(row.len() > 7));
        let (error, bytes) = ask_after(columns.clone(), row.clone()).await;
        assert_eq!(
            (error.kind(), error.class()),
            (Kind::TooMuch, Class::Human),
            "{error}"
        );
        assert!(bytes < Limits::SHARED.answer + SOCKETS, "{bytes}");
        // The same in answer to a statement of a batch.
        let (target, sent) = serve(Malice::AtQuestion(columns, row)).await;
        let mut session = connect(&target).await.unwrap();
        let batch = Batch::new(vec![Statement::new("SELECT 1")]);
        let error = session.apply(&batch).await.unwrap_err();
        assert!(error.to_string().contains("the server's answer"), "{error}");
        assert!(!session.is_reusable());
        assert!(sent.load(Ordering::Relaxed) < Limits::SHARED.answer + SOCKETS);
    }
}

/// Many servers flood at once: the memory for all their answers together is bounded.
#[tokio::test]
async fn floods_from_many_servers_share_one_budget() {
    const SERVERS: usize = 12;
    let pools = Pools::new(PoolSettings::default(), Arc::new(()));
    let flood = async |number: usize| {
        let (target, sent) = serve(Malice::AtQuestion(columns(1), row(&[&"x".repeat(1000)]))).await;
        let session = pools.get(&target).await.unwrap();
        let error = session.query(&Query::new("SELECT 1")).await.unwrap_err();
        // It was either too much for one, or too much for all of them together.
        assert!(
            matches!(error.kind(), Kind::TooMuch | Kind::Exhausted),
            "{number}: {error}"
        );
        sent.load(Ordering::Relaxed)
    };
    let sent = futures::future::join_all((0..SERVERS).map(flood)).await;
    assert_eq!(sent.len(), SERVERS);
}

/// Large answers that are in use, all of one namespace, leave the other half of the budget to the others.
#[tokio::test]
async fn one_namespace_has_half_of_the_budget() {
    let server = Postgres::start(Version::V15).await;
    let database = server.database().await;
    let pools = Pools::new(PoolSettings::default(), Arc::new(()));
    let large = async |namespace: &str| {
        let target = target(&database.url())
            .with_application_name(namespace)
            .named_in(namespace);
        let session = pools.get(&target).await.unwrap();
        let query =
            Query::new("SELECT pg_catalog.repeat('x', 1000000) FROM pg_catalog.generate_series(1, 20)");
        let rows = session.query(&query).await?;
        assert_eq!(rows.len(), 20);
        Ok::<_, Error>(session.keep_answer())
    };
    let first = large("evil").await.unwrap();
    let error = large("evil").await.unwrap_err();
    assert_eq!(error.kind(), Kind::Exhausted, "{error}");
    let bank = large("bank").await.unwrap();
    drop(first);
    drop(large("evil").await.unwrap());
    drop(bank);
}

#[tokio::test]
async fn one_row_of_two_gigabytes() {
    let header = [b'D', 0x7f, 0xff, 0xff, 0xff];
    let (error, bytes) = ask([header.as_slice(), &[b'x'; 4096]].concat()).await;
    assert_eq!(error.kind(), Kind::TooMuch);
    assert!(error.to_string().contains("2147483643 bytes"), "{error}");
    assert!(bytes < SOCKETS, "{bytes}");
}

#[tokio::test]
async fn floods_beside_the_answer() {
    let notice = message(b'N', b"SNOTICE\0C00000\0Mhello\0\0");
    let status = message(b'S', b"name\0value\0");
    let notification = message(b'A', b"\0\0\0\x01channel\0payload\0");
    for flood in [notice, status, notification, ready()] {
        let (error, bytes) = ask(flood.clone()).await;
        assert_eq!(error.kind(), Kind::TooMuch, "{error}");
        assert!(bytes < Limits::SHARED.answer + SOCKETS, "{bytes}");
        // And before the login.
        let (target, sent) = serve(Malice::AtLogin(flood)).await;
        assert!(connect(&target).await.is_err());
        assert!(sent.load(Ordering::Relaxed) < SOCKETS);
    }
}

/// The driver looks types up, and a type can consist of other types, without end.
#[tokio::test]
async fn types_without_end() {
    // A column of an unknown type, and in answer to every query about it another one.
    let mut unknown = columns(1);
    let place = unknown.len() - 9;
    unknown[place] = 0x7f;
    let (error, _) = ask([unknown, message(b'C', b"SELECT 0\0"), ready()].concat()).await;
    assert_ne!(error.class(), Class::Permanent, "{error}");
}

#[tokio::test]
async fn errors_are_short_and_on_one_line() {
    let text = format!("a\nforged line\x1b[2J{}", "x".repeat(500_000));
    let fields = [
        b"SERROR\0C".as_slice(),
        b"42501",
        b"\0M",
        text.as_bytes(),
        b"\0D",
        text.as_bytes(),
        b"\0\0",
    ];
    let error = ask([message(b'E', &fields.concat()), ready()].concat()).await.0;
    assert_eq!(error.sqlstate(), Some("42501"));
    let shown = format!("{error} {error:?}");
    assert!(error.to_string().len() < 5000, "{}", error.to_string().len());
    assert!(!shown.contains('\n') && !shown.contains('\x1b'), "{shown}");
    assert!(
        shown.contains("a\\\\nforged line") || shown.contains("a\\nforged line"),
        "{shown}"
    );
    // An invalid code, and an error above the limit.
    let odd = [
        b"SERROR\0C".as_slice(),
        "x\n".repeat(500).as_bytes(),
        b"\0Mno\0\0",
    ]
    .concat();
    let error = ask([message(b'E', &odd), ready()].concat()).await.0;
    assert_eq!(error.sqlstate(), Some("?????"));
    let huge = [
        b"SERROR\0C42501\0M".as_slice(),
        "x".repeat(3_000_000).as_bytes(),
        b"\0\0",
    ]
    .concat();
    let error = ask(message(b'E', &huge)).await.0;
    assert_eq!(error.kind(), Kind::TooMuch, "{error}");
}

/// An unverified server asks for the password: in cleartext, as md5, or with SCRAM iterations that take hours.
#[tokio::test]
async fn a_server_that_may_be_anybody_gets_no_password() {
    for (request, kind) in [
        (vec![0, 0, 0, 3], Kind::Unverified),
        (vec![0, 0, 0, 5, 1, 2, 3, 4], Kind::Unverified),
        (
            [&[0, 0, 0, 11], b"r=a,s=YQ==,i=4294967295".as_slice()].concat(),
            Kind::TooMuch,
        ),
    ] {
        for mode in [TlsMode::Disable, TlsMode::Prefer] {
            let (target, _) = serve(Malice::AtLogin(message(b'R', &request))).await;
            let error = connect(&target.with_tls(mode, None)).await.unwrap_err();
            assert_eq!((error.kind(), error.class()), (kind, Class::Human), "{error}");
            assert!(!format!("{error}{error:?}").contains("hunter2"));
        }
    }
}

/// With a verified server, every method of PostgreSQL works; with others, only SCRAM.
#[tokio::test]
async fn old_passwords_need_a_verified_server() {
    let hba = std::env::temp_dir().join(format!("{}.conf", unique::name("hba")));
    let lines = "host all clear 127.0.0.1/32 password\nhost all old 127.0.0.1/32 md5\nhost all all 127.0.0.1/32 scram-sha-256\n";
    std::fs::write(&hba, lines).unwrap();
    let server = Postgres::builder(Version::V15)
        .tls(Tls {
            names: vec!["localhost".into()],
            required: false,
        })
        .setting("hba_file", &hba.display().to_string())
        .start()
        .await;
    let roles = "CREATE ROLE clear LOGIN PASSWORD 'secret-secret'; SET password_encryption = 'md5'; \
                 CREATE ROLE old LOGIN PASSWORD 'secret-secret'";
    server.execute("postgres", roles).await;
    let ours = server.authority().unwrap().pem().to_owned();
    let at = |user: &str, password: &str, mode, ca: Option<&str>| {
        ConnectionConfig::new("localhost", server.port(), "postgres", user)
            .unwrap()
            .with_password(password.into())
            .with_tls(mode, ca.map(str::to_owned))
    };
    let cases = [
        (TlsMode::Disable, None, false, false),
        (TlsMode::Prefer, None, true, false),
        (TlsMode::Prefer, Some(ours.as_str()), true, false),
        (TlsMode::Require, None, true, false),
        (TlsMode::Require, Some(ours.as_str()), true, true),
        (TlsMode::VerifyCa, Some(ours.as_str()), true, true),
        (TlsMode::VerifyFull, Some(ours.as_str()), true, true),
    ];
    for (mode, ca, encrypted, verified) in cases {
        let scram = connect(&at(ADMIN, ADMIN_PASSWORD, mode, ca)).await.unwrap();
        let seen = Security { encrypted, verified };
        assert_eq!((scram.security(), scram.verified()), (seen, verified), "{mode:?}");
        for user in ["clear", "old"] {
            let session = connect(&at(user, "secret-secret", mode, ca)).await;
            let seen = session.map(|_| ()).map_err(|error| error.kind());
            let expected = if verified { Ok(()) } else { Err(Kind::Unverified) };
            assert_eq!(seen, expected, "{user} {mode:?}");
        }
    }
    std::fs::remove_file(&hba).unwrap();
}

#[tokio::test]
async fn an_operator_in_a_pod_connects_to_nobody_at_home() {
    let server = Postgres::shared(Version::V15).await;
    let terms = |allowed: &[&str]| Terms {
        networks: AllowedNetworks::in_pod(
            allowed.iter().map(|text| text.parse().unwrap()).collect(),
            vec!["10.96.0.1".parse().unwrap()],
        ),
        ..Terms::default()
    };
    let at = |host: &str| {
        ConnectionConfig::new(host, server.port(), "postgres", ADMIN)
            .unwrap()
            .with_password(ADMIN_PASSWORD.into())
    };
    for host in [
        "127.0.0.1",
        "localhost",
        "::ffff:127.0.0.1",
        "0.0.0.0",
        "169.254.169.254",
        "10.96.0.1",
        "/tmp",
        "::1",
    ] {
        let refused = Session::connect_on(&at(host), &terms(&[]), Arc::new(())).await;
        let error = refused.unwrap_err();
        assert_eq!(
            (error.kind(), error.class()),
            (Kind::Forbidden, Class::Human),
            "{host}: {error}"
        );
        assert!(error.to_string().contains("--allow-network"), "{error}");
    }
    Session::connect_on(&at("127.0.0.1"), &terms(&["127.0.0.0/8"]), Arc::new(()))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_forged_identifier_is_only_what_a_server_says() {
    let (target, _) = serve(Malice::Says("7000000000000000001")).await;
    let session = connect(&target).await.unwrap();
    assert_eq!(session.identity().system(), "7000000000000000001");
    assert_eq!(
        session.peer(),
        target.to_string(),
        "where it said so is what counts"
    );
}
