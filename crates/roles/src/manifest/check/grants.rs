//! Rules about grants on objects.

use super::super::diagnostic::Path;
use super::super::types::{Ensure, Grant, Manifest, Object, ProfileGrant};
use super::{Findings, Names};
use crate::expand;
use crate::model::{ObjectType, PUBLIC, Privilege, Privileges, Signature};

pub(super) fn check(manifest: &Manifest, names: &Names<'_>, findings: &mut Findings) {
    for (name, profile) in &manifest.profiles {
        let path = Path::root("profiles").key(name).key("grants");
        for (index, grant) in profile.grants.iter().enumerate() {
            profile_grant(grant, &path.index(index), findings);
        }
    }
    for (index, grant) in manifest.grants.iter().enumerate() {
        top_level(grant, &Path::root("grants").index(index), names, findings);
    }
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
    // The schema comes from the binding: any name serves as a placeholder here.
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

/// Checks that each privilege applies to that kind of object.
pub(super) fn pairs(
    given: &[Privilege],
    allowed: Privileges,
    what: &str,
    path: &Path,
    findings: &mut Findings,
) {
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
            format!("{privilege} is not a privilege on a {what}"),
            Some(format!("a {what} has: {allowed}")),
        );
    }
}
