//! The components and the options that only one of them has.
//!
//! The schema contains the default image of each component, so the stored object shows which image runs, and an upgrade
//! of the operator alone does not replace it.

use kube::KubeSchema;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::dependencies::SecretReference;
use super::options::Options;

/// The default image of each component.
pub mod image {
    #![allow(missing_docs)]
    pub const KONG: &str = "kong/kong:3.9.3";
    pub const AUTH: &str = "supabase/gotrue:v2.196.0";
    pub const POSTGREST: &str = "postgrest/postgrest:v14.17";
    pub const REALTIME: &str = "supabase/realtime:v2.134.10";
    pub const STORAGE: &str = "supabase/storage-api:v1.74.0";
    pub const META: &str = "supabase/postgres-meta:v0.99.0";
    pub const STUDIO: &str = "supabase/studio:2026.09.07-sha-7996410";
    pub const IMGPROXY: &str = "darthsim/imgproxy:v3.31.4";
    pub const FUNCTIONS: &str = "supabase/edge-runtime:v1.76.2";
    pub const POOLER: &str = "supabase/supavisor:2.9.12";
    pub const ANALYTICS: &str = "supabase/logflare:1.43.1";
}

fn default_image(schema: &mut Schema, image: &str) {
    if let Some(field) = schema.pointer_mut("/properties/image")
        && let Some(field) = field.as_object_mut()
    {
        field.insert("default".into(), json!(image));
    }
}

/// A component without options of its own.
macro_rules! plain_component {
    ($name:ident, $image:path, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[schemars(transform = |schema: &mut Schema| default_image(schema, $image))]
        pub struct $name {
            /// Options that every component has.
            #[serde(flatten)]
            pub options: Options,
        }
    };
}

plain_component!(Kong, image::KONG, "The API gateway.");
plain_component!(Realtime, image::REALTIME, "Changes over web sockets.");
plain_component!(Postgrest, image::POSTGREST, "The REST API.");
plain_component!(StorageApi, image::STORAGE, "Files.");
plain_component!(Meta, image::META, "The database's structure.");
plain_component!(Imgproxy, image::IMGPROXY, "Images in other sizes.");

/// Sign-up, login and tokens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = |schema: &mut Schema| default_image(schema, image::AUTH))]
pub struct Auth {
    /// Options that every component has.
    #[serde(flatten)]
    pub options: Options,
    /// The Secret with `host`, `port`, `username`, `password` and `from` of a mail server, and optionally `senderName`.
    /// Without it, no mail is sent and mail addresses count as confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smtp_secret_ref: Option<SecretReference>,
    /// The Secret with `<provider>-client-id`, `<provider>-secret` and optionally `<provider>-url` for each OAuth
    /// provider, such as `github-client-id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth_secret_ref: Option<SecretReference>,
    /// URL that users are redirected to after login. Defaults to the project's URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub site_url: Option<String>,
    /// Additional URLs that users may be redirected to. `*` is a wildcard.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub redirect_urls: Vec<String>,
}

/// The dashboard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = |schema: &mut Schema| default_image(schema, image::STUDIO))]
pub struct Studio {
    /// Options that every component has.
    #[serde(flatten)]
    pub options: Options,
    /// Whether the dashboard is installed.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// URL under which users reach the project. Defaults to the URL of the Ingress or the `HTTPRoute`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), pattern("^(https?://[^/].*)?$"))]
    pub public_url: Option<String>,
    /// The Secret with `username` and `password` of the dashboard. By default the operator generates one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dashboard_basic_auth_secret_ref: Option<SecretReference>,
}

impl Default for Studio {
    fn default() -> Self {
        Self {
            options: Options::default(),
            enabled: yes(),
            public_url: None,
            dashboard_basic_auth_secret_ref: None,
        }
    }
}

/// Edge functions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = |schema: &mut Schema| default_image(schema, image::FUNCTIONS))]
pub struct Functions {
    /// Options that every component has.
    #[serde(flatten)]
    pub options: Options,
    /// Where the code of the functions is.
    pub source: FunctionsSource,
    /// Whether requests need a valid token of the project. Turn it off for functions that anybody may call, such as
    /// webhooks; such a function has to check the request itself.
    #[serde(default = "yes", rename = "verifyJWT")]
    pub verify_jwt: bool,
}

/// Where the code of the functions is. Set exactly one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.configMap) != has(self.persistentVolumeClaim)",
    "functions.source is a configMap or a persistentVolumeClaim"
))]
pub struct FunctionsSource {
    /// A `ConfigMap` in which each key is a function: `hello.ts` is the function `hello`. The pods are replaced when
    /// the `ConfigMap` changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapName>,
    /// A volume with one folder per function that contains `index.ts`, as in `volumes/functions` of the upstream
    /// compose file. It is mounted read-only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<ClaimName>,
}

/// A `ConfigMap` in the project's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigMapName {
    /// Name of the `ConfigMap`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// A `PersistentVolumeClaim` in the project's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimName {
    /// Name of the `PersistentVolumeClaim`.
    #[schemars(length(min = 1, max = 253))]
    pub claim_name: String,
}

/// A connection pooler for clients that open many connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = |schema: &mut Schema| default_image(schema, image::POOLER))]
pub struct Pooler {
    /// Options that every component has.
    #[serde(flatten)]
    pub options: Options,
    /// Number of database connections that the pooler opens for each user.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 1000))]
    pub default_pool_size: u32,
    /// Maximum number of client connections.
    #[serde(default = "hundred")]
    #[schemars(range(min = 1, max = 100_000))]
    pub max_client_connections: u32,
}

/// Log storage in the database, for the dashboard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = |schema: &mut Schema| default_image(schema, image::ANALYTICS))]
pub struct Analytics {
    /// Options that every component has.
    #[serde(flatten)]
    pub options: Options,
    /// The Secret of type `kubernetes.io/tls` with the client certificate for the database. The component uses TLS only
    /// with this Secret and with `database.caSecretRef`. `sslMode` `disable` and `prefer` need neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_certificate_secret_ref: Option<SecretReference>,
}

fn yes() -> bool {
    true
}

fn twenty() -> u32 {
    20
}

fn hundred() -> u32 {
    100
}
