//! Readiness: what has to be synced before the operator is ready.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

/// Named conditions of readiness, and why each is still missing.
#[derive(Clone)]
pub struct Readiness {
    missing: Arc<Mutex<BTreeMap<String, String>>>,
    count: watch::Sender<usize>,
}

impl Default for Readiness {
    fn default() -> Self {
        Self {
            missing: Arc::default(),
            count: watch::Sender::new(0),
        }
    }
}

impl Readiness {
    /// Adds a condition. Call the returned function with `None` when it is met, or with the reason why it is not.
    pub fn expect(&self, name: &str) -> impl Fn(Option<String>) + Send + Sync + use<> {
        let (this, name) = (self.clone(), name.to_owned());
        this.set(&name, Some("not read yet".into()));
        move |missing| this.set(&name, missing)
    }

    /// The missing conditions: name and reason.
    pub fn missing(&self) -> Vec<(String, String)> {
        self.missing
            .lock()
            .iter()
            .map(|(name, why)| (name.clone(), why.clone()))
            .collect()
    }

    /// Notifies about every change of [`missing`](Self::missing); its value is the number of missing ones.
    pub fn changes(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    /// Returns once nothing is missing.
    pub async fn wait(&self) {
        // The sender lives in `self`, so the channel cannot close.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }

    fn set(&self, name: &str, missing: Option<String>) {
        let mut all = self.missing.lock();
        match missing {
            Some(why) => all.insert(name.into(), why),
            None => all.remove(name),
        };
        self.count.send_replace(all.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ready_when_all_are_there_and_not_before() {
        let readiness = Readiness::default();
        let (one, two) = (readiness.expect("one"), readiness.expect("two"));
        one(None);
        two(Some("403".into()));
        assert_eq!(readiness.missing(), [("two".into(), "403".into())]);
        assert!(
            tokio::time::timeout(std::time::Duration::from_secs(1), readiness.wait())
                .await
                .is_err()
        );
        two(None);
        readiness.wait().await;
    }
}
