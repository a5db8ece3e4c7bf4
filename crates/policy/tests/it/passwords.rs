//! Passwords: given, generated, changed, and never set twice.

use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;
use stanchion_testkit::wait;

use super::test_env::{TestEnv, WAIT_TIMEOUT, message};

fn stored(role: &str) -> String {
    format!("SELECT rolpassword FROM pg_authid WHERE rolname = '{role}'")
}

/// A password from a Secret is set, followed when it changes, and left alone when only the Secret's metadata changes.
#[tokio::test]
async fn a_given_password_is_followed() {
    for superuser in [true, false] {
        let env = TestEnv::new().await;
        let _operator = env.operator().await;
        if superuser {
            env.database_secret().await;
        } else {
            let login = env.role("admin");
            env.database
                .execute(&format!("CREATE ROLE {login} LOGIN CREATEROLE PASSWORD 'admin'"))
                .await;
            let url = env.url_through(&env.database.url_of(&login, "admin"));
            env.secret("db", json!({ "DATABASE_URL": url })).await;
        }
        let role = env.role("app");
        env.secret("app", json!({ "password": "first" })).await;
        let password = json!({ "secretRef": { "name": "app" }, "secretKey": "password" });
        env.policy(
            "given",
            json!({ "interval": "1h", "roles": [{ "name": role, "login": true, "password": password }] }),
        )
        .await;
        let ready = env.ready("given").await;
        // F17: a login that may not switch off the server's log is said to be one, with the statement that helps.
        let said = message(&ready, "DatabaseConnected");
        assert_eq!(said.contains("GRANT SET ON PARAMETER"), !superuser, "{said}");
        assert!(env.logs_in(&role, "first").await);
        let before = env.one(&stored(&role)).await;
        env.secret("app", json!({ "password": "first", "other": "touched" }))
            .await;
        env.look_again("given").await;
        assert_eq!(
            env.one(&stored(&role)).await,
            before,
            "the same password is not set again"
        );
        env.secret("app", json!({ "password": "second" })).await;
        wait::eventually(WAIT_TIMEOUT, "the new password", async || {
            env.logs_in(&role, "second").await
        })
        .await;
        assert!(!env.logs_in(&role, "first").await);
        assert!(env.statements().iter().all(|sql| !sql.contains("second")));
    }
}

/// A generated password is in a Secret of the policy, with its verifier, and generated again when that is deleted.
#[tokio::test]
async fn a_generated_password_is_kept_and_made_again() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    let role = env.role("app");
    let secret = format!("made-pgr-{}", role.replace('_', "-"));
    env.policy("made", json!({ "interval": "1h", "roles": [{ "name": role, "login": true, "password": { "generate": { "length": 40 } } }] }))
        .await;
    let policy = env.ready("made").await;
    let read = async || {
        let found = env.secrets().get_opt(&secret).await.unwrap()?;
        let text = |key: &str| String::from_utf8(found.data.as_ref().unwrap()[key].0.clone()).unwrap();
        Some((
            text("password"),
            text("verifier"),
            found.owner_references()[0].uid.clone(),
        ))
    };
    let (password, verifier, owner) = read().await.unwrap();
    assert_eq!((password.len(), Some(owner)), (40, policy.uid()));
    assert_eq!(
        env.one(&stored(&role)).await,
        verifier,
        "the server has the very same verifier"
    );
    assert!(env.logs_in(&role, &password).await);
    env.secrets()
        .delete(&secret, &DeleteParams::default())
        .await
        .unwrap();
    wait::eventually(WAIT_TIMEOUT, "another password", async || match read().await {
        Some((new, ..)) => new != password && env.logs_in(&role, &new).await,
        None => false,
    })
    .await;
    assert!(!env.logs_in(&role, &password).await);
}

/// A password that was changed by hand is reset, if the verifier can be read.
#[tokio::test]
async fn a_password_set_by_hand_is_put_right() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    let role = env.role("app");
    env.secret("app", json!({ "password": "right" })).await;
    let password = json!({ "secretRef": { "name": "app" }, "secretKey": "password" });
    env.policy(
        "hand",
        json!({ "interval": "1s", "roles": [{ "name": role, "login": true, "password": password }] }),
    )
    .await;
    env.ready("hand").await;
    env.database
        .execute(&format!("ALTER ROLE {role} PASSWORD 'wrong'"))
        .await;
    wait::eventually(WAIT_TIMEOUT, "the password of the Secret", async || {
        env.logs_in(&role, "right").await
    })
    .await;
}
