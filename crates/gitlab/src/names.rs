//! How long the name of an instance may be. What is made for it has longer names, and Kubernetes limits those; the name
//! of an instance cannot be changed later.

use stanchion_api::gitlab::{ProfileDefaults, Topology};

use crate::instance::target::Wanted;

/// Helm limits release names to 53 characters, and children have longer names than their instance.
const LONGEST: usize = 40;

/// A feature that leaves less room.
struct Limit {
    /// How the spec or the profile requests it.
    feature: &'static str,
    longest: usize,
    applies: fn(&Wanted, Option<&ProfileDefaults>) -> bool,
}

/// Pods of a `StatefulSet` carry its name and its revision in a label, which may have 63 characters. Together they have
/// 11 more than the `StatefulSet`.
const LIMITS: [Limit; 4] = [
    // Elastic's operator allows 36 characters, and its object is named `<name>-es`.
    Limit {
        feature: "elasticsearch.managed",
        longest: 33,
        applies: |wanted, _| wanted.needs_elasticsearch(),
    },
    // The StatefulSet `<name>-pg-instance1-xxxx`.
    Limit {
        feature: "postgres.managed",
        longest: 34,
        applies: |wanted, _| wanted.spec.postgres.managed && !wanted.has_run,
    },
    // The StatefulSet `<name>-redis-sentinel`.
    Limit {
        feature: "redis.managed and topology ha",
        longest: 37,
        applies: |wanted, profile| {
            let is_ha = wanted.requests(profile).redis().topology == Topology::Ha;
            wanted.spec.redis.managed && is_ha && !wanted.has_run
        },
    },
    // The CronJob `<name>-toolbox-backup`, which may have 52 characters.
    Limit {
        feature: "a backup schedule",
        longest: 37,
        applies: |wanted, profile| wanted.backup_schedule(profile).is_some() && !wanted.has_run,
    },
];

/// What is wrong with the name of an instance with this profile, if it is too long. A name with which GitLab has run is
/// short enough.
pub(crate) fn too_long(wanted: &Wanted, profile: Option<&ProfileDefaults>) -> Option<String> {
    let length = wanted.name.len();
    if length > LONGEST {
        return Some(words(length, LONGEST, ""));
    }
    let mut applying = LIMITS.iter().filter(|limit| (limit.applies)(wanted, profile));
    let limit = applying.find(|limit| length > limit.longest)?;
    Some(words(length, limit.longest, &format!("with {}, ", limit.feature)))
}

fn words(length: usize, longest: usize, with: &str) -> String {
    format!(
        "the name has {length} characters; {with}at most {longest} leave room for the names of what is made for it: create the \
         instance with a shorter name"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn wanted(length: usize, more: &Value) -> Wanted {
        let mut spec = json!({ "domains": { "gitlab": "git.example.com" } });
        for (field, value) in more.as_object().unwrap() {
            spec[field] = value.clone();
        }
        Wanted {
            name: "x".repeat(length),
            ..Wanted::shop(spec)
        }
    }

    #[test]
    fn each_feature_has_its_longest_name() {
        let managed = json!({ "managed": true });
        let profile: ProfileDefaults = serde_json::from_value(json!({
            "redis": { "topology": "ha" }, "backupSchedule": "0 4 * * 0",
        }))
        .unwrap();
        let (none, some) = (None, Some(&profile));
        for (more, profile, longest) in [
            (json!({}), none, 40),
            (json!({ "redis": managed }), none, 40),
            (
                json!({ "redis": { "managed": true, "topology": "ha" } }),
                none,
                37,
            ),
            (json!({ "redis": managed }), some, 37),
            (json!({ "redis": { "topology": "ha" } }), none, 40),
            (json!({ "backupSchedule": "30 2 * * *" }), none, 37),
            (json!({}), some, 37),
            (
                json!({ "postgres": managed, "backupSchedule": "30 2 * * *" }),
                some,
                34,
            ),
            (json!({ "elasticsearch": managed }), none, 40),
            (
                json!({ "edition": "ee", "licenseSecret": "l", "elasticsearch": managed }),
                none,
                33,
            ),
        ] {
            let case = |length| too_long(&wanted(length, &more), profile);
            assert_eq!(case(longest), None, "{more}");
            let words = case(longest + 1).unwrap();
            assert!(words.contains(&format!("at most {longest} ")), "{more}: {words}");
        }
    }

    /// An instance that a predecessor made may have objects with other names.
    #[test]
    fn a_name_with_which_gitlab_has_run_stays_valid() {
        let everything = json!({
            "postgres": { "managed": true }, "redis": { "managed": true, "topology": "ha" }, "backupSchedule": "30 2 * * *",
        });
        let ran = Wanted {
            has_run: true,
            ..wanted(40, &everything)
        };
        assert_eq!(too_long(&ran, None), None);
    }
}
