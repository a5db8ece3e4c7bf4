//! What a `PostgresUser` requests, validated; and what its privilege keywords mean.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use secrecy::SecretString;
use stanchion_api::PostgresUser;
use stanchion_api::user::{
    AppliedDatabase, AppliedGrant, CreateDatabase, CredentialsSecret, DriftMode, Encoding,
    ExistingRolePolicy, Generate, InstanceRef, Membership, MembershipPolicy, Privilege, Role,
    RotationStrategy, SecretKeyRef, condition,
};
use stanchion_kernel::condition::find;
use stanchion_kernel::marks::{Mark, Owner};

/// The kind in the marks of this controller.
pub(crate) const KIND: &str = "PostgresUser";

/// The object's identity, as marks record it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    pub uid: String,
}

impl Identity {
    /// The identity of an object.
    pub fn of(user: &PostgresUser) -> Self {
        Self {
            namespace: user.namespace().unwrap_or_default(),
            name: user.name_any(),
            uid: user.uid().unwrap_or_default(),
        }
    }

    /// The owner for a mark.
    pub fn owner(&self) -> Owner {
        Owner {
            kind: KIND.into(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
        }
    }

    /// Whether a mark is this object's.
    pub fn owns(&self, mark: &Mark) -> bool {
        mark.owner.kind == KIND && mark.owner.uid == self.uid
    }
}

/// The reasons of conditions that a later reconcile decides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Of `Ready`: the instance no longer allows the namespace.
    NamespaceNotAllowed,
    /// Of `Drifted`: drift was found and corrected.
    Corrected,
}

impl Reason {
    /// The word in the status.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::NamespaceNotAllowed => "NamespaceNotAllowed",
            Self::Corrected => "Corrected",
        }
    }

    /// The reason of a condition, if it is one of these.
    pub(crate) fn of(condition: &Condition) -> Option<Self> {
        let all = [Self::NamespaceNotAllowed, Self::Corrected];
        all.into_iter().find(|reason| condition.reason == reason.as_str())
    }
}

/// An active role.
pub struct Wanted {
    /// Its owner.
    pub identity: Identity,
    /// The server.
    pub instance: Option<InstanceRef>,
    /// The role's name.
    pub username: String,
    /// The database of `spec.database`.
    pub database: String,
    /// Attributes and parameters.
    pub role: Role,
    /// The source of the password.
    pub password: PasswordRequest,
    /// Memberships, including those for cloud logins.
    pub member_of: Vec<Membership>,
    /// Whether other memberships are removed.
    pub membership_policy: MembershipPolicy,
    /// The requested privileges in each database, by name; `database` is always included.
    pub databases: BTreeMap<String, DatabaseRequest>,
    /// Whether and how to create `database`.
    pub create_database: Option<CreateDatabase>,
    /// The credentials Secret to write.
    pub credentials: Option<CredentialsSecret>,
    /// How to handle an existing role.
    pub existing: ExistingRolePolicy,
    /// How to handle drift.
    pub drift: DriftMode,
    /// How often to check for drift.
    pub drift_interval: Duration,
    /// Whether to show the statements without running them.
    pub plan_only: bool,
    /// The record of earlier reconciles.
    pub before: Before,
}

impl Wanted {
    /// The names of the role's two logins (`DualUser`), if there are or were two.
    pub fn logins(&self) -> Vec<String> {
        let asked = match &self.password {
            PasswordRequest::Generated(_, rotation) => rotation.strategy == RotationStrategy::DualUser,
            PasswordRequest::From(..) | PasswordRequest::None => false,
        };
        if asked || self.before.active_login.is_some() || !self.before.retiring_logins.is_empty() {
            login_names(&self.username).to_vec()
        } else {
            Vec::new()
        }
    }
}

/// The two logins of a role.
pub(crate) fn login_names(username: &str) -> [String; 2] {
    [format!("{username}_a"), format!("{username}_b")]
}

/// The status' record of earlier reconciles.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// The role that was created or adopted, or was about to be.
    pub username: Option<String>,
    /// Its server, if that is not the default one.
    pub instance: Option<InstanceRef>,
    /// Whether this generation has been applied: what differs now is drift.
    pub converged: bool,
    /// What was granted, and is revoked when it is no longer requested.
    pub grants: Vec<AppliedGrant>,
    /// The fingerprint of the password that was set.
    pub password_fingerprint: Option<String>,
    /// When the password was set.
    pub password_changed: Option<Timestamp>,
    /// The login in use (`DualUser`).
    pub active_login: Option<String>,
    /// Logins in their grace period (`DualUser`).
    pub retiring_logins: Vec<String>,
    /// The last value of the rotation annotation that was fulfilled.
    pub rotation_request: Option<String>,
    /// The oid of the role, if it was created and not adopted.
    pub oid: Option<u32>,
    /// The proof of that.
    pub seal: Option<String>,
    /// The database that the privileges are in.
    pub database: Option<String>,
    /// The databases in which something was changed.
    pub databases: Vec<AppliedDatabase>,
    /// The Secrets that were written.
    pub credentials_secrets: Vec<String>,
}

impl Before {
    /// The record of earlier reconciles.
    pub fn of(user: &PostgresUser) -> Self {
        let Some(status) = user.status.clone() else {
            return Self::default();
        };
        let password = status.password.unwrap_or_default();
        // Only after a complete reconcile is there drift: a new spec that failed to apply does not count.
        let applied =
            find(&status.conditions, condition::DRIFTED).and_then(|drifted| drifted.observed_generation);
        // A withdrawn server has disabled the login, which is not drift.
        let ready = find(&status.conditions, condition::READY);
        let withdrawn = ready.and_then(Reason::of) == Some(Reason::NamespaceNotAllowed);
        Self {
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
            databases: status.databases,
            credentials_secrets: status
                .stale_secrets
                .into_iter()
                .chain(status.credentials_secret_name)
                .collect(),
        }
    }
}

/// The source of the password.
#[derive(Clone, Debug)]
pub enum PasswordRequest {
    /// A key of the user's Secret.
    From(SecretKeyRef, Encoding),
    /// Generated by the operator.
    Generated(Generate, RotationRequest),
    /// No password.
    None,
}

/// When a generated password is replaced.
#[derive(Clone, Debug, Default)]
pub struct RotationRequest {
    /// How often.
    pub interval: Option<Duration>,
    /// One login or two.
    pub strategy: RotationStrategy,
    /// How long the replaced login still works.
    pub grace: Duration,
    /// Whether sessions end with the password that opened them.
    pub terminate_sessions: bool,
    /// When a person requested a new one: `spec.password.rotation.at`.
    pub at: Option<Timestamp>,
    /// The annotation's value, not fulfilled yet unless it equals [`Before::rotation_request`].
    pub requested: Option<String>,
}

/// The requested state of one database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseRequest {
    /// Whether the role owns the database.
    pub owner: bool,
    /// Privileges on the database itself.
    pub privileges: BTreeSet<&'static str>,
    /// Schemas and the privileges in them.
    pub schemas: BTreeMap<String, SchemaRequest>,
    /// Extensions that must exist.
    pub extensions: BTreeSet<String>,
    /// Whether to revoke PUBLIC's privileges.
    pub revoke_public: bool,
}

/// The requested state of one schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaRequest {
    /// Whether to create it.
    pub create: bool,
    /// Whether it has its own privileges, so that those of the database do not apply.
    pub explicit: bool,
    /// Privileges on the schema itself.
    pub schema: BTreeSet<&'static str>,
    /// Privileges on its tables and views.
    pub tables: BTreeSet<&'static str>,
    /// Privileges on its sequences.
    pub sequences: BTreeSet<&'static str>,
    /// Privileges on its functions and procedures.
    pub functions: BTreeSet<&'static str>,
    /// The owners whose future objects the privileges also apply to; if empty, the schema's and the database's owner.
    pub default_for: Vec<String>,
}

/// A password, and whether the server gets it unchanged.
#[derive(Clone, Debug)]
pub struct Password {
    pub value: SecretString,
    /// Whether it is already a verifier, or is to be sent unchanged.
    pub as_is: bool,
}

/// What one keyword grants: on the database, on the schema, on its tables, its sequences and its functions.
type Privileges = [&'static [&'static str]; 5];

const NONE: &[&str] = &[];
const ALL_OF_DATABASE: &[&str] = &["CONNECT", "CREATE", "TEMPORARY"];
/// Privileges inside of a schema are useless without this one.
const USAGE: &[&str] = &["USAGE"];
const SELECT: &[&str] = &["SELECT"];
const CONNECT: &[&str] = &["CONNECT"];
const EXECUTE: &[&str] = &["EXECUTE"];
const READ_WRITE: &[&str] = &["SELECT", "INSERT", "UPDATE", "DELETE"];
const ALL_TABLES: &[&str] = &[
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "TRUNCATE",
    "REFERENCES",
    "TRIGGER",
];
const ALL_SEQUENCES: &[&str] = &["SELECT", "UPDATE", "USAGE"];

/// A keyword in `spec.privileges` or `databases[].privileges`.
const fn meaning(word: Privilege) -> Privileges {
    match word {
        Privilege::All | Privilege::AllPrivileges => [ALL_OF_DATABASE, NONE, NONE, NONE, NONE],
        Privilege::Connect => [CONNECT, NONE, NONE, NONE, NONE],
        Privilege::Create => [&["CREATE"], NONE, NONE, NONE, NONE],
        Privilege::Temporary | Privilege::Temp => [&["TEMPORARY"], NONE, NONE, NONE, NONE],
        Privilege::Select => [NONE, USAGE, SELECT, SELECT, NONE],
        Privilege::Insert => [NONE, USAGE, &["INSERT"], USAGE, NONE],
        Privilege::Update => [NONE, USAGE, &["UPDATE"], &["UPDATE"], NONE],
        Privilege::Delete => [NONE, USAGE, &["DELETE"], NONE, NONE],
        Privilege::Truncate => [NONE, USAGE, &["TRUNCATE"], NONE, NONE],
        Privilege::References => [NONE, USAGE, &["REFERENCES"], NONE, NONE],
        Privilege::Trigger => [NONE, USAGE, &["TRIGGER"], NONE, NONE],
        Privilege::Usage => [NONE, USAGE, NONE, USAGE, NONE],
        Privilege::Execute => [NONE, USAGE, NONE, NONE, EXECUTE],
        Privilege::Read => [CONNECT, USAGE, SELECT, SELECT, NONE],
        Privilege::Write => [CONNECT, USAGE, READ_WRITE, ALL_SEQUENCES, EXECUTE],
        Privilege::Owner => [
            ALL_OF_DATABASE,
            &["USAGE", "CREATE"],
            ALL_TABLES,
            ALL_SEQUENCES,
            EXECUTE,
        ],
    }
}

/// A keyword in `schemas[].privileges`: CREATE and ALL apply to the schema there.
const fn meaning_in_schema(word: Privilege) -> Privileges {
    match word {
        Privilege::All | Privilege::AllPrivileges => meaning(Privilege::Owner),
        Privilege::Create => [NONE, &["USAGE", "CREATE"], NONE, NONE, NONE],
        other => meaning(other),
    }
}

impl DatabaseRequest {
    /// Adds keywords; their schema privileges apply to the listed schemas without their own keywords, or to `public` if
    /// none is listed.
    pub fn add(&mut self, words: &[Privilege]) {
        for word in words {
            let [database, schema, ..] = meaning(*word);
            self.privileges.extend(database);
            if schema.is_empty() {
                continue;
            }
            if self.schemas.is_empty() {
                self.schemas.insert("public".into(), SchemaRequest::default());
            }
            for schema in self.schemas.values_mut().filter(|schema| !schema.explicit) {
                schema.extend(meaning(*word));
            }
        }
    }
}

impl SchemaRequest {
    /// Adds its own keywords.
    pub fn add(&mut self, words: &[Privilege]) {
        for word in words {
            self.extend(meaning_in_schema(*word));
        }
    }

    fn extend(&mut self, [_, schema, tables, sequences, functions]: Privileges) {
        self.schema.extend(schema);
        self.tables.extend(tables);
        self.sequences.extend(sequences);
        self.functions.extend(functions);
    }
}
