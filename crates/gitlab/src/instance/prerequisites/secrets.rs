//! Checks the profile, the license, mail, buckets and Elasticsearch.

use kube::core::DynamicObject;
use stanchion_api::gitlab::{Edition, ElasticsearchAddress, GitlabProfileSpec};

use super::super::observe::Current;
use super::super::target::Wanted;
use super::{Blocker, Check, named};
use crate::backends::kinds::ELASTICSEARCH;
use crate::backends::{Readiness, elasticsearch as es, external};
use crate::login::Mail;
use crate::storage::{Buckets, Parts};

/// The profile.
pub(super) fn profile(wanted: &Wanted, current: &Current) -> Check<Option<GitlabProfileSpec>> {
    let Some(name) = &wanted.spec.profile else {
        return Ok(None);
    };
    let found = current.profile.clone().map(Some);
    found.ok_or_else(|| {
        Blocker::pending(
            "ProfileMissing",
            format!("GitlabProfile {name} is not there yet; create it, or remove spec.profile"),
        )
    })
}

/// The license. Otherwise its absence would only show when GitLab runs without the licensed features.
pub(super) fn license(wanted: &Wanted, current: &Current) -> Check<()> {
    let Some(name) = wanted
        .spec
        .license_secret
        .as_ref()
        .filter(|_| wanted.spec.edition == Edition::Ee)
    else {
        return Ok(());
    };
    let secret = named(&current.secrets, name, "LicenseMissing", "license")?;
    let has_key = secret
        .data
        .as_ref()
        .is_some_and(|data| data.contains_key("license"));
    has_key.then_some(()).ok_or_else(|| {
        Blocker::failed(
            "LicenseMissing",
            format!("license: Secret {name} has no key license; add it"),
        )
    })
}

/// The mail server.
pub(super) fn mail(wanted: &Wanted, current: &Current) -> Check<Option<Mail>> {
    let Some(name) = &wanted.spec.smtp.credentials_secret else {
        return Ok(None);
    };
    let secret = named(&current.secrets, name, "SmtpSecretMissing", "smtp")?;
    let mail = external::mail(secret);
    mail.map(Some)
        .map_err(|error| Blocker::failed("SmtpSecretIncomplete", error.to_string()))
}

/// The buckets.
pub(super) fn storage(wanted: &Wanted, current: &Current) -> Check<Option<Buckets>> {
    let Some(name) = &wanted.spec.object_storage.credentials_secret else {
        return Ok(None);
    };
    let secret = named(&current.secrets, name, "S3SecretMissing", "objectStorage")?;
    let data = secret.data.clone().unwrap_or_default();
    Buckets::read(&data, Parts::of(&wanted.spec.domains))
        .map(Some)
        .map_err(|error| {
            Blocker::failed(
                "S3BucketsIncomplete",
                format!("objectStorage: Secret {name}: {error}"),
            )
        })
}

/// Elasticsearch, which only the Enterprise Edition can use.
pub(super) fn elasticsearch(wanted: &Wanted, current: &Current) -> Check<Option<ElasticsearchAddress>> {
    if !wanted.needs_elasticsearch() {
        return Ok(None);
    }
    let found = current.backend(&ELASTICSEARCH);
    let Some(served) = &found.served else {
        return Err(Blocker::operator_missing(
            "ElasticsearchOperatorMissing",
            "elasticsearch",
            &[&ELASTICSEARCH],
        ));
    };
    let made = || DynamicObject::new(&es::name(&wanted.name), &served.resource);
    let readiness = es::readiness(&found.object.clone().unwrap_or_else(made));
    match readiness {
        Readiness::Ready => Ok(Some(es::address(&wanted.name, &wanted.namespace))),
        Readiness::NotYet(why) => Err(Blocker::provisioning("ElasticsearchProvisioning", why)),
    }
}
