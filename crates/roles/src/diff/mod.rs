//! Compares the database with the desired state. Pure.

mod authority;
mod defaults;
mod grants;
mod members;
mod retire;
mod roles;
mod schemas;
mod view;

use std::collections::BTreeMap;

use crate::expand::Desired;
use crate::facts::Facts;
use crate::model::{ObjectType, Privilege};
use crate::plan::{Blocker, Change, Check, Mode, Password, Plan};
use view::View;

/// Why a plan reports a grant option.
const UNDECLARED_OPTION: &str = "which the manifest does not say; state `with_grant_option`";
const EXCLUDED_OPTION: &str =
    "although the manifest says `with_grant_option: false`; additive mode does not revoke it";

/// Options of the comparison.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The mode, which limits the plan.
    pub mode: Mode,
    /// Whether adopt mode may change the owner of existing schemas.
    pub allow_schema_owner_transfers: bool,
    /// Passwords, by role.
    pub passwords: BTreeMap<String, Password>,
}

/// The manifest is for another database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "database grant target \"{target}\" does not match connected database \"{connected}\"; \
     this program reconciles database ACLs only for the connected database"
)]
pub struct WrongDatabase {
    target: String,
    connected: String,
}

/// The changes that bring the database to the desired state.
pub fn diff(desired: &Desired, facts: &Facts, options: &Options) -> Result<Plan, WrongDatabase> {
    let wrong = desired
        .grants
        .keys()
        .filter(|key| key.kind == ObjectType::Database)
        .find_map(|key| key.name.as_ref().filter(|name| **name != facts.server.database));
    if let Some(target) = wrong {
        return Err(WrongDatabase {
            target: target.clone(),
            connected: facts.server.database.clone(),
        });
    }
    let mut plan = Plan {
        executor: facts.server.user.clone(),
        version: facts.server.version,
        ..Plan::default()
    };
    let roles = roles::diff(desired, facts, &options.passwords, &mut plan);
    let schemas = schemas::diff(desired, facts);
    let view = View::new(desired, facts, options.mode);
    let repairs = schemas::repair(desired, &view);
    let grants = grants::diff(desired, facts, &view, options.mode, &mut plan);
    let defaults = defaults::diff(desired, facts, options.mode, &mut plan);
    let members = members::diff(desired, facts, options.mode, &mut plan);
    let retirements = retire::diff(desired, facts, options.mode, &mut plan);
    // Moved, not cloned: at this point everything else is in memory, too.
    let changes = [
        roles.created,
        roles.altered,
        schemas.changes,
        repairs,
        grants.granted,
        defaults.set,
        members.removed,
        members.added,
        defaults.revoked,
        grants.revoked,
        grants.columns,
        roles.passwords,
        retirements,
    ];
    let allowed = |change: &Change| options.mode.allows(change, &schemas.transfers);
    plan.changes = changes.into_iter().flatten().filter(allowed).collect();
    block_transfers(options, desired, &mut plan);
    block_unknown(&mut plan);
    warn_of_absence(options, desired, &mut plan);
    members::block_circles(facts, &mut plan);
    authority::check(facts, &view, &mut plan);
    Ok(plan)
}

/// Warns that additive mode revokes nothing, even if the manifest declares an absence.
fn warn_of_absence(options: &Options, desired: &Desired, plan: &mut Plan) {
    let mut rules = desired.grants.values().chain(desired.default_privileges.values());
    if options.mode == Mode::Additive && rules.any(|rule| !rule.absent.is_empty()) {
        let text = "additive reconciliation ignores every absence assertion (`ensure: absent`); use adopt or \
                    authoritative mode to enforce them";
        plan.warnings.push(text.to_owned());
    }
}

/// Blocks MAINTAIN on older servers, which would only report a syntax error.
fn block_unknown(plan: &mut Plan) {
    let needs = |change: &Change| match change {
        Change::Grant(grant) => grant.privileges.contains(Privilege::Maintain),
        Change::SetDefaultPrivilege(default) => default.privileges.contains(Privilege::Maintain),
        _ => false,
    };
    if plan.version < 170_000 && plan.changes.iter().any(needs) {
        plan.blockers.push(Blocker {
            check: Check::ServerCompatibility,
            code: "unknown_privilege",
            role: None,
            message: "the privilege MAINTAIN needs PostgreSQL 17 or newer".to_owned(),
        });
    }
}

/// Blocks transfers of schema ownership, which go beyond adopting.
fn block_transfers(options: &Options, desired: &Desired, plan: &mut Plan) {
    if options.mode != Mode::Adopt
        || options.allow_schema_owner_transfers
        || desired.allow_schema_owner_transfers
    {
        return;
    }
    for change in &plan.changes {
        if let Change::AlterSchemaOwner { name, owner } = change {
            plan.blockers.push(Blocker {
                check: Check::SchemaOwnerTransfer,
                code: "adopt_schema_owner_transfer",
                role: Some(owner.clone()),
                message: format!(
                    "adopt mode would transfer ownership of schema \"{name}\" to \"{owner}\"; allow it with \
                     --allow-schema-owner-transfers, or use additive mode to keep the owner"
                ),
            });
        }
    }
}
