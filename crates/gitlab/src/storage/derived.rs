//! Derived Secrets: one for each part of GitLab that needs its own format.

use std::borrow::Cow;

use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::{Value, json};

use super::Buckets;

/// A derived Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Derived {
    /// For the container registry: the settings of its S3 driver.
    Registry,
    /// For Rails and Workhorse: a connection.
    Rails,
    /// For the toolbox, which writes backups: the configuration of s3cmd.
    Backup,
}

/// A text that could not be serialized.
#[derive(Debug, thiserror::Error)]
#[error("the Secret {name} cannot be written")]
pub(crate) struct Unwritable {
    name: String,
    source: serde_saphyr::ser::Error,
}

impl Derived {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Registry, Self::Rails, Self::Backup];

    /// The Secret's name.
    pub(crate) fn name(self, instance: &str) -> String {
        let part = match self {
            Self::Registry => "registry",
            Self::Rails => "rails",
            Self::Backup => "backup",
        };
        format!("{instance}-gitlab-{part}-storage")
    }

    /// The only key in it.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Rails => "connection",
            Self::Registry | Self::Backup => "config",
        }
    }

    /// The names of all derived Secrets.
    pub(crate) fn names(instance: &str) -> [String; 3] {
        Self::ALL.map(|derived| derived.name(instance))
    }

    /// The Secret.
    pub(crate) fn object(self, instance: &str, buckets: &Buckets) -> Result<Value, Unwritable> {
        let text = self.text(instance, buckets)?;
        Ok(json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": self.name(instance) },
            "type": "Opaque",
            "stringData": { self.key(): text.expose_secret() },
        }))
    }

    /// The text under that key.
    pub(crate) fn text(self, instance: &str, buckets: &Buckets) -> Result<SecretString, Unwritable> {
        let text = match self {
            Self::Registry => yaml(&registry(buckets)),
            Self::Rails => yaml(&rails(buckets)),
            Self::Backup => Ok(s3cmd(buckets)),
        };
        text.map(Into::into).map_err(|source| Unwritable {
            name: self.name(instance),
            source,
        })
    }
}

/// Every string in quotes: the readers are written in Ruby and Go and differ on what a bare `no` or `1e3` is. On one
/// line: the chart indents the lines when it puts them into the registry's own file.
fn yaml(document: &impl Serialize) -> Result<String, serde_saphyr::ser::Error> {
    serde_saphyr::to_string_with_options(document, serde_saphyr::ser_options! { quote_all: true })
}

#[derive(Serialize)]
struct Connection<'a> {
    provider: &'static str,
    region: &'a str,
    aws_access_key_id: &'a str,
    aws_secret_access_key: &'a str,
    aws_signature_version: u8,
    endpoint: String,
    path_style: bool,
}

fn rails(buckets: &Buckets) -> Connection<'_> {
    Connection {
        provider: "AWS",
        region: &buckets.region,
        aws_access_key_id: buckets.access_key.expose_secret(),
        aws_secret_access_key: buckets.secret_key.expose_secret(),
        aws_signature_version: 4,
        endpoint: buckets.endpoint.to_string(),
        path_style: true,
    }
}

#[derive(Serialize)]
struct Registry<'a> {
    s3: Driver<'a>,
}

#[derive(Serialize)]
struct Driver<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    bucket: Option<&'a str>,
    accesskey: &'a str,
    secretkey: &'a str,
    region: &'a str,
    regionendpoint: String,
    v4auth: bool,
    pathstyle: bool,
}

/// GitLab 19 drops the driver of this name, and its successor reads the same settings.
fn registry(buckets: &Buckets) -> Registry<'_> {
    Registry {
        s3: Driver {
            bucket: buckets.registry.as_deref(),
            accesskey: buckets.access_key.expose_secret(),
            secretkey: buckets.secret_key.expose_secret(),
            region: &buckets.region,
            regionendpoint: buckets.endpoint.to_string(),
            v4auth: true,
            pathstyle: true,
        },
    }
}

/// Without the bucket in the host, buckets are addressed by path. With parts of 128 MiB, S3's limit of 10,000 parts
/// suffices for a backup of more than a terabyte; with s3cmd's default of 15 MiB it would end at 150 GiB.
fn s3cmd(buckets: &Buckets) -> String {
    let Buckets { endpoint, region, .. } = buckets;
    format!(
        "[default]\n\
         access_key = {access_key}\n\
         secret_key = {secret_key}\n\
         bucket_location = {region}\n\
         host_base = {host}\n\
         host_bucket = {host}\n\
         use_https = {secure}\n\
         multipart_chunk_size_mb = 128\n",
        access_key = bare(buckets.access_key.expose_secret()),
        secret_key = bare(buckets.secret_key.expose_secret()),
        region = bare(region),
        host = endpoint.authority,
        secure = if endpoint.secure { "True" } else { "False" },
    )
}

/// s3cmd removes a pair of quotes around a value, and knows no escapes: a value that has a pair gets another.
fn bare(value: &str) -> Cow<'_, str> {
    if value.starts_with('"') && value.ends_with('"') {
        format!("\"{value}\"").into()
    } else {
        value.into()
    }
}
