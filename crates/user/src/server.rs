//! Which server an object means, and what is allowed there.

use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use secrecy::ExposeSecret;
use stanchion_api::PostgresInstance;
use stanchion_api::instance::{AllowedNamespaces, Attribute, Endpoints, PostgresInstanceSpec, TlsMode};
use stanchion_api::user::InstanceRef;
use stanchion_kernel::redact::{SecretString, SecretValues};
use stanchion_kernel::{Problem, Reader};
use stanchion_postgres as pg;

use crate::setup::Setup;

/// A server that may be used.
pub struct Server {
    /// How the administrator gets there.
    pub target: pg::Target,
    /// Powerful attributes that may be asked for.
    pub allowed: Vec<Attribute>,
    /// Addresses for applications.
    pub endpoints: Endpoints,
    /// TLS mode for applications.
    pub tls: pg::TlsMode,
}

/// Finds the server of an object in `namespace`.
pub async fn resolve(
    read: &Reader,
    setup: &Setup,
    reference: Option<&InstanceRef>,
) -> Result<Server, Problem> {
    let namespace = &read.subject().key.namespace;
    let Some(reference) = reference else {
        let target = setup.default_instance.get().ok_or_else(|| {
            Problem::dependency(
                "InstanceNotFound",
                "the operator has no default instance; set spec.instanceRef, or start it with --postgres-url-file",
            )
        })?;
        let tls = target.tls();
        return Ok(Server {
            target,
            allowed: Vec::new(),
            endpoints: Endpoints::default(),
            tls,
        });
    };
    let home = reference.namespace.as_ref().unwrap_or(namespace);
    let instance: PostgresInstance = read.get_in(home, &reference.name).await?.ok_or_else(|| {
        Problem::dependency(
            "InstanceNotFound",
            format!("PostgresInstance {home}/{} does not exist", reference.name),
        )
    })?;
    if home != namespace {
        allow(read, &instance, namespace).await?;
    }
    of_instance(read, setup, &instance).await
}

/// The server that an instance describes.
pub async fn of_instance(
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
    let mode = mode(spec);
    let ca = match spec.tls.as_ref().and_then(|tls| tls.ca_secret_ref.as_ref()) {
        Some(ca) => {
            let pem = value(&secret(read, &home, &ca.name).await?, &ca.name, &ca.key)?;
            Some(pem.expose_secret().to_owned())
        }
        None => None,
    };
    let target = pg::Target::new(&spec.host, spec.port, &spec.database, user.expose_secret().trim())
        .map_err(|error| Problem::permanent("InvalidSpec", error.to_string()))?
        .with_password(trimmed(&password))
        .with_tls(mode, ca);
    setup.pools.limit(
        &target,
        usize::try_from(spec.max_connections).unwrap_or(usize::MAX),
    );
    Ok(Server {
        target,
        allowed: spec.allowed_attributes.clone(),
        endpoints: spec.endpoints.clone().unwrap_or_default(),
        tls: mode,
    })
}

fn mode(spec: &PostgresInstanceSpec) -> pg::TlsMode {
    match spec.tls.as_ref().map_or(TlsMode::default(), |tls| tls.mode) {
        TlsMode::Disable => pg::TlsMode::Disable,
        TlsMode::Prefer => pg::TlsMode::Prefer,
        TlsMode::Require => pg::TlsMode::Require,
        TlsMode::VerifyCa => pg::TlsMode::VerifyCa,
        TlsMode::VerifyFull => pg::TlsMode::VerifyFull,
    }
}

async fn allow(read: &Reader, instance: &PostgresInstance, namespace: &str) -> Result<(), Problem> {
    let allowed = instance.spec.allowed_namespaces.clone().unwrap_or_default();
    let AllowedNamespaces { names, selector } = allowed;
    let named = names.iter().any(|name| name == namespace || name == "*");
    if named || matches(read, selector, namespace).await? {
        return Ok(());
    }
    Err(Problem::human(
        "NamespaceNotAllowed",
        format!(
            "PostgresInstance {}/{} does not allow namespace {namespace}; add it to its spec.allowedNamespaces",
            instance.namespace().unwrap_or_default(),
            instance.name_any(),
        ),
    ))
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
