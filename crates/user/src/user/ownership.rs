//! Decides whether a role or a database is the object's: created for it, adopted, or somebody else's.
//!
//! A role has its mark from the transaction that creates it. A database cannot have one: a comment cannot be set in the
//! statement that creates a database, and a status can be written before a crash, and the database never be created, or
//! be created by somebody else. Its oid can be set (PostgreSQL 15): it is derived from the uid of the object, the name of
//! the database and the installation's key, so nothing needs to be stored, and nobody else can predict it. The mark
//! follows in the next transaction. Only a database that is ours by one of the two is ever dropped.

use sha2::{Digest, Sha256};
use stanchion_api::instance::Attribute;
use stanchion_api::user::ExistingRolePolicy;
use stanchion_kernel::Problem;
use stanchion_kernel::marks::{Found, Mark, Marks, Origin, Owner, Seal};
use stanchion_kernel::redact::Verdict;

use super::catalog::{Catalog, DatabaseFacts, RoleFacts};
use super::target::{Before, Identity, Wanted};

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

/// The claimant of the role itself.
pub fn claimant(wanted: &Wanted) -> Claimant<'_> {
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
        Some(Found { mark, seal }) if claimant.identity.owns(mark) => match seal {
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

/// The server assigns oids from here on only after it has created two thousand million objects.
const FIRST: u32 = 1 << 31;

/// The oid of the database of this name that the object with this uid creates.
pub fn database_oid(marks: &Marks, uid: &str, database: &str) -> u32 {
    number(&Sha256::digest(
        marks.key().mac("oid of a database", &[uid, database]),
    ))
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
pub fn is_own_database(
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
            let oids = [
                database_oid(marks, &identity.uid, name),
                former_database_oid(&identity.uid, name),
            ];
            oids.contains(&facts.oid) && is_owner_known
        }
    }
}

/// The oid of a database that does not exist yet.
pub const FRESH: u32 = 0;

/// Whether the operator created the database for this request, or is about to.
pub fn is_database_of(name: &str, wanted: &Wanted, facts: &DatabaseFacts, catalog: &Catalog) -> bool {
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
            .map(|(marks, uid, name)| database_oid(marks, uid, name))
            .to_vec();
        oids.push(former_database_oid("u-1", "app"));
        assert!(oids.iter().all(|oid| *oid >= FIRST));
        assert_eq!(database_oid(&one, "u-1", "app"), oids[0]);
        oids.sort_unstable();
        oids.dedup();
        assert_eq!(oids.len(), all.len() + 1);
    }
}
