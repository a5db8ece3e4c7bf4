//! The roles of a Supabase: logins of services, and roles without a login.
//!
//! Roles belong to the whole server, so a second project on it would conflict with the first. Projects share the roles
//! without a password, whose privileges are set in each database. Logins of a second project get a suffix.

use std::fmt;

use sha2::{Digest, Sha256};

/// A login of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Login {
    /// `PostgREST`; becomes anon, authenticated or `service_role` for each request.
    Rest,
    /// Auth; owns the schema auth.
    Auth,
    /// Storage; owns the schema storage, and becomes the role of each request.
    Storage,
    /// Realtime; may migrate the schemas realtime and `_realtime`, and replicate.
    Realtime,
    /// postgres-meta, and Studio through it.
    Meta,
    /// Studio, for read-only queries.
    ReadOnly,
    /// Edge functions and database webhooks; owns the schema `supabase_functions`.
    Functions,
    /// Logflare; owns the schema `_analytics` in the internal database.
    Analytics,
    /// Supavisor; owns the schema `_supavisor` in the internal database.
    Pooler,
    /// Supavisor again, to read the verifiers of its clients.
    PoolerAuth,
}

impl Login {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Rest,
        Self::Auth,
        Self::Storage,
        Self::Realtime,
        Self::Meta,
        Self::ReadOnly,
        Self::Functions,
        Self::Analytics,
        Self::Pooler,
        Self::PoolerAuth,
    ];

    /// The role's name without a suffix.
    pub const fn role(self) -> &'static str {
        match self {
            Self::Rest => "authenticator",
            Self::Auth => "supabase_auth_admin",
            Self::Storage => "supabase_storage_admin",
            Self::Realtime => "supabase_realtime_login",
            Self::Meta => "dashboard_user",
            Self::ReadOnly => "supabase_read_only_user",
            Self::Functions => "supabase_functions_admin",
            Self::Analytics => "supabase_analytics_admin",
            Self::Pooler => "supabase_pooler_admin",
            Self::PoolerAuth => "pgbouncer",
        }
    }

    /// The setting that passes the role's name to the steps.
    pub(super) const fn setting(self) -> &'static str {
        match self {
            Self::Rest => "stanchion.rest",
            Self::Auth => "stanchion.auth",
            Self::Storage => "stanchion.storage",
            Self::Realtime => "stanchion.realtime",
            Self::Meta => "stanchion.meta",
            Self::ReadOnly => "stanchion.read_only",
            Self::Functions => "stanchion.functions",
            Self::Analytics => "stanchion.analytics",
            Self::Pooler => "stanchion.pooler",
            Self::PoolerAuth => "stanchion.pooler_auth",
        }
    }
}

/// An attribute that not every administrator can grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Attribute {
    CreateDb,
    CreateRole,
    Replication,
    BypassRls,
}

impl Attribute {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::CreateDb => "CREATEDB",
            Self::CreateRole => "CREATEROLE",
            Self::Replication => "REPLICATION",
            Self::BypassRls => "BYPASSRLS",
        }
    }
}

/// The desired state of a role.
#[derive(Debug, Clone, Copy)]
pub(super) struct Role {
    pub(super) name: &'static str,
    /// Its login, if a service logs in as it.
    pub(super) login: Option<Login>,
    /// Whether it is created even without a login, because others refer to it.
    pub(super) always: bool,
    /// Whether it is created with INHERIT. An existing role keeps its own.
    pub(super) inherit: bool,
    pub(super) attributes: &'static [Attribute],
    /// What does not work without its attributes.
    pub(super) purpose: &'static str,
}

const fn group(
    name: &'static str,
    inherit: bool,
    attributes: &'static [Attribute],
    purpose: &'static str,
) -> Role {
    Role {
        name,
        login: None,
        always: true,
        inherit,
        attributes,
        purpose,
    }
}

const fn login(login: Login, inherit: bool, attributes: &'static [Attribute], purpose: &'static str) -> Role {
    Role {
        name: login.role(),
        login: Some(login),
        always: !matches!(login, Login::Analytics | Login::Pooler | Login::PoolerAuth),
        inherit,
        attributes,
        purpose,
    }
}

use Attribute::{BypassRls, CreateDb, CreateRole, Replication};

/// The table. No role is a superuser: no service needs one.
pub(super) const TABLE: &[Role] = &[
    // Auth's and Storage's migrations grant to this name; usually it is the server's own role.
    group("postgres", true, &[], ""),
    group("anon", true, &[], ""),
    group("authenticated", true, &[], ""),
    group(
        "service_role",
        true,
        &[BypassRls],
        "the service key is subject to row level security, and Storage refuses its requests",
    ),
    // Owns what Realtime creates, as upstream; there it is a superuser, here nothing logs in as it.
    group("supabase_admin", true, &[], ""),
    group("supabase_realtime_admin", false, &[], ""),
    login(Login::Rest, false, &[], ""),
    login(Login::Auth, false, &[], ""),
    login(Login::Storage, false, &[], ""),
    login(
        Login::Realtime,
        true,
        &[Replication],
        "Realtime cannot follow changes of tables",
    ),
    login(
        Login::Meta,
        true,
        &[CreateDb, CreateRole, BypassRls],
        "Studio shows rows only as far as row level security allows it, or cannot manage roles and databases",
    ),
    login(
        Login::ReadOnly,
        true,
        &[BypassRls],
        "Studio's read-only queries are subject to row level security",
    ),
    login(Login::Functions, false, &[], ""),
    login(
        Login::Analytics,
        true,
        &[Replication],
        "analytics does not notice changes of its own configuration",
    ),
    login(Login::Pooler, true, &[], ""),
    login(Login::PoolerAuth, true, &[], ""),
];

/// The names of a project's logins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    suffix: String,
}

impl Names {
    /// Names with a suffix, which may be empty.
    pub(crate) fn with_suffix(suffix: &str) -> Self {
        Self {
            suffix: suffix.to_owned(),
        }
    }

    /// The names of a further project on a server.
    pub(super) fn apart(project: &str) -> Self {
        let digest = Sha256::digest(project.as_bytes());
        let suffix = digest.iter().take(4).fold(String::from("_"), |mut text, byte| {
            let _ = fmt::Write::write_fmt(&mut text, format_args!("{byte:02x}"));
            text
        });
        Self { suffix }
    }

    /// The names with a recorded suffix, if it is valid for the project.
    pub(crate) fn remembered(project: &str, suffix: &str) -> Option<Self> {
        [Self::with_suffix(""), Self::apart(project)]
            .into_iter()
            .find(|names| names.suffix == suffix)
    }

    pub(crate) fn suffix(&self) -> &str {
        &self.suffix
    }

    /// The role that a service logs in as.
    pub fn of(&self, login: Login) -> String {
        format!("{}{}", login.role(), self.suffix)
    }

    /// The suffix of replication slots, which belong to the server.
    pub(crate) fn slot_suffix(&self) -> Option<&str> {
        self.suffix.strip_prefix('_')
    }

    /// The name of the internal database.
    pub fn internal_database(&self) -> String {
        format!("_supabase{}", self.suffix)
    }

    /// A role's name.
    pub(super) fn role(&self, role: &Role) -> String {
        role.login
            .map_or_else(|| role.name.to_owned(), |login| self.of(login))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_login_is_a_row() {
        for login in Login::ALL {
            let rows = TABLE.iter().filter(|role| role.login == Some(login)).count();
            assert_eq!(rows, 1, "{login:?}");
        }
    }

    #[test]
    fn a_second_projects_names_are_apart_and_short_enough() {
        let (one, two) = (Names::apart("shop/one"), Names::apart("shop/two"));
        assert_ne!(one.of(Login::Rest), two.of(Login::Rest));
        assert_eq!(one, Names::apart("shop/one"));
        for login in Login::ALL {
            assert!(one.of(login).len() <= 63, "{login:?}");
        }
        assert_eq!(Names::with_suffix("").internal_database(), "_supabase");
        assert_eq!(Names::with_suffix("").slot_suffix(), None);
        assert_eq!(Names::with_suffix("_1a").slot_suffix(), Some("1a"));
    }
}
