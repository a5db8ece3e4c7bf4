//! The address of the admission server.

use http::Uri;
use serde_json::{Value, json};

/// The address of the admission server, as the API server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A Service in front of the operator's pods.
    Service {
        /// The Service's namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its port.
        port: u16,
    },
    /// A URL, for an operator outside of the cluster. Created by [`Endpoint::url`].
    Url(WebhookUrl),
}

/// An https URL with a host and without path, query or user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookUrl {
    authority: String,
    host: String,
}

/// A URL that the API server would refuse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a valid address for webhooks; it must look like https://127.0.0.1:9443, without a path"
)]
pub struct EndpointError(String);

impl Endpoint {
    /// An endpoint such as `https://127.0.0.1:9443`.
    pub fn url(url: &str) -> Result<Self, EndpointError> {
        let refused = || EndpointError(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| refused())?;
        let (Some("https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(refused());
        };
        let plain =
            matches!(uri.path(), "" | "/") && uri.query().is_none() && !authority.as_str().contains('@');
        if !plain || authority.host().is_empty() {
            return Err(refused());
        }
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        Ok(Self::Url(WebhookUrl {
            authority: authority.to_string(),
            host,
        }))
    }

    /// The names and addresses that the server's certificate must contain.
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Service { namespace, name, .. } => vec![format!("{name}.{namespace}.svc")],
            Self::Url(url) => vec![url.host.clone()],
        }
    }

    /// The `clientConfig` of a webhook at `path`.
    pub(super) fn client_config(&self, path: &str, ca_bundle: Option<&str>) -> Value {
        let mut config = match self {
            Self::Service {
                namespace,
                name,
                port,
            } => {
                json!({ "service": { "namespace": namespace, "name": name, "port": port, "path": path } })
            }
            Self::Url(WebhookUrl { authority, .. }) => json!({ "url": format!("https://{authority}{path}") }),
        };
        if let (Some(bundle), Some(fields)) = (ca_bundle, config.as_object_mut()) {
            use base64::{Engine, engine::general_purpose::STANDARD};
            fields.insert("caBundle".into(), STANDARD.encode(bundle).into());
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_is_accepted() {
        for url in [
            "http://127.0.0.1:9443",
            "127.0.0.1:9443",
            "https://127.0.0.1:9443/path",
            "https://127.0.0.1:9443/?q=1",
            "https://user@127.0.0.1:9443",
            "https://",
            "",
        ] {
            assert!(Endpoint::url(url).is_err(), "{url}");
        }
    }

    #[test]
    fn the_certificate_carries_the_host_of_the_url() {
        for (url, host) in [
            ("https://127.0.0.1:9443", "127.0.0.1"),
            ("https://[::1]:9443/", "::1"),
            ("https://operator.example.com", "operator.example.com"),
        ] {
            assert_eq!(Endpoint::url(url).unwrap().names(), [host]);
        }
    }

    #[test]
    fn client_configs() {
        let service = Endpoint::Service {
            namespace: "ns".into(),
            name: "stanchion".into(),
            port: 443,
        };
        insta::assert_json_snapshot!(
            [
                service.client_config("/validate/g/v1/things", Some("PEM")),
                Endpoint::url("https://[::1]:9443/").unwrap().client_config("/mutate/g/v1/things", None),
            ],
            @r#"
        [
          {
            "service": {
              "namespace": "ns",
              "name": "stanchion",
              "port": 443,
              "path": "/validate/g/v1/things"
            },
            "caBundle": "UEVN"
          },
          {
            "url": "https://[::1]:9443/mutate/g/v1/things"
          }
        ]
        "#
        );
    }
}
