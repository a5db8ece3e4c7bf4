//! Proves that the operator created a database: by its mark, and until that is written, by its oid.
//!
//! A status can be written before a crash, and the database never be created, or be created by somebody else; and a
//! comment cannot be set in the statement that creates a database. The oid can (PostgreSQL 15): it is derived from the
//! uid of the object, the name of the database and the installation's key, so nothing needs to be stored, and nobody
//! else can predict it. The mark follows in the next transaction. Only a database that is ours by one of the two is
//! ever dropped.

use sha2::{Digest, Sha256};
use stanchion_kernel::marks::{Marks, Seal};

use super::catalog::DatabaseFacts;
use super::plan::ownership::is_own;
use super::target::Identity;

/// The server assigns oids from here on only after it has created two thousand million objects.
const FIRST: u32 = 1 << 31;

/// The oid of the database of this name that the object with this uid creates.
pub fn oid(marks: &Marks, uid: &str, database: &str) -> u32 {
    number(&Sha256::digest(
        marks.key().mac("oid of a database", &[uid, database]),
    ))
}

/// The same in earlier versions, which used no key.
fn former_oid(uid: &str, database: &str) -> u32 {
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
pub fn is_ours(
    marks: &Marks,
    identity: &Identity,
    name: &str,
    facts: &DatabaseFacts,
    owners: [&str; 2],
) -> bool {
    let is_owner_known = owners.contains(&facts.owner.as_str());
    match &facts.mark {
        Some(found) if !found.is_unproven() => found.seal == Seal::Valid && is_own(&found.mark, identity),
        // Only its owner can have written it.
        Some(found) if is_own(&found.mark, identity) => is_owner_known,
        _ => {
            let oids = [oid(marks, &identity.uid, name), former_oid(&identity.uid, name)];
            oids.contains(&facts.oid) && is_owner_known
        }
    }
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
        let mut oids = all.map(|(marks, uid, name)| oid(marks, uid, name)).to_vec();
        oids.push(former_oid("u-1", "app"));
        assert!(oids.iter().all(|oid| *oid >= FIRST));
        assert_eq!(oid(&one, "u-1", "app"), oids[0]);
        oids.sort_unstable();
        oids.dedup();
        assert_eq!(oids.len(), all.len() + 1);
    }
}
