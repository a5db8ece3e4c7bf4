//! Accessibility, checked by axe-core. It is downloaded from npm into the cache once, and never part of the repository.

use std::{fs, path::Path};

use serde_json::Value;
use stanchion_local::npm;

use super::Browser;
use crate::{Error, cache, error::Attempt as _, report};

const RELEASE: &str = "4.14.0";
/// The checksum of the package, because its content is executed.
const SHA512: &str = "f564d9c448ec67b6f5dd31fc24f99b576cfc0876e5f34ff6866dd73c41b82603\
    5d40b2bcd480515e64b11df3003a44aa41e4714ffd1dc0d0f3d863a6df3ce971";

/// Something that a person may not be able to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule, such as `color-contrast`.
    pub rule: String,
    /// `minor`, `moderate`, `serious` or `critical`.
    pub impact: String,
    /// The elements.
    pub elements: Vec<String>,
}

impl Browser {
    /// The findings on the current page, or `None` if axe-core cannot be downloaded. The report then says so.
    pub async fn accessibility(&self) -> Option<Vec<Finding>> {
        let source = match tokio::task::spawn_blocking(source).await.unwrap() {
            Ok(source) => source,
            Err(why) => {
                report::skipped(&report::this_test(), &format!("axe-core: {why}"));
                return None;
            }
        };
        let script = format!(
            "{source}\nconst done = arguments[arguments.length - 1];\n\
             axe.run(document, {{ resultTypes: ['violations'] }}).then((found) => done(found.violations), \
             (error) => done(String(error)));"
        );
        let found = self.run_async(&script).await;
        let Some(list) = found.as_array() else {
            panic!("axe-core failed: {found}");
        };
        Some(list.iter().map(finding).collect())
    }
}

fn finding(violation: &Value) -> Finding {
    let text = |field: &str| violation[field].as_str().unwrap_or_default().to_owned();
    let nodes = violation["nodes"].as_array().into_iter().flatten();
    Finding {
        rule: text("id"),
        impact: text("impact"),
        elements: nodes
            .map(|node| format!("{} {}", node["html"], node["failureSummary"]))
            .collect(),
    }
}

fn source() -> Result<String, Error> {
    let folder = cache::entry(&format!("axe-core-{RELEASE}"), download)?;
    let file = folder.join("axe.min.js");
    fs::read_to_string(&file).attempting(|| format!("read {}", file.display()))
}

fn download(place: &Path) -> Result<(), Error> {
    let missing = || Error::Missing {
        what: "npm".to_owned(),
        remedy: "install it, to download axe-core with".to_owned(),
    };
    npm::unpack(&format!("axe-core@{RELEASE}"), Some(SHA512), place, missing)
}
