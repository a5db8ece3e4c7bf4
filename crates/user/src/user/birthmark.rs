//! How a database tells that we made it: by its oid.
//!
//! A status can be written before a crash and the database after it never be made, or be made by somebody else; and a
//! comment cannot be set in the statement that makes a database. The oid can (PostgreSQL 15): it follows from the uid of
//! the object and the name of the database, so it takes no memory, and is no other's by chance. Only a database that
//! carries it is ever dropped.

use sha2::{Digest, Sha256};

/// From here on the server gives none away before it has made two thousand million objects.
const FIRST: u32 = 1 << 31;

/// The oid of the database of this name that the object with this uid makes.
pub fn oid(uid: &str, database: &str) -> u32 {
    let digest = Sha256::new()
        .chain_update(uid)
        .chain_update([0])
        .chain_update(database)
        .finalize();
    let start = digest.iter().take(4);
    FIRST | start.fold(0, |number, byte| number << 8 | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_and_every_name_has_its_own() {
        let all = [("u-1", "app"), ("u-2", "app"), ("u-1", "other"), ("u-1a", "pp")];
        let mut oids = all.map(|(uid, name)| oid(uid, name)).to_vec();
        assert!(oids.iter().all(|oid| *oid >= FIRST));
        assert_eq!(oid("u-1", "app"), oids[0]);
        oids.sort_unstable();
        oids.dedup();
        assert_eq!(oids.len(), all.len());
    }
}
