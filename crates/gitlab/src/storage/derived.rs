//! The Secrets that are made of the user's: one for each part of GitLab that reads a language of its own.

use std::borrow::Cow;

use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;

use super::Buckets;

/// A Secret that is made of the user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Derived {
    /// What the container registry reads: the settings of its S3 driver.
    Registry,
    /// What Rails, and Workhorse with it, reads: a connection.
    Rails,
    /// What the toolbox reads to write backups: the configuration of s3cmd.
    Backup,
}

/// A text that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the Secret {name} cannot be written")]
pub struct Unwritable {
    name: String,
    source: serde_saphyr::ser::Error,
}

impl Derived {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Registry, Self::Rails, Self::Backup];

    /// The Secret's name.
    pub fn name(self, instance: &str) -> String {
        let part = match self {
            Self::Registry => "registry",
            Self::Rails => "rails",
            Self::Backup => "backup",
        };
        format!("{instance}-gitlab-{part}-storage")
    }

    /// The only key in it.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Rails => "connection",
            Self::Registry | Self::Backup => "config",
        }
    }

    /// What is under that key.
    pub fn text(self, instance: &str, buckets: &Buckets) -> Result<SecretString, Unwritable> {
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

/// Every text in quotes: the readers are written in Ruby and Go and do not agree on what a bare `no` or `1e3` is. On
/// one line: the chart pushes the lines to the right when it puts them into the registry's own file.
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

/// GitLab 19 drops the driver of this name, and reads its settings with the one that follows it.
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

/// Without a place for the bucket in the host, buckets are addressed by path. In parts of 128 MiB, the 10,000 that S3
/// allows are enough for a backup of more than a terabyte; with s3cmd's own 15 MiB it would end at 150 GiB.
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

/// s3cmd takes a pair of quotes off a value, and knows no escapes: a value that has a pair gets another.
fn bare(value: &str) -> Cow<'_, str> {
    if value.starts_with('"') && value.ends_with('"') {
        format!("\"{value}\"").into()
    } else {
        value.into()
    }
}
