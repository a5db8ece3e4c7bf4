//! Reads profiles that several policies share, from `ConfigMaps`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use stanchion_api::policy::{ConfigMapKey, Profile};
use stanchion_kernel::{Problem, Reader};

use crate::target::{Content, Wanted};
use crate::validate::{content, invalid};

/// The desired state, including shared profiles.
pub async fn complete(read: &Reader, wanted: &Wanted) -> Result<Content, Problem> {
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

fn parse(
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
    serde_saphyr::from_str(text).map_err(|error| {
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
}
