//! The servers: the operator's default one, those of instances, which of them an object uses, and its connection.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use parking_lot::RwLock;
use secrecy::ExposeSecret;
use stanchion_api::PostgresInstance;
use stanchion_api::instance::{AllowedNamespaces, Endpoints, TlsMode};
use stanchion_api::user::InstanceRef;
use stanchion_kernel::lenient::{Flaw, Lenient};
use stanchion_kernel::marks::Marks;
use stanchion_kernel::problem::Cause;
use stanchion_kernel::redact::{FingerprintKey, SecretString, SecretValues};
use stanchion_kernel::{Problem, Reader, tls_mode};
use stanchion_postgres as pg;

use crate::rules::Rules;
use crate::user::catalog::Viewer;

/// State that the controllers of this crate share. Clones share it.
#[derive(Clone)]
pub struct Setup {
    /// The server of objects without `instanceRef`.
    pub default_instance: DefaultInstance,
    /// What that server opens to every namespace.
    pub openings: Openings,
    /// The connections of this process.
    pub pools: pg::Pools,
    /// Detects changed passwords without keeping them.
    pub fingerprints: Arc<FingerprintKey>,
}

/// The server of objects without `instanceRef`. It may change while the operator runs.
#[derive(Clone, Default)]
pub struct DefaultInstance(Arc<RwLock<Option<pg::ConnectionConfig>>>);

impl DefaultInstance {
    /// This server, or none.
    pub fn new(target: Option<pg::ConnectionConfig>) -> Self {
        Self(Arc::new(RwLock::new(target)))
    }

    /// The current server.
    pub fn get(&self) -> Option<pg::ConnectionConfig> {
        self.0.read().clone()
    }

    /// Replaces it; running reconciles keep the one that they have.
    pub fn set(&self, target: Option<pg::ConnectionConfig>) {
        *self.0.write() = target;
    }
}

/// What the operator's default server opens to every namespace. Command line flags set it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Openings {
    /// Databases that a person created, in which roles may get privileges.
    pub databases: Vec<String>,
    /// Roles that a person created, which roles may be members of.
    pub roles: Vec<String>,
    /// Roles that a person created, which may be adopted.
    pub adoption: Vec<String>,
    /// Extensions that may be created although they are not trusted.
    pub extensions: Vec<String>,
    /// Parameters in addition to those that every user may set.
    pub parameters: Vec<String>,
}

impl Default for Openings {
    /// As in the guide: any database that a person created may be used, and nothing else.
    fn default() -> Self {
        Self {
            databases: vec!["*".into()],
            roles: Vec::new(),
            adoption: Vec::new(),
            extensions: Vec::new(),
            parameters: Vec::new(),
        }
    }
}

/// Whether a server may be used.
pub(crate) enum Access {
    /// It may.
    Open(Server),
    /// It was allowed once, and no longer is.
    Withdrawn(Server),
}

pub struct Server {
    /// The administrator's connection.
    pub target: pg::ConnectionConfig,
    /// The rules for the object's namespace, and the check of ownership.
    pub viewer: Viewer,
    /// Addresses for applications.
    pub endpoints: Endpoints,
    /// TLS mode for applications.
    pub tls: pg::TlsMode,
}

/// The same connection, to another database.
pub(crate) fn database(target: &pg::ConnectionConfig, name: &str) -> Result<pg::ConnectionConfig, Problem> {
    target
        .with_database(name)
        .map_err(|error| Problem::permanent("InvalidSpec", error.to_string()).caused_by(error))
}

/// The fields of an instance without which the operator does not connect to its server: a connection with a default
/// instead could reach another server, or the same one without TLS.
const CONNECTION: &[&str] = &["spec", "host", "port", "database", "tls", "adminSecretRef"];

/// Which fields of an instance have to be readable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needed {
    /// All of the spec: a rule that is left out could take a permission away.
    Spec,
    /// Those of the connection, and whether the object may use the server.
    Connection,
}

impl Needed {
    fn includes(self, flaw: &Flaw) -> bool {
        let of_connection = || CONNECTION.iter().any(|name| is_at(flaw, name));
        flaw.is_in("spec") && (self == Self::Spec || of_connection())
    }
}

/// Whether the flaw is this field of the spec, or the spec itself.
fn is_at(flaw: &Flaw, field: &str) -> bool {
    let mut path = flaw.path.split(['.', '[']).skip(1);
    path.next().unwrap_or("spec") == field
}

/// As [`resolve`], for an object that is being deleted: it needs no rule of the instance.
pub(crate) async fn resolve_for_cleanup(
    read: &Reader,
    setup: &Setup,
    reference: Option<&InstanceRef>,
    provisioned: bool,
) -> Result<Access, Problem> {
    resolve_with(read, setup, reference, provisioned, Needed::Connection).await
}

/// Resolves the server of an object. An object that was provisioned there learns when it may no longer use the server;
/// for any other, an instance that does not allow its namespace looks like a missing one.
pub(crate) async fn resolve(
    read: &Reader,
    setup: &Setup,
    reference: Option<&InstanceRef>,
    provisioned: bool,
) -> Result<Access, Problem> {
    resolve_with(read, setup, reference, provisioned, Needed::Spec).await
}

async fn resolve_with(
    read: &Reader,
    setup: &Setup,
    reference: Option<&InstanceRef>,
    provisioned: bool,
    needed: Needed,
) -> Result<Access, Problem> {
    let namespace = &read.parent().key.namespace;
    let Some(reference) = reference else {
        let target = setup.default_instance.get().ok_or_else(|| {
            Problem::dependency(
                "InstanceNotFound",
                "the operator has no default instance; set spec.instanceRef, or start it with --postgres-url-file",
            )
            .with_cause(Cause::InstanceMissing)
        })?;
        let tls = target.tls();
        return Ok(Access::Open(Server {
            target,
            viewer: viewer(setup, Rules::of_default(namespace, &setup.openings)),
            endpoints: Endpoints::default(),
            tls,
        }));
    };
    let home = reference.namespace.as_ref().unwrap_or(namespace);
    let found: Option<Lenient<PostgresInstance>> = read.get_in(home, &reference.name).await?;
    let allowed = match &found {
        Some(_) if home == namespace => true,
        Some(found) => match found.object() {
            Some(instance) => is_allowed(read, instance, namespace).await?,
            None => false,
        },
        None => false,
    };
    // An instance that cannot be read says nothing about who may use it: nothing is withdrawn.
    let instance = match found {
        Some(found) if allowed || provisioned => Some(found.needed(|flaw| needed.includes(flaw))?),
        _ => None,
    };
    match instance {
        Some(instance) if allowed => Ok(Access::Open(of_instance(read, setup, &instance).await?)),
        Some(instance) if provisioned => Ok(Access::Withdrawn(of_instance(read, setup, &instance).await?)),
        // The same message whether it exists or not: a namespace that may not use an instance does not learn of it.
        _ => Err(Problem::dependency(
            "InstanceNotFound",
            format!(
                "PostgresInstance {home}/{} does not exist, or its spec.allowedNamespaces does not name {namespace}",
                reference.name
            ),
        )
        .with_cause(Cause::InstanceMissing)),
    }
}

/// The server that an instance describes.
pub(crate) async fn of_instance(
    read: &Reader,
    setup: &Setup,
    instance: &PostgresInstance,
) -> Result<Server, Problem> {
    let spec = &instance.spec;
    let home = instance.namespace().unwrap_or_default();
    let admin = secret(read, &home, &spec.admin_secret_ref.name).await?;
    let user = value(
        &admin,
        &spec.admin_secret_ref.name,
        &spec.admin_secret_ref.username_key,
    )?;
    let password = value(
        &admin,
        &spec.admin_secret_ref.name,
        &spec.admin_secret_ref.password_key,
    )?;
    let mode = tls_mode(spec.tls.as_ref().map_or(TlsMode::default(), |tls| tls.mode));
    let ca = match spec.tls.as_ref().and_then(|tls| tls.ca_secret_ref.as_ref()) {
        Some(ca) => {
            let pem = value(&secret(read, &home, &ca.name).await?, &ca.name, &ca.key)?;
            Some(pem.expose_secret().to_owned())
        }
        None => None,
    };
    let target =
        pg::ConnectionConfig::new(&spec.host, spec.port, &spec.database, user.expose_secret().trim())
            .map_err(|error| Problem::permanent("InvalidSpec", error.to_string()))?
            .with_password(trimmed(&password))
            .with_tls(mode, ca)
            .named_in(&home);
    setup.pools.limit(
        &target,
        usize::try_from(spec.max_connections).unwrap_or(usize::MAX),
    );
    let namespace = &read.parent().key.namespace;
    Ok(Server {
        target,
        viewer: viewer(setup, Rules::of_instance(namespace, &home, spec)),
        endpoints: spec.endpoints.clone().unwrap_or_default(),
        tls: mode,
    })
}

fn viewer(setup: &Setup, rules: Rules) -> Viewer {
    Viewer {
        rules: Arc::new(rules),
        marks: Marks::new(Arc::clone(&setup.fingerprints)),
    }
}

async fn is_allowed(read: &Reader, instance: &PostgresInstance, namespace: &str) -> Result<bool, Problem> {
    let allowed = instance.spec.allowed_namespaces.clone().unwrap_or_default();
    let AllowedNamespaces { names, selector } = allowed;
    let named = names.iter().any(|name| name == namespace || name == "*");
    Ok(named || matches(read, selector, namespace).await?)
}

async fn matches(read: &Reader, selector: Option<LabelSelector>, namespace: &str) -> Result<bool, Problem> {
    let Some(selector) = selector else {
        return Ok(false);
    };
    let selector: Selector = selector.try_into().map_err(|_| {
        Problem::permanent("InvalidSpec", "spec.allowedNamespaces.selector is not a selector")
    })?;
    let namespace: Option<Namespace> = read.get_cluster_wide(namespace).await?;
    Ok(namespace.is_some_and(|namespace| selector.matches(namespace.labels())))
}

async fn secret(read: &Reader, namespace: &str, name: &str) -> Result<SecretValues, Problem> {
    let secret: Option<Secret> = read.get_in(namespace, name).await?;
    secret.map(SecretValues::from).ok_or_else(|| {
        Problem::dependency(
            "AdminSecretNotFound",
            format!("Secret {namespace}/{name} does not exist"),
        )
    })
}

fn value(secret: &SecretValues, name: &str, key: &str) -> Result<SecretString, Problem> {
    secret
        .text(key)
        .map_err(|error| Problem::dependency("AdminSecretKeyMissing", format!("Secret {name}: {error}")))
}

fn trimmed(value: &SecretString) -> SecretString {
    value.expose_secret().trim_end_matches(['\n', '\r']).into()
}

/// Whether the server's identity was verified.
pub(crate) const fn verification(security: pg::Security) -> &'static str {
    match (security.verified, security.encrypted) {
        (true, _) => "; the server was verified",
        (false, true) => {
            "; the connection is encrypted, but the server was not verified: use tls.mode verify-full"
        }
        (false, false) => {
            "; the connection is not encrypted, and the server was not verified: use tls.mode verify-full"
        }
    }
}

/// Password verifiers are part of statements. A superuser switches the server's log off for them, others need a
/// privilege.
pub(crate) fn log_exposure(server: &pg::Server) -> String {
    if server.keeps_log_clean {
        return String::new();
    }
    format!(
        "; the administrator cannot switch off the server's log for its statements, so password verifiers may appear in \
         it: {} {:?}",
        pg::server::LOG_GRANTS,
        server.role
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn instance(field: &str, value: &Value) -> Lenient<PostgresInstance> {
        let mut object = json!({
            "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresInstance",
            "metadata": { "name": "main", "namespace": "shop" },
            "spec": { "host": "db", "adminSecretRef": { "name": "admin" } },
        });
        match field {
            "spec" | "status" => object[field] = value.clone(),
            _ => object["spec"][field] = value.clone(),
        }
        serde_json::from_value(object).unwrap()
    }

    /// A cleanup must not reach another server, or this one without TLS; the rules of the instance do not matter to it.
    #[test]
    fn a_cleanup_needs_the_connection_and_an_object_that_lives_needs_all() {
        let cases = [
            ("host", json!(5), true),
            ("port", json!(70_000), true),
            ("tls", json!({ "mode": "strict" }), true),
            ("adminSecretRef", json!({ "name": 5 }), true),
            ("spec", json!("nothing"), true),
            ("allowedNamespaces", json!(5), false),
            ("roles", json!([{ "names": 5 }]), false),
            ("maxConnections", json!(-1), false),
        ];
        for (field, value, stops) in cases {
            let found = instance(field, &value);
            let read = |needed: Needed| found.clone().needed(|flaw| needed.includes(flaw));
            assert_eq!(read(Needed::Connection).is_err(), stops, "{field}");
            let problem = read(Needed::Spec).unwrap_err();
            assert!(
                problem.message.contains("PostgresInstance shop/main"),
                "{problem:?}"
            );
        }
        let found = instance("status", &json!({ "version": 5 }));
        assert!(found.needed(|flaw| Needed::Spec.includes(flaw)).is_ok());
    }
}
