//! Decides where the SQL of a plan is stored: in its status, compressed in a `ConfigMap`, or truncated.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

/// Largest SQL in a status, in bytes.
const INLINE: usize = 16 * 1024;
/// Largest compressed SQL in a `ConfigMap`, in bytes, leaving room for its metadata.
const STORED: usize = 900 * 1024;
/// The key in the `ConfigMap`.
pub(super) const KEY: &str = "plan.sql.gz";
/// The end of a truncated text.
const CUT: &str = "\n-- truncated for status --";

/// Where the SQL of a plan is stored.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// In the status.
    Inline(String),
    /// In a `ConfigMap`, compressed.
    Compressed(Vec<u8>),
    /// Its beginning, in the status.
    Truncated(String),
}

/// Decides by size.
pub(crate) fn storage(sql: &str) -> Storage {
    if sql.len() <= INLINE {
        return Storage::Inline(sql.to_owned());
    }
    match compress(sql) {
        Ok(bytes) if bytes.len() <= STORED => Storage::Compressed(bytes),
        _ => Storage::Truncated(truncated(sql).0),
    }
}

/// As much as fits into a status, and whether it is truncated.
pub(crate) fn truncated(sql: &str) -> (String, bool) {
    if sql.len() <= INLINE {
        return (sql.to_owned(), false);
    }
    let end = sql.floor_char_boundary(INLINE - CUT.len());
    // Cut between two statements if possible: half a statement is worse than none.
    let end = sql.get(..end).and_then(|text| text.rfind('\n')).unwrap_or(end);
    (format!("{}{CUT}", sql.get(..end).unwrap_or_default()), true)
}

fn compress(sql: &str) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(sql.as_bytes())?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use sha2::Digest as _;

    use super::*;

    #[test]
    fn the_place_follows_from_the_size() {
        assert_eq!(storage("SELECT 1;"), Storage::Inline("SELECT 1;".into()));
        let long = "GRANT SELECT ON TABLE \"s\".\"t\" TO \"r\";\n".repeat(5000);
        let Storage::Compressed(bytes) = storage(&long) else {
            panic!("not compressed")
        };
        let mut text = String::new();
        GzDecoder::new(bytes.as_slice())
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, long);
    }

    #[test]
    fn what_does_not_compress_is_cut_between_statements() {
        let noise = |n: u64| format!("{:x}\n", sha2::Sha256::digest(n.to_be_bytes()));
        let long: String = (0..40_000).map(noise).collect();
        let Storage::Truncated(text) = storage(&long) else {
            panic!("not truncated")
        };
        assert!(text.len() <= INLINE && text.ends_with(CUT));
        assert!(long.starts_with(&text[..text.len() - CUT.len()]));
    }
}
