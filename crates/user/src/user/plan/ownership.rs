//! Decides whether a role is created, adopted, or somebody else's, and plans the changes of the role itself.

use std::collections::BTreeMap;

use stanchion_api::instance::Attribute;
use stanchion_api::user::ExistingRolePolicy;
use stanchion_kernel::Problem;
use stanchion_kernel::marks::{Found, Mark, Marks, Origin, Owner, Seal};
use stanchion_kernel::redact::Verdict;
use stanchion_postgres::{Statement, handover};

use super::role::RoleRequest;
use super::{Change, logins, memberships, parameters, role};
use crate::user::catalog::{Catalog, RoleFacts};
use crate::user::passwords::Passwords;
use crate::user::target::{Before, Identity, KIND, Wanted};

/// The differences of the role: itself, its parameters, its memberships, and its two logins if it has them.
pub fn role_changes(
    wanted: &Wanted,
    catalog: &Catalog,
    passwords: &Passwords,
) -> Result<Vec<Change>, Problem> {
    let origin = claim(&claimant(wanted), catalog)?;
    let request = RoleRequest {
        name: &wanted.username,
        login: wanted.role.login && !passwords.is_dual(),
        attributes: &wanted.role,
        password: passwords.main_change(),
        mark: Mark {
            owner: wanted.identity.owner(),
            origin,
        },
    };
    let mut changes = role::diff(&request, catalog);
    let none = BTreeMap::new();
    let stored = catalog.role.as_ref().map_or(&none, |facts| &facts.parameters);
    changes.extend(parameters::diff(
        &wanted.username,
        &wanted.role.parameters,
        stored,
        &wanted.before.grants,
    ));
    let is = catalog.role.as_ref().is_none_or(|facts| facts.inherit);
    let asked = memberships::Asked {
        role: &wanted.username,
        member_of: &wanted.member_of,
        policy: wanted.membership_policy,
        before: &wanted.before.grants,
        inherits: wanted.role.inherit.unwrap_or(is),
    };
    changes.extend(memberships::diff(&asked, catalog)?);
    for login in passwords.logins() {
        changes.extend(logins::diff(wanted, login, passwords.is_dual())?);
    }
    if gives_a_database(wanted, catalog) {
        changes.extend(
            act_as(&wanted.username, catalog)
                .map(|statement| Change::privilege("the administrator's membership", statement)),
        );
    }
    Ok(changes)
}

/// Whether the role is about to become the owner of a database.
fn gives_a_database(wanted: &Wanted, catalog: &Catalog) -> bool {
    wanted.databases.iter().any(|(name, request)| {
        request.owner
            && catalog
                .databases
                .get(name)
                .is_none_or(|facts| facts.owner != wanted.username)
    })
}

/// The statement that makes the administrator a member of a role, where it is not one yet. An administrator without
/// superuser gives things to a role, and takes them from it, only as its member.
pub fn act_as(role: &str, catalog: &Catalog) -> Option<Statement> {
    let server = &catalog.server;
    if server.may_act_as(catalog.powers) {
        return None;
    }
    handover::join(role, server)
}

/// The purpose of a seal in a status.
const SEAL: &str = "role of an object";

/// The claimant of a role.
pub struct Claimant<'a> {
    /// The role.
    pub name: &'a str,
    /// The object.
    pub identity: &'a Identity,
    /// How to handle an existing role.
    pub policy: ExistingRolePolicy,
    /// The status' record of the role.
    pub before: &'a Before,
    /// Whether an earlier reconcile has named it in the status before it created it.
    pub announced: bool,
}

fn claimant(wanted: &Wanted) -> Claimant<'_> {
    Claimant {
        name: &wanted.username,
        identity: &wanted.identity,
        policy: wanted.existing,
        before: &wanted.before,
        announced: wanted.before.username.as_ref() == Some(&wanted.username),
    }
}

/// Whether the role existed before the object, so that it may hold more than the operator granted.
pub fn is_adopted(wanted: &Wanted, catalog: &Catalog) -> bool {
    claim(&claimant(wanted), catalog).is_ok_and(|origin| origin == Origin::Adopted)
}

/// The proof, for the status, that the role with this oid was created for this object.
pub fn seal(marks: &Marks, identity: &Identity, name: &str, oid: u32) -> String {
    marks.key().mac(SEAL, &[&identity.uid, name, &oid.to_string()])
}

/// Decides whether the role is ours to change, and how it came to be.
pub fn claim(claimant: &Claimant<'_>, catalog: &Catalog) -> Result<Origin, Problem> {
    let name = claimant.name;
    if [&catalog.server.role, &catalog.server.login]
        .into_iter()
        .any(|own| own == name)
    {
        return Err(conflict(
            name,
            "is the operator's own role",
            "choose another username",
        ));
    }
    let Some(facts) = &catalog.role else {
        return Ok(Origin::Created);
    };
    match &facts.mark {
        Some(Found { mark, seal }) if is_own(mark, claimant.identity) => match seal {
            Seal::Valid => Ok(mark.origin),
            // The mark of an earlier version, or of a lost key. Anybody may have written it, so the status must name
            // the role, too.
            Seal::Missing | Seal::Foreign if claimant.knows(facts.oid) => {
                check_powers(name, facts, catalog).map(|()| mark.origin)
            }
            Seal::Missing | Seal::Foreign | Seal::Forged => Err(conflict(
                name,
                "carries a mark of this object that this operator did not write",
                "take the mark out of the role's comment, or choose another username",
            )),
        },
        Some(Found { mark, .. }) => Err(taken(name, mark, claimant.identity)),
        // Somebody overwrote the mark with another comment; the seal in the status proves that it is the role that the
        // operator created.
        None if claimant.is_proven(facts.oid, catalog) => {
            check_powers(name, facts, catalog).map(|()| Origin::Created)
        }
        None => adopt(name, facts, catalog, claimant.policy),
    }
}

/// Whether a mark is this object's.
pub fn is_own(mark: &Mark, identity: &Identity) -> bool {
    mark.owner.kind == KIND && mark.owner.uid == identity.uid
}

impl Claimant<'_> {
    fn knows(&self, oid: u32) -> bool {
        self.announced && self.before.oid.is_none_or(|known| known == oid)
    }

    fn is_proven(&self, oid: u32, catalog: &Catalog) -> bool {
        let parts = [self.identity.uid.as_str(), self.name, &oid.to_string()];
        let key = catalog.viewer.marks.key();
        let seal = self.before.seal.as_deref().unwrap_or_default();
        self.before.oid == Some(oid) && key.verify(seal, SEAL, &parts) == Verdict::Same
    }
}

/// The owner is named only within its own namespace.
fn taken(name: &str, mark: &Mark, identity: &Identity) -> Problem {
    let Owner {
        kind,
        namespace,
        name: owner,
        ..
    } = &mark.owner;
    let what = if *namespace == identity.namespace {
        format!("belongs to {kind} {namespace}/{owner}")
    } else {
        "belongs to an object of another namespace".to_owned()
    };
    conflict(
        name,
        &what,
        "delete one of the two objects, or choose another username",
    )
}

/// A role may not be more powerful than the instance allows, no matter how it became an object's: by its own
/// attributes, or by its memberships.
fn check_powers(name: &str, facts: &RoleFacts, catalog: &Catalog) -> Result<(), Problem> {
    match powers(name, facts, catalog)
        .find(|(attribute, _)| !catalog.viewer.rules.attributes.contains(attribute))
    {
        None => Ok(()),
        Some((_, power)) => Err(conflict(
            name,
            &format!("exists and has {power}"),
            "only a mark of this operator would prove that it belongs to this object",
        )),
    }
}

fn powers(
    name: &str,
    facts: &RoleFacts,
    catalog: &Catalog,
) -> impl Iterator<Item = (Attribute, &'static str)> {
    let reach = catalog
        .existing
        .get(name)
        .map(|role| role.reach)
        .unwrap_or_default();
    let powers = [
        (
            facts.superuser || reach.superuser,
            Attribute::Superuser,
            "SUPERUSER",
        ),
        (
            facts.replication || reach.replication,
            Attribute::Replication,
            "REPLICATION",
        ),
        (
            facts.bypass_rls || reach.bypass_rls,
            Attribute::BypassRls,
            "BYPASSRLS",
        ),
        (
            facts.create_role || reach.create_role,
            Attribute::CreateRole,
            "CREATEROLE",
        ),
    ];
    powers
        .into_iter()
        .filter(|(has, ..)| *has)
        .map(|(_, attribute, power)| (attribute, power))
}

/// A role without a mark may be adopted if the server opens it, unless it is too powerful for users who may create
/// objects in a namespace.
fn adopt(
    name: &str,
    facts: &RoleFacts,
    catalog: &Catalog,
    policy: ExistingRolePolicy,
) -> Result<Origin, Problem> {
    if let Some((_, power)) = powers(name, facts, catalog).next() {
        return Err(conflict(
            name,
            &format!("exists and has {power}"),
            "such a role is never adopted",
        ));
    }
    match policy {
        ExistingRolePolicy::Adopt if catalog.viewer.rules.adopts(name) => Ok(Origin::Adopted),
        ExistingRolePolicy::Adopt => Err(conflict(
            name,
            "exists already and is not open for adoption",
            "add it to the instance's spec.adoption.roles (for the operator's default server, --postgres-adoption)",
        )),
        ExistingRolePolicy::Fail => Err(conflict(
            name,
            "exists already",
            "drop it, choose another username, or set existingRolePolicy: Adopt for a role that is open for adoption",
        )),
    }
}

fn conflict(name: &str, what: &str, advice: &str) -> Problem {
    Problem::human("RoleConflict", format!("role {name:?} {what}; {advice}"))
}
