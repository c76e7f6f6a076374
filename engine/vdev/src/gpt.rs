//! Partition tables, as far as needed to find the partitions of a disk.
//!
//! ```text
//!   sector 0   protective MBR
//!   sector 1   header: "EFI PART", its own checksum, where the entries are, how many, how long each
//!   sector 2   entries: type, unique id, first sector, last sector (included), flags, name
//!   ...
//!   last       a second header, in case the first is damaged
//! ```
//!
//! A sector is 512 or 4096 bytes; nothing in the table says which, so both are tried.

use std::ops::Range;
use std::sync::Arc;
use units::{Error, Result};
use world::{Disk, IoBuf};

const SIGNATURE: &[u8; 8] = b"EFI PART";
const HEADER: usize = 92;
/// The specification demands room for 128 entries of 128 bytes; no table in use has more than a few times that.
const TABLE_MAX: u64 = 1 << 20;

#[derive(Debug, PartialEq, Eq)]
struct Header {
    entries_at: u64,
    entries: u64,
    entry_len: u64,
    checksum: u32,
}

/// The byte ranges of the partitions of `disk`; none when it has no valid table.
pub async fn partitions(disk: &Arc<dyn Disk>) -> Vec<Range<u64>> {
    let size = disk.geometry().size;
    for sector in [512, 4096] {
        for at in [sector, (size / sector).saturating_sub(1) * sector] {
            if let Ok(found) = read_table(disk, sector, at).await {
                return found;
            }
        }
    }
    Vec::new()
}

async fn read_table(disk: &Arc<dyn Disk>, sector: u64, at: u64) -> Result<Vec<Range<u64>>> {
    let header = decode_header(&read(disk, at, HEADER as u64).await?)?;
    let len = header.entries * header.entry_len;
    let at =
        header.entries_at.checked_mul(sector).ok_or_else(|| Error::corrupt("partition table address"))?;
    let table = read(disk, at, len).await?;
    if crc32(&table) != header.checksum {
        return Err(Error::corrupt("partition entries checksum"));
    }
    let sectors = disk.geometry().size / sector;
    let ranges = table.chunks_exact(header.entry_len as usize).filter_map(|e| decode_entry(e, sectors));
    Ok(ranges.map(|r| r.start * sector..r.end * sector).collect())
}

/// Reads what the device can read around the bytes wanted.
async fn read(disk: &Arc<dyn Disk>, at: u64, len: u64) -> Result<Vec<u8>> {
    let geometry = disk.geometry();
    let unit = u64::from(geometry.logical_block);
    let start = at / unit * unit;
    let end = at.checked_add(len).map(|end| end.next_multiple_of(unit)).filter(|&end| end <= geometry.size);
    let end = end.ok_or_else(|| Error::corrupt("partition table beyond the end of the device"))?;
    let (buf, result) = disk.read(start, IoBuf::scratch((end - start) as usize)).await;
    result.map_err(|e| Error::new(units::Kind::Io, "read partition table").because(e))?;
    let skip = (at - start) as usize;
    Ok(buf[skip..skip + len as usize].to_vec())
}

fn decode_header(bytes: &[u8]) -> Result<Header> {
    let bad = |what: &str| Error::corrupt(format!("partition table {what}"));
    if bytes.len() < HEADER || &bytes[..8] != SIGNATURE {
        return Err(bad("signature"));
    }
    if u32_at(bytes, 12) as usize != HEADER {
        return Err(bad("header length"));
    }
    let mut blank = bytes[..HEADER].to_vec();
    blank[16..20].fill(0);
    if crc32(&blank) != u32_at(bytes, 16) {
        return Err(bad("header checksum"));
    }
    let header = Header {
        entries_at: u64_at(bytes, 72),
        entries: u32_at(bytes, 80).into(),
        entry_len: u32_at(bytes, 84).into(),
        checksum: u32_at(bytes, 88),
    };
    let sane = header.entry_len >= 128 && header.entry_len.is_multiple_of(8);
    if !sane || header.entries.saturating_mul(header.entry_len) > TABLE_MAX {
        return Err(bad("entry length or count"));
    }
    Ok(header)
}

/// The sectors of a partition that exists and lies on the device.
fn decode_entry(entry: &[u8], sectors: u64) -> Option<Range<u64>> {
    let used = entry[..16].iter().any(|&b| b != 0);
    let (first, last) = (u64_at(entry, 32), u64_at(entry, 40));
    (used && first <= last && last < sectors).then(|| first..last + 1)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// CRC-32 as in Ethernet, bit by bit: the table is read once per disk.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &b| {
        (0..8).fold(crc ^ u32::from(b), |c, _| (c >> 1) ^ if c & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_one_of_the_specification() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    fn header(entries: u32, entry_len: u32) -> Vec<u8> {
        let mut h = vec![0; HEADER];
        h[..8].copy_from_slice(SIGNATURE);
        h[12..16].copy_from_slice(&(HEADER as u32).to_le_bytes());
        h[72..80].copy_from_slice(&2u64.to_le_bytes());
        h[80..84].copy_from_slice(&entries.to_le_bytes());
        h[84..88].copy_from_slice(&entry_len.to_le_bytes());
        let crc = crc32(&h);
        h[16..20].copy_from_slice(&crc.to_le_bytes());
        h
    }

    #[test]
    fn a_header_is_believed_only_when_its_numbers_can_be() {
        let good = decode_header(&header(128, 128)).unwrap();
        assert_eq!(good, Header { entries_at: 2, entries: 128, entry_len: 128, checksum: 0 });
        for (entries, len) in [(u32::MAX, 128), (128, 0), (128, 64), (128, 132), (u32::MAX, u32::MAX)] {
            assert!(decode_header(&header(entries, len)).is_err(), "{entries} {len}");
        }
        let mut flipped = header(128, 128);
        flipped[80] ^= 1;
        assert!(decode_header(&flipped).is_err());
        assert!(decode_header(&[]).is_err());
    }

    #[test]
    fn an_entry_that_leaves_the_disk_is_no_partition() {
        let mut entry = vec![0u8; 128];
        assert_eq!(decode_entry(&entry, 100), None, "unused");
        entry[0] = 1;
        entry[32] = 10;
        entry[40] = 99;
        assert_eq!(decode_entry(&entry, 100), Some(10..100));
        assert_eq!(decode_entry(&entry, 99), None);
        entry[40] = 9;
        assert_eq!(decode_entry(&entry, 100), None);
    }
}
