//! The administrator's sessions on a shared server that are kept for the next question of the same test: a test asks often, and
//! a session costs the server more than the answer. Only those on the database that every server has are kept: any other
//! could not be dropped meanwhile.

use std::sync::Mutex;

use tokio::runtime::{Handle, Id};
use tokio_postgres::Client;

/// Sessions that nobody uses now, each with the runtime of its test, with which it ends.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<Vec<(Id, Client)>>);

impl Sessions {
    /// One of this test's, if it has any.
    pub(super) fn take(&self) -> Option<Client> {
        let (ours, mut sessions) = (Handle::current().id(), self.0.lock().unwrap());
        sessions.retain(|(_, client)| !client.is_closed());
        let nth = sessions.iter().position(|(id, _)| *id == ours)?;
        Some(sessions.swap_remove(nth).1)
    }

    /// For the next question.
    pub(super) fn keep(&self, client: Client) {
        self.0.lock().unwrap().push((Handle::current().id(), client));
    }
}
