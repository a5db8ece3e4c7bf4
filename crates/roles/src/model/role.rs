//! A role's own attributes.

use std::collections::BTreeMap;

use serde::Serialize;

/// Everything about a role but its privileges, memberships and password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(clippy::struct_excessive_bools)] // They are PostgreSQL's role attributes, each a bool there too.
pub struct RoleState {
    /// May log in.
    pub login: bool,
    /// Is a superuser.
    pub superuser: bool,
    /// May create databases.
    pub createdb: bool,
    /// May create roles.
    pub createrole: bool,
    /// Has the privileges of the roles it is a member of.
    pub inherit: bool,
    /// May replicate.
    pub replication: bool,
    /// Is not subject to row security.
    pub bypassrls: bool,
    /// Concurrent connections; -1 is no limit.
    pub connection_limit: i32,
    /// COMMENT ON ROLE.
    pub comment: Option<String>,
    /// When the password expires, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_valid_until: Option<String>,
    /// ALTER ROLE … SET, by lower-case parameter name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
}

/// The defaults of CREATE ROLE.
impl Default for RoleState {
    fn default() -> Self {
        Self {
            login: false,
            superuser: false,
            createdb: false,
            createrole: false,
            inherit: true,
            replication: false,
            bypassrls: false,
            connection_limit: -1,
            comment: None,
            password_valid_until: None,
            config: BTreeMap::new(),
        }
    }
}

/// One attribute to change on an existing role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // The fields of RoleState, one by one.
pub enum Attribute {
    Login(bool),
    Superuser(bool),
    Createdb(bool),
    Createrole(bool),
    Inherit(bool),
    Replication(bool),
    Bypassrls(bool),
    ConnectionLimit(i32),
    /// `None` means that the password never expires.
    ValidUntil(Option<String>),
    SetConfig(String, String),
    ResetConfig(String),
}

impl RoleState {
    /// The boolean attributes, in the order of the SQL syntax.
    pub fn flags(&self) -> [Attribute; 7] {
        [
            Attribute::Login(self.login),
            Attribute::Superuser(self.superuser),
            Attribute::Createdb(self.createdb),
            Attribute::Createrole(self.createrole),
            Attribute::Inherit(self.inherit),
            Attribute::Replication(self.replication),
            Attribute::Bypassrls(self.bypassrls),
        ]
    }

    /// The attributes to change (without the comment, which is a separate statement).
    pub(crate) fn changes_to(&self, desired: &Self) -> Vec<Attribute> {
        let mut changes: Vec<_> = self
            .flags()
            .into_iter()
            .zip(desired.flags())
            .filter(|(a, b)| a != b)
            .map(|(_, b)| b)
            .collect();
        if self.connection_limit != desired.connection_limit {
            changes.push(Attribute::ConnectionLimit(desired.connection_limit));
        }
        if self.password_valid_until != desired.password_valid_until {
            changes.push(Attribute::ValidUntil(desired.password_valid_until.clone()));
        }
        changes.extend(
            desired
                .config
                .iter()
                .filter(|(name, value)| self.config.get(*name) != Some(value))
                .map(|(name, value)| Attribute::SetConfig(name.clone(), value.clone())),
        );
        changes.extend(
            self.config
                .keys()
                .filter(|name| !desired.config.contains_key(*name))
                .map(|name| Attribute::ResetConfig(name.clone())),
        );
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_changes_between_equals() {
        assert!(RoleState::default().changes_to(&RoleState::default()).is_empty());
    }

    #[test]
    fn only_what_differs_is_altered() {
        let current = RoleState {
            config: [("work_mem".to_owned(), "4MB".to_owned())].into(),
            superuser: true,
            ..RoleState::default()
        };
        let desired = RoleState {
            connection_limit: 5,
            ..RoleState::default()
        };
        assert_eq!(
            current.changes_to(&desired),
            [
                Attribute::Superuser(false),
                Attribute::ConnectionLimit(5),
                Attribute::ResetConfig("work_mem".to_owned()),
            ]
        );
    }
}
