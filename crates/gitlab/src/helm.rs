//! Reads Helm's own record of a release: the predecessor of an instance may be a plain `helm install`.
//!
//! Helm stores each revision in a Secret, as compressed JSON that includes the whole chart. Only the name and the
//! versions of the chart are kept. The tenant controls the Secret, so nothing in it is trusted: not its size, not its
//! uncompressed size, not its numbers.

use std::io::Read;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::read::GzDecoder;
use k8s_openapi::api::core::v1::Secret;
use kube::core::ObjectMeta;
use serde::Deserialize;

use crate::flux::Running;

/// The type of the Secrets.
const TYPE: &str = "helm.sh/release.v1";
/// The status of a revision that runs.
const DEPLOYED: &str = "deployed";
/// The status of a revision of which only the record is left (`helm uninstall --keep-history`).
const UNINSTALLED: &str = "uninstalled";
/// The statuses of revisions that do not run, and may have migrated the database.
const TRIED: &str = "failed,uninstalled,uninstalling,pending-install,pending-upgrade,pending-rollback";
/// The first bytes of a compressed release.
const GZIP: [u8; 3] = [0x1f, 0x8b, 0x08];
/// The largest uncompressed release, in bytes. GitLab's have less than half of that.
const LARGEST: u64 = 32 << 20;

/// A release of Helm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployed {
    /// The name of its chart.
    pub chart: String,
    /// The chart's version, and GitLab's.
    pub running: Running,
    /// Whether it runs. Another one may have migrated the database.
    pub runs: bool,
    /// Whether it is uninstalled.
    pub gone: bool,
}

/// Why a Secret of Helm cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is not a release.
    #[error("it is no release of Helm")]
    NotARelease,
    /// It is a release, but cannot be read.
    #[error("it cannot be read as a release of Helm 3 or newer")]
    Malformed,
}

#[derive(Deserialize)]
struct Release {
    chart: Chart,
}

#[derive(Deserialize)]
struct Chart {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    version: String,
    #[serde(default)]
    app_version: String,
}

/// The label selector of the revisions that say which version the database has. Those that do not run count before Flux
/// has a release: later ones are of that release, whose own state says more.
pub(crate) fn selector(release: &str, has_release: bool) -> String {
    let tried = if has_release {
        String::new()
    } else {
        format!(",{TRIED}")
    };
    format!("owner=helm,name={release},status in ({DEPLOYED}{tried})")
}

/// The newest deployed one of these revisions; without one, the newest of all.
pub(crate) fn newest(revisions: Vec<ObjectMeta>) -> Option<String> {
    let revision = |meta: &ObjectMeta| -> u64 {
        let number = label(meta, "version").and_then(|number| number.parse().ok());
        number.unwrap_or_default()
    };
    let newest = |meta: &ObjectMeta| (is(meta, DEPLOYED), revision(meta));
    revisions.into_iter().max_by_key(newest)?.name
}

fn is(meta: &ObjectMeta, status: &str) -> bool {
    label(meta, "status") == Some(status)
}

fn label<'a>(meta: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    meta.labels.as_ref()?.get(name).map(String::as_str)
}

/// Reads a revision. Decompression takes a moment; nothing but the result is kept in memory.
pub(crate) fn read(secret: &Secret) -> Result<Deployed, Unreadable> {
    if secret.type_.as_deref() != Some(TYPE) {
        return Err(Unreadable::NotARelease);
    }
    let text = secret.data.as_ref().and_then(|data| data.get("release"));
    let text = text.ok_or(Unreadable::NotARelease)?;
    let bytes = BASE64_STANDARD
        .decode(&text.0)
        .map_err(|_| Unreadable::Malformed)?;
    let release: Release = if bytes.starts_with(&GZIP) {
        parse(GzDecoder::new(bytes.as_slice()))
    } else {
        parse(bytes.as_slice())
    }?;
    let Metadata {
        name,
        version,
        app_version,
    } = release.chart.metadata;
    Ok(Deployed {
        chart: name,
        running: Running {
            chart: version,
            version: app_version.parse().ok(),
        },
        runs: is(&secret.metadata, DEPLOYED),
        gone: is(&secret.metadata, UNINSTALLED),
    })
}

fn parse(release: impl Read) -> Result<Release, Unreadable> {
    let bounded = std::io::BufReader::new(release.take(LARGEST));
    serde_json::from_reader(bounded).map_err(|_| Unreadable::Malformed)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use k8s_openapi::ByteString;
    use serde_json::{Value, json};

    use super::*;
    use crate::versions::Version;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        BASE64_STANDARD.encode(encoder.finish().unwrap()).into_bytes()
    }

    fn secret(release: Vec<u8>) -> Secret {
        Secret {
            type_: Some(TYPE.into()),
            data: Some([("release".to_owned(), ByteString(release))].into()),
            ..Secret::default()
        }
    }

    fn release(chart: &Value) -> Secret {
        let release = json!({
            "name": "shop", "info": { "status": "deployed" }, "manifest": "x".repeat(100), "version": 1,
            "chart": { "metadata": chart, "templates": [{ "name": "a", "data": "eA==" }] },
        });
        secret(packed(release.to_string().as_bytes()))
    }

    #[test]
    fn the_chart_and_the_version_are_read() {
        let found = read(&release(
            &json!({ "name": "gitlab", "version": "8.8.7", "appVersion": "v17.8.7" }),
        ))
        .unwrap();
        assert_eq!(found.chart, "gitlab");
        assert_eq!(found.running.chart, "8.8.7");
        assert_eq!(found.running.version, Some(Version::new(17, 8, 7)));
        let plain = json!({ "chart": { "metadata": { "name": "other", "version": "1.0.0" } } }).to_string();
        let found = read(&secret(BASE64_STANDARD.encode(plain).into_bytes())).unwrap();
        assert_eq!((found.chart.as_str(), found.running.version), ("other", None));
    }

    #[test]
    fn what_is_no_release_is_refused_without_a_panic() {
        let mut other = release(&json!({ "name": "gitlab", "version": "1" }));
        other.type_ = Some("Opaque".into());
        assert_eq!(read(&other), Err(Unreadable::NotARelease));
        for text in ["", "%%%", "e30=", "H4sIAAAAAAAA", "W1tbW1tbW1tb"] {
            assert_eq!(read(&secret(text.into())), Err(Unreadable::Malformed), "{text}");
        }
    }

    /// A Secret of a megabyte can expand to a gigabyte of zeros: decompression stops at the limit.
    #[test]
    fn a_release_that_never_ends_is_given_up() {
        let mut endless = br#"{"manifest":""#.to_vec();
        endless.resize(usize::try_from(LARGEST).unwrap() + (8 << 20), b'x');
        endless.extend(br#"","chart":{"metadata":{"name":"gitlab","version":"1"}}}"#);
        let packed = packed(&endless);
        assert!(packed.len() < 1 << 20, "it fits into a Secret");
        assert_eq!(read(&secret(packed)), Err(Unreadable::Malformed));
    }

    #[test]
    fn the_newest_revision_counts_and_a_failed_one_only_if_none_is_deployed() {
        let meta = |name: &str, version: &str, status: &str| -> ObjectMeta {
            let labels = json!({ "version": version, "status": status });
            serde_json::from_value(json!({ "name": name, "labels": labels })).unwrap()
        };
        let (two, ten) = (meta("v2", "2", "deployed"), meta("v10", "10", "deployed"));
        let failed = [meta("v3", "3", "failed"), meta("v11", "11", "failed")];
        let found = newest(vec![two.clone(), ten, meta("x", "none", "deployed")]);
        assert_eq!(found.as_deref(), Some("v10"));
        let found = newest([failed.to_vec(), vec![two]].concat());
        assert_eq!(found.as_deref(), Some("v2"), "it still runs");
        assert_eq!(newest(failed.to_vec()).as_deref(), Some("v11"));
        assert_eq!(newest(Vec::new()), None);
    }
}
