//! Writes ZIP files.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// Version 2.0 of the format: folders and deflate.
const VERSION: u16 = 20;
/// Names are UTF-8.
const FLAGS: u16 = 1 << 11;
const DEFLATE: u16 = 8;
/// 1980-01-01: the report itself contains its time.
const DATE: u16 = (1 << 5) | 1;

struct Entry {
    name: Vec<u8>,
    crc: u32,
    packed: u32,
    size: u32,
    offset: u32,
}

fn too_large() -> io::Error {
    io::Error::other("the report is larger than 4 GiB")
}

/// Writes these files.
pub(super) fn write(out: &mut impl Write, files: &[(String, Vec<u8>)]) -> io::Result<()> {
    let mut entries = Vec::new();
    let mut offset: u32 = 0;
    for (name, content) in files {
        let mut crc = flate2::Crc::new();
        crc.update(content);
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content)?;
        let packed = encoder.finish()?;
        let entry = Entry {
            name: name.as_bytes().to_vec(),
            crc: crc.sum(),
            packed: u32::try_from(packed.len()).map_err(|_| too_large())?,
            size: u32::try_from(content.len()).map_err(|_| too_large())?,
            offset,
        };
        let mut header = vec![b'P', b'K', 3, 4];
        header.extend(description(&entry)?);
        header.extend([0, 0]);
        header.extend(&entry.name);
        out.write_all(&header)?;
        out.write_all(&packed)?;
        let length = u32::try_from(header.len() + packed.len()).map_err(|_| too_large())?;
        offset = offset.checked_add(length).ok_or_else(too_large)?;
        entries.push(entry);
    }
    let mut directory = Vec::new();
    for entry in &entries {
        directory.extend([b'P', b'K', 1, 2]);
        directory.extend(VERSION.to_le_bytes());
        directory.extend(description(entry)?);
        // Neither extra field nor comment; the first disk; no attributes.
        directory.extend([0; 12]);
        directory.extend(entry.offset.to_le_bytes());
        directory.extend(&entry.name);
    }
    let count = u16::try_from(entries.len()).map_err(|_| io::Error::other("too many files"))?;
    let size = u32::try_from(directory.len()).map_err(|_| too_large())?;
    out.write_all(&directory)?;
    let mut end = vec![b'P', b'K', 5, 6, 0, 0, 0, 0];
    end.extend(count.to_le_bytes());
    end.extend(count.to_le_bytes());
    end.extend(size.to_le_bytes());
    end.extend(offset.to_le_bytes());
    end.extend([0, 0]);
    out.write_all(&end)?;
    out.flush()
}

/// The common part of both headers of a file, up to the length of its name.
fn description(entry: &Entry) -> io::Result<Vec<u8>> {
    let name = u16::try_from(entry.name.len()).map_err(|_| io::Error::other("a name is too long"))?;
    let mut bytes = Vec::new();
    for number in [VERSION, FLAGS, DEFLATE, 0, DATE] {
        bytes.extend(number.to_le_bytes());
    }
    for number in [entry.crc, entry.packed, entry.size] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(name.to_le_bytes());
    Ok(bytes)
}
