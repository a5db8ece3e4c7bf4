//! An upgrade from version 89a1792, with living policies, plans and Secrets: no password changes, and everything
//! continues.

use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::test_env::{TestEnv, condition};

fn stored(role: &str) -> String {
    format!("SELECT rolpassword FROM pg_authid WHERE rolname = '{role}'")
}

impl TestEnv {
    /// Turns a status into the one that version 89a1792 wrote: it had no condition about the connection.
    async fn former_status(&self, name: &str) {
        let status = self.get(name).await.status.unwrap();
        let mut conditions = serde_json::to_value(status.conditions).unwrap();
        let list = conditions.as_array_mut().unwrap();
        list.retain(|condition| condition["type"] != "DatabaseConnected");
        let patch = Patch::Merge(json!({ "status": { "conditions": conditions } }));
        self.policies()
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
}

/// Secrets, status and plans as version 89a1792 wrote them. Roles bore no mark then, and bear none now.
#[tokio::test]
async fn an_upgrade_breaks_no_login() {
    let env = TestEnv::new().await;
    let operator = env.operator().await;
    env.database_secret().await;
    let [given, made, waits] = ["given", "made", "waits"].map(|name| env.role(name));
    env.secret("app", json!({ "password": "first" })).await;
    let from = json!({ "secretRef": { "name": "app" }, "secretKey": "password" });
    let roles = json!([
        { "name": given, "login": true, "password": from },
        { "name": made, "login": true, "password": { "generate": {} } },
    ]);
    env.policy("kept", json!({ "interval": "1h", "roles": roles }))
        .await;
    env.ready("kept").await;
    let manual = json!({ "interval": "1h", "approval": "manual", "roles": [{ "name": waits }] });
    env.policy("manual", manual).await;
    let plan = env.plan_in("manual", "Pending").await;
    operator.kill().await;
    for name in ["kept", "manual"] {
        env.former_status(name).await;
    }
    let secret = format!("kept-pgr-{}", made.replace('_', "-"));
    let before = env.secrets().get(&secret).await.unwrap();
    let verifiers = [env.one(&stored(&given)).await, env.one(&stored(&made)).await];
    let written = env.sql_writes().len();
    // Somebody decides while no operator runs, and no webhook records who it was.
    env.annotate_plan(&plan.name_any(), "pgroles.io/approved").await;

    let _operator = env.operator().await;
    let kept = env
        .condition("kept", "DatabaseConnected", "True", "NotVerified")
        .await;
    let ready = Some(("True".to_owned(), "Reconciled".to_owned()));
    assert_eq!(condition(&kept, "Ready"), ready);
    env.ready("manual").await;
    assert!(env.has_role(&waits).await, "the plan was applied");
    let after = env.secrets().get(&secret).await.unwrap();
    assert_eq!(
        (after.data.as_ref(), after.uid()),
        (before.data.as_ref(), before.uid())
    );
    let password = String::from_utf8(after.data.unwrap()["password"].0.clone()).unwrap();
    assert!(env.logs_in(&given, "first").await && env.logs_in(&made, &password).await);
    let now = [env.one(&stored(&given)).await, env.one(&stored(&made)).await];
    assert_eq!(now, verifiers, "no password was set again");
    let since = env.sql_writes().split_off(written);
    for role in [&given, &made] {
        assert!(since.iter().all(|sql| !sql.contains(role.as_str())), "{since:#?}");
    }

    // The password is still followed, and the roles stay when the policy goes.
    env.secret("app", json!({ "password": "second" })).await;
    env.wait()
        .eventually("the new password", async || env.logs_in(&given, "second").await)
        .await;
    env.delete("kept").await;
    assert!(env.has_role(&given).await && env.has_role(&made).await);
}
