//! What a file says of itself: the attributes, decoded.

use crate::sa::{Attr, Attributes};
use units::{Error, ObjectId, Result};

/// The kinds of files, by the upper bits of a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FileKind {
    Fifo = 1,
    CharDevice = 2,
    Directory = 4,
    BlockDevice = 6,
    Regular = 8,
    Symlink = 10,
    Socket = 12,
}

impl FileKind {
    pub(crate) fn from_code(code: u64) -> Option<FileKind> {
        use FileKind::*;
        [Fifo, CharDevice, Directory, BlockDevice, Regular, Symlink, Socket]
            .into_iter()
            .find(|k| *k as u64 == code)
    }

    /// As `S_IFMT` masks it out of a mode.
    pub fn mode_bits(self) -> u32 {
        u32::from(self as u8) << 12
    }

    /// As `find -type` and `ls` write it.
    pub fn letter(self) -> char {
        match self {
            FileKind::Fifo => 'p',
            FileKind::CharDevice => 'c',
            FileKind::Directory => 'd',
            FileKind::BlockDevice => 'b',
            FileKind::Regular => 'f',
            FileKind::Symlink => 'l',
            FileKind::Socket => 's',
        }
    }
}

/// Seconds since 1970, UTC; negative before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    pub seconds: i64,
    pub nanos: u32,
}

impl Time {
    pub(crate) fn of(words: [u64; 2]) -> Time {
        Time { seconds: words[0] as i64, nanos: words[1].min(999_999_999) as u32 }
    }

    pub fn as_nanos(self) -> i128 {
        i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos)
    }
}

/// The owner of files whose owner is of another system's domain.
const NOBODY: u32 = 65534;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    pub object: ObjectId,
    /// The txg the file was made in: tells it from others that had its object number.
    pub generation: u64,
    pub kind: FileKind,
    /// The lower twelve bits of the mode.
    pub permissions: u32,
    pub uid: u32,
    pub gid: u32,
    pub links: u64,
    /// In bytes; of a directory its entries, "." and ".." included.
    pub size: u64,
    /// What it takes on the devices, in units of 512 bytes, its dnode included.
    pub blocks: u64,
    pub block_size: u32,
    pub atime: Time,
    pub mtime: Time,
    pub ctime: Time,
    pub crtime: Time,
    /// Major and minor number; zero but for devices.
    pub rdev: (u32, u32),
    pub flags: u64,
    pub project: u64,
    pub parent: ObjectId,
    /// The directory of extended attributes, if there is one.
    pub xattr_dir: Option<ObjectId>,
}

impl Stat {
    /// Of the object's share, `blocks` and `block_size`, the caller knows.
    pub(crate) fn decode(object: ObjectId, attributes: &Attributes) -> Result<Stat> {
        let mode = attributes.require(Attr::Mode)?;
        let kind = kind_of(mode)?;
        let id = |attr| attributes.require(attr).map(|id| u32::try_from(id).unwrap_or(NOBODY));
        let time = |attr| Ok::<_, Error>(Time::of(attributes.words(attr)?.unwrap_or_default()));
        let is_device = matches!(kind, FileKind::CharDevice | FileKind::BlockDevice);
        let rdev = if is_device { attributes.word(Attr::Rdev)?.unwrap_or(0) } else { 0 };
        let flags = attributes.word(Attr::Flags)?.unwrap_or(0);
        let project = attributes.word(Attr::Projid)?.filter(|_| flags & crate::flags::PROJID != 0);
        Ok(Stat {
            object,
            generation: attributes.require(Attr::Gen)?,
            kind,
            permissions: (mode & 0o7777) as u32,
            uid: id(Attr::Uid)?,
            gid: id(Attr::Gid)?,
            links: attributes.require(Attr::Links)?,
            size: attributes.require(Attr::Size)?,
            blocks: 0,
            block_size: 0,
            atime: time(Attr::Atime)?,
            mtime: time(Attr::Mtime)?,
            ctime: time(Attr::Ctime)?,
            crtime: time(Attr::Crtime)?,
            rdev: device(rdev),
            flags,
            project: project.unwrap_or(0),
            parent: ObjectId(attributes.require(Attr::Parent)?),
            xattr_dir: attributes.word(Attr::Xattr)?.and_then(|id| ObjectId(id).some()),
        })
    }

    /// Permissions and kind together, as `st_mode` has them.
    pub fn mode(&self) -> u32 {
        self.kind.mode_bits() | self.permissions
    }
}

pub(crate) fn kind_of(mode: u64) -> Result<FileKind> {
    let unknown = || Error::corrupt(format!("attribute ZPL_MODE: no file has mode {mode:o}"));
    FileKind::from_code(mode >> 12).ok_or_else(unknown)
}

/// A device number as Linux keeps it in memory, 12 and 20 bits; from illumos it comes as 32 and 32.
pub(crate) fn device(rdev: u64) -> (u32, u32) {
    if rdev >> 32 != 0 {
        return ((rdev >> 32) as u32, rdev as u32);
    }
    ((rdev >> 20) as u32, (rdev & 0xf_ffff) as u32)
}
