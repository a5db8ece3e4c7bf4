//! Reads profiles that several policies share, from `ConfigMaps`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use stanchion_api::policy::{ConfigMapKey, Profile};
use stanchion_kernel::{Problem, Reader};
use stanchion_postgres::error::plain_to;

use crate::policy::target::{Content, Wanted};
use crate::policy::validate::{content, invalid};

/// How many keys, values and brackets the anchors of a document may repeat.
const MAX_REPEATED: usize = 20_000;
/// Most bytes of a parser's message that are repeated: it can quote the document.
const MAX_SHOWN: usize = 512;

/// The desired state, including shared profiles.
pub(crate) async fn complete(read: &Reader, wanted: &Wanted) -> Result<Content, Problem> {
    if let Some(content) = &wanted.content {
        return Ok(content.clone());
    }
    let mut shared = BTreeMap::new();
    for key in &wanted.profiles_from {
        let found: Option<ConfigMap> = read.get(&key.name).await?;
        for (name, profile) in parse(key, found)? {
            // The first profile of a name takes precedence.
            shared.entry(name).or_insert(profile);
        }
    }
    content(&wanted.spec, shared)
}

/// The profiles in a `ConfigMap`.
pub fn parse(
    ConfigMapKey { name, key }: &ConfigMapKey,
    found: Option<ConfigMap>,
) -> Result<BTreeMap<String, Profile>, Problem> {
    let missing = |what: String| Problem::dependency("ProfilesMissing", what);
    let data = found
        .ok_or_else(|| missing(format!("ConfigMap {name} does not exist")))?
        .data
        .unwrap_or_default();
    let text = data
        .get(key)
        .ok_or_else(|| missing(format!("ConfigMap {name} has no key \"{key}\"")))?;
    let options = serde_saphyr::options! {
        // An anchor that is used often is a short text for a large one: profiles are small.
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPEATED },
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let error = plain_to(&error.to_string(), MAX_SHOWN);
        invalid(format!(
            "ConfigMap {name}, key \"{key}\" is not a map of profiles: {error}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_read_by_their_names() {
        let key = ConfigMapKey {
            name: "shared".into(),
            key: "profiles.yaml".into(),
        };
        let map = |text: &str| ConfigMap {
            data: Some(BTreeMap::from([("profiles.yaml".to_owned(), text.to_owned())])),
            ..ConfigMap::default()
        };
        let text = "reader:\n  grants:\n    - privileges: [USAGE]\n      object: {type: schema}\n";
        let profiles = parse(&key, Some(map(text))).unwrap();
        assert_eq!(profiles["reader"].grants.len(), 1);
        assert_eq!(parse(&key, None).unwrap_err().reason, "ProfilesMissing");
        assert_eq!(
            parse(&key, Some(ConfigMap::default())).unwrap_err().reason,
            "ProfilesMissing"
        );
        assert_eq!(parse(&key, Some(map("- 1"))).unwrap_err().reason, "InvalidSpec");
    }

    /// F7, F18: a document that means much more than it says is refused, and its text reaches no log line.
    #[test]
    fn a_document_of_anchors_is_refused() {
        let key = ConfigMapKey {
            name: "shared".into(),
            key: "p".into(),
        };
        let read = |text: String| {
            let data = Some(BTreeMap::from([("p".to_owned(), text)]));
            parse(
                &key,
                Some(ConfigMap {
                    data,
                    ..ConfigMap::default()
                }),
            )
        };
        let grant = "{privileges: [USAGE], object: {type: schema}}, ";
        let document = |grants: usize, aliases: usize| {
            let first = format!("p: {{grants: &g [{}]}}\n", grant.repeat(grants));
            (0..aliases).fold(first, |text, number| format!("{text}p{number}: {{grants: *g}}\n"))
        };
        assert_eq!(read(document(10, 10)).unwrap().len(), 11);
        let error = read(document(1000, 1000)).unwrap_err();
        assert_eq!(error.reason, "InvalidSpec");
        let forged = "\u{1b}[31mroot: x\n2026-01-01 ERROR forged";
        for text in [format!("{forged}: ["), format!("p: \"{}\"", "A".repeat(5000))] {
            let said = read(text).unwrap_err().message;
            assert!(said.len() < 1000 && !said.contains(['\n', '\u{1b}']), "{said:?}");
        }
    }
}
