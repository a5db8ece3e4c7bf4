//! Validates an object. The schema checks some of the same; an object may be older than the schema.

use jiff::SignedDuration;
use kube::ResourceExt as _;
use stanchion_api::instance::TlsMode;
use stanchion_api::loose::Loose;
use stanchion_api::supabase::{Analytics, Functions, SecretReference, annotation, condition};
use stanchion_api::{SupabaseProject, SupabaseProjectSpec, duration};
use stanchion_kernel::Problem;
use stanchion_kernel::condition::find;
use stanchion_kernel::problem::Cause;

use super::reasons::{NetworkReason, ReadyReason};
use super::target::{Before, References, Wanted, name};
use crate::components;
use crate::database::Names;

/// The longest name of a Service.
const SERVICE_NAME: usize = 63;
/// The longest name that leaves room for a hyphen and the longest component in the name of a Service.
const NAME_LIMIT: usize = SERVICE_NAME - 1 - components::LONGEST_NAME;

/// The target of an object that is not being deleted.
pub(crate) fn validate(project: &SupabaseProject) -> Result<Wanted, Problem> {
    let spec = &project.spec;
    if project.name_any().len() > NAME_LIMIT || project.name_any().contains('.') {
        return Err(invalid(format!(
            "the name {:?} cannot begin the names of Services: use at most {NAME_LIMIT} characters, and no dots",
            project.name_any()
        )));
    }
    let secrets = references(project)?;
    images(spec)?;
    scaling(spec)?;
    encryption(spec)?;
    code(spec)?;
    public_url(spec)?;
    kubernetes_types(spec)?;
    let grace = span(&spec.jwt.rotation_grace_period, "jwt.rotationGracePeriod")?;
    span(&spec.jwt.expiry, "jwt.expiry")?;
    let status = project.status.as_ref();
    Ok(Wanted {
        name: project.name_any(),
        namespace: project.namespace().unwrap_or_default(),
        uid: project.uid().unwrap_or_default(),
        spec: spec.clone(),
        secrets,
        generation: project.metadata.generation,
        rotate: project.annotations().get(annotation::ROTATE_KEYS_AT).cloned(),
        grace,
        before: Before {
            // A failure has its own reason, and says nothing about the route.
            routed: status.is_some_and(|status| {
                find(&status.conditions, condition::NETWORK_READY).is_some()
                    && NetworkReason::before(&status.conditions) != Some(NetworkReason::ServicesConfigured)
            }),
            phase: status.and_then(|status| status.phase),
            logins: status
                .filter(|status| status.observed_generation == project.metadata.generation)
                .and_then(|status| {
                    let mark = format!("{}/{}", project.namespace()?, project.name_any());
                    Names::remembered(&mark, status.login_suffix.as_deref()?)
                }),
            deployed: status.is_some_and(|status| !status.components.is_empty()),
            said: status.and_then(|status| status.last_reconcile_time),
            previous_until: status.and_then(|status| status.keys.as_ref()?.previous_until),
        },
    })
}

fn references(project: &SupabaseProject) -> Result<References, Problem> {
    let spec = &project.spec;
    let required = |reference: &SecretReference, field: &str| {
        here(project, reference, field)?;
        name(reference).ok_or_else(|| invalid(format!("{field}.name cannot be empty")))
    };
    let optional = |reference: &Option<SecretReference>, field: &str| -> Result<_, Problem> {
        let Some(reference) = reference else {
            return Ok(None);
        };
        here(project, reference, field)?;
        Ok(name(reference))
    };
    if let Some(analytics) = &spec.analytics {
        optional(
            &analytics.client_certificate_secret_ref,
            "analytics.clientCertificateSecretRef",
        )?;
    }
    Ok(References {
        database: required(&spec.database.secret_ref, "database.secretRef")?,
        storage: required(&spec.storage.secret_ref, "storage.secretRef")?,
        smtp: optional(&spec.auth.smtp_secret_ref, "auth.smtpSecretRef")?,
        oauth: optional(&spec.auth.oauth_secret_ref, "auth.oauthSecretRef")?,
        dashboard: optional(
            &spec.studio.dashboard_basic_auth_secret_ref,
            "studio.dashboardBasicAuthSecretRef",
        )?,
    })
}

/// Pods read only Secrets of their own namespace; a reference to another would never work.
fn here(project: &SupabaseProject, reference: &SecretReference, field: &str) -> Result<(), Problem> {
    let named = reference.namespace.as_deref().filter(|named| !named.is_empty());
    match named.filter(|named| Some(*named) != project.metadata.namespace.as_deref()) {
        Some(namespace) => Err(invalid(format!(
            "{field}.namespace must be the project's own: pods cannot read the Secrets of namespace {namespace:?}"
        ))),
        None => Ok(()),
    }
}

fn images(spec: &SupabaseProjectSpec) -> Result<(), Problem> {
    for (component, options) in components::wanted(spec) {
        let Some(image) = &options.image else { continue };
        let field = component.field;
        if image.chars().any(char::is_whitespace) || image.is_empty() {
            return Err(invalid(format!(
                "spec.{field}.image: invalid image reference format"
            )));
        }
        // A colon before the last slash belongs to the registry's port.
        let last = image.rsplit('/').next().unwrap_or(image);
        if !last.contains(':') && !last.contains('@') {
            return Err(invalid(format!(
                "spec.{field}.image: image must include tag (e.g., 'kong/kong:3.9.1')"
            )));
        }
    }
    Ok(())
}

fn scaling(spec: &SupabaseProjectSpec) -> Result<(), Problem> {
    for (component, options) in components::wanted(spec) {
        if let Some(scaling) = &options.autoscaling
            && scaling.min_replicas > scaling.max_replicas
        {
            return Err(invalid(format!(
                "spec.{}.autoscaling: minReplicas must not be more than maxReplicas",
                component.field
            )));
        }
    }
    Ok(())
}

/// Refuses settings that a component cannot fulfil, so that no connection is believed to be verified or encrypted that
/// is not.
fn encryption(spec: &SupabaseProjectSpec) -> Result<(), Problem> {
    let database = &spec.database;
    let checked = matches!(database.ssl_mode, TlsMode::VerifyCa | TlsMode::VerifyFull);
    let authority = database.ca_secret_ref.is_some();
    if spec.pooler.is_some() && checked && !authority {
        return Err(invalid(
            "spec.pooler: the pooler verifies certificates with a single CA: set spec.database.caSecretRef",
        ));
    }
    let encrypted = checked || database.ssl_mode == TlsMode::Require;
    let certificate = |analytics: &Analytics| analytics.client_certificate_secret_ref.as_ref().and_then(name);
    if let Some(analytics) = spec.analytics.as_ref().filter(|_| encrypted)
        && !(authority && certificate(analytics).is_some())
    {
        return Err(invalid(
            "spec.analytics: it speaks TLS only with a certificate of its own: name spec.database.caSecretRef and \
             spec.analytics.clientCertificateSecretRef, or use an sslMode of disable or prefer",
        ));
    }
    Ok(())
}

/// Auth and the dashboard build addresses from it, which browsers open.
fn public_url(spec: &SupabaseProjectSpec) -> Result<(), Problem> {
    let url = spec.studio.public_url.as_deref().unwrap_or_default();
    let host = ["https://", "http://"]
        .iter()
        .find_map(|scheme| url.strip_prefix(scheme));
    if url.is_empty() || host.is_some_and(|host| !host.is_empty() && !host.starts_with('/')) {
        return Ok(());
    }
    Err(invalid(
        "spec.studio.publicUrl must begin with https:// or http://, followed by a host name",
    ))
}

fn code(spec: &SupabaseProjectSpec) -> Result<(), Problem> {
    let both = |functions: &Functions| {
        let source = &functions.source;
        source.config_map.is_some() == source.persistent_volume_claim.is_some()
    };
    if spec.functions.as_ref().is_some_and(both) {
        return Err(invalid(
            "functions.source is a configMap or a persistentVolumeClaim",
        ));
    }
    Ok(())
}

/// The schema accepts any object where a Kubernetes type is expected.
fn kubernetes_types(spec: &SupabaseProjectSpec) -> Result<(), Problem> {
    let of_component = components::ALL.iter().find_map(|component| {
        let options = (component.options)(spec)?;
        let (field, error) = options.misfits().next()?;
        Some(format!("spec.{}.{field}: {error}", component.field))
    });
    let of_peers = || {
        let mut peers = spec.network_policy.as_ref()?.from.iter();
        let error = peers.find_map(Loose::misfit)?;
        Some(format!("spec.networkPolicy.from: {error}"))
    };
    of_component
        .or_else(of_peers)
        .map_or(Ok(()), |misfit| Err(invalid(misfit)))
}

fn span(text: &str, field: &str) -> Result<SignedDuration, Problem> {
    let span = duration::parse(text).and_then(|span| SignedDuration::try_from(span).ok());
    span.ok_or_else(|| invalid(format!("spec.{field} must be a duration such as 1h30m")))
}

fn invalid(message: impl Into<String>) -> Problem {
    Problem::permanent(ReadyReason::InvalidSpec.as_str(), message).with_cause(Cause::InvalidSpec)
}

#[cfg(test)]
mod tests;
