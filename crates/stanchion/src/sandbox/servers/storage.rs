//! A real S3 server with a bucket for the examples.

use secrecy::{ExposeSecret as _, SecretString};
use stanchion_local::s3::{AccessKey, Server};

use super::super::error::SandboxError;
use super::super::home::Home;

/// The bucket of the examples.
pub(in super::super) const BUCKET: &str = "shop-files";
/// The id of the access key.
pub(in super::super) const ACCESS_KEY: &str = "sandbox";

/// A running server.
pub(in super::super) struct Storage {
    server: Server,
    secret: SecretString,
}

impl Storage {
    /// Serves the sandbox's directory.
    pub(super) async fn start(home: &Home) -> Result<Self, SandboxError> {
        let secret = home.secret("s3-secret")?;
        let key = AccessKey {
            id: ACCESS_KEY,
            secret: secret.expose_secret(),
        };
        let server = Server::start(&home.folder("s3")?, BUCKET, key).await?;
        Ok(Self { server, secret })
    }

    /// The URL; buckets are in the path.
    pub(in super::super) fn endpoint(&self) -> String {
        self.server.endpoint()
    }

    /// The secret of the access key.
    pub(in super::super) fn secret(&self) -> &SecretString {
        &self.secret
    }
}
