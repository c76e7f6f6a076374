//! Changing what is said of a file: mode, owner, times, flags, extended attributes.

use super::COST;
use super::replay::{FLAGS as FLAG_BITS, mask};
use crate::attributes::{FLAGS, NO_EXECS_DENIED, trivial_acl};
use crate::node::Node;
use crate::refusal::Refusal;
use crate::sa::Attr;
use crate::stat::{Time, flags};
use ondisk::zil::{ExtendedAttributes, SetAttr};
use ondisk::{NvList, NvValue, Record};
use units::{Error, Kind, ObjectId, Result};

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
        file.store(&tx).await?;
        match file.word(Attr::Links)? {
            0 => tx.needs_no_record(),
            _ => tx.log(Record::SetAttr(record_of(self.id().object, changes))),
        }
        drop((tx, file));
        fs.settle().await
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
        file.store(&tx).await?;
        drop((tx, file));
        fs.settle().await
    }
}

/// What the log says of a change of attributes.
fn record_of(object: ObjectId, changes: &Changes) -> SetAttr<'static> {
    let Changes { permissions, uid, gid, atime, mtime, flags } = *changes;
    let extended = flags.map(|wanted| {
        let asked = FLAG_BITS.into_iter().filter(|(_, flag)| SETTABLE & flag != 0);
        let (bits, set) = asked.fold((0, 0), |(bits, set), (bit, flag)| {
            (bits | bit, if wanted & flag != 0 { set | bit } else { set })
        });
        ExtendedAttributes { requested: vec![bits, 0, 0], values: set.into(), ..Default::default() }
    });
    let has = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
    let words = |time: Option<Time>| time.map_or([0, 0], |time| [time.seconds as u64, time.nanos.into()]);
    SetAttr {
        object,
        mask: has(permissions.is_some(), mask::MODE)
            | has(uid.is_some(), mask::UID)
            | has(gid.is_some(), mask::GID)
            | has(atime.is_some(), mask::ATIME)
            | has(mtime.is_some(), mask::MTIME)
            | has(extended.is_some(), SetAttr::HAS_EXTENDED),
        mode: permissions.unwrap_or(0).into(),
        uid: uid.unwrap_or(0).into(),
        gid: gid.unwrap_or(0).into(),
        size: 0,
        accessed: words(atime),
        modified: words(mtime),
        extended,
        domains: Vec::new(),
    }
}
