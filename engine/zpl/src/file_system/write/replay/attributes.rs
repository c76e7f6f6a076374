//! What is said of files.

use super::Replay;
use super::create::owner;
use crate::file_system::node::Node;
use crate::file_system::write::{COST, Changes};
use crate::flags;
use crate::sa::Attr;
use crate::stat::Time;
use ondisk::zil::{ExtendedAttributes, SetAttr, SetSaXattr};
use units::{Error, Result};

/// Which fields of a [`SetAttr`] count (`ATTR_*`).
pub(crate) mod mask {
    pub const MODE: u64 = 1;
    pub const UID: u64 = 1 << 1;
    pub const GID: u64 = 1 << 2;
    pub const SIZE: u64 = 1 << 3;
    pub const ATIME: u64 = 1 << 4;
    pub const MTIME: u64 = 1 << 5;
}

/// Bits of the map of [`ExtendedAttributes`], which are those of its values as well, and the flags of files that they
/// stand for.
pub(crate) const FLAGS: [(u32, u64); 14] = [
    (0x2, 0x8_0000_0000),  // archive
    (0x4, 0x4_0000_0000),  // system
    (0x8, 0x1_0000_0000),  // read-only
    (0x10, 0x2_0000_0000), // hidden
    (0x20, flags::NOUNLINK),
    (0x40, flags::IMMUTABLE),
    (0x80, flags::APPENDONLY),
    (0x100, flags::NODUMP),
    (0x200, 0x100_0000_0000),     // opaque
    (0x400, 0x200_0000_0000),     // quarantined
    (0x800, 0x400_0000_0000),     // modified since it was scanned
    (0x8000, 0x1000_0000_0000),   // offline
    (0x1_0000, 0x2000_0000_0000), // sparse
    (0x2_0000, flags::PROJINHERIT),
];
/// Others of these bits: the time of creation, and the project.
pub(crate) const CREATED: u32 = 0x1;
pub(crate) const PROJECT: u32 = 0x4_0000;
const SCANNED: u32 = 0x1000;
const REPARSE: u32 = 0x2000;

impl Replay {
    pub(super) async fn set_attributes(&self, set: &SetAttr<'_>) -> Result<()> {
        let node = self.node(set.object).await?;
        let has = |bit| set.mask & bit != 0;
        if has(mask::SIZE) {
            node.truncate(set.size).await?;
        }
        let changes = Changes {
            permissions: has(mask::MODE).then_some(set.mode as u32 & 0o7777),
            uid: has(mask::UID).then(|| owner(set.uid)).transpose()?,
            gid: has(mask::GID).then(|| owner(set.gid)).transpose()?,
            atime: has(mask::ATIME).then(|| Time::of(set.accessed)),
            mtime: has(mask::MTIME).then(|| Time::of(set.modified)),
            ..Changes::default()
        };
        node.change(&changes).await?;
        match &set.extended {
            Some(extended) => node.set_extended(extended).await,
            None => Ok(()),
        }
    }

    pub(super) async fn set_xattr(&self, set: &SetSaXattr<'_>) -> Result<()> {
        let node = self.node(set.object).await?;
        match set.value {
            b"" => node.remove_listed_xattr(set.name).await,
            value => node.set_xattr(set.name, value).await,
        }
    }
}

impl Node {
    /// Sets the attributes beyond those of POSIX that a record asks for.
    pub(super) async fn set_extended(&self, extended: &ExtendedAttributes) -> Result<()> {
        let asked = extended.requested.first().copied().unwrap_or(0);
        if asked & (SCANNED | REPARSE) != 0 {
            return Err(Error::unsupported("stamps of virus scanners and reparse points"));
        }
        let mut file = self.load().await?;
        let mut own = file.attributes.word(Attr::Flags).map_err(|e| self.place(e))?.unwrap_or(0);
        for (bit, flag) in FLAGS.into_iter().filter(|(bit, _)| asked & bit != 0) {
            let is_set = extended.values & u64::from(bit) != 0;
            own = if is_set { own | flag } else { own & !flag };
        }
        if asked & CREATED != 0 {
            file.set(Attr::Crtime, &extended.created)?;
        }
        file.set(Attr::Flags, &[own])?;
        let mut hidden = Vec::new();
        if asked & PROJECT != 0 {
            let project = extended.stamp.first_chunk().expect("a stamp has 32 bytes");
            file.put_project(u64::from_ne_bytes(*project))?;
            hidden = self.hidden_nodes().await?;
        }
        file.touch(false)?;
        let hidden = file.given_with(&hidden).await?;
        let tx = self.file_system().begin(COST).await?;
        file.store(&tx).await?;
        for one in &hidden {
            one.store(&tx).await?;
        }
        Ok(())
    }
}
