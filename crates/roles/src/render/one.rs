//! Renders single changes.

use stanchion_postgres::Statement;
use stanchion_postgres::handover;

use super::members::{Options, add_member, granted_by, update_member};
use super::privileges::{About, default_privilege, grant_on, list, revoke};
use super::roles::{alter_role, comment_on, create_role};
use crate::plan::{Change, Plan};

/// How statements include passwords.
#[derive(Clone, Copy)]
pub(super) enum Secrets {
    /// As a placeholder, for people.
    Redacted,
    /// As verifiers, for the server.
    Sent,
}

/// The statements of one change.
#[allow(clippy::too_many_lines)] // A table: one arm a change.
pub(super) fn render(change: &Change, plan: &Plan, secrets: Secrets) -> Vec<Statement> {
    match change {
        Change::CreateRole { name, state } => create_role(name, state),
        Change::AlterRole { name, attributes } => alter_role(name, attributes),
        Change::SetComment { name, comment } => vec![comment_on(name, comment.as_deref())],
        Change::SetPassword { name, password } => {
            let statement = Statement::new("ALTER ROLE ").ident(name).sql(" PASSWORD ");
            vec![match secrets {
                Secrets::Redacted => statement.sql("'[REDACTED]'"),
                Secrets::Sent => statement.secret(&password.verifier()),
            }]
        }
        Change::CreateSchema { name, owner } => {
            let statement = Statement::new("CREATE SCHEMA ").ident(name);
            vec![match owner {
                Some(owner) => statement.sql(" AUTHORIZATION ").ident(owner),
                None => statement,
            }]
        }
        Change::AlterSchemaOwner { name, owner } => {
            vec![
                Statement::new("ALTER SCHEMA ")
                    .ident(name)
                    .sql(" OWNER TO ")
                    .ident(owner),
            ]
        }
        Change::EnsureSchemaOwnerPrivileges {
            name,
            owner,
            privileges,
        } => {
            let grant = Statement::new("GRANT ");
            vec![
                list(grant, *privileges)
                    .sql(" ON SCHEMA ")
                    .ident(name)
                    .sql(" TO ")
                    .ident(owner),
            ]
        }
        Change::Grant(grant) => grant
            .targets
            .iter()
            .map(|target| {
                let about = About {
                    privileges: grant.privileges,
                    kind: grant.object_type,
                    columns: &grant.columns,
                };
                grant_on(&about, &[target], &[&grant.role], grant.with_grant_option)
            })
            .collect(),
        Change::Revoke(taken) => revoke(taken, &plan.executor),
        Change::SetDefaultPrivilege(default) => vec![default_privilege(default, &[&default.grantee], true)],
        Change::RevokeDefaultPrivilege(default) => {
            vec![default_privilege(default, &[&default.grantee], false)]
        }
        Change::AddMember {
            role,
            member,
            inherit,
            admin,
            set,
        } => {
            vec![add_member(
                role,
                &[member],
                Options {
                    inherit: Some(*inherit),
                    admin: *admin,
                    set: *set,
                },
                plan,
            )]
        }
        Change::UpdateMemberOptions {
            role,
            member,
            grantor,
            inherit,
            admin,
            set,
        } => {
            vec![update_member(
                role,
                member,
                grantor.as_deref(),
                *inherit,
                *admin,
                *set,
                plan,
            )]
        }
        Change::RemoveMember {
            role,
            member,
            grantor,
        } => vec![granted_by(
            Statement::new("REVOKE ").ident(role).sql(" FROM ").ident(member),
            grantor.as_deref(),
        )],
        Change::ReassignOwned { from_role, to_role } => {
            // Code that runs with its owner's privileges must not run with those of the new owner.
            let mut statements = handover::disarm(from_role);
            statements.push(handover::reassign(from_role, to_role));
            statements
        }
        Change::DropOwned { role } => vec![Statement::new("DROP OWNED BY ").ident(role)],
        Change::DropRole { name } => vec![Statement::new("DROP ROLE IF EXISTS ").ident(name)],
        Change::TerminateSessions { oid, .. } => vec![
            Statement::new("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usesysid = ")
                .number(i64::from(*oid))
                .sql(" AND pid <> pg_backend_pid()"),
        ],
    }
}
