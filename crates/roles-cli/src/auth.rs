//! Short-lived passwords: Microsoft Entra tokens for Azure Database for PostgreSQL.
//!
//! A pod with a workload identity has a signed token of its `ServiceAccount` in a file. Entra accepts it as proof of
//! the application, and returns a token that the database accepts as the password of that application's role.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::crypto::aws_lc_rs;
use secrecy::SecretString;
use serde::Deserialize;
use stanchion_postgres::AllowedNetworks;
use stanchion_postgres::error::plain;
use stanchion_postgres::http::Connector;
use stanchion_postgres::network::Network;

const DEFAULT_AUTHORITY: &str = "https://login.microsoftonline.com/";
/// Entra's scope of all Azure Databases for PostgreSQL.
const SCOPE: &str = "https://ossrdbms-aad.database.windows.net/.default";
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const DEADLINE: Duration = Duration::from_secs(30);
const MAX_ANSWER: usize = 1 << 20;
/// The variable of the operator's `--allow-network`.
const ALLOW_NETWORK: &str = "STANCHION_ALLOW_NETWORK";

/// Why there is no token. Never contains a token.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The pod has no workload identity.
    #[error(
        "the environment variable {0} is not set: Azure's workload identity webhook sets it on pods that are labelled \
         azure.workload.identity/use: \"true\""
    )]
    Missing(&'static str),
    /// An environment variable has an invalid value; no credential is sent.
    #[error("{0} is not valid: {1}")]
    Invalid(&'static str, &'static str),
    /// The file with the `ServiceAccount`'s token cannot be read.
    #[error("cannot read the federated token {0}: {1}")]
    File(PathBuf, io::Error),
    /// The endpoint does not answer.
    #[error("the token endpoint {0} does not answer: {1}")]
    Unreachable(Uri, String),
    /// Entra refused the request.
    #[error("the token endpoint {endpoint} refused with {status}: {reason}")]
    Refused {
        /// The endpoint of the request.
        endpoint: Uri,
        /// The HTTP status.
        status: StatusCode,
        /// Entra's reason.
        reason: String,
    },
}

/// The workload identity of a pod on Azure.
#[derive(Debug, Clone)]
pub struct AzureWorkloadIdentity {
    endpoint: Uri,
    client: String,
    token_file: PathBuf,
    /// The addresses that the proof may go to.
    networks: AllowedNetworks,
}

/// Entra's answer, for success and failure.
#[derive(Deserialize)]
struct Answer {
    access_token: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

impl AzureWorkloadIdentity {
    /// Reads the identity from the environment variables that Azure's webhook sets.
    pub fn from_env(env: &dyn Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let required = |name: &'static str| {
            env(name)
                .filter(|value| !value.is_empty())
                .ok_or(Error::Missing(name))
        };
        let tenant = required("AZURE_TENANT_ID")?;
        if !tenant
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-.".contains(c))
        {
            return Err(Error::Invalid(
                "AZURE_TENANT_ID",
                "it is not a tenant's id or domain",
            ));
        }
        let authority = env("AZURE_AUTHORITY_HOST").unwrap_or_else(|| DEFAULT_AUTHORITY.to_owned());
        let endpoint = format!("{}/{tenant}/oauth2/v2.0/token", authority.trim_end_matches('/'))
            .parse::<Uri>()
            .ok()
            .filter(|endpoint| endpoint.scheme_str() == Some("https") && endpoint.host().is_some())
            .ok_or(Error::Invalid(
                "AZURE_AUTHORITY_HOST",
                "it must be an https:// address",
            ))?;
        let allowed = env(ALLOW_NETWORK).unwrap_or_default();
        let allowed: Result<Vec<Network>, _> = allowed
            .split(',')
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(str::parse)
            .collect();
        let allowed = allowed.map_err(|_| {
            Error::Invalid(
                ALLOW_NETWORK,
                "it must be a list of networks such as 10.0.0.0/8, separated by commas",
            )
        })?;
        Ok(Self {
            endpoint,
            client: required("AZURE_CLIENT_ID")?,
            token_file: required("AZURE_FEDERATED_TOKEN_FILE")?.into(),
            networks: AllowedNetworks::detect(allowed),
        })
    }

    /// A token for the database, to be used as the password.
    pub async fn token(&self) -> Result<SecretString, Error> {
        tokio::time::timeout(DEADLINE, self.ask())
            .await
            .unwrap_or_else(|_| {
                let reason = format!("nothing came within {} s", DEADLINE.as_secs());
                Err(Error::Unreachable(self.endpoint.clone(), reason))
            })
    }

    async fn ask(&self) -> Result<SecretString, Error> {
        // The file is read each time, because it is replaced every hour.
        let proof = tokio::fs::read_to_string(&self.token_file)
            .await
            .map_err(|error| Error::File(self.token_file.clone(), error))?;
        let form = [
            ("grant_type", "client_credentials"),
            ("client_id", &self.client),
            ("scope", SCOPE),
            ("client_assertion_type", ASSERTION_TYPE),
            ("client_assertion", proof.trim()),
        ];
        let form: Vec<_> = form
            .iter()
            .map(|(key, value)| format!("{key}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)))
            .collect();
        let request = Request::post(&self.endpoint)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::ACCEPT, "application/json")
            .body(Full::<Bytes>::from(form.join("&")))
            .map_err(|error| self.unreachable(&error))?;
        // Tests listen without TLS; `from_env` accepts nothing but https.
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(aws_lc_rs::default_provider())
            .map_err(|error| self.unreachable(&error))?
            .https_or_http()
            .enable_http1()
            .wrap_connector(Connector::from_env(self.networks.clone()));
        let client = Client::builder(TokioExecutor::new()).build(connector);
        let answer = client
            .request(request)
            .await
            .map_err(|error| self.unreachable(&error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MAX_ANSWER)
            .collect()
            .await
            .map_err(|error| self.unreachable(&*error))?;
        let answer = serde_json::from_slice::<Answer>(&body.to_bytes()).ok();
        match answer {
            Some(Answer {
                access_token: Some(token),
                ..
            }) if status.is_success() && !token.is_empty() => Ok(token.into()),
            answer => Err(Error::Refused {
                endpoint: self.endpoint.clone(),
                status,
                reason: answer
                    .and_then(|answer| answer.error_description.or(answer.error))
                    .map_or_else(
                        || "the answer has no access token".to_owned(),
                        |text| plain(&text),
                    ),
            }),
        }
    }

    /// Includes every cause, because the outermost one says nothing useful.
    fn unreachable(&self, error: &dyn std::error::Error) -> Error {
        let mut reason = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            reason = format!("{reason}: {error}");
            cause = error.source();
        }
        Error::Unreachable(self.endpoint.clone(), plain(&reason))
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    fn environment(name: &str) -> Option<String> {
        let value = match name {
            "AZURE_TENANT_ID" => "contoso.example",
            "AZURE_CLIENT_ID" => "app",
            "AZURE_FEDERATED_TOKEN_FILE" => "/no/such/file",
            _ => return None,
        };
        Some(value.to_owned())
    }

    #[test]
    fn the_environment_says_where_to_ask() {
        let identity = AzureWorkloadIdentity::from_env(&environment).unwrap();
        assert_eq!(
            identity.endpoint,
            "https://login.microsoftonline.com/contoso.example/oauth2/v2.0/token"
        );
        let without = |gone: &'static str| {
            AzureWorkloadIdentity::from_env(&move |name| environment(name).filter(|_| name != gone))
        };
        for name in ["AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE"] {
            assert!(without(name).unwrap_err().to_string().contains(name));
        }
    }

    #[test]
    fn proof_goes_nowhere_but_to_an_https_address() {
        for authority in ["http://login.example/", "login.example", "https://", "file:///x"] {
            let env = |name: &str| match name {
                "AZURE_AUTHORITY_HOST" => Some(authority.to_owned()),
                _ => environment(name),
            };
            let error = AzureWorkloadIdentity::from_env(&env).unwrap_err();
            assert!(
                matches!(error, Error::Invalid("AZURE_AUTHORITY_HOST", _)),
                "{error}"
            );
        }
    }

    #[test]
    fn networks_are_opened_by_the_operators_variable() {
        let with = |value: &'static str| {
            AzureWorkloadIdentity::from_env(&move |name| match name {
                ALLOW_NETWORK => Some(value.to_owned()),
                _ => environment(name),
            })
        };
        with("").unwrap();
        with("127.0.0.0/8, ::1").unwrap();
        let error = with("127.0.0.1/8").unwrap_err().to_string();
        assert!(error.contains(ALLOW_NETWORK), "{error}");
    }

    /// F16: in a pod, the proof goes to no address of the pod itself, its node or the API server, under any name.
    #[tokio::test]
    async fn proof_goes_to_nobody_at_home() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let token_file = folder.path().join("token");
        std::fs::write(&token_file, "the+proof\n").unwrap();
        for host in [
            "127.0.0.1",
            "localhost",
            "[::ffff:127.0.0.1]",
            "169.254.169.254",
            "10.96.0.1",
        ] {
            let identity = AzureWorkloadIdentity {
                endpoint: format!("http://{host}:{port}/t").parse().unwrap(),
                client: "app".to_owned(),
                token_file: token_file.clone(),
                networks: AllowedNetworks::in_pod(Vec::new(), vec!["10.96.0.1".parse().unwrap()]),
            };
            let error = identity.token().await.unwrap_err().to_string();
            assert!(error.contains("--allow-network"), "{host}: {error}");
            assert!(!error.contains("proof"), "{host}: {error}");
        }
        let nobody = listener.accept().map(|_| ()).unwrap_err();
        assert_eq!(nobody.kind(), io::ErrorKind::WouldBlock);
    }

    /// Answers one request; returns the result and the request.
    async fn asked(status: &str, body: &str) -> (Result<SecretString, Error>, String) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let token_file = folder.path().join("token");
        std::fs::write(&token_file, "the+proof\n").unwrap();
        let identity = AzureWorkloadIdentity {
            endpoint: format!("http://{}/t/oauth2/v2.0/token", listener.local_addr().unwrap())
                .parse()
                .unwrap(),
            client: "app".to_owned(),
            token_file,
            networks: AllowedNetworks::everything(),
        };
        let served = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = String::new();
            while !request.contains("proof") {
                let mut chunk = [0; 4096];
                let length = stream.read(&mut chunk).await.unwrap();
                request.push_str(std::str::from_utf8(&chunk[..length]).unwrap());
            }
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
            request
        };
        tokio::join!(identity.token(), served)
    }

    #[tokio::test]
    async fn a_token_for_the_proof() {
        let (token, request) = asked("200 OK", r#"{"access_token": "abc", "expires_in": 1}"#).await;
        assert_eq!(token.unwrap().expose_secret(), "abc");
        assert!(request.starts_with("POST /t/oauth2/v2.0/token "), "{request}");
        for part in [
            "grant_type=client%5Fcredentials",
            "client_assertion=the%2Bproof",
            "scope=https%3A%2F%2Fossrdbms%2Daad%2Edatabase%2Ewindows%2Enet%2F%2Edefault",
        ] {
            assert!(request.contains(part), "{part} is not in {request}");
        }
    }

    #[tokio::test]
    async fn a_refusal_is_told_and_the_proof_is_not() {
        let (token, _) = asked(
            "400 Bad Request",
            r#"{"error": "x", "error_description": "AADSTS70021: no"}"#,
        )
        .await;
        let error = token.unwrap_err().to_string();
        assert!(error.contains("400") && error.contains("AADSTS70021"), "{error}");
        assert!(!error.contains("proof"), "{error}");
        let (token, _) = asked("200 OK", "{}").await;
        assert!(token.unwrap_err().to_string().contains("no access token"));
    }
}
