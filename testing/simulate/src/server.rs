//! A real PostgreSQL server for the runs of one thread, as its administrator.
//!
//! It has a thread with a clock of its own: in a run, time stands still.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD, Postgres, Rows, Version};
use tokio_postgres::{Client, SimpleQueryMessage, SimpleQueryRow};

thread_local! {
    static SERVER: RefCell<Option<Arc<Server>>> = const { RefCell::new(None) };
}

/// The name and the password of the operator's administrator.
pub const OPERATOR: (&str, &str) = ("operator", "operator");

/// The administrator of the simulation. A policy may declare the server's first superuser with another password, and no
/// generated text is this name.
pub(crate) const STEWARD: (&str, &str) = ("stanchion_simulation", "stanchion_simulation");

/// The database that every server has.
const HOME: &str = "postgres";

/// What is asked of the thread.
enum Order {
    /// Statements, as the administrator: database and text.
    Query(String, String),
    /// Whether a role can log in with a password.
    LogIn(String, String),
}

type Reply = Result<Rows, String>;

/// A server.
pub struct Server {
    port: u16,
    /// The sessions of the run that have not logged in yet.
    logins: AtomicUsize,
    line: Mutex<Option<(mpsc::Sender<Order>, mpsc::Receiver<Reply>)>>,
    thread: Option<JoinHandle<()>>,
}

/// A session that has not logged in yet.
pub(crate) struct Login(Arc<Server>);

impl Drop for Login {
    fn drop(&mut self) {
        self.0.logins.fetch_sub(1, SeqCst);
    }
}

impl Server {
    /// The server of this thread, without anything that an earlier run has left.
    pub fn of_this_thread() -> Arc<Self> {
        let server = SERVER
            .with_borrow_mut(|server| Arc::clone(server.get_or_insert_with(|| Arc::new(Self::start()))));
        server.reset();
        server
    }

    fn start() -> Self {
        let (orders, ordered) = mpsc::channel();
        let (replies, answers) = mpsc::channel();
        let (started, port) = mpsc::channel();
        let thread = thread::spawn(move || serve(&started, &ordered, &replies));
        let port = port.recv().expect("PostgreSQL starts");
        let server = Self {
            port,
            logins: AtomicUsize::new(0),
            line: Mutex::new(Some((orders, answers))),
            thread: Some(thread),
        };
        let (name, password) = OPERATOR;
        server.query(
            "postgres",
            &format!("CREATE ROLE {name} LOGIN SUPERUSER PASSWORD '{password}'"),
        );
        server
    }

    /// Its port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The operator's connection.
    pub fn url(&self, database: &str) -> String {
        let (name, password) = OPERATOR;
        format!(
            "postgresql://{name}:{password}@127.0.0.1:{}/{database}?sslmode=disable",
            self.port
        )
    }

    /// Runs statements as the administrator. They must succeed.
    pub fn query(&self, database: &str, sql: &str) -> Rows {
        self.try_query(database, sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Runs statements as the administrator.
    pub fn try_query(&self, database: &str, sql: &str) -> Reply {
        self.ask(Order::Query(database.to_owned(), sql.to_owned()))
    }

    /// The first column of all rows.
    pub fn column(&self, database: &str, sql: &str) -> Vec<String> {
        let rows = self.query(database, sql).into_iter();
        rows.filter_map(|row| row.into_iter().next().flatten()).collect()
    }

    /// Whether a role can log in with this password.
    pub fn logs_in(&self, role: &str, password: &str) -> bool {
        self.ask(Order::LogIn(role.to_owned(), password.to_owned()))
            .is_ok()
    }

    /// A session of the run begins to log in.
    pub(crate) fn login(self: &Arc<Self>) -> Login {
        self.logins.fetch_add(1, SeqCst);
        Login(Arc::clone(self))
    }

    /// Whether the statement of a session waits for another one: for its lock, or for the end of its login, which the
    /// drop of a database waits for. Without a login, the drop waits for the machine, and no time of the run passes.
    pub fn waits_for_others(&self, process: i32) -> bool {
        let for_logins = self.logins.load(SeqCst) > 0;
        let sql = format!(
            "SELECT cardinality(pg_blocking_pids({process})) > 0 OR {for_logins} AND EXISTS (SELECT FROM pg_stat_activity \
             WHERE pid = {process} AND wait_event = 'ProcSignalBarrier')"
        );
        self.column("postgres", &sql) == ["t"]
    }

    /// Ends a session.
    pub fn terminate(&self, process: i32) {
        self.query(
            "postgres",
            &format!("SELECT pg_terminate_backend({process}, 5000)"),
        );
    }

    /// Drops what runs have made.
    fn reset(&self) {
        let made = "SELECT quote_ident(datname) FROM pg_database WHERE datname NOT IN ('postgres', 'template0', 'template1')";
        for database in self.column("postgres", made) {
            self.query("postgres", &format!("DROP DATABASE {database} WITH (FORCE)"));
        }
        let roles = format!(
            "SELECT quote_ident(rolname) FROM pg_roles WHERE rolname !~ '^pg_' AND rolname NOT IN ('postgres', '{}', '{}')",
            OPERATOR.0, STEWARD.0
        );
        for role in self.column("postgres", &roles) {
            self.query(
                "postgres",
                &format!("DROP OWNED BY {role} CASCADE; DROP ROLE {role}"),
            );
        }
    }

    fn ask(&self, order: Order) -> Reply {
        let line = self.line.lock();
        let (orders, replies) = line.as_ref().expect("the server runs");
        orders.send(order).expect("the server's thread runs");
        replies.recv().expect("the server's thread answers")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        *self.line.lock() = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread of a server.
fn serve(started: &mpsc::Sender<u16>, orders: &mpsc::Receiver<Order>, replies: &mpsc::Sender<Reply>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let (steward, password) = STEWARD;
    let (server, session) = runtime.block_on(async {
        let builder = Postgres::builder(Version::V15).setting("log_statement", "none");
        let server = builder.setting("log_connections", "off").start().await;
        let first = server
            .connect(ADMIN, ADMIN_PASSWORD, HOME)
            .await
            .expect("a session");
        let create = format!("CREATE ROLE {steward} LOGIN SUPERUSER PASSWORD '{password}'");
        first.batch_execute(&create).await.expect("an administrator");
        let session = server.connect(steward, password, HOME).await;
        (server, session.expect("a session"))
    });
    let _ = started.send(server.port());
    while let Ok(order) = orders.recv() {
        let reply = runtime.block_on(async {
            match order {
                // Most of what is asked needs no database of its own, and a login takes longer than a query.
                Order::Query(database, sql) if database == HOME => answer(&session, &sql).await,
                Order::Query(database, sql) => match server.connect(steward, password, &database).await {
                    Ok(session) => answer(&session, &sql).await,
                    Err(error) => Err(words(error)),
                },
                Order::LogIn(role, password) => {
                    let session = server.connect(&role, &password, HOME).await;
                    session.map(|_| Rows::new()).map_err(words)
                }
            }
        });
        if replies.send(reply).is_err() {
            return;
        }
    }
}

async fn answer(session: &Client, sql: &str) -> Reply {
    let answer = session.simple_query(sql).await.map_err(words)?;
    Ok(rows(&answer))
}

fn rows(answer: &[SimpleQueryMessage]) -> Rows {
    let values = |row: &SimpleQueryRow| {
        (0..row.len())
            .map(|column| row.get(column).map(str::to_owned))
            .collect()
    };
    let rows = answer.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(values(row)),
        _ => None,
    });
    rows.collect()
}

/// The driver prints only "db error"; the server's message is in the source.
fn words(error: impl std::error::Error) -> String {
    let source = error.source().map(ToString::to_string);
    source.unwrap_or_else(|| error.to_string())
}
