//! Rules about default privileges.

use super::super::diagnostic::Path;
use super::super::types::{DefaultPrivilege, DefaultPrivilegeGrant, Ensure, Manifest, ScopeType};
use super::grants::pairs;
use super::{Findings, Names};
use crate::model::{ObjectType, PUBLIC};

pub(super) fn check(manifest: &Manifest, names: &Names<'_>, findings: &mut Findings) {
    for (name, profile) in &manifest.profiles {
        let path = Path::root("profiles").key(name).key("default_privileges");
        for (index, grant) in profile.default_privileges.iter().enumerate() {
            on_type(grant, false, &path.index(index), findings);
        }
    }
    for (index, entry) in manifest.default_privileges.iter().enumerate() {
        let path = Path::root("default_privileges").index(index);
        let global = place(entry, &path, findings);
        for (index, grant) in entry.grant.iter().enumerate() {
            let at = path.key("grant").index(index);
            match grant.role.as_deref() {
                None => findings.error(at.clone(), "top-level default privilege must specify grant.role"),
                Some(role) if !names.is_grantee(role) => findings.declared(at.key("role"), role, names),
                Some(_) => {}
            }
            on_type(grant, global, &at, findings);
        }
    }
}

/// Whether the entry concerns every schema. An entry sets either the global scope or a schema.
fn place(entry: &DefaultPrivilege, path: &Path, findings: &mut Findings) -> bool {
    let owner = entry.owner.as_deref().unwrap_or("default");
    if let Some(owner) = &entry.owner {
        findings.identifier(path.key("owner"), "owner", owner);
    }
    if let Some(schema) = &entry.schema {
        findings.identifier(path.key("schema"), "schema", schema);
    }
    match (&entry.schema, &entry.scope) {
        (Some(_), None) => false,
        (None, Some(scope)) => {
            match (scope.kind, &scope.schema) {
                (ScopeType::Schema, None) => {
                    findings.error(
                        path.key("scope"),
                        "default privilege scope of type `schema` needs a `schema` name",
                    );
                }
                (ScopeType::Global, Some(schema)) => findings.error(
                    path.key("scope"),
                    format!(
                        "default privilege scope of type `global` must not name a schema (got \"{schema}\")"
                    ),
                ),
                _ => {}
            }
            scope.kind == ScopeType::Global
        }
        (Some(_), Some(_)) => {
            findings.error(
                path.clone(),
                format!(
                    "default privilege entry for owner \"{owner}\" sets both `schema` and `scope`: use one"
                ),
            );
            false
        }
        (None, None) => {
            findings.error(
                path.clone(),
                format!("default privilege entry for owner \"{owner}\" needs either `schema` or `scope`"),
            );
            false
        }
    }
}

fn on_type(grant: &DefaultPrivilegeGrant, global: bool, path: &Path, findings: &mut Findings) {
    let is_public = grant.role.as_deref() == Some(PUBLIC);
    if grant.with_grant_option == Some(true) && (is_public || grant.ensure == Ensure::Absent) {
        findings.error(
            path.key("with_grant_option"),
            "a grant option goes to a named role, with privileges that are present",
        );
    }
    let kind = grant.on_type.default_kind();
    let at = path.key("on_type");
    if kind.spec().defaults.is_none() {
        findings.error(
            at,
            format!("default privileges cannot target on_type `{}`", grant.on_type),
        );
        return;
    }
    if kind == ObjectType::Schema && !global {
        findings.error(
            at,
            "default privileges cannot target on_type `schema` in a schema: use scope `global`",
        );
        return;
    }
    if kind != grant.on_type {
        findings.warning(
            at,
            format!(
                "PostgreSQL has no defaults for a {} alone: this means all TABLES",
                grant.on_type
            ),
        );
    }
    pairs(
        &grant.privileges,
        kind.spec().privileges,
        kind.name(),
        path,
        findings,
    );
}
