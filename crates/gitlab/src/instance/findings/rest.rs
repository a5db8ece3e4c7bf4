//! Checks the profile, the license, mail, buckets and Elasticsearch.

use kube::core::DynamicObject;
use stanchion_api::gitlab::{Edition, ElasticsearchAddress, GitlabProfileSpec};

use super::super::observe::Seen;
use super::super::target::Wanted;
use super::{Finding, Obstacle, named};
use crate::backends::kinds::ELASTICSEARCH;
use crate::backends::{Readiness, brought, elasticsearch as es};
use crate::login::Mail;
use crate::storage::{Buckets, Parts};

/// The profile.
pub(super) fn profile(wanted: &Wanted, seen: &Seen) -> Finding<Option<GitlabProfileSpec>> {
    let Some(name) = &wanted.spec.profile else {
        return Ok(None);
    };
    let found = seen.profile.clone().map(Some);
    found.ok_or_else(|| {
        Obstacle::pending(
            "ProfileMissing",
            format!("GitlabProfile {name} is not there yet; create it, or remove spec.profile"),
        )
    })
}

/// The license. Otherwise its absence would only show when GitLab runs without the licensed features.
pub(super) fn license(wanted: &Wanted, seen: &Seen) -> Finding<()> {
    let Some(name) = wanted
        .spec
        .license_secret
        .as_ref()
        .filter(|_| wanted.spec.edition == Edition::Ee)
    else {
        return Ok(());
    };
    let secret = named(&seen.secrets, name, "LicenseMissing", "license")?;
    let has_key = secret
        .data
        .as_ref()
        .is_some_and(|data| data.contains_key("license"));
    has_key.then_some(()).ok_or_else(|| {
        Obstacle::failed(
            "LicenseMissing",
            format!("license: Secret {name} has no key license; add it"),
        )
    })
}

/// The mail server.
pub(super) fn mail(wanted: &Wanted, seen: &Seen) -> Finding<Option<Mail>> {
    let Some(name) = &wanted.spec.smtp.credentials_secret else {
        return Ok(None);
    };
    let secret = named(&seen.secrets, name, "SmtpSecretMissing", "smtp")?;
    let mail = brought::mail(secret);
    mail.map(Some)
        .map_err(|error| Obstacle::failed("SmtpSecretIncomplete", error.to_string()))
}

/// The buckets.
pub(super) fn storage(wanted: &Wanted, seen: &Seen) -> Finding<Option<Buckets>> {
    let Some(name) = &wanted.spec.object_storage.credentials_secret else {
        return Ok(None);
    };
    let secret = named(&seen.secrets, name, "S3SecretMissing", "objectStorage")?;
    let data = secret.data.clone().unwrap_or_default();
    Buckets::read(&data, Parts::of(&wanted.spec.domains))
        .map(Some)
        .map_err(|error| {
            Obstacle::failed(
                "S3BucketsIncomplete",
                format!("objectStorage: Secret {name}: {error}"),
            )
        })
}

/// Elasticsearch, which only the Enterprise Edition can use.
pub(super) fn elasticsearch(wanted: &Wanted, seen: &Seen) -> Finding<Option<ElasticsearchAddress>> {
    if !wanted.needs_elasticsearch() {
        return Ok(None);
    }
    let found = seen.backend(&ELASTICSEARCH);
    let Some(served) = &found.served else {
        return Err(Obstacle::operator_missing(
            "ElasticsearchOperatorMissing",
            "elasticsearch",
            &[&ELASTICSEARCH],
        ));
    };
    let made = || DynamicObject::new(&es::name(&wanted.name), &served.resource);
    let readiness = es::readiness(&found.object.clone().unwrap_or_else(made));
    match readiness {
        Readiness::Ready => Ok(Some(es::address(&wanted.name, &wanted.namespace))),
        Readiness::NotYet(why) => Err(Obstacle::provisioning("ElasticsearchProvisioning", why)),
    }
}
