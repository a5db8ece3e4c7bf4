//! Rules about grants and default privileges.

use super::super::diagnostic::Path;
use super::super::types::{
    DefaultPrivilege, DefaultPrivilegeGrant, Ensure, Grant, Manifest, Object, ProfileGrant, ScopeType,
};
use super::{Findings, Names};
use crate::expand;
use crate::model::{ObjectType, PUBLIC, Privilege, Privileges, Signature};

pub(super) fn check(manifest: &Manifest, names: &Names<'_>, findings: &mut Findings) {
    for (name, profile) in &manifest.profiles {
        let path = Path::root("profiles").key(name);
        for (index, grant) in profile.grants.iter().enumerate() {
            profile_grant(grant, &path.key("grants").index(index), findings);
        }
        for (index, grant) in profile.default_privileges.iter().enumerate() {
            on_type(
                grant,
                false,
                &path.key("default_privileges").index(index),
                findings,
            );
        }
    }
    for (index, grant) in manifest.grants.iter().enumerate() {
        top_level(grant, &Path::root("grants").index(index), names, findings);
    }
    for (index, entry) in manifest.default_privileges.iter().enumerate() {
        defaults(
            entry,
            &Path::root("default_privileges").index(index),
            names,
            findings,
        );
    }
    contradictions(manifest, findings);
}

fn top_level(grant: &Grant, path: &Path, names: &Names<'_>, findings: &mut Findings) {
    findings.identifier(path.key("role"), "role", &grant.role);
    if !names.is_grantee(&grant.role) {
        findings.declared(path.key("role"), &grant.role, names);
    }
    if names.retired.contains(grant.role.as_str()) && grant.ensure == Ensure::Present {
        findings.error(
            path.key("role"),
            format!(
                "role \"{}\" is retired and cannot be granted anything",
                grant.role
            ),
        );
    }
    if grant.with_grant_option == Some(true) && (grant.role == PUBLIC || grant.ensure == Ensure::Absent) {
        findings.error(
            path.key("with_grant_option"),
            "a grant option goes to a named role, with privileges that are present",
        );
    }
    object(&grant.object, &path.key("object"), findings);
    privileges(&grant.privileges, &grant.object, path, findings);
}

fn profile_grant(grant: &ProfileGrant, path: &Path, findings: &mut Findings) {
    // The schema is that of the binding: any name stands for it here.
    let object = expand::object_in("schema", &grant.object);
    if !grant.object.kind.spec().in_schema && grant.object.kind != ObjectType::Schema {
        findings.strict(
            path.key("object").key("type"),
            format!(
                "a {} does not belong to a schema, so a profile cannot grant on it",
                grant.object.kind
            ),
            Some("write it under the top-level `grants`".to_owned()),
        );
        return;
    }
    self::object(&object, &path.key("object"), findings);
    privileges(&grant.privileges, &object, path, findings);
}

fn object(object: &Object, path: &Path, findings: &mut Findings) {
    let kind = object.kind;
    let wildcard = object.name.as_deref() == Some("*");
    if let Some(schema) = &object.schema {
        findings.identifier(path.key("schema"), "schema", schema);
    }
    if kind.spec().in_schema {
        if object.schema.is_none() {
            findings.strict(
                path.clone(),
                format!("a {kind} lives in a schema, and none is given"),
                Some("add `schema` (pgroles takes `public`)".to_owned()),
            );
        }
    } else if object.schema.is_some() {
        findings.strict(
            path.key("schema"),
            format!("a {kind} does not live in a schema"),
            None,
        );
    }
    match object.name.as_deref() {
        None if kind == ObjectType::Database => {}
        None => findings.error(
            path.clone(),
            format!("the name of the {kind} is missing; `*` means all of a schema"),
        ),
        Some("*") if !kind.spec().in_schema => {
            findings.error(path.key("name"), format!("`*` cannot mean every {kind}: name it"));
        }
        Some("*") => {}
        Some(name) => object_name(kind, name, path.key("name"), findings),
    }
    if !wildcard && !object.except.is_empty() {
        findings.error(path.key("except"), "`except` goes with the name `*`");
    }
    if !object.columns.is_empty() {
        if !kind.is_relation() || kind == ObjectType::Sequence {
            findings.error(path.key("columns"), format!("a {kind} has no columns"));
        }
        if wildcard {
            findings.error(
                path.key("columns"),
                "columns are those of one named relation, not of `*`",
            );
        }
        for (index, column) in object.columns.iter().enumerate() {
            findings.identifier(path.key("columns").index(index), "column", column);
        }
    }
}

fn object_name(kind: ObjectType, name: &str, path: Path, findings: &mut Findings) {
    match kind {
        ObjectType::Function => match Signature::parse(name) {
            Ok(signature) => findings.identifier(path, "function name", &signature.name),
            Err(reason) => findings.error(path, reason),
        },
        ObjectType::LargeObject => {
            if name.parse::<u32>().is_err() {
                findings.error(
                    path,
                    format!("a large object is named by its number, not \"{name}\""),
                );
            }
        }
        ObjectType::Parameter => {
            if !super::roles::is_parameter(name) {
                findings.error(
                    path,
                    format!("\"{name}\" is not the name of a PostgreSQL setting"),
                );
            }
        }
        _ => findings.identifier(path, "object name", name),
    }
}

fn privileges(given: &[Privilege], object: &Object, path: &Path, findings: &mut Findings) {
    let (allowed, what) = if object.columns.is_empty() {
        (object.kind.spec().privileges, object.kind.to_string())
    } else {
        (ObjectType::COLUMN, "column".to_owned())
    };
    pairs(given, allowed, &what, path, findings);
}

fn pairs(given: &[Privilege], allowed: Privileges, what: &str, path: &Path, findings: &mut Findings) {
    let at = path.key("privileges");
    if given.is_empty() {
        findings.strict(at.clone(), "no privilege is given", None);
    }
    for (index, privilege) in given
        .iter()
        .enumerate()
        .filter(|(_, privilege)| !allowed.contains(**privilege))
    {
        findings.strict(
            at.index(index),
            format!("{privilege} is no privilege on a {what}"),
            Some(format!("a {what} has: {allowed}")),
        );
    }
}

fn defaults(entry: &DefaultPrivilege, path: &Path, names: &Names<'_>, findings: &mut Findings) {
    let owner = entry.owner.as_deref().unwrap_or("default");
    if let Some(owner) = &entry.owner {
        findings.identifier(path.key("owner"), "owner", owner);
    }
    if let Some(schema) = &entry.schema {
        findings.identifier(path.key("schema"), "schema", schema);
    }
    let global = match (&entry.schema, &entry.scope) {
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
    };
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

fn on_type(grant: &DefaultPrivilegeGrant, global: bool, path: &Path, findings: &mut Findings) {
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

/// One rule says that a privilege is there, another that it is not: no plan could satisfy both.
fn contradictions(manifest: &Manifest, findings: &mut Findings) {
    let absent: Vec<_> = manifest
        .grants
        .iter()
        .enumerate()
        .filter(|(_, grant)| grant.ensure == Ensure::Absent)
        .collect();
    if !absent.is_empty() {
        let present = expand::all_grants(manifest);
        let owners = expand::expand(manifest).schemas;
        for (index, grant) in absent {
            let schema = grant
                .object
                .name
                .as_ref()
                .filter(|_| grant.object.kind == ObjectType::Schema);
            if schema.and_then(|name| owners.get(name)?.as_ref()) == Some(&grant.role) {
                findings.error(
                    Path::root("grants").index(index),
                    format!(
                        "\"{}\" is the declared owner of the schema, and keeps its privileges on it",
                        grant.role
                    ),
                );
            }
            let clash = present.iter().find(|other| {
                other.ensure == Ensure::Present
                    && other.role == grant.role
                    && overlap(&other.object, &grant.object)
                    && other
                        .privileges
                        .iter()
                        .any(|privilege| grant.privileges.contains(privilege))
            });
            if let Some(other) = clash {
                findings.error(
                    Path::root("grants").index(index),
                    format!(
                        "grants declare a privilege of \"{}\" on {} \"{}\" as both present and absent",
                        grant.role,
                        other.object.kind,
                        other.object.name.as_deref().unwrap_or("*")
                    ),
                );
            }
        }
    }
    options(manifest, findings);
    for (index, entry) in manifest.default_privileges.iter().enumerate() {
        for (position, grant) in entry.grant.iter().enumerate() {
            // A second entry for the same place speaks of the same privileges.
            let here = manifest
                .default_privileges
                .iter()
                .filter(|other| place(manifest, other) == place(manifest, entry));
            let clash = here.flat_map(|other| &other.grant).any(|other| {
                other.role == grant.role
                    && other.on_type.default_kind() == grant.on_type.default_kind()
                    && other.ensure != grant.ensure
                    && other
                        .privileges
                        .iter()
                        .any(|privilege| grant.privileges.contains(privilege))
            });
            if clash && grant.ensure == Ensure::Absent {
                findings.error(
                    Path::root("default_privileges")
                        .index(index)
                        .key("grant")
                        .index(position),
                    "default privileges declare a privilege as both present and absent",
                );
            }
        }
    }
}

/// Whose new objects an entry is about, and in which schema; none for everywhere.
fn place<'a>(
    manifest: &'a Manifest,
    entry: &'a DefaultPrivilege,
) -> (Option<&'a String>, Option<&'a String>) {
    let schema = entry.schema.as_ref();
    let scoped = entry.scope.as_ref().and_then(|scope| scope.schema.as_ref());
    (
        entry.owner.as_ref().or(manifest.default_owner.as_ref()),
        schema.or(scoped),
    )
}

/// One rule wants a privilege with the grant option, another without it.
fn options(manifest: &Manifest, findings: &mut Findings) {
    let without = |grant: &Grant| grant.ensure == Ensure::Present && grant.with_grant_option == Some(false);
    if !manifest.grants.iter().any(without) {
        return;
    }
    let all = expand::all_grants(manifest);
    for (index, grant) in manifest
        .grants
        .iter()
        .enumerate()
        .filter(|(_, grant)| without(grant))
    {
        let clash = all.iter().any(|other| {
            other.with_grant_option == Some(true)
                && other.role == grant.role
                && overlap(&other.object, &grant.object)
                && other
                    .privileges
                    .iter()
                    .any(|privilege| grant.privileges.contains(privilege))
        });
        if clash {
            findings.error(
                Path::root("grants").index(index).key("with_grant_option"),
                format!(
                    "grants give \"{}\" a privilege both with and without the grant option",
                    grant.role
                ),
            );
        }
    }
}

/// Whether two selectors can mean the same object.
fn overlap(a: &Object, b: &Object) -> bool {
    let wild = |object: &Object| object.name.as_deref() == Some("*");
    let excepted = |all: &Object, one: &Object| {
        wild(all)
            && one
                .name
                .as_deref()
                .is_some_and(|name| expand::is_excepted(&all.except, name))
    };
    let same_kind = if wild(a) || wild(b) {
        a.kind == b.kind
    } else {
        a.kind.same_namespace(b.kind)
    };
    same_kind
        && a.schema == b.schema
        && (a.columns.is_empty() == b.columns.is_empty())
        && (a.columns.is_empty() || a.columns.iter().any(|column| b.columns.contains(column)))
        && (a.name == b.name || ((wild(a) || wild(b)) && !excepted(a, b) && !excepted(b, a)))
}
