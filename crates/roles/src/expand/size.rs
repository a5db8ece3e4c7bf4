//! Computes the size of an expanded manifest without expanding it.
//!
//! A profile is a template: 60 profiles in 600 schemas are 36,000 roles, and a few hundred kilobytes of text become
//! gigabytes. So the product is computed first, and a manifest beyond the bounds is refused with its size and the
//! bound.

use std::fmt;

use super::bindings;
use crate::manifest::{Grant, Manifest, ProfileGrant};

/// Bytes of one entry in addition to its names.
const ENTRY: usize = 256;

/// The size of an expanded manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// Roles, generated and declared.
    pub roles: usize,
    /// Grants, default privileges and memberships.
    pub grants: usize,
    /// Estimated memory in bytes.
    pub bytes: usize,
}

impl Size {
    /// Computes the size. Takes time in proportion to the manifest's text.
    pub fn of(manifest: &Manifest) -> Self {
        let mut size = Self::default();
        size.add_roles(manifest.roles.len() + manifest.retirements.len());
        for grant in &manifest.grants {
            size.add_grant(text_of(grant));
        }
        for entry in &manifest.default_privileges {
            for _ in &entry.grant {
                size.add_grant(0);
            }
        }
        for membership in &manifest.memberships {
            for member in &membership.members {
                size.add_grant(membership.role.len() + member.name.len());
            }
        }
        for (schema, name, profile) in bindings(manifest) {
            let pattern = schema.role_pattern.as_ref().or(manifest.role_pattern.as_ref());
            // A pattern can repeat the schema's name many times.
            let role = pattern.map_or(0, |pattern| {
                pattern.len().saturating_mul(schema.name.len().max(name.len()))
            });
            let names = role.saturating_add(schema.name.len()).saturating_add(name.len());
            size.add_roles(1);
            let comment = profile.comment.as_ref().map_or(0, String::len);
            let set: usize = profile
                .config
                .iter()
                .map(|(name, value)| name.len() + value.len())
                .sum();
            size.bytes = size
                .bytes
                .saturating_add(names)
                .saturating_add(comment)
                .saturating_add(set);
            for grant in &profile.grants {
                size.add_grant(names.saturating_add(text_of_template(grant)));
            }
            for _ in &profile.default_privileges {
                size.add_grant(names);
            }
        }
        size
    }

    fn add_roles(&mut self, count: usize) {
        self.roles = self.roles.saturating_add(count);
        self.bytes = self.bytes.saturating_add(count.saturating_mul(ENTRY));
    }

    fn add_grant(&mut self, text: usize) {
        self.grants = self.grants.saturating_add(1);
        self.bytes = self.bytes.saturating_add(text).saturating_add(ENTRY);
    }
}

fn text_of(grant: &Grant) -> usize {
    let object = &grant.object;
    let own: usize = [&object.schema, &object.name]
        .into_iter()
        .flatten()
        .map(String::len)
        .sum();
    own + grant.role.len() + list(&object.columns) + list(&object.except)
}

fn text_of_template(grant: &ProfileGrant) -> usize {
    let object = &grant.object;
    object.name.as_ref().map_or(0, String::len) + list(&object.columns) + list(&object.except)
}

fn list(names: &[String]) -> usize {
    names.iter().map(|name| name.len() + 48).sum()
}

/// The largest size that is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Roles.
    pub roles: usize,
    /// Grants, default privileges and memberships.
    pub grants: usize,
    /// Memory, estimated.
    pub bytes: usize,
}

impl Bounds {
    /// Bounds for one policy among many in an operator.
    pub const SHARED: Self = Self {
        roles: 10_000,
        grants: 50_000,
        bytes: 32 << 20,
    };

    /// Bounds for the command line, with one manifest and the whole machine.
    pub const ALONE: Self = Self {
        roles: 500_000,
        grants: 5_000_000,
        bytes: 8 << 30,
    };

    /// Refuses a larger size.
    pub fn admit(&self, size: Size) -> Result<(), TooLarge> {
        let of = |what, number, bound| TooLarge { what, number, bound };
        if size.roles > self.roles {
            Err(of("roles", size.roles, self.roles))
        } else if size.grants > self.grants {
            Err(of(
                "grants, default privileges and memberships",
                size.grants,
                self.grants,
            ))
        } else if size.bytes > self.bytes {
            Err(of("bytes of names", size.bytes, self.bytes))
        } else {
            Ok(())
        }
    }
}

/// A manifest that expands beyond the bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub struct TooLarge {
    what: &'static str,
    number: usize,
    bound: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, number, bound } = self;
        write!(
            f,
            "the manifest expands to {number} {what}, where at most {bound} are accepted: bind fewer profiles to fewer \
             schemas, or split it"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expand::{all_grants, expand};
    use crate::manifest::{Strictness, load};

    fn manifest(profiles: usize, schemas: usize, grants: usize) -> Manifest {
        let names: Vec<_> = (0..profiles).map(|number| format!("p{number}")).collect();
        let grant =
            serde_json::json!({ "privileges": ["SELECT"], "object": { "type": "table", "name": "*" } });
        serde_json::from_value(serde_json::json!({
            "profiles": names.iter().map(|name| (name.clone(), serde_json::json!({ "grants": vec![grant.clone(); grants] })))
                .collect::<serde_json::Map<_, _>>(),
            "schemas": (0..schemas).map(|number| serde_json::json!({ "name": format!("s{number}"), "profiles": names }))
                .collect::<Vec<_>>(),
        }))
        .unwrap()
    }

    /// The attack: 438 KB of text that expanded to 1.44 million grants and exhausted the memory.
    #[test]
    fn a_product_is_known_before_it_is_made() {
        let attack = manifest(60, 600, 40);
        let size = Size::of(&attack);
        assert_eq!((size.roles, size.grants), (36_000, 1_440_000));
        let refused = Bounds::SHARED.admit(size).unwrap_err().to_string();
        assert!(
            refused.contains("36000 roles") && refused.contains("10000"),
            "{refused}"
        );
        let refused = Bounds::SHARED
            .admit(Size { roles: 1, ..size })
            .unwrap_err()
            .to_string();
        assert!(refused.contains("1440000 grants"), "{refused}");
    }

    #[test]
    fn long_names_count() {
        let mut long = manifest(10, 10, 40);
        for schema in &mut long.schemas {
            schema.name = schema.name.repeat(10_000);
        }
        assert!(Bounds::SHARED.admit(Size::of(&long)).is_err());
        let mut pattern = manifest(10, 10, 1);
        pattern.role_pattern = Some("{schema}".repeat(100_000) + "{profile}");
        assert!(Bounds::SHARED.admit(Size::of(&pattern)).is_err());
    }

    #[test]
    fn the_estimate_is_the_truth() {
        let text = "
roles: [{name: a}, {name: b}]
profiles: {reader: {grants: [{privileges: [USAGE], object: {type: schema}}], default_privileges: [{privileges: [SELECT], on_type: table}]}}
schemas: [{name: x, profiles: [reader]}, {name: y, profiles: [reader]}]
grants: [{role: a, privileges: [CONNECT], object: {type: database, name: d}}]
memberships: [{role: a, members: [{name: b}]}]
";
        let manifest = load(text, Strictness::Lenient).unwrap().value;
        let (size, desired) = (Size::of(&manifest), expand(&manifest));
        assert_eq!(size.roles, desired.roles.len());
        assert_eq!(size.grants, all_grants(&manifest).len() + 2 + 1);
    }
}
