//! Changing what is said of a file: mode, owner, times, flags, extended attributes.

use super::COST;
use crate::attributes::{FLAGS, NO_EXECS_DENIED, trivial_acl};
use crate::node::Node;
use crate::refusal::Refusal;
use crate::sa::Attr;
use crate::stat::{Time, flags};
use ondisk::{NvList, NvValue};
use units::{Error, Kind, Result};

/// The largest value, and all of a file's together: as OpenZFS has it.
const VALUE_MAX: usize = 32 << 10;
const LIST_MAX: usize = 64 << 10;
const NAME_MAX: usize = 255;

/// What is to change; the rest stays as it is. The time of the change is always now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The lower twelve bits of the mode. The ACL becomes the one that says the same.
    pub permissions: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub atime: Option<Time>,
    pub mtime: Option<Time>,
    /// Those that users may set, of [`crate::flags`].
    pub flags: Option<u64>,
}

/// The flags that users may set.
const SETTABLE: u64 =
    flags::IMMUTABLE | flags::NOUNLINK | flags::APPENDONLY | flags::NODUMP | flags::PROJINHERIT;

impl Node {
    pub async fn change(&self, changes: &Changes) -> Result<()> {
        let fs = self.file_system();
        fs.writer()?;
        let mut file = self.load().await?;
        if changes.flags.is_none() {
            self.check_flags(&file.attributes, flags::IMMUTABLE, "change")?;
        }
        let mut own_flags = file.attributes.word(Attr::Flags).map_err(|e| self.place(e))?.unwrap_or(0);
        let tx = fs.begin(COST).await?;
        if let Some(permissions) = changes.permissions {
            let mode = file.word(Attr::Mode)? & !0o7777 | u64::from(permissions & 0o7777);
            let acl = trivial_acl(mode);
            file.set(Attr::Mode, &[mode])?;
            if !file.attributes.has(Attr::ZnodeAcl) {
                file.set(Attr::DaclCount, &[acl.len() as u64 / 8])?;
                file.attributes.set(Attr::DaclAces, &acl, fs.tables()).map_err(|e| self.place(e))?;
            }
            let trivial = FLAGS & 0xfff;
            let denied = if mode & 0o111 == 0o111 { 0 } else { NO_EXECS_DENIED };
            own_flags = (own_flags | trivial) & !denied;
        }
        if let Some(wanted) = changes.flags {
            own_flags = own_flags & !SETTABLE | wanted & SETTABLE;
        }
        file.set(Attr::Flags, &[own_flags])?;
        for (attr, id) in [(Attr::Uid, changes.uid), (Attr::Gid, changes.gid)] {
            if let Some(id) = id {
                file.set(attr, &[id.into()])?;
            }
        }
        for (attr, time) in [(Attr::Atime, changes.atime), (Attr::Mtime, changes.mtime)] {
            if let Some(time) = time {
                file.set(attr, &[time.seconds as u64, time.nanos.into()])?;
            }
        }
        file.touch(false)?;
        file.store(&tx).await
    }

    /// Sets an extended attribute, in the file's own attributes (`xattr=sa`).
    pub async fn set_xattr(&self, name: &[u8], value: &[u8]) -> Result<()> {
        let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty() && !name.contains('\0'));
        let name = name.ok_or_else(|| self.refuse(Refusal::NotUtf8, "set extended attribute"))?;
        if name.len() > NAME_MAX || value.len() > VALUE_MAX {
            return Err(self.refuse(Refusal::TooLarge, "set extended attribute"));
        }
        self.change_xattrs(|list| {
            list.set(name, NvValue::ByteArray(value.to_vec()));
            Ok(())
        })
        .await
    }

    /// Removes an extended attribute, which must be there.
    pub async fn remove_xattr(&self, name: &[u8]) -> Result<()> {
        let missing = || self.place(Error::new(Kind::NotFound, "remove extended attribute"));
        let name = std::str::from_utf8(name).map_err(|_| missing())?;
        self.change_xattrs(|list| match list.has(name) {
            true => {
                list.remove(name);
                Ok(())
            }
            false => Err(missing()),
        })
        .await
    }

    async fn change_xattrs(&self, change: impl FnOnce(&mut NvList) -> Result<()>) -> Result<()> {
        let fs = self.file_system();
        fs.writer()?;
        let mut file = self.load().await?;
        self.check_flags(&file.attributes, flags::IMMUTABLE, "change the extended attributes of")?;
        let mut list = match file.attributes.bytes(Attr::Dxattr) {
            Some(packed) if !packed.is_empty() => NvList::decode(packed).map_err(|e| self.place(e))?,
            _ => NvList::new(),
        };
        change(&mut list)?;
        let packed = list.encode();
        if packed.len() > LIST_MAX - 1 {
            return Err(self.refuse(Refusal::TooLarge, "set extended attribute"));
        }
        let tx = fs.begin(packed.len() as u64 + COST).await?;
        match list.is_empty() {
            true => file.attributes.remove(Attr::Dxattr),
            false => file.attributes.set(Attr::Dxattr, &packed, fs.tables()).map_err(|e| self.place(e))?,
        }
        file.touch(false)?;
        file.store(&tx).await
    }
}
