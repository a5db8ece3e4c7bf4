//! Three replicas, each with an account of its own at the API server and at PostgreSQL.

use std::path::PathBuf;
use std::time::Duration;

use stanchion_bench_env::{BenchEnv, PASSWORD};
use stanchion_testkit::cluster::{Audit, Grant, User, path_rule, rule};
use stanchion_testkit::process::{Process, Signal};
use tokio::time::sleep;

const REPLICAS: usize = 3;

pub(crate) struct Replicas<'a> {
    env: &'a BenchEnv,
    binary: PathBuf,
    accounts: Vec<User>,
    running: Vec<Option<Process>>,
}

/// A point in time to count from.
pub(crate) struct Checkpoint<'a> {
    audit: Audit<'a>,
    entries: usize,
}

/// The work of an old leader after the first work of the next one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlap {
    /// Statements that change something.
    pub(crate) changes: Vec<String>,
    /// Other statements.
    pub(crate) reads: usize,
    /// Writes to the API server.
    pub(crate) writes: Vec<String>,
}

/// How a statement begins that changes nothing.
const READING: [&str; 7] = ["SELECT", "BEGIN", "START", "SET", "COMMIT", "ROLLBACK", "WITH"];

fn reads(statement: &str) -> bool {
    let mut parts = statement
        .split(';')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    parts.all(|part| READING.iter().any(|word| part.starts_with(word)))
}

fn login(index: usize) -> String {
    format!("replica_{index}")
}

impl<'a> Replicas<'a> {
    pub(crate) async fn start(env: &'a BenchEnv, binary: PathBuf) -> Self {
        let mut replicas = Self {
            env,
            binary,
            accounts: Vec::new(),
            running: Vec::new(),
        };
        for index in 0..REPLICAS {
            let make = format!(
                "CREATE ROLE {} LOGIN SUPERUSER PASSWORD '{PASSWORD}'",
                login(index)
            );
            env.server().execute("postgres", &make).await;
            let grant = Grant::Everywhere(vec![rule("*", &["*"], &["*"]), path_rule("*")]);
            let name = format!("replica-{index}");
            replicas
                .accounts
                .push(env.cluster().user(env.namespace(), &name, &[grant]).await);
            replicas.running.push(None);
        }
        replicas.begin();
        replicas
    }

    /// Starts those that do not run.
    pub(crate) fn begin(&mut self) {
        for index in 0..REPLICAS {
            let ended = self.running[index]
                .as_mut()
                .is_none_or(|process| process.ended().is_some());
            if ended {
                self.running[index] = Some(self.launch(index));
            }
        }
    }

    fn launch(&self, index: usize) -> Process {
        let anywhere = "127.0.0.1:0";
        let url = self.env.server().url_of(&login(index), PASSWORD, "postgres");
        self.env
            .launch(&self.binary, &format!("replica-{index}"))
            .args(["run", "--controllers", "user", "--no-webhooks", "--leader-elect"])
            .args(["--operator-namespace", self.env.namespace()])
            .args(["--health-addr", anywhere, "--metrics-addr", anywhere])
            .env("KUBECONFIG", self.accounts[index].kubeconfig_path())
            .env("STANCHION_POSTGRES_URL", url)
            .spawn()
            .expect("the operator starts")
    }

    /// The replica whose statement is the last one.
    pub(crate) async fn leader(&self) -> usize {
        loop {
            let log = self.env.server().log();
            let last = log.entries().iter().rev().find_map(|entry| {
                entry.statement()?;
                (0..REPLICAS).find(|index| entry.user == login(*index))
            });
            if let Some(last) = last {
                return last;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    pub(crate) fn signal(&mut self, index: usize, signal: Signal) {
        if let Some(process) = self.running[index].as_mut() {
            process.signal(signal);
        }
    }

    pub(crate) fn checkpoint(&self) -> Checkpoint<'a> {
        Checkpoint {
            audit: self.env.cluster().audit(),
            entries: self.env.server().log().entries().len(),
        }
    }

    /// What the old leader did after the first work of another replica, since then.
    pub(crate) async fn overlap(&self, checkpoint: &Checkpoint<'_>, old: usize) -> Overlap {
        let log = self.env.server().log();
        let entries = log.entries().get(checkpoint.entries..).unwrap_or_default().iter();
        let done = entries.filter_map(|entry| Some((entry.user.as_str(), entry.statement()?.to_owned())));
        let names: Vec<String> = (0..REPLICAS).map(login).collect();
        let statements = after_the_next(done, &names, old);
        let (read, changes): (Vec<String>, _) =
            statements.into_iter().partition(|statement| reads(statement));
        // The Lease is what replicas compete for.
        let requests = checkpoint.audit.requests().await.writes();
        let requests = requests.filter(|request| request.resource != "leases");
        let done = requests.list().iter();
        let done = done.map(|request| (request.user.as_str(), format!("{} {}", request.verb, request.uri)));
        let accounts = self.accounts.iter();
        let names: Vec<String> = accounts.map(|account| account.name().to_owned()).collect();
        let writes = after_the_next(done, &names, old);
        Overlap {
            changes,
            reads: read.len(),
            writes,
        }
    }
}

/// What the old leader did, from a list of who did what, after the first other replica.
fn after_the_next<'u>(
    done: impl Iterator<Item = (&'u str, String)>,
    names: &[String],
    old: usize,
) -> Vec<String> {
    done.filter_map(|(user, what)| Some((names.iter().position(|name| name == user)?, what)))
        .skip_while(|(replica, _)| *replica == old)
        .filter(|(replica, _)| *replica == old)
        .map(|(_, what)| what)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_in_a_batch_counts() {
        assert!(reads("BEGIN READ ONLY;\nSELECT 1;"));
        assert!(!reads("BEGIN;\nALTER ROLE a;"));
    }

    #[test]
    fn only_work_after_the_next_leaders_counts() {
        let names = ["a".to_owned(), "b".to_owned()];
        let seen = |list: &'static str| {
            let done = list.split(' ').enumerate();
            after_the_next(done.map(|(at, user)| (user, at.to_string())), &names, 0)
        };
        assert_eq!(seen("a a other b b"), Vec::<String>::new());
        assert_eq!(seen("a a b a b a"), ["3", "5"]);
        assert_eq!(seen("a other a"), Vec::<String>::new());
    }
}
