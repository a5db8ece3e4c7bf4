//! Two operators without leader election, on one database.

use serde_json::json;

use super::test_env::TestEnv;

/// Both need the same change; it is made once, and both converge.
#[tokio::test]
async fn two_operators_do_not_apply_twice() {
    const MANY: usize = 6;
    let env = TestEnv::new().await;
    let (_one, _two) = (env.operator().await, env.operator().await);
    env.database_secret().await;
    for n in 0..MANY {
        let role = env.role(&format!("r{n}"));
        let spec = json!({ "interval": "1h", "roles": [{ "name": role }], "schemas": [{ "name": format!("{role}_s"), "owner": role }] });
        env.policy(&format!("policy-{n}"), spec).await;
    }
    for n in 0..MANY {
        env.ready(&format!("policy-{n}")).await;
    }
    for n in 0..MANY {
        let role = env.role(&format!("r{n}"));
        let made = format!("CREATE ROLE \"{role}\"");
        let times = env.sql_writes().iter().filter(|sql| sql.contains(&made)).count();
        assert_eq!(times, 1, "{role}");
    }
}
