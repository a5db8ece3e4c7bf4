//! What the demo shows: one row a system, a file each. Which objects there are, when they count as ready, and what to
//! try with them; everything else follows from the row.

mod login;
mod user;

use kube::core::ApiResource;
use serde_json::Value;

use super::database::Database;
use super::error::SandboxError;
use super::manifests;
use crate::controllers::Choice;

pub(super) use self::login::Logins;

/// The examples of one system.
pub(super) struct Example {
    /// The system's name in the [table of controllers](crate::controllers).
    controller: &'static str,
    /// The kinds to watch.
    pub(super) kinds: &'static [Kind],
    /// What the objects stand on and what differs from run to run, such as the address of a server.
    pub(super) ground: fn(&Database) -> Vec<Value>,
    /// The objects, as in the repository.
    objects: &'static str,
    /// The Secrets that somebody can log in with.
    logins: &'static [&'static str],
    /// What to try once all is ready.
    pub(super) guide: fn(&Logins) -> Vec<Hint>,
}

/// A kind whose objects are shown.
pub(super) struct Kind {
    /// Its address.
    pub(super) resource: fn() -> ApiResource,
    /// The conditions that become true on the way; the last one means ready.
    pub(super) steps: &'static [&'static str],
}

/// Something to try.
pub(super) struct Hint {
    /// What happens then.
    pub(super) why: &'static str,
    /// A line for a shell.
    pub(super) line: String,
}

/// Whether a shell would find the program.
pub(super) fn in_path(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

/// The table.
const ALL: &[Example] = &[user::EXAMPLE];

/// The rows of the chosen controllers.
pub(super) fn of(choice: &Choice) -> Vec<&'static Example> {
    let chosen = |example: &&Example| choice.rows().any(|row| row.name == example.controller);
    ALL.iter().filter(chosen).collect()
}

impl Example {
    /// The objects.
    pub(super) fn objects(&self) -> Result<Vec<Value>, SandboxError> {
        manifests::documents(self.objects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row that no controller answers to would never be shown.
    #[test]
    fn every_row_belongs_to_a_controller_and_can_be_read() {
        assert_eq!(of(&Choice::everything()).len(), ALL.len());
        for example in ALL {
            assert!(!example.objects().unwrap().is_empty(), "{}", example.controller);
        }
    }
}
