//! Instances to compose values for.

use serde_json::json;

use super::super::*;
use crate::login::{Address, RedisServer, SecretKey};
use crate::storage::tests::{ALL, complete};

/// Everything that an [`Input`] borrows.
pub(super) struct Fixture {
    pub(super) spec: GitlabInstanceSpec,
    pub(super) profile: ProfileDefaults,
    pub(super) step_values: Values,
    pub(super) chart: ChartVersion,
    pub(super) psql: Option<Psql>,
    pub(super) redis: Option<RedisLogin>,
    pub(super) buckets: Option<Buckets>,
    pub(super) mail: Option<Mail>,
    pub(super) checksums: Checksums,
}

impl Fixture {
    /// The first instance of the documentation: provided databases and buckets.
    pub(super) fn smallest() -> Self {
        let spec = json!({
            "version": "17", "edition": "ce",
            "domains": { "gitlab": "git.example.com", "registry": "registry.example.com", "kas": "kas.example.com" },
            "postgres": { "managed": false, "credentialsSecret": "my-gitlab-ce-pg-credentials" },
            "redis": { "managed": false, "credentialsSecret": "my-gitlab-ce-redis-credentials" },
            "objectStorage": { "credentialsSecret": "my-gitlab-ce-s3-credentials" },
        });
        Self {
            spec: serde_json::from_value(spec).unwrap(),
            profile: ProfileDefaults::default(),
            step_values: Values::new(),
            chart: ChartVersion::of("8.11.8"),
            psql: Some(Psql {
                address: at("pg.example.com", 5432),
                behind_pooler: None,
                database: "gitlabhq_production".into(),
                username: "gitlab".into(),
                password: key("my-gitlab-ce-pg-credentials"),
            }),
            redis: Some(RedisLogin {
                server: RedisServer::At(at("redis.example.com", 6379)),
                password: key("my-gitlab-ce-redis-credentials"),
            }),
            buckets: Some(Buckets::read(&complete(&[]), ALL).unwrap()),
            mail: None,
            checksums: Checksums::default(),
        }
    }

    /// An instance with all fields.
    pub(super) fn fullest() -> Self {
        let smallest = Self::smallest();
        let spec = json!({
            "version": "18", "edition": "ee", "licenseSecret": "license",
            "domains": {
                "gitlab": "git.example.com", "registry": "registry.example.com",
                "kas": "kas.example.com", "pages": "pages.example.com",
            },
            "backupSchedule": "30 2 * * *",
            "nodeSelector": { "disk": "ssd" },
            "tolerations": [{ "key": "gitlab", "operator": "Exists", "effect": "NoSchedule" }],
            "helm": { "values": { "global": { "hosts": { "ssh": "ssh.example.com" }, "time_zone": "Europe/Berlin" } } },
        });
        Self {
            spec: serde_json::from_value(spec).unwrap(),
            profile: serde_json::from_value(json!({
                "backupSchedule": "0 4 * * 0",
                "values": { "global": { "time_zone": "UTC" }, "gitlab": { "webservice": { "minReplicas": 2 } } },
            }))
            .unwrap(),
            step_values: map(json!({ "gitlab": { "webservice": { "minReplicas": 3 } } })),
            chart: ChartVersion::of("9.11.7"),
            psql: smallest.psql.map(|psql| Psql {
                address: at("shop-pg-pgbouncer.shop.svc", 5432),
                behind_pooler: Some(at("shop-pg-primary.shop.svc", 5432)),
                password: key("shop-pg-pguser-gitlab"),
                ..psql
            }),
            redis: Some(RedisLogin {
                server: RedisServer::Asked {
                    master: "gitlab".into(),
                    sentinels: (0..3).map(|number| at(&format!("sentinel-{number}"), 26379)).collect(),
                },
                password: key("shop-redis-auth"),
            }),
            buckets: Some(Buckets::read(&complete(&[("bucket.tmp", "shop-tmp")]), ALL).unwrap()),
            mail: Some(Mail {
                address: at("mail.example.com", 587),
                username: Some("gitlab".into()),
                password: Some(key("shop-smtp")),
                authentication: Some("login".into()),
                starttls: true,
                from: Some("gitlab@example.com".into()),
                reply_to: Some("noreply@example.com".into()),
            }),
            checksums: Checksums {
                rails: Some("rails-sum".into()),
                registry: Some("registry-sum".into()),
                toolbox: Some("toolbox-sum".into()),
                kas: Some("kas-sum".into()),
                exporter: Some("exporter-sum".into()),
            },
        }
    }

    pub(super) fn written(&self) -> Values {
        written(
            Some(&self.profile),
            Some(&self.step_values),
            &self.spec.helm.values,
        )
    }

    pub(super) fn input<'a>(&'a self, written: &'a Values) -> Input<'a> {
        Input {
            name: "shop",
            spec: &self.spec,
            profile: &self.profile,
            step_values: &self.step_values,
            written,
            chart: &self.chart,
            psql: self.psql.as_ref(),
            redis: self.redis.as_ref(),
            buckets: self.buckets.as_ref(),
            mail: self.mail.as_ref(),
            checksums: &self.checksums,
        }
    }

    pub(super) fn values(&self) -> Value {
        compose(&self.input(&self.written())).into()
    }

    pub(super) fn at(&self, pointer: &str) -> Option<Value> {
        self.values().pointer(pointer).cloned()
    }
}

pub(super) fn at(host: &str, port: u16) -> Address {
    let host = host.to_owned();
    Address { host, port }
}

fn key(secret: &str) -> SecretKey {
    SecretKey {
        secret: secret.to_owned(),
        key: "password".to_owned(),
    }
}

pub(super) fn map(value: Value) -> Values {
    serde_json::from_value(value).unwrap()
}
