//! Two operators without leader election, on one database.

use serde_json::json;

use super::bed::Bed;

/// Both need the same change; it is made once, and both converge.
#[tokio::test]
async fn two_operators_do_not_apply_twice() {
    const MANY: usize = 6;
    let bed = Bed::new().await;
    let (_one, _two) = (bed.operator().await, bed.operator().await);
    bed.database_secret().await;
    for n in 0..MANY {
        let role = bed.role(&format!("r{n}"));
        let spec = json!({ "interval": "1h", "roles": [{ "name": role }], "schemas": [{ "name": format!("{role}_s"), "owner": role }] });
        bed.policy(&format!("policy-{n}"), spec).await;
    }
    for n in 0..MANY {
        bed.ready(&format!("policy-{n}")).await;
    }
    for n in 0..MANY {
        let role = bed.role(&format!("r{n}"));
        let made = format!("CREATE ROLE \"{role}\"");
        let times = bed.sql_writes().iter().filter(|sql| sql.contains(&made)).count();
        assert_eq!(times, 1, "{role}");
    }
}
