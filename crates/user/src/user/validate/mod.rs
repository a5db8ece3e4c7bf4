//! Validates an object. The schema checks the same; an object may be older than the schema.

mod names;
mod password;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use kube::ResourceExt;
use stanchion_api::PostgresUser;
use stanchion_api::user::{
    CredentialsSecret, DatabaseDeletion, INSTANCE_IS_IMMUTABLE, Iam, IamProvider, InstanceRef, KeySet,
    Membership, Mode, PostgresUserSpec, SecretType, annotation, condition,
};
use stanchion_kernel::Problem;
use stanchion_kernel::condition::find;
use stanchion_kernel::problem::Class;

pub use names::username;
use names::{NAME_LIMIT, check_values, database_name};
use password::{interval, password};

use super::privilege_keywords;
use super::target::{
    Before, CleanupTarget, DatabaseRequest, Identity, InactiveTarget, Refusal, SchemaRequest, Target, Wanted,
};
use crate::credentials;
use crate::server::NOT_ALLOWED;

/// The target of an object that is not being deleted.
pub fn validate(user: &PostgresUser) -> Result<Target, Problem> {
    let spec = &user.spec;
    username(&spec.username)?;
    database_name(&spec.database)?;
    let before = before(user);
    unmoved(user, &before)?;
    if spec.suspend {
        return Ok(Target::Suspended(Box::new(inactive(user))));
    }
    let drift = spec.drift_policy.clone().unwrap_or_default();
    let wanted = Wanted {
        identity: identity(user),
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
    if let Some(secret) = &wanted.credentials {
        credentials::check(secret)?;
    }
    Ok(Target::Ensure(Box::new(wanted)))
}

/// The same for the controller. An invalid spec does not prevent a server from withdrawing access, so an object that
/// was provisioned on another namespace's server is still checked.
pub fn validate_or_inactive(user: &PostgresUser) -> Result<Target, Problem> {
    let inactive = inactive(user);
    let abroad = inactive.before.instance.as_ref().is_some_and(|instance| {
        inactive.before.username.is_some()
            && instance
                .namespace
                .as_ref()
                .is_some_and(|home| *home != inactive.identity.namespace)
    });
    validate(user).or_else(|problem| {
        if !abroad || problem.class != Class::Permanent {
            return Err(problem);
        }
        let refusal = Refusal {
            reason: problem.reason,
            message: problem.message,
        };
        Ok(Target::Invalid(Box::new(inactive), Box::new(refusal)))
    })
}

fn inactive(user: &PostgresUser) -> InactiveTarget {
    InactiveTarget {
        identity: identity(user),
        before: before(user),
    }
}

/// The target of an object that is being deleted: what the status records, independent of the current spec, which may
/// be invalid.
pub fn cleanup_target(user: &PostgresUser) -> Target {
    let spec = &user.spec;
    let before = before(user);
    // Every reconcile writes a status, which names the role before it is created. An object without a status was
    // interrupted in its first reconcile, or has lost its status: the server's state decides.
    let status = user.status.as_ref();
    let reported = status.is_some_and(|status| status.observed_generation.is_some());
    let released = user
        .annotations()
        .get(annotation::FORCE_RELEASE)
        .is_some_and(|value| value == "true");
    let create = spec.create_database.clone().unwrap_or_default();
    Target::Cleanup(Box::new(CleanupTarget {
        identity: identity(user),
        instance: match &before.username {
            Some(_) => before.instance.clone(),
            None => spec.instance_ref.clone(),
        },
        username: before
            .username
            .clone()
            .or_else(|| (!reported).then(|| spec.username.clone())),
        policy: spec.deletion_policy,
        on_delete: spec.on_delete.clone().unwrap_or_default(),
        drop_databases: create.deletion_policy == DatabaseDeletion::Delete,
        released,
        before,
    }))
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
pub fn username_is_immutable(was: &str, is: &str) -> String {
    format!("username is immutable after creation (old: {was}, new: {is})")
}

/// The instance of an object; `None` is the default server.
pub fn instance(user: &PostgresUser) -> Option<InstanceRef> {
    let namespace = user.namespace().unwrap_or_default();
    let reference = user.spec.instance_ref.as_ref();
    reference.map(|reference| reference.seen_from(&namespace))
}

fn identity(user: &PostgresUser) -> Identity {
    Identity {
        namespace: user.namespace().unwrap_or_default(),
        name: user.name_any(),
        uid: user.uid().unwrap_or_default(),
    }
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
        privilege_keywords::add_to_database(&mut request, &database.privileges);
        for schema in &database.schemas {
            if let Some(request) = request.schemas.get_mut(&schema.name) {
                privilege_keywords::add_to_schema(request, &schema.privileges);
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
    privilege_keywords::add_to_database(main, &spec.privileges);
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
    }
    Ok(all)
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

fn before(user: &PostgresUser) -> Before {
    let Some(status) = user.status.clone() else {
        return Before::default();
    };
    let password = status.password.unwrap_or_default();
    // Only after a complete reconcile is there drift: a new spec that failed to apply does not count.
    let applied =
        find(&status.conditions, condition::DRIFTED).and_then(|drifted| drifted.observed_generation);
    // A withdrawn server has disabled the login, which is not drift.
    let withdrawn =
        find(&status.conditions, condition::READY).is_some_and(|ready| ready.reason == NOT_ALLOWED);
    Before {
        username: status.provisioned_username,
        instance: status.provisioned_instance_ref,
        converged: status.created == Some(true) && applied == user.metadata.generation && !withdrawn,
        grants: status.grants,
        password_fingerprint: status.applied_secret_hash,
        password_changed: password.last_changed,
        active_login: password.active_login,
        retiring_logins: password.retiring_logins,
        rotation_request: status.rotated_at_request,
        oid: status.role_oid.and_then(|oid| u32::try_from(oid).ok()),
        seal: status.role_seal,
        database: status.provisioned_database,
        databases: status
            .databases
            .into_iter()
            .map(|database| database.name)
            .collect(),
        credentials_secrets: status
            .stale_secrets
            .into_iter()
            .chain(status.credentials_secret_name)
            .collect(),
    }
}
