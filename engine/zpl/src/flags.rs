//! The bits of [`crate::Stat::flags`] (`ZFS_*`).

/// An extended attribute, or a directory of them.
pub const XATTR: u64 = 0x1;
/// What DOS knows: kept, and enforced only as far as it forbids writing.
pub const READONLY: u64 = 0x1_0000_0000;
pub const HIDDEN: u64 = 0x2_0000_0000;
pub const SYSTEM: u64 = 0x4_0000_0000;
pub const ARCHIVE: u64 = 0x8_0000_0000;
pub const IMMUTABLE: u64 = 0x10_0000_0000;
pub const NOUNLINK: u64 = 0x20_0000_0000;
pub const APPENDONLY: u64 = 0x40_0000_0000;
pub const NODUMP: u64 = 0x80_0000_0000;
/// What is made in the directory is of its project.
pub const PROJINHERIT: u64 = 0x4000_0000_0000;
/// The file has an attribute for its project.
pub const PROJID: u64 = 0x8000_0000_0000;
