//! Validates an object. The schema checks the same; an object may be older than the schema.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use kube::ResourceExt;
use stanchion_api::user::{
    CLOSED_SCHEMAS, CredentialsSecret, INSTANCE_IS_IMMUTABLE, Iam, IamProvider, InstanceRef, KeySet,
    Membership, Mode, OnDelete, PostgresUserSpec, Rotation, RotationStrategy, SecretType, annotation,
};
use stanchion_api::{PostgresUser, duration};
use stanchion_kernel::Problem;
use stanchion_kernel::marks::looks_marked;
use stanchion_postgres::handover;

use super::schemas::is_closed;
use super::target::{
    Before, DatabaseRequest, Identity, PasswordRequest, RotationRequest, SchemaRequest, Wanted,
};
use crate::{credentials, generate};

/// The desired role.
pub fn validate(user: &PostgresUser) -> Result<Wanted, Problem> {
    let spec = &user.spec;
    let before = Before::of(user);
    check_names(user, &before)?;
    let drift = spec.drift_policy.clone().unwrap_or_default();
    let wanted = Wanted {
        identity: Identity::of(user),
        instance: instance(user),
        username: spec.username.clone(),
        database: spec.database.clone(),
        role: spec.role.clone().unwrap_or_default(),
        password: password(user)?,
        member_of: memberships(spec),
        membership_policy: spec.membership_policy,
        databases: databases(spec)?,
        create_database: spec.create_database.clone().filter(|create| create.enabled),
        credentials: credentials_secret(user),
        existing: spec.existing_role_policy,
        drift: drift.mode,
        drift_interval: interval(&drift.interval)?.max(Duration::from_secs(1)),
        plan_only: spec.mode == Mode::Plan,
        before,
    };
    check_values(&wanted)?;
    check_new_owner(&wanted, spec.on_delete.as_ref())?;
    if let Some(secret) = &wanted.credentials {
        credentials::check(secret)?;
    }
    Ok(wanted)
}

/// Whether nothing is to be changed. A suspended object whose role or database is invalid is reported as invalid.
pub(super) fn is_suspended(user: &PostgresUser) -> bool {
    user.spec.suspend && check_names(user, &Before::of(user)).is_ok()
}

fn check_names(user: &PostgresUser, before: &Before) -> Result<(), Problem> {
    username(&user.spec.username)?;
    database_name(&user.spec.database)?;
    unmoved(user, before)
}

/// The role stays the one that was created, on the same server: another name or server would leave it behind. The
/// schema enforces that, too, while it is installed.
fn unmoved(user: &PostgresUser, before: &Before) -> Result<(), Problem> {
    let Some(was) = &before.username else {
        return Ok(());
    };
    let is = &user.spec.username;
    if was != is {
        return Err(Problem::permanent("InvalidSpec", username_is_immutable(was, is)));
    }
    if instance(user) != before.instance {
        return Err(Problem::permanent("InvalidSpec", INSTANCE_IS_IMMUTABLE));
    }
    Ok(())
}

/// The guide's message.
pub(crate) fn username_is_immutable(was: &str, is: &str) -> String {
    format!("username is immutable after creation (old: {was}, new: {is})")
}

/// The instance of an object; `None` is the default server.
pub(crate) fn instance(user: &PostgresUser) -> Option<InstanceRef> {
    let namespace = user.namespace().unwrap_or_default();
    let reference = user.spec.instance_ref.as_ref();
    reference.map(|reference| reference.seen_from(&namespace))
}

/// The memberships of the spec, and the one that allows a cloud identity to log in.
fn memberships(spec: &PostgresUserSpec) -> Vec<Membership> {
    let mut all = spec.member_of.clone();
    if let Some(Iam { provider, role_name }) = spec.auth.as_ref().and_then(|auth| auth.iam.as_ref()) {
        let usual = match provider {
            IamProvider::Aws => "rds_iam",
            IamProvider::Gcp => "cloudsqliamuser",
            IamProvider::Azure => "azure_ad_user",
        };
        let role = role_name.clone().unwrap_or_else(|| usual.into());
        if !all.iter().any(|membership| membership.role == role) {
            all.push(Membership {
                role,
                admin: false,
                inherit: None,
                set: None,
            });
        }
    }
    all
}

fn databases(spec: &PostgresUserSpec) -> Result<BTreeMap<String, DatabaseRequest>, Problem> {
    let mut all: BTreeMap<String, DatabaseRequest> = BTreeMap::new();
    for database in &spec.databases {
        let mut request = DatabaseRequest {
            owner: database.owner == Some(true),
            ..DatabaseRequest::default()
        };
        request.extensions.extend(database.extensions.iter().cloned());
        for schema in &database.schemas {
            let new = SchemaRequest {
                create: schema.create == Some(true),
                explicit: !schema.privileges.is_empty(),
                default_for: schema.default_privileges_for_roles.clone(),
                ..SchemaRequest::default()
            };
            request.schemas.insert(schema.name.clone(), new);
        }
        request.add(&database.privileges);
        for schema in &database.schemas {
            if let Some(request) = request.schemas.get_mut(&schema.name) {
                request.add(&schema.privileges);
            }
        }
        all.insert(database.name.clone(), request);
    }
    let main = all.entry(spec.database.clone()).or_default();
    if let Some(create) = spec.create_database.as_ref().filter(|create| create.enabled) {
        main.owner |= create.owner;
        main.revoke_public |= create.revoke_public;
        main.extensions.extend(create.extensions.iter().cloned());
        for schema in &create.schemas {
            main.schemas.entry(schema.clone()).or_default().create = true;
        }
    }
    main.add(&spec.privileges);
    for (name, request) in &all {
        let names = request
            .extensions
            .iter()
            .chain(request.schemas.keys())
            .chain(std::iter::once(name));
        for name in names {
            if name.is_empty() || name.len() > NAME_LIMIT || name.contains('\0') {
                return Err(Problem::permanent(
                    "InvalidSpec",
                    format!("{name:?} cannot be a name: postgres limit is 63 chars"),
                ));
            }
        }
        if let Some(schema) = request.schemas.keys().find(|schema| is_closed(schema)) {
            return Err(Problem::permanent("InvalidSpec", closed_schema(schema)));
        }
    }
    Ok(all)
}

fn closed_schema(name: &str) -> String {
    format!("schema {name:?} is reserved: {CLOSED_SCHEMAS}")
}

/// The source of the password: there must be exactly one.
fn password(user: &PostgresUser) -> Result<PasswordRequest, Problem> {
    let spec = &user.spec;
    let password = spec.password.clone().unwrap_or_default();
    let iam = spec.auth.as_ref().and_then(|auth| auth.iam.as_ref());
    let disabled = password.disabled == Some(true);
    let sources = [
        spec.password_secret_ref.is_some(),
        password.generate.is_some(),
        disabled,
        iam.is_some(),
    ];
    if sources.into_iter().filter(|given| *given).count() != 1 {
        return Err(Problem::permanent(
            "InvalidSpec",
            "exactly one of passwordSecretRef, password.generate, password.disabled, auth.iam is required",
        ));
    }
    if password.rotation.is_some() && password.generate.is_none() {
        return Err(Problem::permanent(
            "InvalidSpec",
            "password.rotation needs password.generate (rotate a user-supplied Secret by changing the Secret)",
        ));
    }
    Ok(match (&spec.password_secret_ref, password.generate) {
        (Some(secret), _) => PasswordRequest::From(secret.clone(), password.encoding),
        (None, Some(generate)) => {
            generate::check(&generate)?;
            PasswordRequest::Generated(generate, rotation(user, password.rotation.as_ref())?)
        }
        (None, None) => PasswordRequest::None,
    })
}

fn rotation(user: &PostgresUser, rotation: Option<&Rotation>) -> Result<RotationRequest, Problem> {
    let requested = user.annotations().get(annotation::ROTATE_AT).cloned();
    let Some(rotation) = rotation else {
        return Ok(RotationRequest {
            requested,
            ..RotationRequest::default()
        });
    };
    if rotation.strategy == RotationStrategy::DualUser && user.spec.username.len() + 2 > NAME_LIMIT {
        return Err(Problem::permanent(
            "InvalidSpec",
            "username too long: with DualUser the logins have two characters more, and postgres limit is 63 chars",
        ));
    }
    let every = rotation.interval.as_deref().map(interval).transpose()?;
    if every == Some(Duration::ZERO) {
        let message = "password.rotation.interval must be 1s or longer";
        return Err(Problem::permanent("InvalidSpec", message));
    }
    Ok(RotationRequest {
        interval: every,
        strategy: rotation.strategy,
        grace: interval(&rotation.grace_period)?,
        terminate_sessions: rotation.terminate_sessions,
        at: rotation.at,
        requested,
    })
}

/// A duration of the spec.
fn interval(text: &str) -> Result<Duration, Problem> {
    duration::parse(text).ok_or_else(|| {
        Problem::permanent(
            "InvalidSpec",
            format!("{text:?} is not a duration such as 10m or 24h"),
        )
    })
}

/// A generated password needs a Secret where the application finds it.
fn credentials_secret(user: &PostgresUser) -> Option<CredentialsSecret> {
    let generated = user
        .spec
        .password
        .as_ref()
        .is_some_and(|password| password.generate.is_some());
    user.spec.credentials_secret.clone().or_else(|| {
        generated.then(|| CredentialsSecret {
            name: format!("{}-credentials", user.name_any()),
            type_: SecretType::Opaque,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            keys: vec![KeySet::Libpq, KeySet::Uri, KeySet::Jdbc],
            template: BTreeMap::new(),
            params: BTreeMap::new(),
        })
    })
}

/// Names that PostgreSQL reserves.
const RESERVED: &[&str] = &["public", "none", "postgres"];
/// PostgreSQL's limit, in bytes: longer names are truncated silently.
const NAME_LIMIT: usize = 63;

/// The guide's rules for a name, with the guide's messages.
pub(super) fn username(name: &str) -> Result<(), Problem> {
    let refuse = |message: &str| Err(Problem::permanent("InvalidSpec", message));
    if name.contains('-') {
        return refuse("username cannot contain hyphens: postgres rejects it");
    }
    if name.len() > NAME_LIMIT {
        return refuse("username too long: postgres limit is 63 chars");
    }
    let legal = |(index, c): (usize, char)| {
        c.is_ascii_lowercase() || c == '_' || (index > 0 && (c.is_ascii_digit() || c == '$'))
    };
    if name.is_empty() || !name.chars().enumerate().all(legal) {
        return refuse("username must be lower-case ASCII: ^[a-z_][a-z0-9_$]*$");
    }
    if name.starts_with(handover::PREFIX) {
        return refuse("username is reserved by the operator");
    }
    if name.starts_with("pg_") || RESERVED.contains(&name) {
        return refuse("username is reserved by postgres");
    }
    Ok(())
}

/// `spec.database` becomes part of connection strings, so it is more restricted than in PostgreSQL.
fn database_name(name: &str) -> Result<(), Problem> {
    let legal = |(index, c): (usize, char)| {
        c.is_ascii_alphabetic() || c == '_' || (index > 0 && (c.is_ascii_digit() || c == '$' || c == '-'))
    };
    if !name.is_empty() && name.len() <= NAME_LIMIT && name.chars().enumerate().all(legal) {
        return Ok(());
    }
    let message = "database must match ^[A-Za-z_][A-Za-z0-9_$-]*$ and have at most 63 characters";
    Err(Problem::permanent("InvalidSpec", message))
}

/// PostgreSQL truncates long names silently, and does not support NUL bytes.
fn role_name(field: &str, name: &str) -> Result<(), Problem> {
    if !name.is_empty() && name.len() <= NAME_LIMIT && !name.contains('\0') {
        return Ok(());
    }
    Err(Problem::permanent(
        "InvalidSpec",
        format!("{field}: {name:?} cannot be a role: postgres limit is 63 chars"),
    ))
}

/// Checks everything that becomes part of a statement and is not checked elsewhere.
fn check_values(wanted: &Wanted) -> Result<(), Problem> {
    for (name, value) in &wanted.role.parameters {
        parameter_name(name)?;
        no_nul(&format!("role.parameters.{name}"), value)?;
    }
    let comment = wanted.role.comment.as_deref().unwrap_or_default();
    no_nul("role.comment", comment)?;
    if looks_marked(comment) {
        let message =
            "role.comment contains \"[stanchion \", which begins the operator's own mark of ownership";
        return Err(Problem::permanent("InvalidSpec", message));
    }
    for membership in &wanted.member_of {
        role_name("memberOf", &membership.role)?;
        if membership.role == wanted.username {
            let message = "memberOf: a role cannot be a member of itself";
            return Err(Problem::permanent("InvalidSpec", message));
        }
    }
    for schema in wanted
        .databases
        .values()
        .flat_map(|request| request.schemas.values())
    {
        for owner in &schema.default_for {
            role_name("defaultPrivilegesForRoles", owner)?;
        }
    }
    if let Some(template) = wanted
        .create_database
        .as_ref()
        .and_then(|create| create.template.as_ref())
    {
        role_name("createDatabase.template", template)?;
    }
    Ok(())
}

/// What a role gives to itself, or to its own login, would be dropped with it.
fn check_new_owner(wanted: &Wanted, on_delete: Option<&OnDelete>) -> Result<(), Problem> {
    let Some(name) = on_delete.and_then(|on_delete| on_delete.reassign_to.as_ref()) else {
        return Ok(());
    };
    if *name == wanted.username || wanted.logins().contains(name) {
        let message = "onDelete.reassignTo names a role of this object, which is dropped with it";
        return Err(Problem::permanent("InvalidSpec", message));
    }
    Ok(())
}

fn no_nul(field: &str, value: &str) -> Result<(), Problem> {
    if value.contains('\0') {
        let message = format!("{field} contains a NUL byte, which postgres cannot store");
        return Err(Problem::permanent("InvalidSpec", message));
    }
    Ok(())
}

/// A parameter's name is part of the statement's text, so only valid parameter names are accepted.
fn parameter_name(name: &str) -> Result<(), Problem> {
    let legal = |part: &str| {
        let mut characters = part.chars();
        characters
            .next()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && characters.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
    };
    if name.len() <= NAME_LIMIT && name.split('.').all(legal) {
        return Ok(());
    }
    Err(Problem::permanent(
        "InvalidSpec",
        format!("role.parameters: {name:?} is not the name of a parameter"),
    ))
}
