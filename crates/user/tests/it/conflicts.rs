//! Other clients write the object all the time.

use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::test_env::{TestEnv, any, role_name};

/// A21, C29: somebody annotates the object fifty times a second while it is created, changed and deleted. It converges
/// nevertheless, and neither writer loses a change.
#[tokio::test]
async fn concurrent_writers_do_not_prevent_convergence() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let _operator = env.operator().await;
    env.password("gil", "secret").await;
    env.user("gil", &role, json!({})).await;
    let stop = CancellationToken::new();
    let (count, mut counted) = tokio::sync::watch::channel(0);
    let storm = {
        let (users, stop) = (env.users(), stop.clone());
        tokio::spawn(async move {
            let mut written = Vec::new();
            for n in 0.. {
                if stop.is_cancelled() {
                    break;
                }
                let key = format!("storm-{}", n % 20);
                let patch = json!({ "metadata": { "annotations": { key.clone(): n.to_string() } } });
                let patch = kube::api::Patch::Merge(&patch);
                match users
                    .patch("gil", &kube::api::PatchParams::default(), &patch)
                    .await
                {
                    Ok(_) => {
                        written.push((key, n.to_string()));
                        count.send_replace(written.len());
                    }
                    Err(kube::Error::Api(status)) if status.code == 404 => break,
                    Err(error) => panic!("{error}"),
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            written
        })
    };
    env.ready("gil").await;
    for limit in 1..=10 {
        env.user("gil", &role, json!({ "role": { "connectionLimit": limit } }))
            .await;
        env.ready("gil").await;
        let sql = format!("SELECT rolconnlimit FROM pg_roles WHERE rolname = '{role}'");
        assert_eq!(env.server_one(&sql).await, limit.to_string());
    }
    // All of its twenty annotations, however fast the operator was.
    counted.wait_for(|count| *count > 20).await.unwrap();
    let user = env.users().get("gil").await.unwrap();
    assert_eq!(user.metadata.generation, Some(11));
    let status = user.status.unwrap();
    assert_eq!(status.observed_generation, Some(11));
    env.delete("gil").await;
    env.gone("gil").await;
    stop.cancel();
    let written = storm.await.unwrap();
    assert!(!env.has_role(&role).await);
    let annotations = user.metadata.annotations.unwrap();
    for n in 0..20 {
        let key = format!("storm-{n}");
        let shown = &annotations[&key];
        let known = written.iter().any(|(name, value)| *name == key && value == shown);
        assert!(known, "{key} is {shown}");
    }
}
