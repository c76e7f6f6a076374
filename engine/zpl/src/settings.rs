//! What the properties of a dataset say about how its files are kept.
//!
//! They may change while the file system is open: each operation looks at them once, when it begins.

use crate::file_system::FileSystem;
use std::sync::PoisonError;
use units::{Error, Result};

/// `xattr`: where new extended attributes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Xattrs {
    /// There are none to be set.
    Off,
    /// Each is a file in a hidden directory.
    Directory,
    /// With the attributes of the file itself, as far as they fit there.
    Attribute,
}

/// `atime` and `relatime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atime {
    Off,
    /// When the file has changed since it was last read, or a day has passed.
    Relative,
    On,
}

/// `acltype`: which lists are in force besides the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AclType {
    Off,
    Posix,
    Nfs4,
}

/// `aclmode`: what becomes of a list when the mode is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AclMode {
    /// It becomes one that says what the mode says.
    Discard,
    /// Nobody named in it keeps more than the group has.
    GroupMask,
    /// Only what it says of owner, group and everyone changes.
    Passthrough,
    /// The mode of a file with such a list cannot be set.
    Restricted,
}

/// `aclinherit`: which entries of a directory's list new files take over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AclInherit {
    Discard,
    /// Only those that deny.
    NoAllow,
    /// Without the rights to change list and owner.
    Restricted,
    Passthrough,
    /// Owner, group and everyone may execute only what the mode asked for says.
    PassthroughExecute,
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `recordsize`: how large the blocks of new files grow.
    pub record_size: u64,
    pub xattr: Xattrs,
    /// Of the dnodes of new files, in bytes: a multiple of 512 up to 16 KiB; `dnodesize=legacy` is 512.
    pub dnode_size: u16,
    /// Indirect blocks of new files are 2 to the power of this, in bytes.
    pub indirect_shift: u8,
    /// The log may have records of extended attributes in dnodes: the pool has the feature `zilsaxattr`.
    pub logs_xattrs: bool,
    /// Names of up to 1023 bytes may be made.
    pub long_names: bool,
    pub atime: Atime,
    pub acl_type: AclType,
    pub acl_mode: AclMode,
    pub acl_inherit: AclInherit,
    /// Of users, groups and projects that have none of their own, bytes first, then objects; 0 is none.
    pub default_quotas: [[u64; 3]; 2],
}

impl Settings {
    /// The slots of a new file's dnode.
    pub(crate) fn slots(&self) -> u8 {
        (self.dnode_size / 512).clamp(1, 32) as u8
    }

    /// The longest name that may be made, in bytes.
    pub fn name_max(&self) -> usize {
        if self.long_names { zap::LONG_NAME_MAX - 1 } else { zap::NAME_MAX - 1 }
    }
}

impl Default for Settings {
    /// What the properties are when nobody has set them.
    fn default() -> Settings {
        Settings {
            record_size: 128 << 10,
            xattr: Xattrs::Attribute,
            dnode_size: 512,
            indirect_shift: 17,
            logs_xattrs: false,
            long_names: false,
            atime: Atime::Relative,
            acl_type: AclType::Off,
            acl_mode: AclMode::Discard,
            acl_inherit: AclInherit::Restricted,
            default_quotas: [[0; 3]; 2],
        }
    }
}

impl FileSystem {
    /// What is in force; of a file system that is only read, the defaults.
    pub fn settings(&self) -> Settings {
        match &self.0.writer {
            // Under this lock a value is copied.
            Some(writer) => *writer.settings.lock().unwrap_or_else(PoisonError::into_inner),
            None => Settings::default(),
        }
    }

    /// Follows properties that have changed. What is there stays as it is.
    pub fn set_settings(&self, settings: Settings) -> Result<()> {
        if !(512..=16 << 10).contains(&settings.dnode_size) || !settings.dnode_size.is_multiple_of(512) {
            return Err(Error::invalid(format!("dnodes of {} bytes", settings.dnode_size)));
        }
        if let Some(writer) = &self.0.writer {
            *writer.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
        }
        Ok(())
    }
}
