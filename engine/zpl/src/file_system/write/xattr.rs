//! Setting and removing extended attributes.
//!
//! ```text
//!   xattr=sa    into the nvlist of the file, while value and list are small enough; else as xattr=dir
//!   xattr=dir   into a file of its own, in the hidden directory of the file, which is made with the first of them
//! ```
//!
//! A name is in one of the two places afterwards, never in both: it is taken out of the other in the same transaction.
//! POSIX lists are what the mode shows, so setting one sets the mode.

use super::attributes::record_of;
use super::log::Change;
use super::make::{Made, NewFile, Plan};
use super::names::entry;
use super::{COST, Changes, Loaded};
use crate::file_system::accounts::owner_of;
use crate::file_system::node::Node;
use crate::flags;
use crate::posix_acl::{self, PosixAcl};
use crate::quotas::Resource;
use crate::refusal::Refusal;
use crate::sa::Attr;
use crate::settings::{AclType, Xattrs};
use crate::stat::FileKind;
use dmu::{Object, Tx};
use ondisk::{NvList, NvValue, Record};
use units::{Error, Kind, ObjectId, Result};

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

/// What a log is told of a change of one name.
struct Told<'a> {
    name: &'a [u8],
    /// The new one, if it became another.
    mode: Option<u64>,
    /// What the list has now, or that the name was taken out of it.
    listed: Option<Option<&'a [u8]>>,
    steps: Vec<Step<'a>>,
}

/// A change among the files of the hidden directory.
pub(super) enum Step<'a> {
    /// The hidden directory, under no name, or a file in it.
    Made {
        above: ObjectId,
        name: &'a [u8],
        new: NewFile<'a>,
        made: Made,
    },
    Filled {
        object: Object,
        value: &'a [u8],
        is_new: bool,
    },
    Removed {
        directory: ObjectId,
        object: ObjectId,
    },
}

/// What the hidden directory has, looked up before anything changes.
#[derive(Clone, Default)]
struct Hidden {
    directory: Option<Node>,
    file: Option<Node>,
}

/// A POSIX list that lies in the hidden directory, as it is to be.
pub(super) struct HiddenPosixList {
    hidden: Hidden,
    value: Vec<u8>,
}

impl Node {
    /// Sets an extended attribute; its name has its namespace in front, as `user.` or `security.`.
    pub async fn set_xattr(&self, name: &[u8], value: &[u8]) -> Result<()> {
        self.set_xattr_if(name, value, XattrMode::Any).await
    }

    /// As [`Node::set_xattr`], if there is one of the name or none, as asked for.
    pub async fn set_xattr_if(&self, name: &[u8], value: &[u8], mode: XattrMode) -> Result<()> {
        const DOING: &str = "set extended attribute";
        self.check_xattr_name(name)?;
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
        // Records say apart what becomes of files in the hidden directory.
        let hidden = if is_replay { Hidden::default() } else { self.hidden(name).await? };
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
        let mut mode = None;
        if let Some(posix) = posix {
            mode = self.follow_posix_list(&mut file, &posix)?;
            if posix.is_mode() {
                // The mode says it all.
                return self.take_away(file, name, hidden, mode).await;
            }
        }
        if let Some(packed) = packed {
            self.file_system().check_quota(owner, &[Resource::Space], DOING).await?;
            let tx = self.file_system().begin(packed.len() as u64 + COST).await?;
            let steps = self.remove_hidden(&tx, hidden, name).await?;
            file.attributes
                .set(Attr::Dxattr, &packed, self.file_system().tables())
                .map_err(|e| self.place(e))?;
            file.touch(false)?;
            file.store(&tx).await?;
            self.log_xattr(&tx, &file, Told { name, mode, listed: Some(Some(value)), steps })?;
            drop((tx, file));
            return self.file_system().settle().await;
        }
        if is_replay {
            return Err(self.refuse(Refusal::TooLarge, DOING));
        }
        let wanted = if hidden.file.is_some() { &Resource::ALL[..1] } else { &Resource::ALL };
        self.file_system().check_quota(owner, wanted, DOING).await?;
        let tx = self.file_system().begin(value.len() as u64 + 3 * COST).await?;
        let steps = self.put_hidden(&tx, &mut file, hidden, name, value).await?;
        let was_listed = self.unlist(&mut file, name)?;
        file.touch(false)?;
        file.store(&tx).await?;
        self.log_xattr(&tx, &file, Told { name, mode, listed: was_listed.then_some(None), steps })?;
        drop((tx, file));
        self.file_system().settle().await
    }

    /// Tells the log what was changed, or leaves it to the txg if it cannot be told all of it.
    fn log_xattr(&self, tx: &Change, file: &Loaded<'_>, told: Told<'_>) -> Result<()> {
        let object = self.id().object;
        if file.word(Attr::Links)? == 0 {
            tx.needs_no_record();
            return Ok(());
        }
        if told.listed.is_some_and(|value| !self.file_system().logs_listed_xattr(tx, value)) {
            return Ok(());
        }
        if let Some(mode) = told.mode {
            let changes = Changes { permissions: Some(mode as u32 & 0o7777), ..Changes::default() };
            tx.log(Record::SetAttr(record_of(object, &changes)));
        }
        if let Some(value @ Some(_)) = told.listed {
            tx.log_listed_xattr(object, told.name, value);
        }
        // The list counts first: so what goes from one place into the other is always there, wherever the log ends.
        let is_whole = told.steps.is_empty() && !self.is_directory();
        if !is_whole {
            tx.promote(object);
        }
        for step in told.steps {
            match step {
                Step::Made { above, name, new, made } => tx.log_hidden(above, name, &new, &made),
                Step::Filled { object, value, is_new } => tx.log_hidden_value(&object, value, is_new),
                Step::Removed { directory, object } => tx.log_hidden_removal(directory, told.name, object),
            }
        }
        if let Some(None) = told.listed {
            tx.log_listed_xattr(object, told.name, None);
        }
        if !is_whole {
            tx.promote(object);
        }
        Ok(())
    }

    pub(super) fn check_xattr_name(&self, name: &[u8]) -> Result<()> {
        // A slash is a letter as any other: nobody looks them up by paths.
        if matches!(name, b"" | b"." | b"..") || name.contains(&0) {
            return Err(self.place(Error::invalid("an extended attribute needs a name")));
        }
        if name.len() > NAME_MAX {
            return Err(self.refuse(Refusal::NameTooLong, "set extended attribute"));
        }
        Ok(())
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
        self.take_away(file, name, hidden, None).await
    }

    /// Takes a name out of the list alone, if it is there.
    pub(super) async fn remove_listed_xattr(&self, name: &[u8]) -> Result<()> {
        self.take_away(self.load().await?, name, Hidden::default(), None).await
    }

    /// Takes a name out of both places. `mode` is the new one, if it became another.
    async fn take_away(
        &self,
        mut file: Loaded<'_>,
        name: &[u8],
        hidden: Hidden,
        mode: Option<u64>,
    ) -> Result<()> {
        let tx = self.file_system().begin_freeing().await?;
        let steps = self.remove_hidden(&tx, hidden, name).await?;
        let was_listed = self.unlist(&mut file, name)?;
        file.touch(false)?;
        file.store(&tx).await?;
        self.log_xattr(&tx, &file, Told { name, mode, listed: was_listed.then_some(None), steps })?;
        drop((tx, file));
        self.file_system().settle().await
    }

    /// Takes a name out of the list; answers whether it was there.
    fn unlist(&self, file: &mut Loaded<'_>, name: &[u8]) -> Result<bool> {
        let mut list = self.listed(file)?;
        let Some(name) = std::str::from_utf8(name).ok().filter(|name| list.has(name)) else {
            return Ok(false);
        };
        list.remove(name);
        self.keep(file, &list)?;
        Ok(true)
    }

    /// The nvlist among the attributes.
    pub(super) fn listed(&self, file: &Loaded<'_>) -> Result<NvList> {
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
            return Ok(Hidden::default());
        };
        let file = match directory.entry(name).await? {
            Some((object, _)) => Some(self.file_system().object(object).await?),
            None => None,
        };
        Ok(Hidden { directory: Some(directory), file })
    }

    async fn remove_hidden(&self, tx: &Tx, hidden: Hidden, name: &[u8]) -> Result<Vec<Step<'static>>> {
        let (Some(directory), Some(file)) = (hidden.directory, hidden.file) else { return Ok(Vec::new()) };
        directory.directory()?.remove(tx, name).await.map_err(|e| directory.place(e))?;
        let mut above = directory.load().await?;
        above.add(Attr::Size, -1)?;
        above.touch(true)?;
        above.store(tx).await?;
        let id = file.id().object;
        self.file_system().0.set.free(tx, id).await?;
        self.file_system().forget(id);
        Ok(vec![Step::Removed { directory: directory.id().object, object: id }])
    }

    /// Puts a value into a file of the hidden directory; makes what is not there.
    async fn put_hidden<'a>(
        &self,
        tx: &Tx,
        file: &mut Loaded<'_>,
        hidden: Hidden,
        name: &'a [u8],
        value: &'a [u8],
    ) -> Result<Vec<Step<'a>>> {
        let fs = self.file_system();
        let mut steps = Vec::new();
        let owner = owner_of(&file.attributes).map_err(|e| self.place(e))?;
        let directory = match hidden.directory {
            Some(directory) => directory,
            None => {
                let plan = Plan::of_xattrs(self, &file.attributes, FileKind::Directory, owner)?;
                let (object, made) = fs.make_object(tx, &plan).await?;
                file.set(Attr::Xattr, &[object.id().0])?;
                steps.push(Step::Made { above: self.id().object, name: b"", new: *plan.new_file(), made });
                fs.object(object.id()).await?
            }
        };
        let mut above = directory.load().await?;
        let is_new = hidden.file.is_none();
        let own = match hidden.file {
            Some(own) => own,
            None => {
                let plan = Plan::of_xattrs(&directory, &above.attributes, FileKind::Regular, owner)?;
                let made = fs.make_object(tx, &plan).await?.1;
                let id = made.object;
                let new = *plan.new_file();
                steps.push(Step::Made { above: directory.id().object, name, new, made });
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
        own_loaded.store(tx).await?;
        steps.push(Step::Filled { object: own.object().clone(), value, is_new });
        Ok(steps)
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

    /// What the POSIX list becomes with `mode`, where it lies in the hidden directory. In a replay that is a record of its
    /// own.
    pub(super) async fn hidden_posix_list(
        &self,
        file: &Loaded<'_>,
        mode: u64,
    ) -> Result<Option<HiddenPosixList>> {
        let fs = self.file_system();
        if fs.settings().acl_type != AclType::Posix || fs.writer()?.replaying_in().is_some() {
            return Ok(None);
        }
        if self.listed(file)?.has(&String::from_utf8_lossy(posix_acl::ACCESS)) {
            return Ok(None);
        }
        let hidden = self.hidden(posix_acl::ACCESS).await?;
        if hidden.file.is_none() {
            return Ok(None);
        }
        let Some(value) = self.xattr(posix_acl::ACCESS).await? else { return Ok(None) };
        let mut list = PosixAcl::decode(&value).map_err(|e| self.place(e))?;
        list.set_mode(mode);
        Ok(Some(HiddenPosixList { hidden, value: list.encode() }))
    }

    pub(super) async fn put_hidden_posix_list<'a>(
        &self,
        tx: &Tx,
        file: &mut Loaded<'_>,
        HiddenPosixList { hidden, value }: &'a HiddenPosixList,
    ) -> Result<Vec<Step<'a>>> {
        self.put_hidden(tx, file, hidden.clone(), posix_acl::ACCESS, value).await
    }

    pub(super) fn log_hidden_posix_list(
        &self,
        tx: &Change,
        file: &Loaded<'_>,
        steps: Vec<Step<'_>>,
    ) -> Result<()> {
        self.log_xattr(tx, file, Told { name: posix_acl::ACCESS, mode: None, listed: None, steps })
    }

    /// Answers the new mode, if it becomes another.
    fn follow_posix_list(&self, file: &mut Loaded<'_>, list: &PosixAcl) -> Result<Option<u64>> {
        let old = file.word(Attr::Mode)?;
        let mode = old & !0o777 | list.permissions();
        self.set_mode(file, mode)?;
        Ok((mode != old).then_some(mode))
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
