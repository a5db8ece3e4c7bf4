//! Detects backends that values configure, so that the spec need not name them.

use serde_json::Value;
use stanchion_api::gitlab::{GitlabInstanceSpec, ProfileDefaults, Values};

use super::merge::merge;

/// The values that a user or an administrator has written, merged: of the profile, the version map and the spec.
pub(crate) fn written(profile: Option<&ProfileDefaults>, step: Option<&Values>, helm: &Values) -> Values {
    let mut values = Values::new();
    let layers = [profile.map(|profile| &profile.values), step, Some(helm)];
    for layer in layers.into_iter().flatten() {
        merge(&mut values, layer);
    }
    values
}

/// The database's host in these values, if they configure it.
pub(crate) fn psql_host(values: &Values) -> Option<&str> {
    let paths: [&[&str]; 2] = [&["global", "psql", "host"], &["global", "psql", "main", "host"]];
    let mut hosts = paths.iter().filter_map(|path| find(values, path)?.as_str());
    hosts.find(|host| !host.is_empty())
}

/// Whether these values configure Redis.
pub(crate) fn names_redis(values: &Values) -> bool {
    says(values, &["global", "redis", "host"]) || says(values, &["global", "redis", "redisYmlOverride"])
}

/// Whether these values configure object storage, or the chart's own `MinIO`.
pub(crate) fn names_object_storage(values: &Values) -> bool {
    says(values, &["global", "appConfig", "object_store", "connection"])
        || says(values, &["global", "appConfig", "object_store", "enabled"])
        || find(values, &["global", "minio", "enabled"]).is_some_and(Value::is_boolean)
}

/// Whether these values schedule backups.
pub(crate) fn schedule_backups(values: &Values) -> bool {
    says(values, &["gitlab", "toolbox", "backups", "cron", "enabled"])
}

/// Whether these values name another storage for everything that the chart's own `MinIO` would store, and do not mention
/// that. What they do not name is in `MinIO`, such as the images of the registry: it has to stay then.
pub(super) fn leave_minio_unused(values: &Values, spec: &GitlabInstanceSpec) -> bool {
    let (domains, helm) = (&spec.domains, &spec.helm.values);
    let is_enabled = |switch: &[&str]| says(values, switch) || is_null(helm, switch);
    // The chart ignores a connection that is not enabled.
    let rails = is_true(values, &["global", "appConfig", "object_store", "enabled"])
        && says(values, &["global", "appConfig", "object_store", "connection"]);
    let has_registry = domains.registry.is_some()
        || is_enabled(&["registry", "enabled"])
        || is_enabled(&["global", "registry", "enabled"]);
    let registry = !has_registry || says(values, &["registry", "storage"]);
    let has_pages = domains.pages.is_some() || is_enabled(&["global", "pages", "enabled"]);
    let pages = !has_pages || says(values, &["global", "pages", "objectStore", "connection"]);
    let backups = ["gitlab", "toolbox", "backups", "objectStorage", "config"];
    let is_mentioned = find(values, &["global", "minio", "enabled"]).is_some();
    rails && registry && pages && says(values, &backups) && !is_mentioned
}

/// Whether the value is removed, so that the chart's default applies: it installs a registry.
fn is_null(values: &Values, path: &[&str]) -> bool {
    (1..=path.len()).any(|end| path.get(..end).and_then(|path| find(values, path)) == Some(&Value::Null))
}

fn is_true(values: &Values, path: &[&str]) -> bool {
    find(values, path) == Some(&Value::Bool(true))
}

/// Whether the value is present, and neither null, false nor empty.
fn says(values: &Values, path: &[&str]) -> bool {
    find(values, path).is_some_and(|value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    })
}

fn find<'a>(values: &'a Values, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter()
        .try_fold(values.get(*first)?, |value, key| value.get(key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn values(global: Value) -> Values {
        Values::from_iter([("global".to_owned(), global)])
    }

    #[test]
    fn a_host_names_a_backend_and_less_does_not() {
        for (named, global) in [
            (true, json!({ "host": "db.example.com" })),
            (true, json!({ "main": { "host": "db.example.com" } })),
            (true, json!({ "host": "", "main": { "host": "db.example.com" } })),
            (false, json!({ "host": "" })),
            (false, json!({ "host": null, "port": 5432 })),
            (false, json!("db.example.com")),
        ] {
            let values = values(json!({ "psql": global }));
            assert_eq!(psql_host(&values), named.then_some("db.example.com"), "{global}");
        }
        assert!(names_redis(&values(json!({ "redis": { "host": "redis" } }))));
        assert!(names_redis(&values(
            json!({ "redis": { "redisYmlOverride": { "cache": {} } } })
        )));
        assert!(!names_redis(&values(
            json!({ "redis": { "auth": { "enabled": false } } })
        )));
        assert!(
            psql_host(&Values::new()).is_none()
                && !names_redis(&Values::new())
                && !names_object_storage(&Values::new())
        );
    }

    #[test]
    fn a_connection_or_a_word_about_minio_names_the_object_storage() {
        for (named, global) in [
            (
                true,
                json!({ "appConfig": { "object_store": { "enabled": true } } }),
            ),
            (
                true,
                json!({ "appConfig": { "object_store": { "connection": { "secret": "s" } } } }),
            ),
            (
                false,
                json!({ "appConfig": { "object_store": { "enabled": false, "connection": {} } } }),
            ),
            (
                false,
                json!({ "appConfig": { "object_store": { "proxy_download": false } } }),
            ),
            (true, json!({ "minio": { "enabled": true } })),
            (true, json!({ "minio": { "enabled": false } })),
            (false, json!({ "minio": { "enabled": null } })),
        ] {
            assert_eq!(names_object_storage(&values(global.clone())), named, "{global}");
        }
    }
}
