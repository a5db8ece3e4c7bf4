//! Keys and passwords: what is generated, what is kept, and the effects of a change.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use stanchion_supabase::keys::signing::SigningKey;
use stanchion_supabase::keys::token::{Role, asymmetric};

use super::shop;
use crate::jwt;
use crate::test_env::TestEnv;

#[tokio::test]
async fn a11_keys_are_made_once_and_kept() {
    let (env, operator, _) = shop(json!({})).await;
    let keys = env.values("shop-jwt").await;
    let secret = &keys["jwt-secret"];
    assert_eq!(BASE64_STANDARD.decode(secret).unwrap().len(), 32);
    assert_eq!(
        BASE64_STANDARD.decode(&keys["pg-meta-crypto-key"]).unwrap().len(),
        32
    );
    for (key, role) in [("anon-key", "anon"), ("service-role-key", "service_role")] {
        let claims = jwt::verify_with(secret, &keys[key]).unwrap();
        assert_eq!(
            (&claims["role"], &claims["iss"]),
            (&json!(role), &json!("supabase"))
        );
        let years = (claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap()) / (365 * 24 * 3600);
        assert_eq!(years, 10);
    }
    operator.kill().await;
    let _second = env.operator().await;
    env.project("shop", json!({ "meta": { "replicas": 2 } })).await;
    env.running("shop").await;
    assert_eq!(env.values("shop-jwt").await, keys, "after a restart and a change");
}

#[tokio::test]
async fn a11_keys_that_are_there_are_kept_and_completed() {
    let env = TestEnv::new().await;
    let secret = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I=";
    let before = json!({ "jwt-secret": secret, "anon-key": jwt::sign_with(secret, "anon"), "mine": "kept" });
    env.secret("shop-jwt", before.clone()).await;
    let _operator = env.operator().await;
    env.project("shop", json!({})).await;
    env.running("shop").await;
    let keys = env.values("shop-jwt").await;
    for (key, value) in before.as_object().unwrap() {
        assert_eq!(json!(keys[key]), *value, "{key}");
    }
    assert_eq!(
        BASE64_STANDARD.decode(&keys["pg-meta-crypto-key"]).unwrap().len(),
        32
    );
    assert!(jwt::verify_with(secret, &keys["service-role-key"]).is_some());
}

#[tokio::test]
async fn a13_the_dashboards_password_is_the_users_or_a_generated_one() {
    let (env, _operator, _) = shop(json!({})).await;
    let (kong, keys) = (env.pod("shop-kong").await, env.values("shop-jwt").await);
    assert_eq!(kong.value("DASHBOARD_USERNAME"), "supabase");
    assert_eq!(kong.value("DASHBOARD_PASSWORD"), keys["dashboard-password"]);
    assert!(keys["dashboard-password"].len() >= 32, "nobody can guess it");

    env.secret("login", json!({ "username": "me", "password": "p@ss \"word\"" }))
        .await;
    let own = json!({ "studio": { "dashboardBasicAuthSecretRef": { "name": "login" } } });
    env.project("shop", own).await;
    env.running("shop").await;
    let kong = env.pod("shop-kong").await;
    assert_eq!(kong.value("DASHBOARD_USERNAME"), "me");
    assert_eq!(kong.value("DASHBOARD_PASSWORD"), "p@ss \"word\"");
}

#[tokio::test]
async fn b05_a_changed_secret_rolls_the_pods_that_use_it_and_no_others() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    let login = |password: &str| json!({ "username": "me", "password": password });
    env.secret("login", login("one")).await;
    let spec = json!({ "studio": { "dashboardBasicAuthSecretRef": { "name": "login" } } });
    env.project("shop", spec).await;
    env.running("shop").await;
    let before = env.generations().await;
    env.secret("login", login("two")).await;
    is_rolled(&env, "shop-kong", &before).await;
    assert_eq!(env.rolled_since(&before).await, ["shop-kong"]);

    // No pod has the administrator's password; with a new one the project continues.
    let before = env.generations().await;
    env.db_env
        .server
        .execute("postgres", "CREATE ROLE boss SUPERUSER LOGIN PASSWORD 'new'")
        .await;
    let mut boss = env.database_secret();
    json_patch::merge(&mut boss, &json!({ "username": "boss", "password": "new" }));
    env.secret("db", boss).await;
    env.project("shop", json!({ "suspend": false, "jwt": { "expiry": "2h" } }))
        .await;
    env.running("shop").await;
    let after = env.rolled_since(&before).await;
    assert!(!after.contains(&"shop-meta".to_owned()), "{after:?}");
}

/// A service's own password: removing it from the Secret creates a new one, in the database and in the pods.
#[tokio::test]
async fn b05_a_new_password_of_a_service_reaches_the_database_and_the_pods() {
    let (env, _operator, _) = shop(json!({})).await;
    let key = "database-password-auth";
    let old = env.values("shop-jwt").await[key].clone();
    let before = env.generations().await;
    env.patch::<Secret>("shop-jwt", json!({ "data": { key: null } }))
        .await;
    is_rolled(&env, "shop-auth", &before).await;
    assert_eq!(env.rolled_since(&before).await, ["shop-auth"]);
    let new = env.values("shop-jwt").await[key].clone();
    assert_ne!(new, old);
    let (server, database) = (&env.db_env.server, &env.db_env.database);
    server
        .connect("supabase_auth_admin", &new, database)
        .await
        .unwrap();
    assert!(
        server
            .connect("supabase_auth_admin", &old, database)
            .await
            .is_err()
    );
}

/// Waits until the Deployment has a new template, and the project runs with it.
async fn is_rolled(env: &TestEnv, name: &str, before: &BTreeMap<String, i64>) {
    let known = before[name];
    let is_newer = |deployment: &Deployment| deployment.metadata.generation > Some(known);
    env.wait().until(&env.api::<Deployment>(), name, is_newer).await;
    env.running("shop").await;
}

/// B1 without running services; `auth_signs_users_up_as_it_is_deployed` covers Auth itself.
#[tokio::test]
async fn b01_every_service_verifies_what_auth_signs_and_every_key() {
    let (env, _operator, _) = shop(json!({})).await;
    let keys = env.values("shop-jwt").await;
    let [auth, rest, storage, realtime] = [
        env.pod("shop-auth").await,
        env.pod("shop-postgrest").await,
        env.pod("shop-storage").await,
        env.pod("shop-realtime").await,
    ];
    // Auth signs with the only key of its list that has `sign`.
    let list: Vec<Value> = serde_json::from_str(auth.value("GOTRUE_JWT_KEYS")).unwrap();
    let may_sign = |key: &&Value| key["key_ops"].as_array().unwrap().contains(&json!("sign"));
    let signing = list.iter().find(may_sign).unwrap().to_string();
    let signing = SigningKey::parse(&signing).unwrap();
    let user = asymmetric(&signing, Role::Anon, Timestamp::now()).unwrap();
    for set in [
        rest.value("PGRST_JWT_SECRET"),
        storage.value("JWT_JWKS"),
        realtime.value("API_JWT_JWKS"),
    ] {
        for key in [
            "anon-key",
            "service-role-key",
            "anon-key-asymmetric",
            "service-role-key-asymmetric",
        ] {
            assert!(jwt::verify_by_set(set, &keys[key]).is_some(), "{key}");
        }
        assert!(jwt::verify_by_set(set, user.expose_secret()).is_some());
        assert!(jwt::verify_by_set(set, &jwt::sign_with("another secret", "anon")).is_none());
    }
    // Components without a key set use the secret as plain text.
    for secret in [
        auth.value("GOTRUE_JWT_SECRET"),
        storage.value("AUTH_JWT_SECRET"),
        realtime.value("API_JWT_SECRET"),
    ] {
        assert!(jwt::verify_with(secret, &keys["anon-key"]).is_some());
    }
    assert!(!rest.environment.contains_key("PGRST_JWT_SECRET_IS_BASE64"));
}
