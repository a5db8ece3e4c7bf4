//! Validates an object. The engine's own rules check what the schema cannot.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use stanchion_api::PostgresPolicy;
use stanchion_api::policy::{self, Approval, PostgresPolicySpec, Profile, ReconciliationMode, annotation};
use stanchion_kernel::Problem;
use stanchion_kernel::problem::{Cause, Retry};
use stanchion_kernel::watch::key;
use stanchion_roles::apply;
use stanchion_roles::expand::{Bounds, Size, expand};
use stanchion_roles::manifest::{Manifest, Password, Severity, Strictness, check};
use stanchion_roles::plan::Mode;

use crate::policy::target::{Content, PolicyId, Wanted};
use crate::problems::{LISTED, first};
use crate::{connection, passwords};

const DEFAULT_INTERVAL: Duration = Duration::from_mins(5);
const DEFAULT_HISTORY: usize = 10;
/// A manifest with this many grants takes more than a few milliseconds.
const LARGE: usize = 1000;

/// The policy's creation time.
pub(crate) fn created(policy: &PostgresPolicy) -> Option<Timestamp> {
    policy.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

/// The policy's key and uid.
pub(crate) fn who(policy: &PostgresPolicy) -> PolicyId {
    PolicyId {
        key: key(&policy.metadata),
        uid: policy.uid().unwrap_or_default(),
    }
}

/// The validated request of a policy.
pub(crate) fn validate(policy: &PostgresPolicy) -> Result<Wanted, Problem> {
    let spec = &policy.spec;
    let interval = interval(&spec.interval)?;
    // As in pgroles: an invalid spec is retried at `spec.interval`.
    let retry_at_interval = |problem: Problem| problem.with_retry(Retry::After(interval));
    let profiles_from: Vec<_> = spec
        .profiles_from
        .iter()
        .map(|from| from.config_map_key_ref.clone())
        .collect();
    let own = || content(spec, BTreeMap::new());
    Ok(Wanted {
        who: who(policy),
        created: created(policy),
        generation: policy.metadata.generation.unwrap_or_default(),
        requested: policy.annotations().get(annotation::REQUESTED_AT).cloned(),
        connection: connection::request(&spec.connection).map_err(retry_at_interval)?,
        content: profiles_from
            .is_empty()
            .then(own)
            .transpose()
            .map_err(retry_at_interval)?,
        profiles_from,
        spec: Arc::new(spec.clone()),
        passwords: passwords::requests(&policy.name_any(), spec).map_err(retry_at_interval)?,
        interval,
        mode: spec.mode,
        reach: reach(spec.reconciliation_mode),
        needs_approval: spec
            .approval
            .map_or(!spec.mode.applies(), |approval| approval == Approval::Manual),
        history: spec.plan_history_limit.map_or(DEFAULT_HISTORY, |limit| {
            usize::try_from(limit).unwrap_or(DEFAULT_HISTORY)
        }),
        before: policy.status.clone().unwrap_or_default(),
    })
}

/// The engine's mode.
pub(crate) fn reach(mode: ReconciliationMode) -> Mode {
    match mode {
        ReconciliationMode::Authoritative => Mode::Authoritative,
        ReconciliationMode::Additive => Mode::Additive,
        ReconciliationMode::Adopt => Mode::Adopt,
    }
}

/// The desired state: the spec with shared profiles, which the spec's own override.
pub fn content(spec: &PostgresPolicySpec, shared: BTreeMap<String, Profile>) -> Result<Content, Problem> {
    let manifest = manifest(spec.clone(), shared);
    // Check the size before anything is expanded: the checks expand, too.
    let size = Size::of(&manifest);
    Bounds::SHARED
        .admit(size)
        .map_err(|large| Problem::permanent("PolicyTooLarge", large.to_string()))?;
    aside(size, || expanded(&manifest))
}

fn manifest(spec: PostgresPolicySpec, shared: BTreeMap<String, Profile>) -> Manifest {
    let mut profiles = shared;
    profiles.extend(spec.profiles);
    let source = |password: policy::Password| Password {
        from_env: None,
        secret_ref: password.secret_ref,
        secret_key: password.secret_key,
        generate: password.generate,
    };
    let roles = spec.roles.into_iter().map(|role| role.map_password(source));
    Manifest {
        default_owner: spec.default_owner,
        role_pattern: spec.role_pattern,
        allow_schema_owner_transfers: spec.allow_schema_owner_transfers,
        auth_providers: spec.auth_providers,
        profiles,
        schemas: spec.schemas,
        roles: roles.collect(),
        grants: spec.grants,
        default_privileges: spec.default_privileges,
        memberships: spec.memberships,
        retirements: spec.retirements,
    }
}

fn expanded(manifest: &Manifest) -> Result<Content, Problem> {
    let (fatal, minor): (Vec<_>, Vec<_>) = check(manifest)
        .into_iter()
        .partition(|finding| finding.is_fatal(Strictness::Lenient));
    if !fatal.is_empty() {
        let lines = fatal.iter().map(ToString::to_string);
        return Err(invalid(first(lines, LISTED, "; ")));
    }
    let warnings = minor
        .iter()
        .filter(|finding| finding.severity != Severity::Error)
        .map(ToString::to_string);
    Ok(Content {
        warnings: warnings.collect(),
        desired: Arc::new(expand(manifest)),
    })
}

/// Work on a large manifest blocks for a while; other tasks of this thread move elsewhere.
pub(crate) fn aside<T>(size: Size, work: impl FnOnce() -> T) -> T {
    if size.grants > LARGE {
        apply::aside(work)
    } else {
        work()
    }
}

/// An invalid spec.
pub(crate) fn invalid(message: impl Into<String>) -> Problem {
    Problem::permanent("InvalidSpec", message).with_cause(Cause::InvalidSpec)
}

/// `5m`, `1h30m`, or a number of seconds; empty and zero mean five minutes.
fn interval(text: &str) -> Result<Duration, Problem> {
    let text = text.trim();
    let read = match text.parse::<u64>() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) if text.is_empty() => Some(Duration::ZERO),
        Err(_) => stanchion_api::duration::parse(text),
    };
    match read {
        Some(Duration::ZERO) => Ok(DEFAULT_INTERVAL),
        Some(interval) => Ok(interval),
        None => Err(invalid(format!(
            "invalid interval \"{text}\": use a duration such as 30s, 5m or 1h30m"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stanchion_kernel::Cleanup as _;

    use super::*;
    use crate::policy::cleanup::PolicyCleanup;

    fn policy(spec: &serde_json::Value) -> PostgresPolicy {
        serde_json::from_value(json!({
            "apiVersion": "pgroles.io/v1alpha1", "kind": "PostgresPolicy",
            "metadata": { "name": "p", "namespace": "ns", "uid": "u", "generation": 3 }, "spec": spec,
        }))
        .unwrap()
    }

    fn problem(spec: &serde_json::Value) -> Problem {
        validate(&policy(spec)).err().unwrap()
    }

    #[test]
    fn intervals_are_read_as_the_original_reads_them() {
        for (text, seconds) in [("5m", 300), ("", 300), ("0", 300), ("90", 90), ("1h30m", 5400)] {
            assert_eq!(interval(text).unwrap(), Duration::from_secs(seconds), "{text}");
        }
        assert_eq!(interval("soon").unwrap_err().reason, "InvalidSpec");
    }

    #[test]
    fn a_spec_becomes_what_must_hold() {
        let spec = json!({
            "connection": { "secretRef": { "name": "db" } },
            "profiles": { "reader": { "grants": [{ "privileges": ["USAGE"], "object": { "type": "schema" } }] } },
            "schemas": [{ "name": "app", "profiles": ["reader"] }],
            "roles": [{ "name": "alice", "login": true }],
            "memberships": [{ "role": "app-reader", "members": [{ "name": "alice" }] }],
        });
        let wanted = validate(&policy(&spec)).unwrap();
        let desired = wanted.content.unwrap().desired;
        assert_eq!(desired.roles.keys().collect::<Vec<_>>(), ["alice", "app-reader"]);
        assert_eq!((wanted.generation, wanted.needs_approval), (3, false));
    }

    /// The command line reads the same text as a file.
    #[test]
    fn a_spec_is_the_manifest_that_a_file_with_its_fields_is() {
        let privileges = json!(["SELECT"]);
        let spec = json!({
            "connection": { "secretRef": { "name": "db" } },
            "default_owner": "owner", "role_pattern": "{schema}_{profile}", "allow_schema_owner_transfers": true,
            "auth_providers": [{ "type": "rds_iam", "region": "eu-west-1" }],
            "profiles": { "reader": { "grants": [{ "privileges": ["USAGE"], "object": { "type": "schema" } }] } },
            "schemas": [{ "name": "app", "profiles": ["reader", "writer"] }],
            "roles": [
                { "name": "a", "login": true, "superuser": false, "createdb": true, "createrole": false,
                  "inherit": false, "replication": true, "bypassrls": false, "connection_limit": 3, "comment": "c",
                  "password": { "secretRef": { "name": "s" }, "secretKey": "k" },
                  "password_valid_until": "2030-01-01T00:00:00Z", "config": { "work_mem": "4MB" } },
                { "name": "b", "password": { "generate": { "length": 20, "secretName": "n", "secretKey": "k" } },
                  "external": true, "preserve_undeclared_grants": true, "exclusive": true },
            ],
            "grants": [{ "role": "a", "privileges": privileges, "object": { "type": "table", "schema": "app", "name": "*" } }],
            "default_privileges": [{ "schema": "app", "grant": [
                { "role": "a", "privileges": privileges, "on_type": "table" },
            ] }],
            "memberships": [{ "role": "a", "members": [{ "name": "b", "admin": true }] }],
            "retirements": [{ "role": "old", "drop_owned": true }],
        });
        let shared = json!({ "reader": { "login": true }, "writer": { "login": true } });
        let mut file = spec.clone();
        file["profiles"]["writer"] = shared["writer"].clone();

        let manifest = manifest(policy(&spec).spec, serde_json::from_value(shared).unwrap());
        assert_eq!(manifest, serde_json::from_value(file).unwrap());
    }

    #[test]
    fn approval_follows_the_mode_unless_it_is_said() {
        let needs = |mode: &str, approval: Option<&str>| {
            let spec = json!({ "connection": { "secretRef": { "name": "db" } }, "mode": mode, "approval": approval });
            validate(&policy(&spec)).unwrap().needs_approval
        };
        assert!(!needs("apply", None) && needs("apply", Some("manual")));
        assert!(needs("observe", None) && needs("plan", None) && !needs("plan", Some("auto")));
    }

    /// 438 KB that expand to 1.44 million grants.
    #[test]
    fn what_would_become_too_large_is_refused_before_it_does() {
        let names: Vec<_> = (0..60).map(|number| format!("p{number}")).collect();
        let grant = json!({ "privileges": ["SELECT"], "object": { "type": "table", "name": "*" } });
        let profiles: serde_json::Map<_, _> = names
            .iter()
            .map(|name| (name.clone(), json!({ "grants": vec![grant.clone(); 40] })))
            .collect();
        let schemas: Vec<_> = (0..600)
            .map(|number| json!({ "name": format!("s{number}"), "profiles": names }))
            .collect();
        let spec = json!({ "connection": { "secretRef": { "name": "db" } }, "profiles": profiles, "schemas": schemas });
        let problem = problem(&spec);
        assert_eq!(
            (problem.reason, problem.class),
            ("PolicyTooLarge", stanchion_kernel::Class::Permanent)
        );
        assert!(
            problem.message.contains("36000 roles") && problem.message.contains("10000"),
            "{problem}"
        );
        // Neither is it when it is deleted, or restored after a restart.
        assert!(PolicyCleanup::target(&policy(&spec)).wanted.is_none());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let connection = json!({ "secretRef": { "name": "db" } });
        let unknown =
            problem(&json!({ "connection": connection, "schemas": [{ "name": "a", "profiles": ["none"] }] }));
        assert_eq!(unknown.reason, "InvalidSpec");
        assert!(unknown.message.contains("none"), "{unknown}");
        assert_eq!(problem(&json!({ "connection": {} })).reason, "InvalidSpec");
        assert!(matches!(
            problem(&json!({ "connection": connection, "interval": "1h", "roles": [{ "name": "" }] })).reaction().retry,
            Retry::After(after) if after == Duration::from_hours(1)
        ));
    }
}
