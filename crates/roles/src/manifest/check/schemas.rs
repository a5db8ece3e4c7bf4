//! Rules about schemas and profiles.

use std::collections::BTreeSet;

use super::super::diagnostic::Path;
use super::super::suggest::did_you_mean;
use super::super::types::{Ensure, Manifest, Schema};
use super::{Findings, Names};
use crate::expand::pattern_of;

pub(super) fn check(manifest: &Manifest, names: &Names<'_>, findings: &mut Findings) {
    for (name, profile) in &manifest.profiles {
        let path = Path::root("profiles").key(name);
        findings.identifier(path.clone(), "profile name", name);
        for (index, grant) in profile.grants.iter().enumerate() {
            if grant.ensure == Ensure::Absent {
                absence(&path.key("grants").index(index), name, findings);
            }
        }
        for (index, grant) in profile.default_privileges.iter().enumerate() {
            if grant.ensure == Ensure::Absent {
                absence(&path.key("default_privileges").index(index), name, findings);
            }
        }
        for parameter in profile
            .config
            .keys()
            .filter(|name| !super::roles::is_parameter(name))
        {
            findings.error(
                path.key("config").key(parameter),
                format!("\"{parameter}\" is not the name of a PostgreSQL setting"),
            );
        }
    }
    let mut seen = BTreeSet::new();
    for (index, schema) in manifest.schemas.iter().enumerate() {
        let path = Path::root("schemas").index(index);
        if !seen.insert(schema.name.as_str()) {
            findings.error(
                path.key("name"),
                format!("duplicate schema name: \"{}\"", schema.name),
            );
        }
        one(schema, &path, manifest, names, findings);
    }
    for (role, made) in names.generated.iter().filter(|(_, made)| made.len() > 1) {
        let by: Vec<_> = made
            .iter()
            .map(|(schema, profile)| format!("{}/{profile}", schema.name))
            .collect();
        findings.error(
            Path::root("schemas"),
            format!(
                "duplicate role name: \"{role}\" is generated more than once (by {})",
                by.join(", ")
            ),
        );
    }
}

fn absence(path: &Path, profile: &str, findings: &mut Findings) {
    findings.error(
        path.key("ensure"),
        format!("profile \"{profile}\" says `ensure: absent`: a profile is a template of what is granted and cannot say what must not be"),
    );
}

fn one(schema: &Schema, path: &Path, manifest: &Manifest, names: &Names<'_>, findings: &mut Findings) {
    findings.identifier(path.key("name"), "schema name", &schema.name);
    if schema.name.starts_with("pg_") {
        findings.error(
            path.key("name"),
            format!(
                "\"{}\" belongs to PostgreSQL: names that begin with pg_ are reserved",
                schema.name
            ),
        );
    }
    if let Some(owner) = &schema.owner {
        findings.identifier(path.key("owner"), "owner", owner);
    }
    let owner = schema.owner.as_ref().or(manifest.default_owner.as_ref());
    if let Some(owner) = owner.filter(|owner| names.retired.contains(owner.as_str())) {
        findings.error(
            path.clone(),
            format!("the owner of schema \"{}\", \"{owner}\", is retired", schema.name),
        );
    }
    let pattern = pattern_of(manifest, schema);
    if !schema.profiles.is_empty() && !pattern.contains("{profile}") {
        findings.error(
            path.key("role_pattern"),
            format!("role_pattern must contain {{profile}} placeholder, got: \"{pattern}\""),
        );
    }
    for (index, profile) in schema.profiles.iter().enumerate() {
        let at = path.key("profiles").index(index);
        if !manifest.profiles.contains_key(profile) {
            let message = format!(
                "profile \"{profile}\" referenced by schema \"{}\" is not defined",
                schema.name
            );
            findings.error(
                at,
                match did_you_mean(profile, manifest.profiles.keys().map(String::as_str)) {
                    Some(help) => format!("{message}; {help}"),
                    None => message,
                },
            );
            continue;
        }
        let role = crate::expand::generated_name(pattern, &schema.name, profile);
        findings.identifier(at, "generated role name", &role);
    }
}
