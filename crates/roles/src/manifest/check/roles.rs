//! Rules about roles.

use super::super::diagnostic::Path;
use super::super::types::{AuthProvider, AuthProviderType, Manifest, Password, Role};
use super::super::{canonical_timestamp, is_predefined};
use super::{Findings, Names};
use crate::model::PUBLIC;

pub(super) fn check(manifest: &Manifest, names: &Names<'_>, findings: &mut Findings) {
    if let Some(owner) = &manifest.default_owner {
        findings.identifier(Path::root("default_owner"), "default_owner", owner);
    }
    for (index, provider) in manifest.auth_providers.iter().enumerate() {
        auth_provider(provider, &Path::root("auth_providers").index(index), findings);
    }
    for (index, role) in manifest.roles.iter().enumerate() {
        let path = Path::root("roles").index(index);
        name(role, index, &path, names, findings);
        attributes(role, &path, findings);
        config(role, &path, manifest, findings);
    }
}

fn name(role: &Role, index: usize, path: &Path, names: &Names<'_>, findings: &mut Findings) {
    let at = path.key("name");
    findings.identifier(at.clone(), "role name", &role.name);
    if role.name == PUBLIC || role.name == "public" || role.name == "none" {
        findings.error(
            at.clone(),
            format!("\"{}\" is reserved and cannot be the name of a role", role.name),
        );
    }
    if is_predefined(&role.name) && !role.external {
        findings.error(
            at.clone(),
            format!(
                "\"{}\" is a predefined role of PostgreSQL: it can have members, but cannot be declared",
                role.name
            ),
        );
    }
    if names.first_declaration(&role.name) != Some(index) {
        findings.error(at.clone(), format!("duplicate role name: \"{}\"", role.name));
    }
    if let Some((schema, profile)) = names.generated.get(&role.name).and_then(|made| made.first()) {
        findings.error(
            at,
            format!(
                "duplicate role name: \"{}\" is also generated from profile \"{profile}\" for schema \"{}\"",
                role.name, schema.name
            ),
        );
    }
}

fn attributes(role: &Role, path: &Path, findings: &mut Findings) {
    if role.connection_limit.is_some_and(|limit| limit < -1) {
        findings.error(
            path.key("connection_limit"),
            "a connection limit is -1 (none) or not negative",
        );
    }
    if let Some(text) = &role.password_valid_until
        && let Err(reason) = canonical_timestamp(text)
    {
        findings.error(
            path.key("password_valid_until"),
            format!(
                "role \"{}\" has an invalid password_valid_until value \"{text}\": {reason}",
                role.name
            ),
        );
    }
    if let Some(password) = &role.password {
        if role.login != Some(true) {
            findings.error(
                path.key("password"),
                format!(
                    "role \"{}\" has a password but login is not enabled: it would have no effect",
                    role.name
                ),
            );
        }
        password_source(password, &path.key("password"), findings);
    }
    if role.external
        && *role
            != (Role {
                password: None,
                ..only_external(role)
            })
    {
        findings.strict(
            path.clone(),
            format!("role \"{}\" is external: it is neither created nor altered, so its attributes have no effect", role.name),
            None,
        );
    }
}

/// The role with only the fields that have an effect on an external role.
fn only_external(role: &Role) -> Role {
    Role {
        name: role.name.clone(),
        external: true,
        exclusive: role.exclusive,
        preserve_undeclared_grants: role.preserve_undeclared_grants,
        ..Role::default()
    }
}

fn password_source(password: &Password, path: &Path, findings: &mut Findings) {
    let sources = [
        password.from_env.is_some(),
        password.secret_ref.is_some(),
        password.generate.is_some(),
    ];
    match sources.into_iter().filter(|source| *source).count() {
        1 => {}
        0 => findings.error(
            path.clone(),
            "missing field `from_env` (or, in the operator, `secretRef` or `generate`)",
        ),
        _ => findings.error(path.clone(), "a password has exactly one source"),
    }
    if password.from_env.as_deref() == Some("") {
        findings.error(
            path.key("from_env"),
            "the name of the environment variable is empty",
        );
    }
}

fn config(role: &Role, path: &Path, manifest: &Manifest, findings: &mut Findings) {
    for (parameter, value) in &role.config {
        let at = path.key("config").key(parameter);
        if !is_parameter(parameter) {
            findings.error(
                at,
                format!("\"{parameter}\" is not the name of a PostgreSQL setting"),
            );
        } else if parameter.eq_ignore_ascii_case("role") && !is_member(manifest, value, &role.name) {
            findings.error(
                at,
                format!(
                    "role \"{}\" sets config `role: {value}` but is not a declared member of \"{value}\": its logins would fail",
                    role.name
                ),
            );
        }
    }
}

fn is_member(manifest: &Manifest, group: &str, member: &str) -> bool {
    manifest
        .memberships
        .iter()
        .filter(|membership| membership.role == group)
        .flat_map(|membership| &membership.members)
        .any(|candidate| candidate.name == member)
}

/// Whether the name is a parameter such as `work_mem` or `app.tenant`.
pub(super) fn is_parameter(name: &str) -> bool {
    name.split('.').all(|part| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$'))
    })
}

fn auth_provider(provider: &AuthProvider, path: &Path, findings: &mut Findings) {
    let allowed: &[&str] = match provider.kind {
        AuthProviderType::CloudSqlIam => &["project"],
        AuthProviderType::AlloydbIam => &["project", "cluster"],
        AuthProviderType::RdsIam => &["region"],
        AuthProviderType::AzureAd => &["tenant_id"],
        AuthProviderType::Supabase => &["project_ref"],
        AuthProviderType::PlanetScale => &["organization"],
    };
    let given = [
        ("project", &provider.project),
        ("cluster", &provider.cluster),
        ("region", &provider.region),
        ("tenant_id", &provider.tenant_id),
        ("project_ref", &provider.project_ref),
        ("organization", &provider.organization),
    ];
    for (key, _) in given
        .into_iter()
        .filter(|(key, value)| value.is_some() && !allowed.contains(key))
    {
        findings.strict(
            path.key(key),
            format!("`{key}` does not belong to this type of provider"),
            Some(format!("it has: {}", allowed.join(", "))),
        );
    }
}
