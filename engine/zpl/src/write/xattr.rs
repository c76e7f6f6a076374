//! Setting and removing extended attributes.
//!
//! ```text
//!   xattr=sa    into the nvlist of the file, while value and list are small enough; else as xattr=dir
//!   xattr=dir   into a file of its own, in the hidden directory of the file, which is made with the first of them
//! ```
//!
//! A name is in one of the two places afterwards, never in both: it is taken out of the other in the same transaction.
//! POSIX lists are what the mode shows, so setting one sets the mode.

use super::make::Plan;
use super::names::entry;
use super::{COST, Loaded};
use crate::accounts::owner_of;
use crate::node::Node;
use crate::posix_acl::{self, PosixAcl};
use crate::quotas::Resource;
use crate::refusal::Refusal;
use crate::sa::Attr;
use crate::settings::{AclType, Xattrs};
use crate::stat::{FileKind, flags};
use dmu::{Object, Tx};
use ondisk::{NvList, NvValue};
use units::{Error, Kind, Result};

/// The largest value in the nvlist, and all of them together: as OpenZFS has it.
const LISTED_MAX: usize = 32 << 10;
const LIST_MAX: usize = 64 << 10;
/// The largest value in a file: what is read back, see `xattr.rs`.
const VALUE_MAX: usize = 16 << 20;
const NAME_MAX: usize = 255;

/// Whether there is one of the name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XattrMode {
    #[default]
    Any,
    /// There must be none.
    Create,
    /// There must be one.
    Replace,
}

/// What the hidden directory has, looked up before anything changes.
struct Hidden {
    directory: Option<Node>,
    file: Option<Node>,
}

impl Node {
    /// Sets an extended attribute; its name has its namespace in front, as `user.` or `security.`.
    pub async fn set_xattr(&self, name: &[u8], value: &[u8]) -> Result<()> {
        self.set_xattr_if(name, value, XattrMode::Any).await
    }

    /// As [`Node::set_xattr`], if there is one of the name or none, as asked for.
    pub async fn set_xattr_if(&self, name: &[u8], value: &[u8], mode: XattrMode) -> Result<()> {
        const DOING: &str = "set extended attribute";
        // A slash is a letter as any other: nobody looks them up by paths.
        if matches!(name, b"" | b"." | b"..") || name.contains(&0) {
            return Err(self.place(Error::invalid("an extended attribute needs a name")));
        }
        if name.len() > NAME_MAX {
            return Err(self.refuse(Refusal::NameTooLong, DOING));
        }
        if value.len() > VALUE_MAX {
            return Err(self.refuse(Refusal::TooLarge, DOING));
        }
        let is_replay = self.file_system().writer()?.replaying_in().is_some();
        let mut settings = self.file_system().settings();
        if is_replay {
            // The log has only those that went into the list, and what it has was allowed.
            settings.xattr = Xattrs::Attribute;
        }
        if settings.xattr == Xattrs::Off {
            return Err(self.refuse(Refusal::SwitchedOff, DOING));
        }
        let posix = if is_replay { None } else { self.posix_list(name, value, settings.acl_type)? };
        let mut file = self.load().await?;
        self.check_flags(&file.attributes, flags::IMMUTABLE | flags::APPENDONLY, DOING)?;
        let mut list = self.listed(&file)?;
        let hidden = self.hidden(name).await?;
        let listed = std::str::from_utf8(name).ok();
        let exists = hidden.file.is_some() || listed.is_some_and(|name| list.has(name));
        match mode {
            XattrMode::Create if exists => return Err(self.place(Error::new(Kind::Exists, DOING))),
            XattrMode::Replace if !exists => return Err(self.place(Error::new(Kind::NotFound, DOING))),
            _ => {}
        }
        let owner = owner_of(&file.attributes).map_err(|e| self.place(e))?;
        let goes_into_list = settings.xattr == Xattrs::Attribute && value.len() <= LISTED_MAX;
        let packed = match listed.filter(|_| goes_into_list) {
            Some(name) => {
                list.set(name, NvValue::ByteArray(value.to_vec()));
                Some(list.encode()).filter(|packed| packed.len() < LIST_MAX)
            }
            None => None,
        };
        if let Some(posix) = posix {
            self.follow_posix_list(&mut file, &posix)?;
            if posix.is_mode() {
                // The mode says it all.
                return self.take_away(file, name, hidden).await;
            }
        }
        if let Some(packed) = packed {
            self.file_system().check_quota(owner, &[Resource::Space], DOING).await?;
            let tx = self.file_system().begin(packed.len() as u64 + COST).await?;
            self.remove_hidden(&tx, &hidden, name).await?;
            file.attributes
                .set(Attr::Dxattr, &packed, self.file_system().tables())
                .map_err(|e| self.place(e))?;
            file.touch(false)?;
            file.store(&tx).await?;
            drop((tx, file));
            return self.file_system().settle().await;
        }
        let wanted = if hidden.file.is_some() { &Resource::ALL[..1] } else { &Resource::ALL };
        self.file_system().check_quota(owner, wanted, DOING).await?;
        let tx = self.file_system().begin(value.len() as u64 + 3 * COST).await?;
        self.put_hidden(&tx, &mut file, hidden, name, value).await?;
        let mut list = self.listed(&file)?;
        if let Some(name) = listed.filter(|name| list.has(name)) {
            list.remove(name);
            self.keep(&mut file, &list)?;
        }
        file.touch(false)?;
        file.store(&tx).await?;
        drop((tx, file));
        self.file_system().settle().await
    }

    /// Removes an extended attribute, which must be there.
    pub async fn remove_xattr(&self, name: &[u8]) -> Result<()> {
        const DOING: &str = "remove extended attribute";
        self.file_system().writer()?;
        let file = self.load().await?;
        self.check_flags(&file.attributes, flags::IMMUTABLE | flags::APPENDONLY, DOING)?;
        let list = self.listed(&file)?;
        let hidden = self.hidden(name).await?;
        let is_listed = std::str::from_utf8(name).is_ok_and(|name| list.has(name));
        if hidden.file.is_none() && !is_listed {
            return Err(self.place(Error::new(Kind::NotFound, DOING)));
        }
        self.take_away(file, name, hidden).await
    }

    /// Takes a name out of both places.
    async fn take_away(&self, mut file: Loaded<'_>, name: &[u8], hidden: Hidden) -> Result<()> {
        let mut list = self.listed(&file)?;
        let tx = self.file_system().begin_freeing().await?;
        self.remove_hidden(&tx, &hidden, name).await?;
        if let Some(name) = std::str::from_utf8(name).ok().filter(|name| list.has(name)) {
            list.remove(name);
            self.keep(&mut file, &list)?;
        }
        file.touch(false)?;
        file.store(&tx).await?;
        drop((tx, file));
        self.file_system().settle().await
    }

    /// The nvlist among the attributes.
    fn listed(&self, file: &Loaded<'_>) -> Result<NvList> {
        match file.attributes.bytes(Attr::Dxattr) {
            Some(packed) if !packed.is_empty() => {
                NvList::decode(packed).map_err(|e| self.place(e.at("attribute ZPL_DXATTR")))
            }
            _ => Ok(NvList::new()),
        }
    }

    fn keep(&self, file: &mut Loaded<'_>, list: &NvList) -> Result<()> {
        if list.is_empty() {
            file.attributes.remove(Attr::Dxattr);
            return Ok(());
        }
        let tables = self.file_system().tables();
        file.attributes.set(Attr::Dxattr, &list.encode(), tables).map_err(|e| self.place(e))
    }

    async fn hidden(&self, name: &[u8]) -> Result<Hidden> {
        let Some(directory) = self.xattr_directory().await? else {
            return Ok(Hidden { directory: None, file: None });
        };
        let file = match directory.entry(name).await? {
            Some((object, _)) => Some(self.file_system().object(object).await?),
            None => None,
        };
        Ok(Hidden { directory: Some(directory), file })
    }

    async fn remove_hidden(&self, tx: &Tx, hidden: &Hidden, name: &[u8]) -> Result<()> {
        let (Some(directory), Some(file)) = (&hidden.directory, &hidden.file) else { return Ok(()) };
        directory.directory()?.remove(tx, name).await.map_err(|e| directory.place(e))?;
        let mut above = directory.load().await?;
        above.add(Attr::Size, -1)?;
        above.touch(true)?;
        above.store(tx).await?;
        let id = file.id().object;
        self.file_system().0.set.free(tx, id).await?;
        self.file_system().forget(id);
        Ok(())
    }

    /// Puts a value into a file of the hidden directory; makes what is not there.
    async fn put_hidden(
        &self,
        tx: &Tx,
        file: &mut Loaded<'_>,
        hidden: Hidden,
        name: &[u8],
        value: &[u8],
    ) -> Result<()> {
        let fs = self.file_system();
        let owner = owner_of(&file.attributes).map_err(|e| self.place(e))?;
        let directory = match hidden.directory {
            Some(directory) => directory,
            None => {
                let plan = Plan::of_xattrs(self, &file.attributes, FileKind::Directory, owner)?;
                let (object, _) = fs.make_object(tx, &plan).await?;
                file.set(Attr::Xattr, &[object.id().0])?;
                fs.object(object.id()).await?
            }
        };
        let mut above = directory.load().await?;
        let own = match hidden.file {
            Some(own) => own,
            None => {
                let plan = Plan::of_xattrs(&directory, &above.attributes, FileKind::Regular, owner)?;
                let id = fs.make_object(tx, &plan).await?.0.id();
                let names = directory.directory()?;
                names.insert(tx, name, entry(id, FileKind::Regular)).await.map_err(|e| directory.place(e))?;
                above.add(Attr::Size, 1)?;
                fs.object(id).await?
            }
        };
        above.touch(true)?;
        above.store(tx).await?;
        let mut own_loaded = own.load().await?;
        replace_content(tx, own.object(), value, fs.settings().record_size)
            .await
            .map_err(|e| own.place(e))?;
        own_loaded.set(Attr::Size, &[value.len() as u64])?;
        own_loaded.touch(true)?;
        own_loaded.store(tx).await
    }

    /// The POSIX list that a value is, where that means something.
    fn posix_list(&self, name: &[u8], value: &[u8], acl_type: AclType) -> Result<Option<PosixAcl>> {
        const DOING: &str = "set a POSIX ACL";
        if name != posix_acl::ACCESS && name != posix_acl::DEFAULT {
            return Ok(None);
        }
        if acl_type != AclType::Posix {
            return Err(self.refuse(Refusal::SwitchedOff, DOING));
        }
        if name == posix_acl::DEFAULT && !self.is_directory() {
            return Err(self.refuse(Refusal::NotDirectory, DOING));
        }
        let list = PosixAcl::decode(value).map_err(|e| self.place(e))?;
        Ok(Some(list).filter(|_| name == posix_acl::ACCESS))
    }

    fn follow_posix_list(&self, file: &mut Loaded<'_>, list: &PosixAcl) -> Result<()> {
        let mode = file.word(Attr::Mode)? & !0o777 | list.permissions();
        self.set_mode(file, mode)
    }
}

/// Makes `value` all that is in a file.
async fn replace_content(tx: &Tx, object: &Object, value: &[u8], record: u64) -> Result<()> {
    object.free_range(tx, 0, u64::MAX).await?;
    let wanted = (value.len() as u64).min(record).next_multiple_of(512);
    if object.attrs().max_blkid == 0 && wanted > object.block_size() {
        object.set_block_size(tx, wanted as u32).await?;
    }
    object.write(tx, 0, value).await
}
