//! Which bucket the backups need.

use super::*;

/// Only scheduled backups need their bucket: of the spec, the profile, the version map or the values.
#[test]
fn the_bucket_of_the_backups_is_needed_with_a_schedule() {
    let cron = json!({ "gitlab": { "toolbox": { "backups": { "cron": { "enabled": true } } } } });
    let off = json!({ "gitlab": { "toolbox": { "backups": { "cron": { "enabled": false } } } } });
    for (more, defaults, step, is_needed) in [
        (json!({}), json!({}), json!({}), false),
        (
            json!({ "backupSchedule": "30 2 * * *" }),
            json!({}),
            json!({}),
            true,
        ),
        (json!({ "helm": { "values": cron } }), json!({}), json!({}), true),
        (json!({ "helm": { "values": off } }), json!({}), json!({}), false),
        (json!({}), json!({}), cron.clone(), true),
        (
            json!({ "helm": { "values": off } }),
            json!({}),
            cron.clone(),
            false,
        ),
        (
            json!({ "profile": "x" }),
            json!({ "backupSchedule": "0 4 * * 0" }),
            json!({}),
            true,
        ),
        (
            json!({ "profile": "x" }),
            json!({ "values": cron }),
            json!({}),
            true,
        ),
        (json!({ "profile": "x" }), json!({}), json!({}), false),
    ] {
        let mut case = Case::new(&more);
        case.current.profile = serde_json::from_value(json!({ "defaults": defaults })).unwrap();
        let map = json!({ "versions": { "17.11.7": { "chartVersion": "8.11.8", "values": step } } });
        case.current.map = Some(serde_json::from_value(map).unwrap());
        let buckets = case.current.secrets.get_mut("s3").unwrap();
        buckets.data.as_mut().unwrap().remove("bucket.backups");
        let status = case.clone().status();
        let stored = find(&status.conditions, "ObjectStorageReady").unwrap();
        let lacks = stored.reason == "S3BucketsIncomplete" && stored.message.contains("bucket.backups");
        assert_eq!(lacks, is_needed, "{more} {defaults} {step}: {stored:?}");
        let is_released = names(&case.plan().0).contains(&"HelmRelease shop-gitlab".to_owned());
        assert_eq!(is_released, !is_needed, "{more} {defaults} {step}");
    }
}
