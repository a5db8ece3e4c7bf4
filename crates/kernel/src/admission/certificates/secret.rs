//! The Secret with the operator's own certificates, shared by all replicas.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, Client, ResourceExt,
    api::{ObjectMeta, PostParams},
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use secrecy::ExposeSecret;
use tracing::info;

use super::{
    super::is_ours,
    CertificateError, Material,
    pair::Pair,
    rotation::{Step, Stored, step},
    serving::certified_key,
};
use crate::watch::MANAGED_BY;

const CURRENT: (&str, &str) = ("tls.crt", "tls.key");
const NEXT: (&str, &str) = ("next.crt", "next.key");
const BUNDLE: &str = "ca.crt";
/// Each conflict means that another replica wrote it: after a few there is one to adopt.
const ATTEMPTS: usize = 5;

/// Settings of a certificate that the operator creates.
#[derive(Clone, Debug)]
pub struct SelfMade {
    /// The operator's own namespace.
    pub namespace: String,
    /// The name of the Secret.
    pub secret: String,
    /// The names in the certificate: see [`super::super::Endpoint::names`].
    pub names: Vec<String>,
    /// The period between two rotations.
    pub rotate_every: Duration,
    /// How often the Secret is read again.
    pub check_every: Duration,
}

impl SelfMade {
    /// Rotated every thirty days, and checked every five minutes: soon enough to notice what another replica did, long
    /// before it matters.
    pub fn new(namespace: impl Into<String>, secret: impl Into<String>, names: Vec<String>) -> Self {
        Self {
            namespace: namespace.into(),
            secret: secret.into(),
            names,
            rotate_every: Duration::from_hours(30 * 24),
            check_every: super::super::CHECK_EVERY,
        }
    }
}

pub(in crate::admission) struct SecretStore {
    secrets: Api<Secret>,
    settings: SelfMade,
}

impl SecretStore {
    pub(super) fn new(client: Client, settings: SelfMade) -> Self {
        Self {
            secrets: Api::namespaced(client, &settings.namespace),
            settings,
        }
    }

    pub(super) fn check_every(&self) -> Duration {
        self.settings.check_every
    }

    /// Reads the Secret, and creates or rotates the certificate when it is due. All replicas do this: a write contains
    /// the resourceVersion that was read, so one of them succeeds and the others adopt its result.
    pub(super) async fn load(&self) -> Result<Material, CertificateError> {
        for _ in 0..ATTEMPTS {
            let found = self
                .secrets
                .get_opt(&self.settings.secret)
                .await
                .map_err(|e| self.api_error(e))?;
            if let Some(stored) = self.advance(found).await? {
                return self.material(&stored);
            }
        }
        Err(CertificateError::Contended { secret: self.place() })
    }

    /// `None`: another replica was faster, read again.
    async fn advance(&self, found: Option<Secret>) -> Result<Option<Stored>, CertificateError> {
        if found.as_ref().is_some_and(|secret| !is_ours(secret)) {
            return Err(CertificateError::Foreign { secret: self.place() });
        }
        let SelfMade {
            names,
            rotate_every: every,
            ..
        } = &self.settings;
        let (now, stored) = (Timestamp::now(), found.as_ref().and_then(parse));
        let stored = match (step(stored.as_ref(), names, *every, now), stored) {
            (Step::Keep, Some(stored)) => return Ok(Some(stored)),
            (Step::Rotate, Some(stored)) => stored.rotated(names, *every, now)?,
            _ => Stored::fresh(names, *every, now)?,
        };
        let params = PostParams {
            field_manager: Some(MANAGED_BY.1.into()),
            ..PostParams::default()
        };
        let written = match found {
            None => self.secrets.create(&params, &self.secret(&stored, None)).await,
            Some(old) => {
                let version = old.resource_version();
                let secret = self.secret(&stored, version);
                self.secrets
                    .replace(&self.settings.secret, &params, &secret)
                    .await
            }
        };
        match written {
            Ok(_) => {
                info!(secret = self.place(), until = %stored.current.not_after(), "webhook certificate written");
                Ok(Some(stored))
            }
            Err(kube::Error::Api(status))
                if status.is_conflict() || status.is_already_exists() || status.is_not_found() =>
            {
                Ok(None)
            }
            Err(error) => Err(self.api_error(error)),
        }
    }

    fn material(&self, stored: &Stored) -> Result<Material, CertificateError> {
        let Pair { certificate, key, .. } = &stored.current;
        let key = certified_key(certificate, key).map_err(|reason| CertificateError::Unusable {
            place: format!("Secret {}", self.place()),
            reason,
        })?;
        Ok(Material {
            key,
            ca_bundle: Some(stored.authorities.concat()),
        })
    }

    fn secret(&self, stored: &Stored, resource_version: Option<String>) -> Secret {
        let data = [
            (CURRENT.0, stored.current.certificate.as_str()),
            (CURRENT.1, stored.current.key.expose_secret()),
            (NEXT.0, stored.next.certificate.as_str()),
            (NEXT.1, stored.next.key.expose_secret()),
            (BUNDLE, &stored.authorities.concat()),
        ]
        .map(|(key, value)| (key.to_owned(), ByteString(value.as_bytes().to_vec())));
        Secret {
            metadata: ObjectMeta {
                name: Some(self.settings.secret.clone()),
                namespace: Some(self.settings.namespace.clone()),
                labels: Some(BTreeMap::from([(
                    MANAGED_BY.0.to_owned(),
                    MANAGED_BY.1.to_owned(),
                )])),
                resource_version,
                ..ObjectMeta::default()
            },
            type_: Some("kubernetes.io/tls".into()),
            data: Some(BTreeMap::from(data)),
            ..Secret::default()
        }
    }

    fn place(&self) -> String {
        format!("{}/{}", self.settings.namespace, self.settings.secret)
    }

    fn api_error(&self, source: kube::Error) -> CertificateError {
        CertificateError::Api {
            secret: self.place(),
            source: Box::new(source),
        }
    }
}

/// `None` for anything that a person may have broken: it is then created again.
fn parse(secret: &Secret) -> Option<Stored> {
    let text = |key: &str| {
        let bytes = secret.data.as_ref()?.get(key)?;
        String::from_utf8(bytes.0.clone()).ok()
    };
    let pair = |(certificate, key): (&str, &str)| Pair::parse(text(certificate)?, text(key)?.into()).ok();
    let bundle = text(BUNDLE)?;
    let authorities = CertificateDer::pem_slice_iter(bundle.as_bytes()).count();
    let blocks: Vec<String> = bundle
        .split_inclusive("-----END CERTIFICATE-----\n")
        .map(str::to_owned)
        .collect();
    (authorities == blocks.len() && blocks.len() >= 2).then_some(Stored {
        current: pair(CURRENT)?,
        next: pair(NEXT)?,
        authorities: blocks,
    })
}
