//! System attributes: what a file's bonus holds, described by tables in the file system itself.
//!
//! ```text
//!   bonus   magic 2f505a │ layout, header size │ lengths of variable attributes │ values, in the layout's order
//!           4 bytes        2 bytes               2 bytes each, padded to 8
//! ```
//!
//! The registry gives each attribute a number, a length (0 for variable) and the size of its words, for machines of
//! the other byte order. A layout is a list of numbers; files with the same attributes share one.

/// One attribute as the registry has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    pub name: &'static str,
    pub number: u16,
    /// In bytes; 0 is variable.
    pub length: u16,
    pub swap: Swap,
}

/// How the bytes are turned over for a machine of the other order (`SA_*_ARRAY`, `SA_ACL`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Swap {
    Words64 = 0,
    Bytes = 3,
    Acl = 4,
}

const fn attribute(number: u16, name: &'static str, length: u16, swap: Swap) -> Attribute {
    Attribute { name, number, length, swap }
}

/// All attributes of files, in the order of their numbers.
pub const REGISTRY: [Attribute; 22] = [
    attribute(0, "ZPL_ATIME", 16, Swap::Words64),
    attribute(1, "ZPL_MTIME", 16, Swap::Words64),
    attribute(2, "ZPL_CTIME", 16, Swap::Words64),
    attribute(3, "ZPL_CRTIME", 16, Swap::Words64),
    attribute(4, "ZPL_GEN", 8, Swap::Words64),
    attribute(5, "ZPL_MODE", 8, Swap::Words64),
    attribute(6, "ZPL_SIZE", 8, Swap::Words64),
    attribute(7, "ZPL_PARENT", 8, Swap::Words64),
    attribute(8, "ZPL_LINKS", 8, Swap::Words64),
    attribute(9, "ZPL_XATTR", 8, Swap::Words64),
    attribute(10, "ZPL_RDEV", 8, Swap::Words64),
    attribute(11, "ZPL_FLAGS", 8, Swap::Words64),
    attribute(12, "ZPL_UID", 8, Swap::Words64),
    attribute(13, "ZPL_GID", 8, Swap::Words64),
    attribute(14, "ZPL_PAD", 32, Swap::Words64),
    attribute(15, "ZPL_ZNODE_ACL", 88, Swap::Bytes),
    attribute(16, "ZPL_DACL_COUNT", 8, Swap::Words64),
    attribute(17, "ZPL_SYMLINK", 0, Swap::Bytes),
    attribute(18, "ZPL_SCANSTAMP", 32, Swap::Bytes),
    attribute(19, "ZPL_DACL_ACES", 0, Swap::Acl),
    attribute(20, "ZPL_DXATTR", 0, Swap::Bytes),
    attribute(21, "ZPL_PROJID", 8, Swap::Words64),
];

impl Attribute {
    /// The registry's value: length, kind of words, number.
    pub fn encoded(&self) -> u64 {
        u64::from(self.length) << 24 | u64::from(self.swap as u8) << 16 | u64::from(self.number)
    }
}

/// The number of the layout that a new file system starts with; smaller ones are reserved.
pub const DIRECTORY_LAYOUT: u16 = 2;

/// The attributes of a directory without extended ones: fixed lengths first, then the ACL's entries.
pub const DIRECTORY: [u16; 14] = [5, 6, 4, 12, 13, 7, 11, 0, 1, 2, 3, 8, 16, 19];

/// The same where files have projects.
pub const DIRECTORY_OF_PROJECT: [u16; 15] = [5, 6, 4, 12, 13, 7, 11, 0, 1, 2, 3, 8, 21, 16, 19];

pub const MAGIC: u32 = 0x002f_505a;

/// What a new root directory says of itself.
#[derive(Clone, Copy, Debug)]
pub struct RootDirectory {
    pub id: u64,
    pub txg: u64,
    pub uid: u64,
    pub gid: u64,
    pub mode: u64,
    pub now: world::WallTime,
    /// It has an attribute for its project.
    pub has_project: bool,
}

pub const DIRECTORY_MODE: u64 = 0o040_000;
/// Archived, and changed since a virus scanner saw it: what every new file has.
pub const NEW_FILE: u64 = 0x0408_0000_0000;
/// Its ACL is trivial and inherited automatically, and everybody may execute it: what a root directory has besides.
pub const FLAGS: u64 = NEW_FILE | 0x144;

impl RootDirectory {
    /// The bonus: header, then the attributes of [`DIRECTORY`], or of [`DIRECTORY_OF_PROJECT`].
    pub fn bonus(&self) -> Vec<u8> {
        let aces = trivial_acl(self.mode | DIRECTORY_MODE);
        let mut bytes = Vec::with_capacity(168);
        bytes.extend(MAGIC.to_ne_bytes());
        // The header is one unit of 8 bytes long.
        bytes.extend((DIRECTORY_LAYOUT | 1 << 10).to_ne_bytes());
        bytes.extend((aces.len() as u16).to_ne_bytes());
        let time = [self.now.seconds, self.now.nanos.into()];
        let empty_size = 2; // "." and "..", which are not stored
        let links = 2;
        let flags = FLAGS | if self.has_project { crate::flags::PROJID } else { 0 };
        let words = [self.mode | DIRECTORY_MODE, empty_size, self.txg, self.uid, self.gid, self.id, flags];
        let times = [time; 4].concat();
        let project = self.has_project.then_some(0);
        let rest = [links].into_iter().chain(project).chain([aces.len() as u64 / 8]);
        for word in words.into_iter().chain(times).chain(rest) {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(aces);
        bytes
    }
}

const ACE_OWNER: u16 = 0x1000;
const ACE_GROUP: u16 = 0x2040;
const ACE_EVERYONE: u16 = 0x4000;
/// Reading attributes and ACLs, and waiting for the disk: granted to everybody.
const ALWAYS: u32 = 0x0012_0088;
/// Changing attributes, owner and ACL: the owner's.
const OWNER_ALWAYS: u32 = 0x000c_0110 | ALWAYS;
const READ: u32 = 0x1;
/// Changing what is in a file, or adding files and directories.
const WRITE: u32 = 0x2 | 0x4;
/// Of a directory also deleting what is in it.
const DELETE_CHILD: u32 = 0x40;
const EXECUTE: u32 = 0x20;

/// The ACL that says no more than the mode: one entry each for owner, group and everybody. Where somebody has a right that
/// somebody nearer to the file has not, entries before those see to that.
pub fn trivial_acl(mode: u64) -> Vec<u8> {
    let write = if mode & DIRECTORY_MODE != 0 { WRITE | DELETE_CHILD } else { WRITE };
    let rights = |bits: u64| {
        let pick = |bit, rights| if bits & bit != 0 { rights } else { 0 };
        pick(4, READ) | pick(2, write) | pick(1, EXECUTE)
    };
    let (owner, group, other) = (mode >> 6 & 7, mode >> 3 & 7, mode & 7);
    let (allow, deny) = (0u16, 1u16);
    let entries = [
        // The owner has it although the group, whose member he may be, is denied it.
        (allow, ACE_OWNER, rights(owner & !group & other)),
        (deny, ACE_OWNER, rights(!owner & (group | other))),
        (deny, ACE_GROUP, rights(!group & other)),
        (allow, ACE_OWNER, OWNER_ALWAYS | rights(owner)),
        (allow, ACE_GROUP, ALWAYS | rights(group)),
        (allow, ACE_EVERYONE, ALWAYS | rights(other)),
    ];
    let mut bytes = Vec::with_capacity(8 * entries.len());
    for (kind, who, rights) in entries.into_iter().filter(|(.., rights)| *rights != 0) {
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(who.to_ne_bytes());
        bytes.extend(rights.to_ne_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bonus of a root directory made by OpenZFS, but for times and the project id, which ours does not have.
    #[test]
    fn a_root_directory_has_the_attributes_that_openzfs_gives_it() {
        let now = world::WallTime { seconds: 0x6b00_cfe0, nanos: 0x090f_5f55 };
        let bonus =
            RootDirectory { id: 34, txg: 66, uid: 0, gid: 0, mode: 0o755, now, has_project: false }.bonus();
        let hex: String = bonus.iter().map(|b| format!("{b:02x}")).collect();
        let time = "e0cf006b00000000555f0f0900000000";
        let expected = [
            "5a502f0002041800",
            "ed41000000000000",
            "0200000000000000",
            "4200000000000000",
            "0000000000000000",
            "0000000000000000",
            "2200000000000000",
            "4401000008040000",
            &time.repeat(4),
            "0200000000000000",
            "0300000000000000",
            "00000010ff011e00",
            "00004020a9001200",
            "00000040a9001200",
        ];
        assert_eq!(hex, expected.concat());
    }

    #[test]
    fn the_registry_encodes_as_openzfs_stores_it() {
        let value = |name| REGISTRY.iter().find(|a| a.name == name).map(Attribute::encoded);
        assert_eq!(value("ZPL_ZNODE_ACL"), Some(0x5803_000f));
        assert_eq!(value("ZPL_DACL_ACES"), Some(0x0004_0013));
        assert_eq!(value("ZPL_CRTIME"), Some(0x1000_0003));
        assert!(REGISTRY.iter().enumerate().all(|(i, a)| usize::from(a.number) == i));
    }
}
