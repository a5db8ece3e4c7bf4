//! From an object to a target. The schema checks the same; an object may be older than the schema.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::ResourceExt;
use stanchion_api::PostgresUser;
use stanchion_api::duration;
use stanchion_api::user::{
    CredentialsSecret, DatabaseDeletion, Iam, IamProvider, KeySet, Membership, Mode, PostgresUserSpec,
    Rotation, RotationStrategy, SecretType, annotation,
};
use stanchion_kernel::Problem;

use super::target::{
    Before, DatabaseWish, Identity, Leaving, PasswordWish, RotationWish, SchemaWish, Target, Wanted,
};
use super::words;

/// Names that PostgreSQL keeps for itself.
const RESERVED: &[&str] = &["public", "none", "postgres"];
/// PostgreSQL's limit, in bytes: longer names would be cut without a word.
const NAME_LIMIT: usize = 63;

/// The target of a living object.
pub fn validate(user: &PostgresUser) -> Result<Target, Problem> {
    let spec = &user.spec;
    username(&spec.username)?;
    if spec.suspend {
        return Ok(Target::Suspended);
    }
    let drift = spec.drift_policy.clone().unwrap_or_default();
    let wanted = Wanted {
        identity: identity(user),
        instance: spec.instance_ref.clone(),
        username: spec.username.clone(),
        database: spec.database.clone(),
        role: spec.role.clone().unwrap_or_default(),
        password: password(user)?,
        member_of: memberships(spec),
        membership_policy: spec.membership_policy,
        databases: databases(spec)?,
        create_database: spec.create_database.clone().filter(|create| create.enabled),
        credentials: credentials(user),
        existing: spec.existing_role_policy,
        drift: drift.mode,
        drift_interval: interval(&drift.interval)?.max(Duration::from_secs(1)),
        plan_only: spec.mode == Mode::Plan,
        before: before(user),
    };
    for name in wanted.role.parameters.keys() {
        parameter_name(name)?;
    }
    Ok(Target::Present(Box::new(wanted)))
}

/// The target of an object that is being deleted: what the status says was provisioned, and nothing that the
/// spec says since. An invalid spec changes nothing here.
pub fn farewell(user: &PostgresUser) -> Target {
    let spec = &user.spec;
    let before = before(user);
    let released = user
        .annotations()
        .get(annotation::FORCE_RELEASE)
        .is_some_and(|value| value == "true");
    let create = spec.create_database.clone().unwrap_or_default();
    Target::Absent(Box::new(Leaving {
        identity: identity(user),
        instance: spec.instance_ref.clone(),
        username: before.username.clone(),
        database: before.database.clone().unwrap_or_else(|| spec.database.clone()),
        policy: spec.deletion_policy,
        on_delete: spec.on_delete.clone().unwrap_or_default(),
        drop_databases: create.deletion_policy == DatabaseDeletion::Delete,
        released,
        before,
    }))
}

/// The guide's rules for a name, in the guide's words.
pub fn username(name: &str) -> Result<(), Problem> {
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
    if name.starts_with("pg_") || RESERVED.contains(&name) {
        return refuse("username is reserved by postgres");
    }
    Ok(())
}

/// A parameter's name is text of the statement, so only what PostgreSQL itself takes for one is let through.
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

fn identity(user: &PostgresUser) -> Identity {
    Identity {
        namespace: user.namespace().unwrap_or_default(),
        name: user.name_any(),
        uid: user.uid().unwrap_or_default(),
    }
}

fn password(user: &PostgresUser) -> Result<PasswordWish, Problem> {
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
        (Some(secret), _) => PasswordWish::From(secret.clone(), password.encoding),
        (None, Some(generate)) => {
            PasswordWish::Generated(generate, rotation(user, password.rotation.as_ref())?)
        }
        (None, None) => PasswordWish::None,
    })
}

fn rotation(user: &PostgresUser, rotation: Option<&Rotation>) -> Result<RotationWish, Problem> {
    let requested = user.annotations().get(annotation::ROTATE_AT).cloned();
    let Some(rotation) = rotation else {
        return Ok(RotationWish {
            requested,
            ..RotationWish::default()
        });
    };
    if rotation.strategy == RotationStrategy::DualUser && user.spec.username.len() + 2 > NAME_LIMIT {
        return Err(Problem::permanent(
            "InvalidSpec",
            "username too long: with DualUser the logins have two characters more, and postgres limit is 63 chars",
        ));
    }
    Ok(RotationWish {
        interval: rotation.interval.as_deref().map(interval).transpose()?,
        strategy: rotation.strategy,
        grace: interval(&rotation.grace_period)?,
        terminate_sessions: rotation.terminate_sessions,
        at: rotation.at,
        requested,
    })
}

fn interval(text: &str) -> Result<Duration, Problem> {
    duration::parse(text).ok_or_else(|| {
        Problem::permanent(
            "InvalidSpec",
            format!("{text:?} is not a duration such as 10m or 24h"),
        )
    })
}

/// The memberships of the spec, and the one that lets a cloud identity log in.
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

fn databases(spec: &PostgresUserSpec) -> Result<BTreeMap<String, DatabaseWish>, Problem> {
    let mut all: BTreeMap<String, DatabaseWish> = BTreeMap::new();
    for database in &spec.databases {
        let mut wish = DatabaseWish {
            owner: database.owner == Some(true),
            ..DatabaseWish::default()
        };
        wish.extensions.extend(database.extensions.iter().cloned());
        for schema in &database.schemas {
            let new = SchemaWish {
                create: schema.create == Some(true),
                default_for: schema.default_privileges_for_roles.clone(),
                ..SchemaWish::default()
            };
            wish.schemas.insert(schema.name.clone(), new);
        }
        words::add_to_database(&mut wish, &database.privileges);
        for schema in &database.schemas {
            if let Some(wish) = wish.schemas.get_mut(&schema.name) {
                words::add_to_schema(wish, &schema.privileges);
            }
        }
        all.insert(database.name.clone(), wish);
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
    words::add_to_database(main, &spec.privileges);
    for (name, wish) in &all {
        let names = wish
            .extensions
            .iter()
            .chain(wish.schemas.keys())
            .chain(std::iter::once(name));
        for name in names {
            if name.is_empty() || name.len() > NAME_LIMIT || name.contains('\0') {
                return Err(Problem::permanent(
                    "InvalidSpec",
                    format!("{name:?} cannot be a name: postgres limit is 63 chars"),
                ));
            }
        }
    }
    Ok(all)
}

/// A generated password needs a place where the application finds it.
fn credentials(user: &PostgresUser) -> Option<CredentialsSecret> {
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

fn before(user: &PostgresUser) -> Before {
    let Some(status) = user.status.clone() else {
        return Before::default();
    };
    let password = status.password.unwrap_or_default();
    Before {
        username: status.provisioned_username,
        database: status.provisioned_database,
        settled: status.created == Some(true) && status.observed_generation == user.metadata.generation,
        generation: status.observed_generation,
        grants: status.grants,
        databases: status.databases,
        password_mark: status.applied_secret_hash,
        password_changed: password.last_changed,
        active_login: password.active_login,
        retiring_logins: password.retiring_logins,
        rotation_request: status.rotated_at_request,
    }
}
