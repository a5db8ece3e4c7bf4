//! The examples of the demo: one row and one file per system. A row contains the objects, when they count as ready, and
//! what to try with them.

mod fact;
mod gitlab;
mod login;
mod policy;
mod supabase;
mod user;

use kube::Client;
use kube::core::ApiResource;
use secrecy::ExposeSecret as _;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::error::SandboxError;
use super::manifests;
use super::servers::{ADMINISTRATOR, Database, Servers};
use crate::controllers::Choice;
use crate::rbac::NAMESPACE;

use self::fact::Fact;
pub(super) use self::login::Logins;

/// The examples of one system.
pub(super) struct Example {
    /// The system's name in the [table of controllers](crate::controllers).
    controller: &'static str,
    /// A title for users.
    pub(super) title: &'static str,
    /// Its own database.
    database: &'static str,
    /// The content of that database before anything is applied.
    content: &'static [&'static str],
    /// The kinds to show.
    pub(super) kinds: &'static [Kind],
    /// The prerequisites of the objects, which differ from run to run, such as the address of a server.
    pub(super) prerequisites: fn(&Servers) -> Vec<Value>,
    /// The objects, as in the repository.
    objects: &'static str,
    /// Other operators that it needs, simulated.
    pub(super) others: Option<Others>,
    /// The Secrets with logins.
    logins: &'static [&'static str],
    /// Facts to show when everything is ready.
    pub(super) facts: &'static [Fact],
    /// Hints to show then.
    pub(super) guide: fn(&Logins) -> Vec<Hint>,
}

/// Simulated operators.
pub(super) struct Others {
    /// Their CRDs, as YAML streams.
    pub(super) definitions: &'static [&'static str],
    /// Starts them.
    pub(super) play: fn(Client, &CancellationToken) -> JoinSet<()>,
}

/// A kind whose objects are shown.
pub(super) struct Kind {
    /// Its API resource.
    pub(super) resource: fn() -> ApiResource,
    /// The conditions that become true one after the other; the last one means ready.
    pub(super) steps: &'static [&'static str],
}

pub(super) struct Hint {
    /// What happens.
    pub(super) why: &'static str,
    /// A shell command.
    pub(super) line: String,
}

/// Whether the program is in `PATH`.
pub(super) fn in_path(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

/// The table.
const ALL: &[Example] = &[user::EXAMPLE, policy::EXAMPLE, supabase::EXAMPLE, gitlab::EXAMPLE];

/// The examples of the chosen controllers.
pub(super) fn of(choice: &Choice) -> Vec<&'static Example> {
    let chosen = |example: &&Example| choice.rows().any(|row| row.name == example.controller);
    ALL.iter().filter(chosen).collect()
}

/// A Secret with the administrator's login to a database, under libpq's names, and additional keys.
fn login_secret(name: &str, database: &str, servers: &Servers, more: &[(&str, &str)]) -> Value {
    let password = servers.database.password().expose_secret();
    let port = servers.database.port();
    let mut data: Map<String, Value> = Map::from_iter([
        ("username".to_owned(), json!(ADMINISTRATOR)),
        ("password".to_owned(), json!(password)),
        ("host".to_owned(), json!("127.0.0.1")),
        ("port".to_owned(), json!(port.to_string())),
        ("dbname".to_owned(), json!(database)),
        (
            "uri".to_owned(),
            json!(format!(
                "postgresql://{ADMINISTRATOR}:{password}@127.0.0.1:{port}/{database}"
            )),
        ),
    ]);
    data.extend(more.iter().map(|&(key, value)| (key.to_owned(), json!(value))));
    secret(name, &data.into())
}

fn secret(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data})
}

impl Example {
    /// Creates its database if it does not exist.
    pub(super) async fn make_database(&self, server: &Database) -> Result<(), SandboxError> {
        server.create(self.database, self.content).await
    }

    /// The object that marks the examples as applied: a run that was killed before continues where it stopped.
    pub(super) fn mark(&self) -> Value {
        let name = format!("example-{}", self.controller);
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}})
    }

    pub(super) fn objects(&self) -> Result<Vec<Value>, SandboxError> {
        manifests::documents(self.objects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row without a controller would never be shown.
    #[test]
    fn every_row_belongs_to_a_controller_and_can_be_read() {
        assert_eq!(of(&Choice::everything()).len(), ALL.len());
        for example in ALL {
            assert!(!example.objects().unwrap().is_empty(), "{}", example.controller);
        }
    }
}
