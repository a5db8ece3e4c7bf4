//! Which databases accept connections of an account: one that refuses them does not keep others from being used.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Login;
use crate::pool::breaker::Breaker;

/// A breaker for each database that is in use or that failed a short time ago. An author may name a new database every
/// second, so the others are forgotten.
#[derive(Default)]
pub(super) struct Databases(Mutex<HashMap<Login, Arc<Breaker>>>);

impl Databases {
    /// The breaker of a database. It trusts the database at first: that the server answers is the subject of the breakers of
    /// the address and of the account.
    pub(super) fn breaker_of(&self, login: &Login) -> Arc<Breaker> {
        let mut breakers = self.0.lock();
        breakers.retain(|_, breaker| Arc::strong_count(breaker) > 1 || breaker.failed_recently());
        let breaker = breakers
            .entry(login.clone())
            .or_insert_with(|| Arc::new(Breaker::trusting()));
        Arc::clone(breaker)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::connection_config::ConnectionConfig;
    use crate::error::{Error, Kind};
    use crate::sqlstate::Doing;

    fn target(database: &str) -> ConnectionConfig {
        ConnectionConfig::new("h", 1, database, "u").unwrap()
    }

    fn login(database: &str) -> Login {
        super::super::login(&target(database))
    }

    async fn refuse(databases: &Databases, database: &str) {
        let breaker = databases.breaker_of(&login(database));
        let attempt = breaker.enter(&target(database)).await.unwrap();
        let full = Error::new(Kind::Server, Doing::Connecting, &target(database), "full");
        attempt.failed(&full);
    }

    #[tokio::test(start_paused = true)]
    async fn a_database_is_trusted_until_it_fails() {
        let (databases, target) = (Databases::default(), target("d"));
        let breaker = databases.breaker_of(&login("d"));
        let (one, two) = (breaker.enter(&target).await, breaker.enter(&target).await);
        assert!(one.is_ok() && two.is_ok(), "nobody waits for another");
        drop((one, two));
        refuse(&databases, "d").await;
        assert!(breaker.enter(&target).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_remembered_for_a_while_and_not_for_ever() {
        let databases = Databases::default();
        refuse(&databases, "one").await;
        let refused = Arc::downgrade(&databases.breaker_of(&login("one")));
        databases.breaker_of(&login("two"));
        assert!(refused.upgrade().is_some_and(|breaker| breaker.is_open()));
        tokio::time::sleep(Duration::from_mins(2)).await;
        databases.breaker_of(&login("two"));
        assert!(refused.upgrade().is_none());
        // Ever new names, one a second.
        for number in 0..1000 {
            refuse(&databases, &number.to_string()).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let kept = databases.0.lock().len();
        assert!(kept < 70, "{kept}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_breaker_in_use_is_not_forgotten() {
        let databases = Databases::default();
        let held = databases.breaker_of(&login("one"));
        databases.breaker_of(&login("two"));
        assert!(Arc::ptr_eq(&held, &databases.breaker_of(&login("one"))));
        assert_eq!(databases.0.lock().len(), 1);
    }
}
