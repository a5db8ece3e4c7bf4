//! A cache of the administrator's sessions on a shared server, for the next query of the same test: a test runs many
//! queries, and a session costs the server more than the query. Only sessions on the default database are kept, because
//! a session on any other database would prevent dropping it.

use std::sync::Mutex;

use tokio::runtime::{Handle, Id};
use tokio_postgres::Client;

/// Idle sessions, each with the runtime of its test, which ends it.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<Vec<(Id, Client)>>);

impl Sessions {
    /// A session of this test, if there is one.
    pub(super) fn take(&self) -> Option<Client> {
        let (ours, mut sessions) = (Handle::current().id(), self.0.lock().unwrap());
        sessions.retain(|(_, client)| !client.is_closed());
        let nth = sessions.iter().position(|(id, _)| *id == ours)?;
        Some(sessions.swap_remove(nth).1)
    }

    /// Keeps a session for the next query.
    pub(super) fn keep(&self, client: Client) {
        self.0.lock().unwrap().push((Handle::current().id(), client));
    }
}
