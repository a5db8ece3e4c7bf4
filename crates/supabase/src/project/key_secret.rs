//! The Secret with the project's keys and passwords: what it holds, what is missing, and how it is written.

use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::core::ObjectMeta;
use secrecy::ExposeSecret as _;
use stanchion_kernel::apply::{self, Intent, ObjectChange, Takeover};
use stanchion_kernel::context::Parent;
use stanchion_kernel::redact::FingerprintKey;
use stanchion_kernel::{Inputs, Problem};

use super::dependency_check::{Stored, UNSET};
use super::secrets::Read;
use super::target::Wanted;
use crate::components::{self, MANAGED_BY};
use crate::database;
use crate::keys::{self, Keys, names as key};

/// The keys that exist.
fn stored(read: &Read) -> Keys {
    let data = read.stored_keys.as_ref().and_then(|secret| secret.data.clone());
    let data = data.unwrap_or_default().into_iter();
    Keys::from_data(data.map(|(key, value)| (key, value.0)))
}

/// The request to the database with the passwords that exist.
pub(crate) fn stored_passwords(wanted: &Wanted, read: &Read, seal: &Arc<FingerprintKey>) -> Stored {
    let stored = stored(read);
    let logins = components::logins(&wanted.spec);
    let password = |login| stored.get(key::password(login)).cloned();
    Stored {
        complete: logins.iter().all(|login| password(*login).is_some()),
        request: database::Request {
            project: wanted.project_id(),
            uid: wanted.uid.clone(),
            key: Arc::clone(seal),
            passwords: logins
                .into_iter()
                .map(|login| (login, password(login).unwrap_or_else(|| UNSET.into())))
                .collect(),
        },
    }
}

/// The same request with the complete keys.
pub(crate) fn with_passwords(request: &database::Request, keys: &Keys) -> database::Request {
    let mut request = request.clone();
    for (login, password) in &mut request.passwords {
        if let Some(known) = keys.get(key::password(*login)) {
            password.clone_from(known);
        }
    }
    request
}

/// The keys with everything that is missing or due. `published` says that every pod has the published keys.
pub(crate) fn complete(
    wanted: &Wanted,
    read: &Read,
    published: bool,
    inputs: &mut Inputs<'_>,
) -> Result<Keys, Problem> {
    let request = keys::Request {
        own_secret: read.own_secret.clone(),
        rotate: wanted.rotate.as_deref(),
        grace: wanted.grace,
        published,
        logins: &components::logins(&wanted.spec),
        generated: &components::generated(&wanted.spec),
    };
    keys::complete(stored(read), &request, &mut inputs.random, inputs.now)
        .map_err(|error| Problem::human("BrokenKey", error.to_string()))
}

/// The Secret with these keys, if it differs from the existing one.
pub(crate) fn change(
    wanted: &Wanted,
    read: &Read,
    keys: &Keys,
    parent: &Parent,
) -> Result<Option<ObjectChange>, Problem> {
    let data = keys.iter().map(|(key, value)| {
        (
            key.to_owned(),
            ByteString(value.expose_secret().as_bytes().to_vec()),
        )
    });
    let labels = [
        ("app.kubernetes.io/instance", wanted.name.as_str()),
        ("app.kubernetes.io/part-of", "supabase"),
        ("app.kubernetes.io/managed-by", MANAGED_BY),
    ];
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(wanted.key_secret()),
            labels: Some(
                labels
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
            ),
            ..ObjectMeta::default()
        },
        data: Some(data.collect()),
        ..Secret::default()
    };
    let intent = Intent::new(&secret, parent)?;
    let intent = apply::decide(intent, read.stored_keys.as_ref(), parent, Takeover::Adopt)?;
    Ok(intent.map(ObjectChange::Apply))
}
