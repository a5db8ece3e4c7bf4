//! Quotas: the status contains the number of objects.

use std::collections::BTreeSet;

use super::actor::{Actor, note};
use crate::admission::quota;
use crate::handlers::Endpoint;
use crate::store::Feed;

pub(crate) async fn run(actor: Actor) {
    let mut feed = Feed::new(actor.store());
    loop {
        let changes = feed.next().await;
        // Only a creation or a deletion changes a count, and a new quota.
        let affected: BTreeSet<&str> = changes
            .iter()
            .filter(|(storage, change)| {
                change.deleted || change.before.is_none() || &**storage == quota::STORAGE
            })
            .map(|(_, change)| change.after.namespace())
            .collect();
        for namespace in affected.into_iter().filter(|namespace| !namespace.is_empty()) {
            for (_, found) in actor.store().list(quota::STORAGE, Some(namespace)).objects {
                let status = quota::status(actor.store(), &found);
                let change = |object: &mut serde_json::Value| object["status"] = status.clone();
                let (name, endpoint) = (found.name(), Endpoint::Status);
                let counted = actor.modify(quota::STORAGE, namespace, name, endpoint, change);
                note("quota", Box::pin(counted).await);
            }
        }
    }
}
