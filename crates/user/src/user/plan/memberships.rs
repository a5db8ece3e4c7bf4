//! Plans memberships of the role in others.

use std::collections::BTreeMap;

use stanchion_api::user::{AppliedGrant, GrantKind, Membership, MembershipPolicy};
use stanchion_kernel::Problem;
use stanchion_kernel::problem::Cause;
use stanchion_postgres::Statement;
use stanchion_postgres::server::BOUND_CREATEROLE;

use super::Change;
use crate::user::catalog::{Catalog, MembershipFacts};

/// The requested memberships.
pub struct Asked<'a> {
    /// The member.
    pub role: &'a str,
    /// The memberships.
    pub member_of: &'a [Membership],
    /// Whether other memberships are removed.
    pub policy: MembershipPolicy,
    /// What earlier reconciles granted.
    pub before: &'a [AppliedGrant],
    /// Whether the member inherits, where that is an attribute of the member.
    pub inherits: bool,
}

/// The record of the memberships, for the status.
pub fn applied(member_of: &[Membership]) -> impl Iterator<Item = AppliedGrant> {
    member_of.iter().map(|membership| AppliedGrant {
        kind: GrantKind::Membership,
        database: None,
        schema: None,
        name: Some(membership.role.clone()),
        privileges: Vec::new(),
    })
}

/// The statements that change the memberships.
pub fn diff(asked: &Asked<'_>, catalog: &Catalog) -> Result<Vec<Change>, Problem> {
    let options = catalog.server.version >= BOUND_CREATEROLE;
    let wanted: BTreeMap<&str, &Membership> = asked
        .member_of
        .iter()
        .map(|membership| (membership.role.as_str(), membership))
        .collect();
    let mut changes = Vec::new();
    for (role, facts) in &catalog.memberships {
        let ours = asked
            .before
            .iter()
            .any(|grant| grant.kind == GrantKind::Membership && grant.name.as_deref() == Some(role.as_str()));
        if !wanted.contains_key(role.as_str()) && (ours || asked.policy == MembershipPolicy::Authoritative) {
            changes.extend(revoke(asked.role, role, facts, options));
        }
    }
    for (role, membership) in wanted {
        if !catalog.existing.contains_key(role) {
            return Err(Problem::dependency(
                "RoleNotFound",
                format!("memberOf: role {role:?} does not exist"),
            )
            .with_cause(Cause::Privileges));
        }
        if !options {
            check_old_server(membership, asked.inherits)?;
        }
        let facts = catalog.memberships.get(role);
        let stated = stated(membership, asked, options);
        if !facts.is_some_and(|facts| is_so(&stated, facts, options)) {
            changes.extend(grant(asked.role, &stated, facts, options));
        }
    }
    Ok(changes)
}

/// An option that an earlier reconcile set and the spec no longer contains returns to PostgreSQL's default.
fn stated(wanted: &Membership, asked: &Asked<'_>, options: bool) -> Membership {
    let given = |grant: &AppliedGrant| {
        grant.kind == GrantKind::Membership && grant.name.as_ref() == Some(&wanted.role)
    };
    let mut stated = wanted.clone();
    if options && asked.before.iter().any(given) {
        stated.inherit = wanted.inherit.or(Some(asked.inherits));
        stated.set = wanted.set.or(Some(true));
    }
    stated
}

/// Before PostgreSQL 16 a member may always SET ROLE, and INHERIT is an attribute of the member. What the server cannot
/// do is refused.
fn check_old_server(wanted: &Membership, inherits: bool) -> Result<(), Problem> {
    let refuse = |field: &str, instead: &str| {
        Err(Problem::human(
            "UnsupportedByServer",
            format!(
                "memberOf: {field} of {:?} needs PostgreSQL 16 or newer; {instead}",
                wanted.role
            ),
        ))
    };
    if wanted.set == Some(false) {
        return refuse("set: false", "leave it out");
    }
    match wanted.inherit {
        Some(inherit) if inherit != inherits => refuse(
            &format!("inherit: {inherit}"),
            "use role.inherit, which holds for all memberships",
        ),
        _ => Ok(()),
    }
}

fn is_so(wanted: &Membership, facts: &MembershipFacts, options: bool) -> bool {
    let option = |request: Option<bool>, fact: Option<bool>| !options || request.is_none() || request == fact;
    facts.admin == wanted.admin && option(wanted.inherit, facts.inherit) && option(wanted.set, facts.set)
}

fn revoke(role: &str, from: &str, facts: &MembershipFacts, options: bool) -> Vec<Change> {
    let what = format!("membership in {from}");
    let take = || Statement::new("REVOKE ").ident(from).sql(" FROM ").ident(role);
    if !options {
        return vec![Change::privilege(what, take())];
    }
    facts
        .grantors
        .iter()
        .map(|grantor| Change::privilege(what.clone(), take().sql(" GRANTED BY ").ident(grantor)))
        .collect()
}

fn grant(role: &str, wanted: &Membership, facts: Option<&MembershipFacts>, options: bool) -> Vec<Change> {
    let what = format!("membership in {}", wanted.role);
    let give = || {
        Statement::new("GRANT ")
            .ident(&wanted.role)
            .sql(" TO ")
            .ident(role)
    };
    if options {
        let flag = |on: bool| if on { "TRUE" } else { "FALSE" };
        let stated = [
            ("ADMIN ", Some(wanted.admin)),
            ("INHERIT ", wanted.inherit),
            ("SET ", wanted.set),
        ];
        let stated = stated
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| (name, value)));
        let with = give()
            .sql(" WITH ")
            .list(", ", stated, |sql, (name, value)| sql.sql(name).sql(flag(value)));
        return vec![Change::privilege(what, with)];
    }
    let losing = facts.is_some_and(|facts| facts.admin) && !wanted.admin;
    let statement = if losing {
        Statement::new("REVOKE ADMIN OPTION FOR ")
            .ident(&wanted.role)
            .sql(" FROM ")
            .ident(role)
    } else {
        give().when(wanted.admin, |sql| sql.sql(" WITH ADMIN OPTION"))
    };
    vec![Change::privilege(what, statement)]
}
