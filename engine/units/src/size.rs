//! Sizes, and how people write them.

use std::fmt;

/// The unit of addresses on disk, whatever the devices' own sectors: 512 bytes.
pub const SECTOR: u64 = 1 << SECTOR_SHIFT;
pub const SECTOR_SHIFT: u32 = 9;

/// A count of 512-byte sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sectors(pub u64);

impl Sectors {
    pub fn bytes(self) -> u64 {
        self.0 << SECTOR_SHIFT
    }

    /// The sectors that `bytes` fill exactly; the caller has aligned them.
    pub fn of(bytes: u64) -> Sectors {
        debug_assert!(bytes.is_multiple_of(SECTOR), "{bytes} is not a whole number of sectors");
        Sectors(bytes >> SECTOR_SHIFT)
    }
}

/// Bytes the caller sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsize(pub u64);
/// Bytes after compression, as checksummed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Psize(pub u64);
/// Bytes taken from the devices: parity, padding and gang headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Asize(pub u64);

const SUFFIXES: &str = "BKMGTPEZ";

/// Reads `128K`, `1.5G`, `1T`, `4096`, `16KiB`, `10mb`: powers of 1024 whatever the spelling, as `zfs` does.
///
/// The error is a phrase that fits after "bad size 'x': ".
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, suffix) = text.split_at(split);
    if digits.is_empty() {
        return Err("a size starts with a number, as in 16K".into());
    }
    let shift =
        parse_suffix(suffix).ok_or_else(|| format!("'{suffix}' is no unit; use B, K, M, G, T, P or E"))?;
    let too_large = || "it does not fit in 64 bits".to_string();
    if !digits.contains('.') {
        let n: u64 = digits.parse().map_err(|_| too_large())?;
        return n.checked_mul(1u64 << shift).ok_or_else(too_large);
    }
    let n: f64 = digits.parse().map_err(|_| format!("'{digits}' is not a number"))?;
    let bytes = n * (1u64 << shift) as f64;
    if bytes >= u64::MAX as f64 { Err(too_large()) } else { Ok(bytes as u64) }
}

fn parse_suffix(suffix: &str) -> Option<u32> {
    let mut letters = suffix.chars().map(|c| c.to_ascii_uppercase());
    let Some(first) = letters.next() else { return Some(0) };
    let index = SUFFIXES.find(first).filter(|&i| i < 7)?;
    let rest: String = letters.collect();
    matches!(rest.as_str(), "" | "B" | "IB").then_some(10 * index as u32)
}

/// Writes a size as `zfs list` does: at most five characters, three significant digits, a unit.
///
/// ```
/// assert_eq!(units::pretty_size(1536), "1.50K");
/// assert_eq!(units::pretty_size(1 << 40), "1T");
/// ```
pub fn pretty_size(bytes: u64) -> String {
    let mut index = 0;
    let mut n = bytes;
    while n >= 1024 && index < 6 {
        n /= 1024;
        index += 1;
    }
    let unit = &SUFFIXES[index..=index];
    if index == 0 || bytes & ((1u64 << (10 * index)) - 1) == 0 {
        return format!("{n}{unit}");
    }
    let value = bytes as f64 / (1u64 << (10 * index)) as f64;
    (0..=2)
        .rev()
        .map(|digits| format!("{value:.digits$}{unit}"))
        .find(|s| s.len() <= 5)
        .unwrap_or_else(|| format!("{n}{unit}"))
}

impl fmt::Display for Sectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_zfs_reads_them() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("16K", 16384),
            ("16k", 16384),
            ("1.5G", 3 << 29),
            ("1T", 1 << 40),
            ("8KiB", 8192),
            ("8kb", 8192),
            ("7B", 7),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "K", "1X", "99999999999999999999", "16E", "1.2.3K", "-1", "1KX"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_written_as_zfs_writes_them() {
        for (bytes, text) in [
            (0, "0B"),
            (512, "512B"),
            (1024, "1K"),
            (98304, "96K"),
            (100_000, "97.7K"),
            (1_000_000, "977K"),
            (1536 << 20, "1.50G"),
            (u64::MAX, "16.0E"),
        ] {
            assert_eq!(pretty_size(bytes), text, "{bytes}");
        }
    }
}
