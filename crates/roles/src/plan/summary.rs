//! Counts the changes of a plan.

use std::fmt::Write as _;

use std::fmt;

use serde::Serialize;

use super::change::{Change, DefaultScope};

macro_rules! summary {
    ($($(#[$doc:meta])* $field:ident: $label:literal,)*) => {
        /// The number of changes of each kind.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
        pub struct Summary {
            $($(#[$doc])* pub $field: usize,)*
        }

        impl Summary {
            /// Label and count of each kind, in display order.
            pub fn lines(&self) -> impl Iterator<Item = (&'static str, usize)> {
                [$(($label, self.$field)),*].into_iter()
            }
        }
    };
}

summary! {
    /// CREATE ROLE.
    roles_created: "role(s) to create",
    /// ALTER ROLE.
    roles_altered: "role(s) to alter",
    /// CREATE SCHEMA.
    schemas_created: "schema(s) to create",
    /// ALTER SCHEMA … OWNER TO.
    schema_owners_altered: "schema owner change(s)",
    /// DROP ROLE.
    roles_dropped: "role(s) to drop",
    /// COMMENT ON ROLE.
    comments_changed: "comment(s) to change",
    /// Roles whose sessions are terminated.
    sessions_terminated: "role(s) whose sessions are terminated",
    /// REASSIGN OWNED.
    ownerships_reassigned: "role(s) whose objects are reassigned",
    /// DROP OWNED.
    ownerships_dropped: "role(s) whose objects are dropped",
    /// GRANT.
    grants_added: "grant(s) to add",
    /// REVOKE.
    grants_revoked: "grant(s) to revoke",
    /// ALTER DEFAULT PRIVILEGES … IN SCHEMA … GRANT.
    default_privileges_set: "default privilege(s) to set",
    /// ALTER DEFAULT PRIVILEGES … IN SCHEMA … REVOKE.
    default_privileges_revoked: "default privilege(s) to revoke",
    /// ALTER DEFAULT PRIVILEGES … GRANT.
    global_default_privileges_set: "GLOBAL default privilege(s) to set (affects every schema)",
    /// ALTER DEFAULT PRIVILEGES … REVOKE.
    global_default_privileges_revoked: "GLOBAL default privilege(s) to revoke (affects every schema)",
    /// GRANT role.
    members_added: "membership(s) to add",
    /// GRANT role WITH other options.
    members_options_changed: "membership option(s) to change",
    /// REVOKE role.
    members_removed: "membership(s) to remove",
    /// ALTER ROLE … PASSWORD.
    passwords_set: "password(s) to set",
}

impl Summary {
    /// Counts changes.
    pub fn of(changes: &[Change]) -> Self {
        let mut summary = Self::default();
        for change in changes {
            *summary.counter(change) += 1;
        }
        summary
    }

    fn counter(&mut self, change: &Change) -> &mut usize {
        match change {
            Change::CreateRole { .. } => &mut self.roles_created,
            Change::AlterRole { .. } => &mut self.roles_altered,
            Change::SetComment { .. } => &mut self.comments_changed,
            Change::SetPassword { .. } => &mut self.passwords_set,
            Change::CreateSchema { .. } => &mut self.schemas_created,
            Change::AlterSchemaOwner { .. } => &mut self.schema_owners_altered,
            Change::EnsureSchemaOwnerPrivileges { .. } | Change::Grant(_) => &mut self.grants_added,
            Change::Revoke(_) => &mut self.grants_revoked,
            Change::SetDefaultPrivilege(default) => match default.scope {
                DefaultScope::Global => &mut self.global_default_privileges_set,
                DefaultScope::Schema { .. } => &mut self.default_privileges_set,
            },
            Change::RevokeDefaultPrivilege(default) => match default.scope {
                DefaultScope::Global => &mut self.global_default_privileges_revoked,
                DefaultScope::Schema { .. } => &mut self.default_privileges_revoked,
            },
            Change::AddMember { .. } => &mut self.members_added,
            Change::UpdateMemberOptions { .. } => &mut self.members_options_changed,
            Change::RemoveMember { .. } => &mut self.members_removed,
            Change::ReassignOwned { .. } => &mut self.ownerships_reassigned,
            Change::DropOwned { .. } => &mut self.ownerships_dropped,
            Change::DropRole { .. } => &mut self.roles_dropped,
            Change::TerminateSessions { .. } => &mut self.sessions_terminated,
        }
    }

    /// The number of all changes.
    pub fn total(&self) -> usize {
        self.lines().map(|(_, count)| count).sum()
    }

    /// Whether there is drift. A password that cannot be compared may already be set, so it does not count.
    pub fn has_drift(&self) -> bool {
        self.total() > self.passwords_set
    }

    /// As text, under a heading.
    pub fn render(&self, heading: &str) -> String {
        let mut text = format!("{heading}: {} change(s)\n", self.total());
        for (label, count) in self.lines().filter(|(_, count)| *count > 0) {
            let _ = writeln!(text, "  {count} {label}");
        }
        text
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render("Plan"))
    }
}
