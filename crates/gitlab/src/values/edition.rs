//! The edition, and its license.

use serde_json::{Value, json};
use stanchion_api::gitlab::Edition;

use super::Input;

pub(super) fn values(input: &Input<'_>) -> Value {
    let edition = input.spec.edition;
    let license = input
        .spec
        .license_secret
        .as_deref()
        .filter(|secret| !secret.is_empty());
    match (edition, license) {
        (Edition::Ee, Some(secret)) => json!({
            "global": { "edition": edition.name(), "gitlab": { "license": { "secret": secret, "key": "license" } } },
        }),
        _ => json!({ "global": { "edition": edition.name() } }),
    }
}
