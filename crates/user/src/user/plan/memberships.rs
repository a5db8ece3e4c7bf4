//! Plans memberships: those of the role in others, and those of its two logins (`DualUser`) in the role.

use std::collections::BTreeMap;

use stanchion_api::user::{AppliedGrant, ExistingRolePolicy, GrantKind, Membership, MembershipPolicy, Role};
use stanchion_kernel::Problem;
use stanchion_kernel::marks::Mark;
use stanchion_kernel::problem::Cause;
use stanchion_postgres::Statement;
use stanchion_postgres::server::BOUND_CREATEROLE;

use super::role::{self, RoleRequest};
use super::{Change, parameters};
use crate::user::catalog::{Catalog, MembershipFacts};
use crate::user::guards::{Claimant, claim};
use crate::user::passwords::Login;
use crate::user::target::{Before, Wanted};

/// The requested memberships.
pub(crate) struct Asked<'a> {
    /// The member.
    pub role: &'a str,
    pub member_of: &'a [Membership],
    /// Whether other memberships are removed.
    pub policy: MembershipPolicy,
    /// What earlier reconciles granted.
    pub before: &'a [AppliedGrant],
    /// Whether the member inherits, where that is an attribute of the member.
    pub inherits: bool,
}

/// The record of the memberships, for the status.
pub(crate) fn applied(member_of: &[Membership]) -> impl Iterator<Item = AppliedGrant> {
    member_of.iter().map(|membership| AppliedGrant {
        kind: GrantKind::Membership,
        database: None,
        schema: None,
        name: Some(membership.role.clone()),
        privileges: Vec::new(),
    })
}

/// The statements that change the memberships.
pub(crate) fn diff(asked: &Asked<'_>, catalog: &Catalog) -> Result<Vec<Change>, Problem> {
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
            // What is not ours is reported if it cannot be revoked.
            let all = !ours;
            changes.extend(revoke(asked.role, role, facts, options, all));
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
        if options {
            changes.extend(
                facts
                    .into_iter()
                    .flat_map(|facts| take_options(asked.role, &stated, facts)),
            );
        }
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
    if let Some(inherit) = wanted.inherit.filter(|inherit| *inherit != inherits) {
        return refuse(
            &format!("inherit: {inherit}"),
            "use role.inherit, which holds for all memberships",
        );
    }
    Ok(())
}

/// Whether nothing has to be granted. On PostgreSQL 16 and later, [`take_options`] takes what is too much.
fn is_so(wanted: &Membership, facts: &MembershipFacts, options: bool) -> bool {
    if !options {
        return facts.admin == wanted.admin;
    }
    let lacks = |request: Option<bool>, fact: Option<bool>| request == Some(true) && fact != Some(true);
    !lacks(Some(wanted.admin), Some(facts.admin))
        && !lacks(wanted.inherit, facts.inherit)
        && !lacks(wanted.set, facts.set)
}

/// Takes the options that the spec denies from the grant of each grantor: the strongest of them applies. What the
/// administrator may not revoke stays, and does not keep anything else from being changed.
fn take_options(role: &str, wanted: &Membership, facts: &MembershipFacts) -> Vec<Change> {
    let mut changes = Vec::new();
    for grant in facts.grants.iter().filter(|grant| grant.revocable) {
        for (name, request, has) in [
            ("ADMIN", Some(wanted.admin), grant.admin),
            ("INHERIT", wanted.inherit, grant.inherit),
            ("SET", wanted.set, grant.set),
        ] {
            if request == Some(false) && has {
                let statement = Statement::new("REVOKE ")
                    .sql(name)
                    .sql(" OPTION FOR ")
                    .ident(&wanted.role)
                    .sql(" FROM ")
                    .ident(role)
                    .sql(" GRANTED BY ")
                    .ident(&grant.grantor);
                changes.push(Change::privilege(
                    format!("membership in {}", wanted.role),
                    statement,
                ));
            }
        }
    }
    changes
}

fn revoke(role: &str, from: &str, facts: &MembershipFacts, options: bool, all: bool) -> Vec<Change> {
    let what = format!("membership in {from}");
    let take = || Statement::new("REVOKE ").ident(from).sql(" FROM ").ident(role);
    if !options {
        return vec![Change::privilege(what, take())];
    }
    let grants = facts.grants.iter().filter(|grant| all || grant.revocable);
    grants
        .map(|grant| Change::privilege(what.clone(), take().sql(" GRANTED BY ").ident(&grant.grantor)))
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

/// The differences of one login: a member of the role that acts as it, so that the role owns what it creates. A login
/// that is not in use is not created.
pub(crate) fn login(wanted: &Wanted, login: &Login, dual: bool) -> Result<Vec<Change>, Problem> {
    let unknown = Before::default();
    let claimant = Claimant {
        name: &login.name,
        identity: &wanted.identity,
        policy: ExistingRolePolicy::Fail,
        before: &unknown,
        recorded: wanted.before.active_login.as_ref() == Some(&login.name)
            || wanted.before.retiring_logins.contains(&login.name),
    };
    let facts = login.catalog.role.as_ref();
    let origin = match (claim(&claimant, &login.catalog), dual) {
        (claimed, true) => claimed?,
        (Ok(origin), false) => origin,
        // There were two logins once; a role of that name that is not ours does not matter now.
        (Err(_), false) => return Ok(Vec::new()),
    };
    if !login.enabled && facts.is_none() {
        return Ok(Vec::new());
    }
    // Limits and settings apply to the login, not to the role itself.
    let attributes = Role {
        connection_limit: wanted.role.connection_limit,
        valid_until: wanted.role.valid_until,
        ..Role::default()
    };
    let request = RoleRequest {
        name: &login.name,
        login: login.enabled && wanted.role.login,
        attributes: &attributes,
        password: login.change.clone(),
        mark: Mark {
            owner: wanted.identity.owner(),
            origin,
        },
    };
    let mut changes = role::diff(&request, &login.catalog);
    for change in &mut changes {
        if facts.is_some() {
            change.what = format!("{} of login {}", change.what, login.name);
        }
    }
    if !login.enabled {
        return Ok(changes);
    }
    if !login.catalog.memberships.contains_key(&wanted.username) {
        let grant = Statement::new("GRANT ")
            .ident(&wanted.username)
            .sql(" TO ")
            .ident(&login.name);
        changes.push(Change::privilege(format!("membership of {}", login.name), grant));
    }
    let mut settings = wanted.role.parameters.clone();
    settings.retain(|name, _| !name.eq_ignore_ascii_case("role"));
    settings.insert("role".to_owned(), acts_as(wanted).to_owned());
    let none = BTreeMap::new();
    let stored = facts.map_or(&none, |facts| &facts.parameters);
    changes.extend(parameters::changes(
        &login.name,
        &settings,
        stored,
        &wanted.before.grants,
    ));
    Ok(changes)
}

/// The role that a login acts as: the one that the spec names, or the object's. Never the login itself, which would own what
/// it creates.
fn acts_as(wanted: &Wanted) -> &str {
    let mut parameters = wanted.role.parameters.iter();
    let named = parameters.find(|(name, _)| name.eq_ignore_ascii_case("role"));
    let named = named.filter(|(_, value)| !value.eq_ignore_ascii_case("none"));
    named.map_or(&wanted.username, |(_, value)| value)
}
