//! The credentials Secret, as an object.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use secrecy::ExposeSecret;
use stanchion_api::user::{CredentialsSecret, SecretType};
use stanchion_kernel::Problem;

use super::passwords::Passwords;
use super::rotation;
use super::target::{PasswordRequest, Wanted};
use crate::credentials::{self, Facts};
use crate::server::Server;

/// The key of the CA's certificates, as in other Secrets of Kubernetes.
const CA: &str = "ca.crt";

/// The desired Secret.
pub(super) fn secret(
    asked: &CredentialsSecret,
    wanted: &Wanted,
    server: &Server,
    passwords: &Passwords,
) -> Result<Secret, Problem> {
    let endpoints = &server.endpoints;
    let pair = |endpoint: &Option<stanchion_api::instance::Endpoint>| {
        endpoint
            .as_ref()
            .map(|endpoint| (endpoint.host.clone(), endpoint.port))
    };
    let (host, port) =
        pair(&endpoints.primary).unwrap_or_else(|| (server.target.host().to_owned(), server.target.port()));
    let (pooler, replica) = (pair(&endpoints.pooler), pair(&endpoints.replica));
    let facts = Facts {
        username: passwords.active.as_deref().unwrap_or(&wanted.username),
        password: passwords.current.as_ref(),
        host: &host,
        port,
        database: &wanted.database,
        sslmode: server.tls.as_str(),
        pooler: pooler.as_ref().map(|(host, port)| (host.as_str(), *port)),
        replica: replica.as_ref().map(|(host, port)| (host.as_str(), *port)),
    };
    let mut data: BTreeMap<String, ByteString> = credentials::render(asked, &facts)?
        .into_iter()
        .map(|(key, value)| (key, ByteString(value.expose_secret().as_bytes().to_vec())))
        .collect();
    if let Some(ca) = server.target.ca() {
        // A template of this name wins.
        data.entry(CA.to_owned())
            .or_insert_with(|| ByteString(ca.as_bytes().to_vec()));
    }
    Ok(Secret {
        metadata: ObjectMeta {
            name: Some(asked.name.clone()),
            labels: Some(asked.labels.clone()),
            annotations: Some(annotations(asked, wanted, passwords)),
            ..ObjectMeta::default()
        },
        type_: Some(
            match asked.type_ {
                SecretType::Opaque => "Opaque",
                SecretType::BasicAuth => "kubernetes.io/basic-auth",
            }
            .into(),
        ),
        data: Some(data),
        ..Secret::default()
    })
}

/// The user's annotations, and for a generated password its rotation state.
fn annotations(
    asked: &CredentialsSecret,
    wanted: &Wanted,
    passwords: &Passwords,
) -> BTreeMap<String, String> {
    let mut all = asked.annotations.clone();
    if matches!(wanted.password, PasswordRequest::Generated(..)) {
        let story = [
            (rotation::CHANGED, passwords.changed.map(|time| time.to_string())),
            (rotation::REQUEST, passwords.request.clone()),
            (rotation::LOGIN, passwords.active.clone()),
        ];
        all.extend(
            story
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?))),
        );
    }
    all
}
