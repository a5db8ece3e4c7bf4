//! Kong: the gateway. Its configuration is a generated file with every route; its admin API is closed.
//!
//! The file contains no key. It names environment variables, and the container's start script inserts the values: Kong
//! itself would treat the names as text.

mod expressions;
pub(crate) mod routes;

use serde_json::{Value, json};
use stanchion_api::supabase::image;

use super::{Component, Environment, Extras, Files, Needs, Port, Probe, Probes, Project, Resources};
use crate::keys::names as key;
use crate::keys::token::Role;
use expressions::{ApiKey, api_keys};

/// Kong's working directory: its default one belongs to the image's own user, whose id differs between images.
const PREFIX: &str = "/var/lib/kong";
/// The directory of the configuration with the values.
const CONFIGURATION: &str = "/var/lib/kong-config";

pub(super) const COMPONENT: Component = Component {
    name: "kong",
    field: "kong",
    label: "api-gateway",
    condition: "KongReady",
    options: |spec| Some(&spec.kong.options),
    image: image::KONG,
    ports: &[
        Port::service("proxy", 8000),
        Port::service("proxy-ssl", 8443),
        Port::pod("status", 8100),
    ],
    open: true,
    resources: Resources::new(("1Gi", "250m"), ("2.5Gi", "500m")),
    user: 1000,
    probes: |_| Probes {
        readiness: Probe::Http {
            port: "status",
            path: "/status/ready",
        },
        liveness: Probe::Http {
            port: "status",
            path: "/status",
        },
        start: 120,
    },
    logins: &[],
    keys: &[],
    routes: &[],
    needs: |_| Needs::default(),
    environment,
    extras: |project| Extras {
        command: ["/bin/sh", "/etc/kong/kong-entrypoint.sh"]
            .map(str::to_owned)
            .into(),
        files: Some(Files {
            suffix: "kong-config",
            path: "/etc/kong",
            data: vec![
                ("kong.yml", configuration(project)),
                ("kong-entrypoint.sh", include_str!("entrypoint.sh").to_owned()),
            ],
        }),
        scratch: vec![CONFIGURATION, PREFIX],
        mounts: Vec::new(),
    },
};

fn environment(project: &Project<'_>, env: &mut Environment) {
    let keys = project.key_secret();
    env.set_all(&[
        ("KONG_DATABASE", "off"),
        ("KONG_PREFIX", PREFIX),
        ("KONG_PROXY_ACCESS_LOG", "/dev/stdout combined"),
        ("KONG_PROXY_ERROR_LOG", "/dev/stderr"),
        ("KONG_ADMIN_LISTEN", "off"),
        ("KONG_ADMIN_GUI_LISTEN", "off"),
        ("KONG_STATUS_LISTEN", "0.0.0.0:8100"),
        ("KONG_STATUS_ACCESS_LOG", "off"),
        ("KONG_DNS_ORDER", "LAST,A,CNAME"),
        ("KONG_DNS_NOT_FOUND_TTL", "1"),
        ("KONG_DNS_VALID_TTL", "5"),
        (
            "KONG_PLUGINS",
            "request-transformer,cors,key-auth,acl,basic-auth,request-termination,ip-restriction,post-function",
        ),
        ("KONG_NGINX_PROXY_PROXY_BUFFER_SIZE", "160k"),
        ("KONG_NGINX_PROXY_PROXY_BUFFERS", "64 160k"),
    ]);
    env.set("KONG_DECLARATIVE_CONFIG", format!("{CONFIGURATION}/kong.yml"));
    for ApiKey { variable, key, .. } in api_keys(project) {
        env.secret(variable, &keys, key);
    }
    env.secret("ANON_KEY_ASYMMETRIC", &keys, key::ANON_ASYMMETRIC);
    env.secret("SERVICE_ROLE_KEY_ASYMMETRIC", &keys, key::SERVICE_ASYMMETRIC);
    let reference = project.spec.studio.dashboard_basic_auth_secret_ref.as_ref();
    let own = (keys.as_str(), key::DASHBOARD_USERNAME, key::DASHBOARD_PASSWORD);
    let (secret, username, password) = reference
        .and_then(|reference| reference.name.as_deref())
        .filter(|name| !name.is_empty())
        .map_or(own, |secret| (secret, "username", "password"));
    env.secret("DASHBOARD_USERNAME", secret, username);
    env.secret("DASHBOARD_PASSWORD", secret, password);
}

/// The whole file: consumers, and the route of each path. A user's own name and password may contain anything, so they
/// are in double quotes, and the start script escapes them.
pub(crate) fn configuration(project: &Project<'_>) -> String {
    let services = routes::services(project);
    let all = json!({
        "_format_version": "3.0",
        "consumers": consumers(project),
        "acls": [
            { "consumer": "anon", "group": "anon" },
            { "consumer": "service_role", "group": "admin" },
        ],
        "services": services,
    });
    let text = serde_saphyr::to_string(&all).unwrap_or_default();
    format!(
        "{}\nbasicauth_credentials:\n- consumer: DASHBOARD\n  username: \"${{DASHBOARD_USERNAME}}\"\n  \
         password: \"${{DASHBOARD_PASSWORD}}\"\n",
        text.trim_end()
    )
}

fn consumers(project: &Project<'_>) -> Value {
    let credentials = |role: Role| -> Vec<Value> {
        api_keys(project)
            .filter(|key| key.role == role)
            .map(|key| json!({ "key": key.placeholder() }))
            .collect()
    };
    json!([
        { "username": "DASHBOARD" },
        { "username": "anon", "keyauth_credentials": credentials(Role::Anon) },
        { "username": "service_role", "keyauth_credentials": credentials(Role::Service) },
    ])
}

#[cfg(test)]
mod tests;
