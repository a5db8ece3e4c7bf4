//! The buckets from the user's Secret, in the three formats that GitLab's parts need.
//!
//! Each part has its own format, and a missing bucket shows only at the first upload of its kind. So the whole Secret
//! is read at once, all missing keys are reported at once, and values that one of the formats cannot express are
//! refused before anything is installed.

mod derived;
mod endpoint;

use k8s_openapi::api::core::v1::Secret;
use secrecy::SecretString;
use stanchion_api::gitlab::Domains;

pub(crate) use derived::Derived;
use endpoint::Endpoint;

use crate::secret_keys::{Keys, Unusable};

/// The object storage of an instance.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Buckets {
    access_key: SecretString,
    secret_key: SecretString,
    endpoint: Endpoint,
    region: String,
    /// `None` if the registry is off and the Secret names no bucket.
    pub registry: Option<String>,
    pub lfs: String,
    pub artifacts: String,
    pub uploads: String,
    pub packages: String,
    pub mr_diffs: String,
    pub terraform: String,
    pub ci_secure_files: String,
    pub dependency_proxy: String,
    /// `None` if nothing schedules backups and the Secret names no bucket.
    pub backups: Option<String>,
    /// `None` if Pages are off and the Secret names no bucket.
    pub pages: Option<String>,
    /// Where a restore saves the previous contents; default: the bucket of the backups.
    pub tmp: Option<String>,
}

/// The optional parts of GitLab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Parts {
    pub registry: bool,
    pub pages: bool,
    /// Scheduled backups.
    pub backups: bool,
}

impl Parts {
    /// A part with a domain is on.
    pub fn of(domains: &Domains, backups: bool) -> Self {
        Self {
            registry: domains.registry.is_some(),
            pages: domains.pages.is_some(),
            backups,
        }
    }
}

/// What is expected of a value that goes into the configuration of GitLab's backup tool. The configuration has one line
/// for each setting, and treats a value that begins with `$` as an environment variable.
const LINE: &str = "usable for GitLab's backup tool: it begins with $, or contains a line break or another control character. \
                    Use other credentials";
const ENDPOINT: &str =
    "an address: write a host, with a port if need be, such as https://s3.example.com:9000";

impl Buckets {
    /// The buckets of a complete Secret: each has the key `bucket.NAME`.
    pub const NAMES: [&str; 11] = [
        "registry",
        "lfs",
        "artifacts",
        "uploads",
        "packages",
        "mr-diffs",
        "terraform",
        "ci-secure-files",
        "dependency-proxy",
        "backups",
        "pages",
    ];

    /// Reads the user's Secret. A part of GitLab that is off needs no bucket.
    pub fn read(secret: &Secret, parts: Parts) -> Result<Self, Unusable> {
        let mut secret = Keys::of(secret);
        let backups = secret.text_if(parts.backups, "bucket.backups");
        let buckets = Self {
            access_key: line(&mut secret, "accessKey").into(),
            secret_key: line(&mut secret, "secretKey").into(),
            endpoint: endpoint(&mut secret, "endpoint"),
            region: line(&mut secret, "region"),
            registry: secret.text_if(parts.registry, "bucket.registry"),
            lfs: secret.text("bucket.lfs"),
            artifacts: secret.text("bucket.artifacts"),
            uploads: secret.text("bucket.uploads"),
            packages: secret.text("bucket.packages"),
            mr_diffs: secret.text("bucket.mr-diffs"),
            terraform: secret.text("bucket.terraform"),
            ci_secure_files: secret.text("bucket.ci-secure-files"),
            dependency_proxy: secret.text("bucket.dependency-proxy"),
            tmp: secret.optional("bucket.tmp").or_else(|| backups.clone()),
            backups,
            pages: secret.text_if(parts.pages, "bucket.pages"),
        };
        secret.finish(buckets)
    }
}

fn line(secret: &mut Keys<'_>, key: &'static str) -> String {
    let text = secret.text(key);
    if text.starts_with('$') || text.chars().any(char::is_control) {
        secret.wrong(key, LINE);
    }
    text
}

fn endpoint(secret: &mut Keys<'_>, key: &'static str) -> Endpoint {
    let text = secret.text(key);
    text.parse().unwrap_or_else(|_| {
        if !text.is_empty() {
            secret.wrong(key, ENDPOINT);
        }
        Endpoint::default()
    })
}

#[cfg(test)]
pub(crate) mod tests;
