//! Gives a copied data directory its own system identifier.
//!
//! All servers start from a copy of one data directory, so all would have the same system identifier, and code that
//! distinguishes servers by it would take two servers for one. The downloaded packages do not contain `pg_resetwal`,
//! but the identifier is in two places only: the beginning of `pg_control`, which ends with a checksum, and the first
//! page of each WAL segment.

use std::{
    fs::{self, File},
    io::{Seek, SeekFrom, Write},
    path::Path,
};

use crate::error::{Attempt, Error};

/// Offset of the identifier in the long header of a WAL segment (after magic, info, timeline, address and remaining
/// length, aligned to eight bytes).
const OFFSET_IN_SEGMENT: u64 = 24;

/// Writes `identifier` into the data directory of a server that is not running.
pub(super) fn set(data: &Path, identifier: u64) -> Result<(), Error> {
    let control = data.join("global/pg_control");
    let bytes = fs::read(&control).attempting(|| format!("read {}", control.display()))?;
    let bytes = with_identifier(bytes, identifier).ok_or_else(|| Error::Missing {
        what: format!("the checksum of {}", control.display()),
        remedy: "see what this version of PostgreSQL writes there".to_owned(),
    })?;
    fs::write(&control, bytes).attempting(|| format!("write {}", control.display()))?;
    let log = data.join("pg_wal");
    for file in fs::read_dir(&log)
        .attempting(|| format!("read {}", log.display()))?
        .flatten()
    {
        if file.file_type().is_ok_and(|kind| kind.is_file()) {
            let path = file.path();
            overwrite(&path, identifier).attempting(|| format!("write {}", path.display()))?;
        }
    }
    Ok(())
}

fn overwrite(segment: &Path, identifier: u64) -> std::io::Result<()> {
    let mut file = File::options().write(true).open(segment)?;
    file.seek(SeekFrom::Start(OFFSET_IN_SEGMENT))?;
    file.write_all(&identifier.to_ne_bytes())
}

/// `pg_control` with another identifier and the matching checksum.
///
/// The offset of the checksum differs between versions; it is where the stored number is the checksum of everything
/// before it.
fn with_identifier(mut control: Vec<u8>, identifier: u64) -> Option<Vec<u8>> {
    let end = (8..=control.len().saturating_sub(4))
        .step_by(4)
        .find(|&end| control[end..end + 4] == crc32c(&control[..end]).to_ne_bytes())?;
    control[..8].copy_from_slice(&identifier.to_ne_bytes());
    let checksum = crc32c(&control[..end]).to_ne_bytes();
    control[end..end + 4].copy_from_slice(&checksum);
    Some(control)
}

fn crc32c(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (POLYNOMIAL * (crc & 1))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{crc32c, with_identifier};

    #[test]
    fn the_checksum_is_crc32c() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn only_identifier_and_checksum_change() {
        let mut control = vec![7_u8; 40];
        let checksum = crc32c(&control[..32]).to_ne_bytes();
        control[32..36].copy_from_slice(&checksum);
        let changed = with_identifier(control.clone(), 42).unwrap();
        assert_eq!(changed[..8], 42_u64.to_ne_bytes());
        assert_eq!(changed[8..32], control[8..32]);
        assert_eq!(changed[32..36], crc32c(&changed[..32]).to_ne_bytes());
        assert_eq!(changed[36..], control[36..]);
        assert_eq!(with_identifier(vec![7; 40], 42), None);
    }
}
