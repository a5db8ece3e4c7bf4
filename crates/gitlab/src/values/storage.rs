//! The buckets.
//!
//! Rails has one connection to the storage, and only a bucket for each kind of content: the chart refuses a kind that
//! has its own connection as well. Pages are not among these kinds and have their own.

use serde_json::{Value, json};

use super::Input;
use super::merge::layered;
use crate::storage::{Buckets, Derived};

pub(super) fn values(input: &Input<'_>) -> Value {
    let Some(buckets) = input.buckets else {
        return Value::Null;
    };
    let bundled = input
        .chart
        .bundles_backends()
        .then(|| json!({ "global": { "minio": { "enabled": false } } }));
    layered([bundled, Some(described(input.name, buckets))])
}

fn described(instance: &str, buckets: &Buckets) -> Value {
    let secret = |which: Derived| json!({ "secret": which.name(instance), "key": which.key() });
    let optional = |bucket: &str| json!({ "enabled": true, "bucket": bucket });
    let pages = buckets.pages.as_ref().map(|bucket| {
        let store = json!({ "enabled": true, "bucket": bucket, "connection": secret(Derived::Rails) });
        json!({ "global": { "pages": { "objectStore": store } } })
    });
    let registry = buckets
        .registry
        .as_ref()
        .map(|bucket| json!({ "global": { "registry": { "bucket": bucket } } }));
    let all = json!({
        "global": {
            "appConfig": {
                "object_store": { "enabled": true, "proxy_download": true, "connection": secret(Derived::Rails) },
                "lfs": { "bucket": buckets.lfs },
                "artifacts": { "bucket": buckets.artifacts },
                "uploads": { "bucket": buckets.uploads },
                "packages": { "bucket": buckets.packages },
                "externalDiffs": optional(&buckets.mr_diffs),
                "terraformState": optional(&buckets.terraform),
                "ciSecureFiles": optional(&buckets.ci_secure_files),
                "dependencyProxy": optional(&buckets.dependency_proxy),
                "backups": { "bucket": buckets.backups, "tmpBucket": buckets.tmp },
            },
        },
        "registry": { "storage": secret(Derived::Registry) },
        "gitlab": { "toolbox": { "backups": { "objectStorage": { "backend": "s3", "config": secret(Derived::Backup) } } } },
    });
    layered([Some(all), pages, registry])
}
