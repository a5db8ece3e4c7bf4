//! What a `PostgresUser` asks for, in a form that cannot be invalid.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use secrecy::SecretString;
use stanchion_api::user::{
    AppliedGrant, CreateDatabase, CredentialsSecret, DeletionPolicy, DriftMode, Encoding, ExistingRolePolicy,
    Generate, InstanceRef, Membership, MembershipPolicy, OnDelete, Role, RotationStrategy, SecretKeyRef,
};
use stanchion_kernel::marks::Owner;

/// The kind in the marks of this controller.
pub const KIND: &str = "PostgresUser";

/// What shall be.
pub enum Target {
    /// A role.
    Present(Box<Wanted>),
    /// Nothing is touched until the object says otherwise.
    Suspended(Box<Standing>),
    /// Nothing is touched until the spec is right.
    Invalid(Box<Standing>, Box<Refusal>),
    /// No role.
    Absent(Box<Leaving>),
}

/// The object, as far as the database has to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// A role that was made, whatever the spec says now.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Whose it is.
    pub identity: Identity,
    /// What earlier passes did.
    pub before: Before,
}

/// Why a spec is not followed.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The reason.
    pub reason: &'static str,
    /// The message.
    pub message: String,
}

impl Identity {
    /// The owner in a mark.
    pub fn owner(&self) -> Owner {
        Owner {
            kind: KIND.into(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
        }
    }
}

/// A role as it shall be.
pub struct Wanted {
    /// Whose it is.
    pub identity: Identity,
    /// The server.
    pub instance: Option<InstanceRef>,
    /// The role's name.
    pub username: String,
    /// The database of `spec.database`.
    pub database: String,
    /// Attributes and parameters.
    pub role: Role,
    /// Where the password comes from.
    pub password: PasswordWish,
    /// Memberships, those for cloud logins included.
    pub member_of: Vec<Membership>,
    /// Whether others are taken away.
    pub membership_policy: MembershipPolicy,
    /// What to have in which database, by name; `database` is always among them.
    pub databases: BTreeMap<String, DatabaseWish>,
    /// Whether `database` may be made, and how.
    pub create_database: Option<CreateDatabase>,
    /// The Secret to write.
    pub credentials: Option<CredentialsSecret>,
    /// What to do with a role that is there already.
    pub existing: ExistingRolePolicy,
    /// What to do about changes by hand.
    pub drift: DriftMode,
    /// How often to look for them.
    pub drift_interval: Duration,
    /// Show the statements, run none.
    pub plan_only: bool,
    /// What an earlier pass did.
    pub before: Before,
}

/// What the status remembers of earlier passes.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// The role that was made or adopted, or was about to be.
    pub username: Option<String>,
    /// The server it was made on, where that is not the default one.
    pub instance: Option<InstanceRef>,
    /// Whether this generation has been applied: what differs now was changed by hand.
    pub settled: bool,
    /// What was given, and is taken back when it is no longer asked for.
    pub grants: Vec<AppliedGrant>,
    /// The fingerprint of the password that was set.
    pub password_mark: Option<String>,
    /// When the password was set.
    pub password_changed: Option<Timestamp>,
    /// The login in use (`DualUser`).
    pub active_login: Option<String>,
    /// Logins on their way out (`DualUser`).
    pub retiring_logins: Vec<String>,
    /// The value of the rotation annotation that was acted on.
    pub rotation_request: Option<String>,
    /// The oid of the role, if it was made and not adopted.
    pub oid: Option<u32>,
    /// The proof that it was.
    pub seal: Option<String>,
    /// The database that the privileges are in.
    pub database: Option<String>,
    /// The databases in which something was done.
    pub databases: Vec<String>,
    /// The Secrets that were written.
    pub credentials_secrets: Vec<String>,
}

/// Where the password comes from.
#[derive(Clone, Debug)]
pub enum PasswordWish {
    /// A key of a Secret of the user's.
    From(SecretKeyRef, Encoding),
    /// The operator makes it.
    Generated(Generate, RotationWish),
    /// There is none.
    None,
}

/// When a generated password is replaced.
#[derive(Clone, Debug, Default)]
pub struct RotationWish {
    /// How often.
    pub interval: Option<Duration>,
    /// One login or two.
    pub strategy: RotationStrategy,
    /// How long the old login still works.
    pub grace: Duration,
    /// Whether sessions end with the password that opened them.
    pub terminate_sessions: bool,
    /// Times at which a person asked for a new one: `spec.password.rotation.at`.
    pub at: Option<Timestamp>,
    /// The annotation's value, not acted on yet unless it equals [`Before::rotation_request`].
    pub requested: Option<String>,
}

/// What to have in one database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseWish {
    /// The role owns the database.
    pub owner: bool,
    /// Words on the database itself.
    pub privileges: BTreeSet<&'static str>,
    /// Schemas and the words in them.
    pub schemas: BTreeMap<String, SchemaWish>,
    /// Extensions that shall be there.
    pub extensions: BTreeSet<String>,
    /// Take PUBLIC's rights away.
    pub revoke_public: bool,
}

/// What to have in one schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaWish {
    /// Make it.
    pub create: bool,
    /// It has words of its own, so those of the database are not for it.
    pub own_words: bool,
    /// Words on the schema itself.
    pub schema: BTreeSet<&'static str>,
    /// Words on its tables and views.
    pub tables: BTreeSet<&'static str>,
    /// Words on its sequences.
    pub sequences: BTreeSet<&'static str>,
    /// Words on its functions and procedures.
    pub functions: BTreeSet<&'static str>,
    /// Whose future objects the words also apply to; the schema's and the database's owner when empty.
    pub default_for: Vec<String>,
}

/// A role that shall go, by what the status says was provisioned.
pub struct Leaving {
    /// Whose it is.
    pub identity: Identity,
    /// The server.
    pub instance: Option<InstanceRef>,
    /// The role; `None` when no pass ever came as far as the database.
    pub username: Option<String>,
    /// What becomes of the role.
    pub policy: DeletionPolicy,
    /// What becomes of what it owns.
    pub on_delete: OnDelete,
    /// Drop the databases that we made.
    pub drop_databases: bool,
    /// Leave everything as it is and go.
    pub released: bool,
    /// What earlier passes did.
    pub before: Before,
}

/// A password, and whether the server gets it as it stands.
#[derive(Clone, Debug)]
pub struct Password {
    /// The value.
    pub value: SecretString,
    /// It is a verifier already, or shall be sent as it is.
    pub as_is: bool,
}
