//! Name patterns of generated roles.

use crate::manifest::{Manifest, Schema};

/// The name pattern for the roles of a schema's profiles.
pub fn pattern_of<'a>(manifest: &'a Manifest, schema: &'a Schema) -> &'a str {
    schema
        .role_pattern
        .as_deref()
        .or(manifest.role_pattern.as_deref())
        .unwrap_or("{schema}-{profile}")
}

/// The name of a profile's role in a schema.
pub fn generated_name(pattern: &str, schema: &str, profile: &str) -> String {
    // In one pass, so that a schema named `{profile}` is not replaced again.
    let mut name = String::with_capacity(pattern.len() + schema.len() + profile.len());
    let mut rest = pattern;
    while let Some(at) = rest.find('{') {
        let (before, tail) = rest.split_at(at);
        name.push_str(before);
        if let Some(after) = tail.strip_prefix("{schema}") {
            name.push_str(schema);
            rest = after;
        } else if let Some(after) = tail.strip_prefix("{profile}") {
            name.push_str(profile);
            rest = after;
        } else {
            name.push('{');
            rest = tail.get(1..).unwrap_or_default();
        }
    }
    name.push_str(rest);
    name
}

/// Whether a name matches an exception, which is a name or a pattern with `*`. A routine also matches by its name
/// without arguments.
pub fn is_excepted<'a>(except: impl IntoIterator<Item = &'a String>, name: &str) -> bool {
    let bare = name.split_once('(').map_or(name, |(bare, _)| bare);
    except
        .into_iter()
        .any(|pattern| matches(pattern, name) || matches(pattern, bare))
}

fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|prefix| name.strip_prefix(prefix)) else {
        return false;
    };
    let mut parts: Vec<_> = parts.collect();
    let Some(suffix) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(suffix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_once() {
        assert_eq!(
            generated_name("{schema}-{profile}", "app", "reader"),
            "app-reader"
        );
        assert_eq!(
            generated_name("{profile}_{schema}{x}", "{profile}", "r"),
            "r_{profile}{x}"
        );
    }

    #[test]
    fn exceptions_are_names_and_patterns() {
        let except = [
            "audit".to_owned(),
            "tmp_*".to_owned(),
            "*_old".to_owned(),
            "a*b*c".to_owned(),
        ];
        for name in [
            "audit",
            "tmp_",
            "tmp_x",
            "x_old",
            "abc",
            "aXbYc",
            "audit(integer)",
        ] {
            assert!(is_excepted(&except, name), "{name}");
        }
        for name in ["audits", "xtmp_", "old", "acb"] {
            assert!(!is_excepted(&except, name), "{name}");
        }
    }
}
