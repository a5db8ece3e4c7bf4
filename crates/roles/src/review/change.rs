//! Changes as they appear in a review artifact.

use serde::Serialize;
use serde_json::{Value, json};

use crate::model::{Attribute, PUBLIC, RoleState};
use crate::plan::{Change, DefaultPrivilege};

const BLANK: &str = "[REDACTED]";

/// The review priority of a change, by its kind alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Priority {
    /// Revokes something, or grants much.
    High,
    /// Grants something.
    Review,
    /// Changes no privilege.
    Informational,
}

/// The review priority of a change.
pub fn priority(change: &Change) -> Priority {
    let mighty = |state: &RoleState| {
        state.superuser || state.createrole || state.createdb || state.replication || state.bypassrls
    };
    match change {
        Change::SetComment { .. } => Priority::Informational,
        Change::CreateRole { state, .. } if mighty(state) => Priority::High,
        Change::Grant(grant) if grant.role == PUBLIC || grant.with_grant_option => Priority::High,
        Change::SetDefaultPrivilege(default) if default.grantee == PUBLIC => Priority::High,
        Change::AddMember { admin: true, .. } => Priority::High,
        Change::CreateRole { .. }
        | Change::CreateSchema { .. }
        | Change::EnsureSchemaOwnerPrivileges { .. }
        | Change::Grant(_)
        | Change::SetDefaultPrivilege(_)
        | Change::AddMember { .. } => Priority::Review,
        _ => Priority::High,
    }
}

/// The phase of a change, in the order of a plan.
pub(super) fn phase(change: &Change) -> &'static str {
    match change {
        Change::CreateRole { .. } | Change::CreateSchema { .. } => "create",
        Change::AlterRole { .. }
        | Change::SetComment { .. }
        | Change::SetPassword { .. }
        | Change::AlterSchemaOwner { .. }
        | Change::EnsureSchemaOwnerPrivileges { .. } => "alter",
        Change::Grant(_) | Change::SetDefaultPrivilege(_) => "grant",
        Change::UpdateMemberOptions { inherit, admin, .. }
            if *inherit == Some(false) || *admin == Some(false) =>
        {
            "membership_remove"
        }
        Change::RemoveMember { .. } => "membership_remove",
        Change::AddMember { .. } | Change::UpdateMemberOptions { .. } => "membership_add",
        Change::RevokeDefaultPrivilege(_) => "default_privilege_revoke",
        Change::Revoke(_) => "revoke",
        Change::ReassignOwned { .. }
        | Change::DropOwned { .. }
        | Change::DropRole { .. }
        | Change::TerminateSessions { .. } => "retire",
    }
}

/// The same change with sensitive values redacted.
pub fn redacted(change: &Change) -> Change {
    let mut change = change.clone();
    match &mut change {
        Change::CreateRole { state, .. } => {
            state.comment = state.comment.as_ref().map(|_| BLANK.to_owned());
            state
                .config
                .values_mut()
                .for_each(|value| BLANK.clone_into(value));
        }
        Change::SetComment { comment, .. } => *comment = comment.as_ref().map(|_| BLANK.to_owned()),
        Change::AlterRole { attributes, .. } => {
            for attribute in attributes {
                if let Attribute::SetConfig(_, value) = attribute {
                    BLANK.clone_into(value);
                }
            }
        }
        _ => {}
    }
    change
}

/// The fields of a change that are redacted.
pub(super) fn hidden(change: &Change) -> Vec<&'static str> {
    let fields = match change {
        Change::CreateRole { state, .. } => vec![
            (state.comment.is_some(), "state.comment"),
            (!state.config.is_empty(), "state.config.values"),
        ],
        Change::SetComment { comment, .. } => vec![(comment.is_some(), "comment")],
        Change::SetPassword { .. } => vec![(true, "password")],
        Change::AlterRole { attributes, .. } => attributes
            .iter()
            .map(|attribute| {
                (
                    matches!(attribute, Attribute::SetConfig(..)),
                    "attributes[].value",
                )
            })
            .collect(),
        _ => vec![],
    };
    fields
        .into_iter()
        .filter_map(|(hidden, field)| hidden.then_some(field))
        .collect()
}

/// The fields of a change. Each is listed explicitly: a field that is added later stays hidden until it is listed here.
pub(super) fn shown(change: &Change) -> Value {
    match change {
        Change::CreateRole { name, state } => {
            json!({"kind": "create_role", "name": name, "state": self::state(state)})
        }
        Change::AlterRole { name, attributes } => {
            let attributes: Vec<_> = attributes.iter().map(attribute).collect();
            json!({"kind": "alter_role", "name": name, "attributes": attributes})
        }
        Change::SetComment { name, comment } => {
            json!({"kind": "set_comment", "name": name, "comment_present": comment.is_some()})
        }
        Change::SetPassword { name, .. } => json!({"kind": "set_password", "name": name}),
        Change::CreateSchema { name, owner } => {
            json!({"kind": "create_schema", "name": name, "owner": owner})
        }
        Change::AlterSchemaOwner { name, owner } => {
            json!({"kind": "alter_schema_owner", "name": name, "owner": owner})
        }
        Change::EnsureSchemaOwnerPrivileges {
            name,
            owner,
            privileges,
        } => json!({
            "kind": "ensure_schema_owner_privileges", "name": name, "owner": owner, "privileges": privileges
        }),
        Change::Grant(grant) => with(
            json!({
                "kind": "grant", "role": grant.role, "privileges": grant.privileges,
                "object_type": grant.object_type, "schema": grant.schema, "name": grant.name
            }),
            [
                (!grant.columns.is_empty(), "columns", json!(grant.columns)),
                (grant.with_grant_option, "with_grant_option", json!(true)),
            ],
        ),
        Change::Revoke(revoke) => with(
            json!({
                "kind": "revoke", "role": revoke.role, "privileges": revoke.privileges,
                "object_type": revoke.object_type, "schema": revoke.schema, "name": revoke.name,
                "grantor": revoke.grantor
            }),
            [
                (!revoke.columns.is_empty(), "columns", json!(revoke.columns)),
                (revoke.grant_option_only, "grant_option_only", json!(true)),
                (revoke.cascade, "cascade", json!(true)),
            ],
        ),
        Change::SetDefaultPrivilege(default) => self::default("set_default_privilege", default),
        Change::RevokeDefaultPrivilege(default) => self::default("revoke_default_privilege", default),
        Change::AddMember {
            role,
            member,
            inherit,
            admin,
            set,
        } => with(
            json!({
                "kind": "add_member", "role": role, "member": member, "inherit": inherit, "admin": admin
            }),
            [(set.is_some(), "set", json!(set))],
        ),
        Change::UpdateMemberOptions {
            role,
            member,
            grantor,
            inherit,
            admin,
            set,
        } => with(
            json!({
                "kind": "update_member_options", "role": role, "member": member,
                "grantor": grantor.as_deref().unwrap_or_default(), "inherit": inherit, "admin": admin,
                "binding": null
            }),
            [(set.is_some(), "set", json!(set))],
        ),
        Change::RemoveMember {
            role,
            member,
            grantor,
        } => json!({"kind": "remove_member", "role": role, "member": member, "grantor": grantor}),
        Change::ReassignOwned { from_role, to_role } => {
            json!({"kind": "reassign_owned", "from_role": from_role, "to_role": to_role})
        }
        Change::DropOwned { role } => json!({"kind": "drop_owned", "role": role}),
        Change::DropRole { name } => json!({"kind": "drop_role", "name": name}),
        Change::TerminateSessions { role, .. } => json!({"kind": "terminate_sessions", "role": role}),
    }
}

/// Adds fields that pgroles does not have, only if they are set.
fn with<const N: usize>(mut value: Value, extra: [(bool, &str, Value); N]) -> Value {
    if let Value::Object(fields) = &mut value {
        for (_, name, value) in extra.into_iter().filter(|(said, ..)| *said) {
            fields.insert(name.to_owned(), value);
        }
    }
    value
}

fn default(kind: &str, default: &DefaultPrivilege) -> Value {
    with(
        json!({
            "kind": kind, "owner": default.owner, "scope": default.scope, "on_type": default.on_type,
            "grantee": default.grantee, "privileges": default.privileges
        }),
        [
            (default.with_grant_option, "with_grant_option", json!(true)),
            (default.grant_option_only, "grant_option_only", json!(true)),
        ],
    )
}

fn state(state: &RoleState) -> Value {
    json!({
        "login": state.login,
        "superuser": state.superuser,
        "createdb": state.createdb,
        "createrole": state.createrole,
        "inherit": state.inherit,
        "replication": state.replication,
        "bypassrls": state.bypassrls,
        "connection_limit": state.connection_limit,
        "comment_present": state.comment.is_some(),
        "password_valid_until": state.password_valid_until,
        "config_parameters": state.config.keys().collect::<Vec<_>>(),
    })
}

fn attribute(attribute: &Attribute) -> Value {
    let (kind, value) = match attribute {
        Attribute::Login(on) => ("login", json!(on)),
        Attribute::Superuser(on) => ("superuser", json!(on)),
        Attribute::Createdb(on) => ("createdb", json!(on)),
        Attribute::Createrole(on) => ("createrole", json!(on)),
        Attribute::Inherit(on) => ("inherit", json!(on)),
        Attribute::Replication(on) => ("replication", json!(on)),
        Attribute::Bypassrls(on) => ("bypassrls", json!(on)),
        Attribute::ConnectionLimit(limit) => ("connection_limit", json!(limit)),
        Attribute::ValidUntil(moment) => ("valid_until", json!(moment)),
        Attribute::SetConfig(parameter, _) => {
            return json!({"kind": "set_config", "parameter": parameter});
        }
        Attribute::ResetConfig(parameter) => {
            return json!({"kind": "reset_config", "parameter": parameter});
        }
    };
    json!({"kind": kind, "value": value})
}
