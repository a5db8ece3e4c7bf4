//! Redis.

use serde_json::{Value, json};

use super::Input;
use super::merge::layered;
use crate::login::{RedisLogin, RedisServer};

pub(super) fn values(input: &Input<'_>) -> Value {
    let bundled = input
        .chart
        .bundles_backends()
        .then(|| json!({ "redis": { "install": false } }));
    layered([bundled, input.redis.map(login)])
}

/// With Sentinels, the host is the name of their group. Sentinels have no password: a server without a password refuses
/// a connection with one.
fn login(redis: &RedisLogin) -> Value {
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
