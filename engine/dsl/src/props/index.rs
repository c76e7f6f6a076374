//! The names of the values of index properties and their codes on disk.
//!
//! Where a code has several names the first is the one that is shown; the others are only read.

use super::Names;
use units::CHECKSUMS;

pub const BOOLEAN: Names = &[("off", 0), ("on", 1)];
/// For what is a question rather than a switch.
pub const YES_NO: Names = &[("no", 0), ("yes", 1)];

/// "Whatever this program finds best": not a function, so never in a block pointer.
pub const CHECKSUM_ON: u64 = 1;
pub const CHECKSUM: Names = &{
    let mut names = [("on", CHECKSUM_ON); 1 + CHECKSUMS_TO_SET];
    let (mut from, mut to) = (0, 1);
    while from < CHECKSUMS.len() {
        if CHECKSUMS[from].can_be_set {
            names[to] = (CHECKSUMS[from].name, CHECKSUMS[from].kind as u64);
            to += 1;
        }
        from += 1;
    }
    names
};

const CHECKSUMS_TO_SET: usize = {
    let (mut at, mut count) = (0, 0);
    while at < CHECKSUMS.len() {
        count += CHECKSUMS[at].can_be_set as usize;
        at += 1;
    }
    count
};

/// Set beside the checksum's code in `dedup`: compare the bytes, do not trust the checksum alone.
pub const DEDUP_VERIFY: u64 = 1 << 8;
pub const DEDUP: Names = &[
    ("on", CHECKSUM_ON),
    ("off", 2),
    ("verify", CHECKSUM_ON | DEDUP_VERIFY),
    ("sha256", 8),
    ("sha256,verify", 8 | DEDUP_VERIFY),
    ("sha512", 11),
    ("sha512,verify", 11 | DEDUP_VERIFY),
    ("skein", 12),
    ("skein,verify", 12 | DEDUP_VERIFY),
    ("edonr,verify", 13 | DEDUP_VERIFY),
    ("blake3", 14),
    ("blake3,verify", 14 | DEDUP_VERIFY),
];

pub const COMPRESSION_ON: u64 = 1;
/// The function is in the low seven bits, zstd's level above them.
pub const COMPRESSION_LEVEL_SHIFT: u32 = 7;
/// Codes of the fast levels: 1..=10 are consecutive, the sparse ones follow in this order.
pub const ZSTD_FAST_FIRST: u64 = 103;
pub const ZSTD_FAST_SPARSE: [u16; 11] = [20, 30, 40, 50, 60, 70, 80, 90, 100, 500, 1000];

const fn zstd(level: u64) -> u64 {
    16 | level << COMPRESSION_LEVEL_SHIFT
}

const fn fast(position: u64) -> u64 {
    zstd(ZSTD_FAST_FIRST + position)
}

pub const COMPRESSION: Names = &[
    ("on", COMPRESSION_ON),
    ("off", 2),
    ("lzjb", 3),
    ("gzip", 10),
    ("gzip-1", 5),
    ("gzip-2", 6),
    ("gzip-3", 7),
    ("gzip-4", 8),
    ("gzip-5", 9),
    ("gzip-6", 10),
    ("gzip-7", 11),
    ("gzip-8", 12),
    ("gzip-9", 13),
    ("zle", 14),
    ("lz4", 15),
    ("zstd", 16),
    ("zstd-fast", fast(0)),
    ("zstd-1", zstd(1)),
    ("zstd-2", zstd(2)),
    ("zstd-3", zstd(3)),
    ("zstd-4", zstd(4)),
    ("zstd-5", zstd(5)),
    ("zstd-6", zstd(6)),
    ("zstd-7", zstd(7)),
    ("zstd-8", zstd(8)),
    ("zstd-9", zstd(9)),
    ("zstd-10", zstd(10)),
    ("zstd-11", zstd(11)),
    ("zstd-12", zstd(12)),
    ("zstd-13", zstd(13)),
    ("zstd-14", zstd(14)),
    ("zstd-15", zstd(15)),
    ("zstd-16", zstd(16)),
    ("zstd-17", zstd(17)),
    ("zstd-18", zstd(18)),
    ("zstd-19", zstd(19)),
    ("zstd-fast-1", fast(0)),
    ("zstd-fast-2", fast(1)),
    ("zstd-fast-3", fast(2)),
    ("zstd-fast-4", fast(3)),
    ("zstd-fast-5", fast(4)),
    ("zstd-fast-6", fast(5)),
    ("zstd-fast-7", fast(6)),
    ("zstd-fast-8", fast(7)),
    ("zstd-fast-9", fast(8)),
    ("zstd-fast-10", fast(9)),
    ("zstd-fast-20", fast(10)),
    ("zstd-fast-30", fast(11)),
    ("zstd-fast-40", fast(12)),
    ("zstd-fast-50", fast(13)),
    ("zstd-fast-60", fast(14)),
    ("zstd-fast-70", fast(15)),
    ("zstd-fast-80", fast(16)),
    ("zstd-fast-90", fast(17)),
    ("zstd-fast-100", fast(18)),
    ("zstd-fast-500", fast(19)),
    ("zstd-fast-1000", fast(20)),
];

pub const ENCRYPTION_OFF: u64 = 2;
pub const ENCRYPTION: Names = &[
    ("on", 1),
    ("off", ENCRYPTION_OFF),
    ("aes-128-ccm", 3),
    ("aes-192-ccm", 4),
    ("aes-256-ccm", 5),
    ("aes-128-gcm", 6),
    ("aes-192-gcm", 7),
    ("aes-256-gcm", 8),
];
pub const KEYFORMAT: Names = &[("none", 0), ("raw", 1), ("hex", 2), ("passphrase", 3)];
pub const KEYSTATUS: Names = &[("none", 0), ("unavailable", 1), ("available", 2)];

pub const SNAPDIR: Names = &[("hidden", 0), ("visible", 1), ("disabled", 2)];
pub const SNAPDEV: Names = &[("hidden", 0), ("visible", 1)];
pub const ACLMODE: Names = &[("discard", 0), ("groupmask", 2), ("passthrough", 3), ("restricted", 4)];
pub const ACLTYPE: Names =
    &[("off", 0), ("posix", 1), ("nfsv4", 2), ("disabled", 0), ("noacl", 0), ("posixacl", 1)];
pub const ACLINHERIT: Names = &[
    ("discard", 0),
    ("noallow", 1),
    ("restricted", 4),
    ("passthrough", 3),
    ("secure", 4),
    ("passthrough-x", 5),
];
pub const CASE: Names = &[("sensitive", 0), ("insensitive", 1), ("mixed", 2)];
pub const COPIES: Names = &[("1", 1), ("2", 2), ("3", 3)];
pub const CANMOUNT: Names = &[("off", 0), ("on", 1), ("noauto", 2)];
pub const LOGBIAS: Names = &[("latency", 0), ("throughput", 1)];
pub const CACHE: Names = &[("none", 0), ("metadata", 1), ("all", 2)];
pub const SYNC: Names = &[("standard", 0), ("always", 1), ("disabled", 2)];
pub const XATTR: Names = &[("off", 0), ("on", 2), ("sa", 2), ("dir", 1)];
pub const DNODESIZE: Names =
    &[("legacy", 0), ("auto", 1), ("1k", 1024), ("2k", 2048), ("4k", 4096), ("8k", 8192), ("16k", 16384)];
pub const REDUNDANT_METADATA: Names = &[("all", 0), ("most", 1), ("some", 2), ("none", 3)];
pub const VOLMODE: Names = &[("default", 0), ("full", 1), ("geom", 1), ("dev", 2), ("none", 3)];
pub const DIRECT: Names = &[("disabled", 0), ("standard", 1), ("always", 2)];
pub const FAILMODE: Names = &[("wait", 0), ("continue", 1), ("panic", 2)];

/// What `version=current` means.
pub const ZPL_VERSION: u64 = 5;
pub const VERSION: Names = &[("1", 1), ("2", 2), ("3", 3), ("4", 4), ("5", 5), ("current", ZPL_VERSION)];

/// Bits of Unicode normalization: 0x10 canonical decomposition, 0x20 compatibility decomposition, 0x40 composition.
pub const NORMALIZATION: Names =
    &[("none", 0), ("formD", 0x10), ("formKC", 0x60), ("formC", 0x50), ("formKD", 0x20)];
