//! What opens which breaker: the database, the account, or nothing.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use parking_lot::Mutex;
use stanchion_postgres::ConnectionConfig;
use stanchion_testkit::postgres::{Database, Version};
use stanchion_testkit::proxy::Proxy;
use stanchion_testkit::wait;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{counts, pools};
use crate::hostile::{LOGGED_IN, columns, message, ready, row};
use crate::support::{WAIT_TIMEOUT, target, through};

/// Opening one connection takes longer than a task waits for the attempt of another one.
#[tokio::test]
async fn a_slow_server_that_answered_before_is_connected_to_by_all_at_once() {
    let database = Database::of(Version::V15).await;
    let proxy = Proxy::postgres(database.server().address()).await;
    let slow = target(&through(&database, &proxy));
    let pools = pools(|settings| settings.timeouts.connect = WAIT_TIMEOUT);
    drop(pools.get(&slow).await.unwrap());
    pools.close_idle().await;
    proxy.delay(Duration::from_millis(300), Duration::from_millis(300));
    for opened in futures::future::join_all((0..4).map(|_| pools.get(&slow))).await {
        assert_eq!(opened.err().map(|error| error.to_string()), None);
    }
}

/// A server that accepts every login, or refuses every one with an SQLSTATE.
struct Scripted {
    port: u16,
    refusal: Arc<Mutex<Option<Refusal>>>,
}

/// An SQLSTATE, and the function of the server that reports it.
type Refusal = (&'static str, &'static str);

impl Scripted {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let refusal = Arc::<Mutex<Option<Refusal>>>::default();
        let script = Arc::clone(&refusal);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, *script.lock()));
            }
        });
        Self { port, refusal }
    }

    fn target(&self, database: &str) -> ConnectionConfig {
        ConnectionConfig::new("127.0.0.1", self.port, database, "u").unwrap()
    }

    fn refuse(&self, refusal: Option<Refusal>) {
        *self.refusal.lock() = refusal;
    }
}

async fn serve(mut stream: TcpStream, refusal: Option<Refusal>) -> Option<()> {
    let mut buffer = vec![0; 65536];
    // No TLS here.
    if stream.read(&mut buffer).await.ok()? == 8 {
        stream.write_all(b"N").await.ok()?;
        let _ = stream.read(&mut buffer).await.ok()?;
    }
    if let Some((code, routine)) = refusal {
        let fields = format!("SFATAL\0VFATAL\0C{code}\0Mno\0R{routine}\0\0");
        stream.write_all(&message(b'E', fields.as_bytes())).await.ok()?;
        return None;
    }
    let welcome = [
        message(b'R', &LOGGED_IN),
        message(b'K', &[0, 0, 0, 1, 0, 0, 0, 2]),
        ready(),
    ];
    stream.write_all(&welcome.concat()).await.ok()?;
    let _ = stream.read(&mut buffer).await.ok()?;
    let identity = [
        columns(4),
        row(&["1", "5", "d", "150004"]),
        message(b'C', b"SELECT 1\0"),
        ready(),
    ];
    stream.write_all(&identity.concat()).await.ok()?;
    while stream.read(&mut buffer).await.ok()? > 0 {}
    None
}

/// No memory, a full disk, an input/output error, and what a proxy returns without a server behind it.
#[tokio::test]
async fn a_server_that_fails_is_lost_whatever_the_database() {
    for code in ["53200", "53100", "58030", "XX000"] {
        let server = Scripted::start().await;
        let pools = pools(|_| {});
        let mut losses = pools.losses();
        drop(pools.get(&server.target("one")).await.unwrap());
        pools.close_idle().await;
        server.refuse(Some((code, "InitPostgres")));
        let error = pools.get(&server.target("one")).await.err().unwrap();
        assert_eq!(error.sqlstate(), Some(code), "{error}");
        assert!(counts(&pools).broken, "{code}");
        let lost = losses.next().now_or_never();
        assert_eq!(lost.as_deref(), Some(server.target("one").to_string().as_str()));
        let error = pools.get(&server.target("two")).await.err().unwrap();
        assert!(error.was_not_tried(), "{error}");
    }
}

/// A database and a server return the same code when they have no room, from different functions. A proxy names none.
#[tokio::test]
async fn a_server_without_room_is_lost() {
    for routine in ["InitProcess", "InitPostgres", "InitializeSessionUserId", ""] {
        let server = Scripted::start().await;
        let pools = pools(|_| {});
        let mut losses = pools.losses();
        drop(pools.get(&server.target("one")).await.unwrap());
        pools.close_idle().await;
        server.refuse(Some(("53300", "CheckMyDatabase")));
        for database in ["one", "two"] {
            let error = pools.get(&server.target(database)).await.err().unwrap();
            assert!(!error.was_not_tried(), "{error}");
        }
        assert!(!counts(&pools).broken, "these are limits of databases");
        assert!(losses.next().now_or_never().is_none());
        server.refuse(Some(("53300", routine)));
        let error = pools.get(&server.target("three")).await.err().unwrap();
        assert!(!error.was_not_tried(), "{error}");
        assert!(counts(&pools).broken, "{routine}");
        assert!(losses.next().now_or_never().is_some());
        let error = pools.get(&server.target("four")).await.err().unwrap();
        assert!(error.was_not_tried(), "{error}");
        server.refuse(None);
        wait::eventually(WAIT_TIMEOUT, "the server again", async || {
            pools.get(&server.target("four")).await.ok()
        })
        .await;
        assert!(!counts(&pools).broken);
    }
}

/// The metrics say that a circuit is open, until somebody uses the server again. Nobody does when its objects are gone.
#[tokio::test(start_paused = true)]
async fn a_server_that_no_object_names_any_more_is_not_counted() {
    let pools = pools(|_| {});
    let server = |port| ConnectionConfig::new("127.0.0.1", port, "d", "u").unwrap();
    pools.limit(&server(1), 3);
    tokio::time::sleep(Duration::from_mins(9)).await;
    pools.limit(&server(2), 3);
    assert_eq!(pools.counts().len(), 2);
    tokio::time::sleep(Duration::from_mins(2)).await;
    // An object that only sets the limit again uses the account, too.
    pools.limit(&server(2), 3);
    tokio::time::sleep(Duration::from_mins(9)).await;
    let counted: Vec<String> = pools.counts().into_iter().map(|(server, _)| server).collect();
    assert_eq!(counted, [server(2).to_string()]);
}
