//! Edge functions: the user's own code, which serves requests. It comes from a `ConfigMap` or from a volume.
//!
//! The runtime's entry is ours: it verifies tokens with the project's keys, and downloads nothing for that.

use serde_json::{Value, json};
use stanchion_api::SupabaseProjectSpec;
use stanchion_api::supabase::{Functions, image};

use super::kong::routes::{Guard, Route, route};
use super::{Component, Environment, Extras, Files, Mount, Needed, Needs, Port, Probes, Project, Resources};
use crate::database::Login;
use crate::keys::names as key;

/// The path of the runtime's entry.
const MAIN: &str = "/home/deno/main";
/// The path of the functions, one folder for each.
const FOLDER: &str = "/home/deno/functions";
/// The cache of downloads and compiled code.
const CACHE: &str = "/var/cache/deno";
/// File extensions of functions that the runtime supports.
const ENDINGS: &[&str] = &["ts", "tsx", "js", "mjs", "jsx"];
/// Timeout of a function in milliseconds, for the gateway and the runtime.
const WORKER_TIMEOUT_MILLIS: u32 = 150_000;

pub(super) const COMPONENT: Component = Component {
    name: "functions",
    field: "functions",
    label: "edge-functions",
    condition: "FunctionsReady",
    options: |spec| spec.functions.as_ref().map(|functions| &functions.options),
    image: image::FUNCTIONS,
    ports: &[Port::service("http", 9000)],
    open: false,
    resources: Resources::new(("256Mi", "100m"), ("1Gi", "1")),
    user: 1000,
    probes: |_| Probes::http("http", "/_internal/health", 120),
    logins: &[Login::Functions],
    keys: &[],
    routes: &[Route {
        timeout: Some(WORKER_TIMEOUT_MILLIS),
        ..route("functions-v1", "/", "/functions/v1/", Guard::Functions)
    }],
    needs: |spec| Needs {
        config_maps: code_map(spec).into_iter().collect(),
        ..Needs::default()
    },
    environment,
    extras,
};

/// The `ConfigMap` with the code, if the code is in one.
fn code_map(spec: &SupabaseProjectSpec) -> Option<Needed> {
    let map = spec.functions.as_ref()?.source.config_map.as_ref()?;
    Some(Needed {
        what: "functions",
        name: map.name.clone(),
        keys: &[],
    })
}

fn environment(project: &Project<'_>, env: &mut Environment) {
    let keys = project.key_secret();
    env.secret("JWT_SECRET", &keys, key::JWT_SECRET);
    env.secret("SUPABASE_JWKS", &keys, key::JWKS);
    env.set("SUPABASE_URL", format!("http://{}:8000", project.host("kong")));
    env.set("SUPABASE_PUBLIC_URL", project.public_url());
    env.secret("SUPABASE_ANON_KEY", &keys, key::ANON);
    env.secret("SUPABASE_SERVICE_ROLE_KEY", &keys, key::SERVICE);
    for (one, all, key) in [
        (
            "SUPABASE_PUBLISHABLE_KEY",
            "SUPABASE_PUBLISHABLE_KEYS",
            key::PUBLISHABLE,
        ),
        ("SUPABASE_SECRET_KEY", "SUPABASE_SECRET_KEYS", key::SECRET),
    ] {
        env.secret(one, &keys, key);
        env.expanded(all, format!(r#"{{"default":"$({one})"}}"#));
    }
    env.secret("DB_PASSWORD", &keys, key::password(Login::Functions));
    let parameters = [("sslmode", project.ssl_mode())];
    env.expanded(
        "SUPABASE_DB_URL",
        project.database_url(Login::Functions, &parameters),
    );
    let checks = project
        .spec
        .functions
        .as_ref()
        .is_none_or(|functions| functions.verify_jwt);
    env.set("VERIFY_JWT", checks.to_string());
    env.set("DENO_DIR", CACHE);
}

fn extras(project: &Project<'_>) -> Extras {
    Extras {
        command: [
            "edge-runtime",
            "start",
            "--main-service",
            MAIN,
            "--port",
            "9000",
            "--user-worker-request-idle-timeout",
        ]
        .into_iter()
        .map(str::to_owned)
        .chain([WORKER_TIMEOUT_MILLIS.to_string()])
        .collect(),
        files: Some(Files {
            suffix: "functions-main",
            path: MAIN,
            data: vec![("index.mjs", include_str!("functions/main.mjs").to_owned())],
        }),
        scratch: vec![CACHE],
        mounts: project
            .spec
            .functions
            .iter()
            .map(|functions| code(functions, project))
            .collect(),
    }
}

/// The volume with the code.
fn code(functions: &Functions, project: &Project<'_>) -> Mount {
    let source = &functions.source;
    let volume = match (&source.config_map, &source.persistent_volume_claim) {
        (Some(map), _) => json!({ "configMap": { "name": map.name, "items": items(&map.name, project) } }),
        (None, claim) => {
            let name = claim.as_ref().map(|claim| claim.claim_name.as_str());
            json!({ "persistentVolumeClaim": { "claimName": name, "readOnly": true } })
        }
    };
    Mount {
        name: "code",
        volume: Some(volume),
        path: FOLDER.into(),
        file: None,
    }
}

/// A folder for each key of the `ConfigMap` that is a function.
fn items(map: &str, project: &Project<'_>) -> Vec<Value> {
    let keys = project.config.get(map).into_iter().flatten().map(|(key, _)| key);
    let item = |key: &String| {
        let (name, ending) = key.rsplit_once('.')?;
        let path = format!("{name}/index.{ending}");
        ENDINGS
            .contains(&ending)
            .then(|| json!({ "key": key, "path": path }))
    };
    keys.filter_map(item).collect()
}

#[cfg(test)]
mod tests;
