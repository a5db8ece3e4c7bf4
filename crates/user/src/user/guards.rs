//! Guards: whether an object may have the role and the databases that it requests, and the powers that come with them. A
//! user who may create an object in a namespace must not become an administrator of the server: not by an attribute, not
//! by a membership, not by a role or a database of others.
//!
//! `plan` asks before it plans anything, and `apply` asks again in its transaction.
//!
//! Whose a role is, its mark says: it has it from the transaction that creates it. A database cannot have one from the
//! beginning: a comment cannot be set in the statement that creates a database, and a status can be written before a crash,
//! and the database never be created, or be created by somebody else. Its oid can be set (PostgreSQL 15): it is derived from
//! the uid of the object, the name of the database and the installation's key, so nothing needs to be stored, and nobody
//! else can predict it. The mark follows in the next transaction. Only a database that is ours by one of the two is ever
//! dropped.

use sha2::{Digest, Sha256};
use stanchion_api::instance::Attribute;
use stanchion_api::user::{ExistingRolePolicy, Membership, Role};
use stanchion_kernel::Problem;
use stanchion_kernel::marks::{Found, Mark, Marks, Origin, Owner, Seal};
use stanchion_kernel::redact::Verdict;

use super::catalog::databases::DatabaseFacts;
use super::catalog::{Catalog, Reach, RoleFacts, RoleRef};
use super::powers;
use super::target::{Before, DatabaseRequest, Identity, Wanted};
use crate::rules::Whose;

/// Checks what depends on the server's catalog: attributes, roles and databases of others.
pub(super) fn check(wanted: &Wanted, catalog: &Catalog) -> Result<(), Problem> {
    let rules = &catalog.viewer.rules;
    check_role(&wanted.role, &rules.attributes)?;
    check_memberships(&wanted.member_of, catalog)?;
    for owner in wanted
        .databases
        .values()
        .flat_map(|request| request.schemas.values())
        .flat_map(|schema| &schema.default_for)
        .filter(|owner| **owner != wanted.username)
    {
        if let Some(role) = catalog.existing.get(owner) {
            rules.check_default_owner(owner, role)?;
        }
    }
    for (name, request) in &wanted.databases {
        if let Some(facts) = catalog.databases.get(name) {
            check_database(name, request, facts, wanted, catalog)?;
        }
    }
    let create = wanted.create_database.as_ref();
    let copied = create
        .and_then(|create| create.template.as_ref())
        .filter(|_| !catalog.databases.contains_key(&wanted.database));
    match copied.zip(catalog.template.as_ref()) {
        Some((template, facts)) => rules.check_template(template, facts),
        None => Ok(()),
    }
}

/// Whether the object may use an existing database.
pub(super) fn check_database(
    name: &str,
    request: &DatabaseRequest,
    facts: &DatabaseFacts,
    wanted: &Wanted,
    catalog: &Catalog,
) -> Result<(), Problem> {
    if is_database_of(name, wanted, facts, catalog) {
        return Ok(());
    }
    let rules = &catalog.viewer.rules;
    let creates = wanted.create_database.is_some() && name == wanted.database;
    // It created it once, or an earlier version accepted it with the spec that is unchanged: the rules apply.
    let known = wanted
        .before
        .databases
        .iter()
        .any(|known| known.name == name && (known.created || wanted.before.converged));
    if creates && !known && rules.whose_database(facts) == Whose::Nobodys {
        return Err(Problem::human(
            "DatabaseConflict",
            format!(
                "database {name:?} exists, and no object of this namespace created it; choose another name, or \
                 remove createDatabase to use the database as it is"
            ),
        ));
    }
    rules.check_database(name, request, facts)
}

/// Powerful attributes need the instance's permission.
fn check_role(role: &Role, allowed: &[Attribute]) -> Result<(), Problem> {
    let asked = Reach {
        superuser: role.superuser == Some(true),
        replication: role.replication == Some(true),
        bypass_rls: role.bypass_rls == Some(true),
        create_role: role.create_role == Some(true),
    };
    match powers::among(asked).find(|(attribute, _)| !allowed.contains(attribute)) {
        None => Ok(()),
        Some((_, name)) => Err(refused(&format!("role.{name}"), name)),
    }
}

/// A member has the powers of the role, and of that role's own memberships.
fn check_memberships(member_of: &[Membership], catalog: &Catalog) -> Result<(), Problem> {
    let (rules, unknown) = (&catalog.viewer.rules, RoleRef::default());
    let allowed = &rules.attributes;
    for membership in member_of {
        let role = catalog.existing.get(&membership.role).unwrap_or(&unknown);
        for (attribute, name) in powers::among(role.reach) {
            if !allowed.contains(&attribute) {
                let what = format!("memberOf: {:?} comes with {name}, which", membership.role);
                return Err(refused(&what, name));
            }
        }
        if catalog.existing.contains_key(&membership.role) {
            rules.check_role("memberOf", &membership.role, role)?;
        }
    }
    Ok(())
}

fn refused(what: &str, attribute: &str) -> Problem {
    Problem::human(
        "AttributeNotAllowed",
        format!("{what} is not allowed on this instance; add {attribute} to its spec.allowedAttributes"),
    )
}

/// The purpose of a seal in a status.
const SEAL: &str = "role of an object";

/// The claimant of a role.
pub(super) struct Claimant<'a> {
    /// The role.
    pub name: &'a str,
    /// The object.
    pub identity: &'a Identity,
    /// How to handle an existing role.
    pub policy: ExistingRolePolicy,
    /// The status' record of the role.
    pub before: &'a Before,
    /// Whether an earlier reconcile has named it in the status before it created it.
    pub recorded: bool,
}

/// The claimant of the role itself.
pub(super) fn claimant(wanted: &Wanted) -> Claimant<'_> {
    Claimant {
        name: &wanted.username,
        identity: &wanted.identity,
        policy: wanted.existing,
        before: &wanted.before,
        recorded: wanted.before.username.as_ref() == Some(&wanted.username),
    }
}

/// Whether the role existed before the object, so that it may hold more than the operator granted.
pub(super) fn is_adopted(wanted: &Wanted, catalog: &Catalog) -> bool {
    claim(&claimant(wanted), catalog).is_ok_and(|origin| origin == Origin::Adopted)
}

/// The proof, for the status, that the role with this oid was created for this object.
pub(super) fn seal(marks: &Marks, identity: &Identity, name: &str, oid: u32) -> String {
    marks.key().mac(SEAL, &[&identity.uid, name, &oid.to_string()])
}

/// Decides whether the role is ours to change, and how it came to be.
pub(super) fn claim(claimant: &Claimant<'_>, catalog: &Catalog) -> Result<Origin, Problem> {
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
        Some(Found { mark, seal }) if claimant.identity.owns(mark) => match seal {
            Seal::Valid => Ok(mark.origin),
            // The mark of an earlier version, or of a lost key. Anybody may have written it, so the status must name
            // the role, too.
            Seal::Missing | Seal::Foreign if claimant.knows(facts.oid) => {
                check_powers(name, facts, catalog).map(|()| mark.origin)
            }
            Seal::Missing | Seal::Foreign | Seal::Forged => Err(conflict(
                name,
                "has an ownership mark for this object with an invalid seal",
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

impl Claimant<'_> {
    fn knows(&self, oid: u32) -> bool {
        self.recorded && self.before.oid.is_none_or(|known| known == oid)
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
    match powers_of(name, facts, catalog)
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

/// The powers of a role, by its attributes and by its memberships.
fn powers_of(name: &str, facts: &RoleFacts, catalog: &Catalog) -> impl Iterator<Item = (Attribute, String)> {
    let found = catalog.existing.get(name);
    let reach = found.map(|role| role.reach).unwrap_or_default();
    let all = powers::among(Reach {
        superuser: facts.superuser || reach.superuser,
        replication: facts.replication || reach.replication,
        bypass_rls: facts.bypass_rls || reach.bypass_rls,
        create_role: facts.create_role || reach.create_role,
    });
    all.map(|(attribute, name)| (attribute, name.to_uppercase()))
}

/// A role without a mark may be adopted if the server opens it, unless it is too powerful for users who may create
/// objects in a namespace.
fn adopt(
    name: &str,
    facts: &RoleFacts,
    catalog: &Catalog,
    policy: ExistingRolePolicy,
) -> Result<Origin, Problem> {
    if let Some((_, power)) = powers_of(name, facts, catalog).next() {
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

/// The server assigns oids from here on only after it has created two thousand million objects.
const FIRST: u32 = 1 << 31;

/// The oids of the database of this name that the object with this uid creates. The next one is used if one is taken: by
/// the same database under another name, or by files that a crash of the server has left.
pub(super) fn database_oids(marks: &Marks, uid: &str, database: &str) -> [u32; 4] {
    [None, Some("2"), Some("3"), Some("4")].map(|attempt| {
        let parts: Vec<&str> = [uid, database].into_iter().chain(attempt).collect();
        number(&Sha256::digest(marks.key().mac("oid of a database", &parts)))
    })
}

/// The same in earlier versions, which used no key.
fn former_database_oid(uid: &str, database: &str) -> u32 {
    let digest = Sha256::new()
        .chain_update(uid)
        .chain_update([0])
        .chain_update(database);
    number(&digest.finalize())
}

fn number(digest: &[u8]) -> u32 {
    let start = digest.iter().take(4);
    FIRST | start.fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Whether the operator created the database for this object. An oid is proof only while the database belongs to the
/// administrator, or to the object's own role: anybody may choose an oid for their own database.
pub(super) fn is_own_database(
    marks: &Marks,
    identity: &Identity,
    name: &str,
    facts: &DatabaseFacts,
    owners: [&str; 2],
) -> bool {
    let is_owner_known = owners.contains(&facts.owner.as_str());
    match &facts.mark {
        Some(found) if !found.is_unproven() => found.seal == Seal::Valid && identity.owns(&found.mark),
        // Only its owner can have written it.
        Some(found) if identity.owns(&found.mark) => is_owner_known,
        _ => {
            let made = database_oids(marks, &identity.uid, name).contains(&facts.oid);
            (made || former_database_oid(&identity.uid, name) == facts.oid) && is_owner_known
        }
    }
}

/// The oid of a database that does not exist yet.
pub(super) const FRESH: u32 = 0;

/// Whether the operator created the database for this request, or is about to.
pub(super) fn is_database_of(name: &str, wanted: &Wanted, facts: &DatabaseFacts, catalog: &Catalog) -> bool {
    let owners = [catalog.server.role.as_str(), wanted.username.as_str()];
    let made = is_own_database(&catalog.viewer.marks, &wanted.identity, name, facts, owners);
    made || (facts.oid == FRESH && wanted.create_database.is_some() && name == wanted.database)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use stanchion_kernel::redact::FingerprintKey;

    use super::*;

    #[test]
    fn every_installation_every_object_and_every_name_has_its_own() {
        let marks = |byte| Marks::new(Arc::new(FingerprintKey::from_bytes(&[byte; 32]).unwrap()));
        let (one, two) = (marks(1), marks(2));
        let all = [
            (&one, "u-1", "app"),
            (&one, "u-2", "app"),
            (&one, "u-1", "b"),
            (&two, "u-1", "app"),
        ];
        let mut oids = all
            .map(|(marks, uid, name)| database_oids(marks, uid, name))
            .concat();
        oids.push(former_database_oid("u-1", "app"));
        assert!(oids.iter().all(|oid| *oid >= FIRST));
        assert_eq!(database_oids(&one, "u-1", "app"), oids[..4]);
        oids.sort_unstable();
        oids.dedup();
        assert_eq!(oids.len(), 4 * all.len() + 1);
    }
}
