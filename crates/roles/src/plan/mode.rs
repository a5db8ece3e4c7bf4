//! Modes, which limit a plan.

use std::collections::BTreeSet;

use super::{Change, DefaultPrivilege};

/// A mode, which limits a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// The managed scope becomes exactly what is declared.
    #[default]
    Authoritative,
    /// Only grants, never revokes.
    Additive,
    /// Like authoritative, but drops no role.
    Adopt,
}

#[allow(clippy::match_same_arms)] // Read from the top: an order of rules, not a set.
impl Mode {
    /// The name on the command line and in a policy.
    pub fn name(self) -> &'static str {
        match self {
            Self::Authoritative => "authoritative",
            Self::Additive => "additive",
            Self::Adopt => "adopt",
        }
    }

    /// Whether existing schemas change to their declared owner.
    pub(crate) fn transfers_schemas(self) -> bool {
        self != Self::Additive
    }

    /// Whether the mode allows a change. `kept_owners` are pairs of a schema and the declared owner that it does not get:
    /// changes that assume that owner would fail or have no effect.
    pub(crate) fn allows(self, change: &Change, kept_owners: &BTreeSet<(String, String)>) -> bool {
        let presumes =
            |schema: &str, owner: &str| kept_owners.contains(&(schema.to_owned(), owner.to_owned()));
        match (self, change) {
            (Self::Authoritative, _) => true,
            (
                _,
                Change::DropRole { .. }
                | Change::ReassignOwned { .. }
                | Change::DropOwned { .. }
                | Change::TerminateSessions { .. },
            ) => false,
            (Self::Adopt, _) => true,
            (
                Self::Additive,
                Change::AlterRole { .. }
                | Change::SetComment { .. }
                | Change::Revoke(_)
                | Change::RevokeDefaultPrivilege(_)
                | Change::RemoveMember { .. }
                | Change::UpdateMemberOptions { .. }
                | Change::AlterSchemaOwner { .. },
            ) => false,
            (Self::Additive, Change::EnsureSchemaOwnerPrivileges { name, owner, .. }) => {
                !presumes(name, owner)
            }
            (Self::Additive, Change::SetDefaultPrivilege(DefaultPrivilege { owner, scope, .. })) => {
                !scope.schema().is_some_and(|schema| presumes(schema, owner))
            }
            (Self::Additive, _) => true,
        }
    }
}
