//! Facts about an example that is ready, read from the cluster when they are shown.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use k8s_openapi::api::core::v1::Secret;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::{Api, Client};
use serde_json::Value;

use super::super::error::SandboxError;

pub(in super::super) struct Fact {
    /// The description.
    pub(in super::super) what: &'static str,
    /// The source of the value.
    pub(super) source: Source,
}

/// The source of a value.
pub(super) enum Source {
    /// A field of an object.
    Field {
        /// Kind of the object.
        resource: fn() -> ApiResource,
        /// Name of the object.
        name: &'static str,
        /// A JSON pointer.
        path: &'static str,
    },
    /// The claims of a token in a Secret, without the signature.
    Claims {
        /// The Secret's name.
        secret: &'static str,
        /// The key in the Secret.
        key: &'static str,
    },
}

impl Fact {
    /// Reads the value. A deleted object is reported as missing.
    pub(in super::super) async fn read(&self, client: &Client) -> Result<String, SandboxError> {
        let found = match &self.source {
            Source::Field { resource, name, path } => {
                let objects: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource());
                let object = objects.get_opt(name).await?;
                object.and_then(|object| {
                    let text = object.data.pointer(path)?.as_str()?;
                    Some(text.to_owned())
                })
            }
            Source::Claims { secret, key } => {
                let secrets: Api<Secret> = Api::default_namespaced(client.clone());
                let secret = secrets.get_opt(secret).await?;
                secret
                    .and_then(|secret| secret.data?.remove(*key))
                    .and_then(|token| claims(std::str::from_utf8(&token.0).ok()?))
            }
        };
        Ok(found.unwrap_or_else(|| "missing".to_owned()))
    }
}

/// The claims of a JSON Web Token.
fn claims(token: &str) -> Option<String> {
    let part = token.split('.').nth(1)?;
    let claims: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).ok()?).ok()?;
    Some(claims.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_told_without_its_signature() {
        let part = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
        let token = format!(
            "{}.{}.c2VjcmV0",
            part(r#"{"alg":"HS256"}"#),
            part(r#"{"role":"anon"}"#)
        );
        assert_eq!(claims(&token).as_deref(), Some(r#"{"role":"anon"}"#));
        assert_eq!(claims("no token"), None);
    }
}
