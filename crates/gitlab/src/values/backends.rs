//! The values for the database, Redis, the buckets, and what the chart bundles.

use serde_json::{Value, json};

use super::Input;
use super::merge::layered;
use super::named::leave_minio_unused;
use crate::login::{Address, Psql, RedisLogin, RedisServer};
use crate::storage::{Buckets, Derived};

/// Switches off what the chart bundles and the cluster provides.
///
/// By default the chart installs an ingress controller, a certificate manager, a Prometheus and a runner for each
/// instance, some of them with cluster-wide permissions. They are off in the lowest layer, because the spec has no
/// fields for them: a profile may switch one on. The backends are off in the layer of the spec, which configures them.
pub(super) const BUNDLED: [fn(&Input<'_>) -> Value; 3] = [helpers, certificates, entrance];

fn helpers(_: &Input<'_>) -> Value {
    json!({ "prometheus": { "install": false }, "gitlab-runner": { "install": false } })
}

fn certificates(input: &Input<'_>) -> Value {
    if input.chart.has_flag_for_cert_manager() {
        json!({ "installCertmanager": false })
    } else {
        json!({ "certmanager": { "install": false } })
    }
}

/// Ingresses, for the controller that most clusters have. Without this, a chart from 10 on would remove the Ingresses
/// of a running instance and wait for a gateway.
fn entrance(input: &Input<'_>) -> Value {
    let ingress = json!({ "enabled": true, "class": "nginx", "configureCertmanager": false });
    let global = if input.chart.prefers_gateways() {
        json!({
            "ingress": ingress,
            "gatewayApi": { "enabled": false, "installEnvoy": false, "configureCertmanager": false },
        })
    } else {
        json!({ "ingress": ingress })
    };
    json!({ "nginx-ingress": { "enabled": false }, "global": global })
}

/// The database.
pub(super) fn psql(input: &Input<'_>) -> Value {
    let bundled = input
        .chart
        .bundles_backends()
        .then(|| json!({ "postgresql": { "install": false } }));
    let direct = input
        .psql
        .and_then(|psql| psql.behind_pooler.as_ref())
        .map(direct_psql);
    layered([bundled, input.psql.map(psql_login), direct])
}

/// No prepared statements: behind a pooler the next statement may run in another session, which does not have them.
fn psql_login(psql: &Psql) -> Value {
    let Psql {
        address, password, ..
    } = psql;
    json!({ "global": { "psql": {
        "host": address.host,
        "port": address.port,
        "database": psql.database,
        "username": psql.username,
        "preparedStatements": false,
        "password": { "secret": password.secret, "key": password.key },
    } } })
}

/// Migrations and backups need their own session as long as they run, and settings that a pooler loses.
fn direct_psql(server: &Address) -> Value {
    let psql = json!({ "psql": { "host": server.host, "port": server.port } });
    json!({ "gitlab": { "migrations": psql, "toolbox": psql } })
}

pub(super) fn redis(input: &Input<'_>) -> Value {
    let bundled = input
        .chart
        .bundles_backends()
        .then(|| json!({ "redis": { "install": false } }));
    layered([bundled, input.redis.map(redis_login)])
}

/// With Sentinels, the host is the name of their group. Sentinels have no password: a server without a password refuses
/// a connection with one.
fn redis_login(redis: &RedisLogin) -> Value {
    let RedisLogin { server, password } = redis;
    let auth = json!({ "enabled": true, "secret": password.secret, "key": password.key });
    let server = match server {
        RedisServer::At(address) => json!({ "host": address.host, "port": address.port, "auth": auth }),
        RedisServer::Asked { master, sentinels } => {
            let sentinels: Vec<_> = sentinels
                .iter()
                .map(|sentinel| json!({ "host": sentinel.host, "port": sentinel.port }))
                .collect();
            json!({ "host": master, "sentinels": sentinels, "auth": auth })
        }
    };
    json!({ "global": { "redis": server } })
}

/// The buckets.
///
/// Rails has one connection to the storage, and only a bucket for each kind of content: the chart refuses a kind that
/// has its own connection as well. Pages are not among these kinds and have their own.
pub(super) fn buckets(input: &Input<'_>) -> Value {
    let bundled = input
        .chart
        .bundles_backends()
        .then(|| json!({ "global": { "minio": { "enabled": false } } }));
    let Some(buckets) = input.buckets else {
        let is_unused = leave_minio_unused(input.written, input.spec);
        return bundled.filter(|_| is_unused).unwrap_or_default();
    };
    layered([bundled, Some(buckets_of(input.name, buckets))])
}

fn buckets_of(instance: &str, buckets: &Buckets) -> Value {
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
            },
        },
        "registry": { "storage": secret(Derived::Registry) },
        "gitlab": { "toolbox": { "backups": { "objectStorage": { "backend": "s3", "config": secret(Derived::Backup) } } } },
    });
    let backups = [("bucket", &buckets.backups), ("tmpBucket", &buckets.tmp)].map(|(key, bucket)| {
        let bucket = bucket.as_ref()?;
        Some(json!({ "global": { "appConfig": { "backups": { key: bucket } } } }))
    });
    let [backups, tmp] = backups;
    layered([Some(all), backups, tmp, pages, registry])
}
