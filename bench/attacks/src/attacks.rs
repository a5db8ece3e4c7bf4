//! The attacks, one row each.

use std::future::Future;
use std::pin::Pin;

use serde_json::{Value, json};
use stanchion_bench_env::{DATABASE, PASSWORD};
use tokio::task::JoinHandle;

use crate::objects::Tenant;
use crate::servers::Malice;
use crate::{flood, servers};

pub(crate) struct Attack {
    /// The word for `--only`.
    pub(crate) name: &'static str,
    /// The first column of the table.
    pub(crate) title: &'static str,
    pub(crate) begin: for<'a> fn(&'a Tenant, &'a str) -> Begun<'a>,
}

type Begun<'a> = Pin<Box<dyn Future<Output = Attackers> + 'a>>;

/// What goes on while the other tenant waits.
pub(crate) struct Attackers(Vec<JoinHandle<()>>);

impl Attackers {
    pub(crate) fn stop(self) {
        for task in self.0 {
            task.abort();
        }
    }
}

pub(crate) const ALL: &[Attack] = &[
    Attack {
        name: "none",
        title: "none, for comparison",
        begin: |_, _| Box::pin(async { Attackers(Vec::new()) }),
    },
    Attack {
        name: "endless-rows",
        title: "a server whose rows never end, 20 policies",
        begin: |evil, _| Box::pin(policies_on(evil, Malice::EndlessRows, 20)),
    },
    Attack {
        name: "huge-row",
        title: "a server that sends a row of a gigabyte, 20 policies",
        begin: |evil, _| Box::pin(policies_on(evil, Malice::HugeRow, 20)),
    },
    Attack {
        name: "huge-error",
        title: "a server that sends errors of 850 KB, 20 policies",
        begin: |evil, _| Box::pin(policies_on(evil, Malice::HugeError, 20)),
    },
    Attack {
        name: "silent-server",
        title: "a server that never answers, 60 policies",
        begin: |evil, _| Box::pin(policies_on(evil, Malice::Silent, 60)),
    },
    Attack {
        name: "silent-instance",
        title: "a server that never answers, 60 users",
        begin: |evil, _| Box::pin(users_on_a_silent_instance(evil)),
    },
    Attack {
        name: "expansion",
        title: "a policy of 438 KB that expands to 1.44 million grants",
        begin: |evil, _| Box::pin(expansion(evil)),
    },
    Attack {
        name: "rotation",
        title: "40 users that rotate every second",
        begin: |evil, _| Box::pin(rotation(evil)),
    },
    Attack {
        name: "webhook-flood",
        title: "64 clients that send 8 MiB to the webhooks",
        begin: |_, webhooks| Box::pin(async move { Attackers(flood::start(webhooks)) }),
    },
];

async fn policies_on(evil: &Tenant, malice: Malice, count: usize) -> Attackers {
    let (address, server) = servers::start(malice).await;
    let url = format!("postgres://evil:evil@{address}/app?connect_timeout=3600");
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "url" }, "stringData": { "DATABASE_URL": url },
    });
    evil.create(secret).await;
    for number in 0..count {
        let spec = json!({
            "connection": { "secretRef": { "name": "url" } },
            "interval": "1s",
            "roles": [{ "name": format!("role_{number}") }],
        });
        evil.create(policy(&format!("policy-{number}"), &spec)).await;
    }
    Attackers(vec![server])
}

async fn users_on_a_silent_instance(evil: &Tenant) -> Attackers {
    let (address, server) = servers::start(Malice::Silent).await;
    let admin = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "admin" },
        "stringData": { "username": "evil", "password": "evil" },
    });
    evil.create(admin).await;
    let instance = json!({
        "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresInstance", "metadata": { "name": "silent" },
        "spec": {
            "host": address.ip().to_string(), "port": address.port(), "adminSecretRef": { "name": "admin" },
        },
    });
    evil.create(instance).await;
    for number in 0..60 {
        evil.create(user(
            &format!("silent-{number}"),
            &json!({ "instanceRef": { "name": "silent" } }),
        ))
        .await;
    }
    Attackers(vec![server])
}

async fn expansion(evil: &Tenant) -> Attackers {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "url" },
        "stringData": { "DATABASE_URL": "postgres://evil:evil@127.0.0.1:1/app" },
    });
    evil.create(secret).await;
    let grants: Vec<Value> = (0..40)
        .map(|number| json!({ "privileges": ["SELECT"], "object": { "type": "table", "name": format!("t{number}") } }))
        .collect();
    let names: Vec<String> = (0..60).map(|number| format!("p{number}")).collect();
    let profiles: serde_json::Map<String, Value> = names
        .iter()
        .map(|name| (name.clone(), json!({ "grants": grants })))
        .collect();
    let schemas: Vec<Value> = (0..600)
        .map(|number| json!({ "name": format!("s{number}"), "profiles": names }))
        .collect();
    let spec = json!({
        "connection": { "secretRef": { "name": "url" } },
        "profiles": profiles,
        "schemas": schemas,
    });
    evil.create(policy("expansion", &spec)).await;
    Attackers(Vec::new())
}

async fn rotation(evil: &Tenant) -> Attackers {
    for number in 0..40 {
        let name = format!("spinner-{number}");
        let spec = json!({
            "password": { "generate": {}, "rotation": { "interval": "1s" } }, "passwordSecretRef": null,
            "credentialsSecret": { "name": name },
        });
        evil.create(user(&name, &spec)).await;
    }
    Attackers(Vec::new())
}

fn policy(name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "pgroles.io/v1alpha1", "kind": "PostgresPolicy", "metadata": { "name": name }, "spec": spec })
}

fn user(name: &str, more: &Value) -> Value {
    let mut spec = json!({
        "username": name.replace('-', "_"),
        "database": DATABASE,
        "privileges": ["CONNECT"],
        "passwordSecretRef": { "name": PASSWORD },
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        if value.is_null() {
            spec.as_object_mut().expect("an object").remove(field);
        } else {
            spec[field] = value.clone();
        }
    }
    json!({
        "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser", "metadata": { "name": name }, "spec": spec,
    })
}
