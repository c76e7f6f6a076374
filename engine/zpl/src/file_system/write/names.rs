//! Making and removing names, and with them files.

use super::log::{Change, log_acl};
use super::make::{Birth, Made, Plan};
use super::{COST, Loaded, NewFile, load_all};
use crate::acl_rules::hints;
use crate::file_system::FileSystem;
use crate::file_system::node::Node;
use crate::flags;
use crate::quotas::Resource;
use crate::refusal::Refusal;
use crate::sa::{Attr, Attributes};
use crate::stat::FileKind;
use dmu::Tx;
use ondisk::zil::{Link, Remove};
use ondisk::{Feature, NvValue, Record};
use units::{Error, Kind, ObjectId, Result};

/// The longest target of a symbolic link.
const TARGET_MAX: usize = 4095;
/// As many names as OpenZFS allows a file.
const LINKS_MAX: u64 = (1 << 31) - 1;

impl FileSystem {
    pub(super) fn check_name(&self, name: &[u8]) -> Result<()> {
        let refuse =
            |why: Refusal| Err(why.when(format!("use the name '{}'", String::from_utf8_lossy(name))));
        if name.is_empty() || name == b"." || name == b".." || name.iter().any(|b| *b == 0 || *b == b'/') {
            return Err(Error::invalid(format!("'{}' is no name of a file", String::from_utf8_lossy(name))));
        }
        // What a log has was allowed.
        let is_replay = self.0.writer.as_ref().is_some_and(|writer| writer.replaying_in().is_some());
        let most = if is_replay { zap::LONG_NAME_MAX - 1 } else { self.settings().name_max() };
        if name.len() > most {
            return refuse(Refusal::NameTooLong);
        }
        if self.is_utf8_only() && std::str::from_utf8(name).is_err() {
            return refuse(Refusal::NotUtf8);
        }
        Ok(())
    }
}

impl FileSystem {
    /// With the first name that others than ours may not understand the dataset says so.
    pub(super) fn note_long_name(&self, tx: &Tx, name: &[u8]) {
        if name.len() >= zap::NAME_MAX {
            self.0.set.use_feature(tx, Feature::Longname);
        }
    }
}

impl Loaded<'_> {
    /// A directory that was removed takes no names any more.
    pub(super) fn must_have_names(&self) -> Result<()> {
        match self.word(Attr::Links)? {
            0 => Err(self.node.refuse(Refusal::Stale, "make a name in")),
            _ => Ok(()),
        }
    }
}

/// A value of a directory.
pub(super) fn entry(object: ObjectId, kind: FileKind) -> u64 {
    object.0 | (kind as u64) << 60
}

impl Node {
    pub(super) fn exists(&self, name: &[u8]) -> Error {
        self.place(Error::new(Kind::Exists, format!("make '{}'", String::from_utf8_lossy(name))))
    }

    pub(super) fn missing(&self, name: &[u8]) -> Error {
        self.place(Error::new(Kind::NotFound, format!("find '{}'", String::from_utf8_lossy(name))))
    }

    /// A directory that gives its project to what is in it takes no names of files of another one.
    pub(super) fn check_project(&self, file: &Attributes, directory: &Attributes, doing: &str) -> Result<()> {
        let project =
            |attributes| crate::file_system::accounts::owner_of(attributes).map(|owner| owner.project);
        let flags = directory.word(Attr::Flags).map_err(|e| self.place(e))?.unwrap_or(0);
        let differ = || Ok::<_, Error>(project(file)? != project(directory)?);
        if flags & flags::PROJINHERIT != 0 && differ().map_err(|e| self.place(e))? {
            return Err(self.refuse(Refusal::OtherProject, doing));
        }
        Ok(())
    }

    /// Makes a file of any kind under a new name of this directory.
    pub async fn create(&self, name: &[u8], new: &NewFile<'_>) -> Result<Node> {
        let node = self.create_as(name, new, None).await?;
        self.file_system().settle().await?;
        Ok(node)
    }

    /// As [`Node::create`]; with `birth`, the file that a log speaks of.
    pub(super) async fn create_as(
        &self,
        name: &[u8],
        new: &NewFile<'_>,
        birth: Option<&Birth>,
    ) -> Result<Node> {
        let fs = self.file_system();
        fs.writer()?;
        if self.is_xattr() {
            self.check_xattr_name(name)?;
        } else {
            fs.check_name(name)?;
        }
        if new.target.len() > TARGET_MAX || (new.kind == FileKind::Symlink) == new.target.is_empty() {
            return Err(self.place(Refusal::NameTooLong.when("make a link to that")));
        }
        let directory = self.directory()?;
        let _names = fs.0.names.lock().await;
        let mut parent = self.load().await?;
        parent.must_have_names()?;
        self.check_flags(&parent.attributes, flags::IMMUTABLE, "make a name in")?;
        if self.entry(name).await?.is_some() {
            return Err(self.exists(name));
        }
        let plan = Plan::below(self, &parent.attributes, new).await?.again(birth.copied());
        fs.check_quota(plan.owner(), &Resource::ALL, "make a file").await?;
        let tx = fs.begin(COST).await?;
        let (object, made) = fs.make_object(&tx, &plan).await?;
        let id = object.id();
        if let Err(e) = directory.insert(&tx, name, entry(id, new.kind)).await {
            fs.0.set.free(&tx, id).await?;
            return Err(self.place(e));
        }
        fs.note_long_name(&tx, name);
        if new.kind == FileKind::Directory {
            parent.add(Attr::Links, 1)?;
        }
        parent.add(Attr::Size, 1)?;
        parent.touch(true)?;
        parent.store(&tx).await?;
        self.log_new(&tx, name, &plan, &made);
        fs.object(id).await
    }

    /// Tells the log of a new file with the lists that it has from its directory; what it cannot be told is made durable
    /// by the txg.
    fn log_new(&self, tx: &Change, name: &[u8], plan: &Plan<'_>, made: &Made) {
        let (acl, xattrs) = plan.taken_over();
        if !xattrs.is_empty() && !self.file_system().logs_listed_xattr(tx, None) {
            return;
        }
        let says_more = acl.hints & hints::TRIVIAL == 0;
        let list = says_more.then(|| log_acl(&acl.list, acl.hints));
        if matches!(list, Some(None)) {
            return;
        }
        tx.log_create(self.id().object, name, plan.new_file(), made, list.flatten());
        for (name, value) in xattrs.iter() {
            if let NvValue::ByteArray(value) = value {
                tx.log_listed_xattr(made.object, name.as_bytes(), Some(value));
            }
        }
        tx.promote(made.object);
    }

    /// Gives a file, which is no directory, one more name in this directory.
    pub async fn link(&self, name: &[u8], node: &Node) -> Result<()> {
        let fs = self.file_system();
        fs.writer()?;
        fs.check_name(name)?;
        if node.is_directory() {
            return Err(node.refuse(Refusal::IsDirectory, "link"));
        }
        let directory = self.directory()?;
        let names = fs.0.names.lock().await;
        let mut both = load_all(&[self, node]).await?;
        let (Some(mut file), Some(mut parent)) = (both.pop(), both.pop()) else { return Ok(()) };
        parent.must_have_names()?;
        file.must_have_names()?;
        if file.word(Attr::Links)? >= LINKS_MAX {
            return Err(node.refuse(Refusal::TooLarge, "link"));
        }
        self.check_flags(&parent.attributes, flags::IMMUTABLE, "make a name in")?;
        node.check_flags(&file.attributes, flags::IMMUTABLE | flags::APPENDONLY, "link")?;
        node.check_project(&file.attributes, &parent.attributes, "link")?;
        if self.entry(name).await?.is_some() {
            return Err(self.exists(name));
        }
        let tx = fs.begin(COST).await?;
        directory.insert(&tx, name, entry(node.id().object, node.kind())).await.map_err(|e| self.place(e))?;
        fs.note_long_name(&tx, name);
        file.add(Attr::Links, 1)?;
        file.touch(false)?;
        parent.add(Attr::Size, 1)?;
        parent.touch(true)?;
        file.store(&tx).await?;
        parent.store(&tx).await?;
        tx.log(Record::Link(Link { directory: self.id().object, object: node.id().object, name }));
        drop((tx, file, parent, both, names));
        fs.settle().await
    }

    /// Removes a name that is not a directory's; with its last name the file goes, as soon as it has no opener.
    pub async fn unlink(&self, name: &[u8]) -> Result<()> {
        self.remove(name, false).await
    }

    /// Removes an empty directory.
    pub async fn remove_directory(&self, name: &[u8]) -> Result<()> {
        self.remove(name, true).await
    }

    async fn remove(&self, name: &[u8], wants_directory: bool) -> Result<()> {
        let fs = self.file_system();
        let writer = fs.writer()?;
        let directory = self.directory()?;
        let names = fs.0.names.lock().await;
        let (stored, id) = self.stored_entry(name).await?.ok_or_else(|| self.missing(name))?;
        let node = fs.object(id).await?;
        node.check_removal(wants_directory).await?;
        let mut both = load_all(&[self, &node]).await?;
        let (Some(mut file), Some(mut parent)) = (both.pop(), both.pop()) else { return Ok(()) };
        let forbidden = flags::IMMUTABLE | flags::APPENDONLY;
        self.check_flags(&parent.attributes, forbidden, "remove a name from")?;
        node.check_flags(&file.attributes, forbidden | flags::NOUNLINK, "remove")?;
        let tx = fs.begin_freeing().await?;
        directory.remove(&tx, &stored[..]).await.map_err(|e| self.place(e))?;
        let left = if wants_directory { 0 } else { file.word(Attr::Links)?.saturating_sub(1) };
        file.set(Attr::Links, &[left])?;
        file.touch(false)?;
        if wants_directory {
            parent.add(Attr::Links, -1)?;
        }
        parent.add(Attr::Size, -1)?;
        parent.touch(true)?;
        if left == 0 {
            writer.unlinked.update(&tx, &zap::int_name(id.0), id.0).await?;
        }
        file.store(&tx).await?;
        parent.store(&tx).await?;
        if left == 0 {
            tx.forget(id);
        }
        let (directory, name) = (self.id().object, &stored[..]);
        tx.log(Record::Remove(Remove { directory, name, is_directory: wants_directory }));
        drop((tx, file, parent, both, names));
        fs.settle().await?;
        node.release().await
    }

    /// Whether the kind is the one asked for, and a directory empty.
    pub(super) async fn check_removal(&self, wants_directory: bool) -> Result<()> {
        match (self.is_directory(), wants_directory) {
            (true, false) => Err(self.refuse(Refusal::IsDirectory, "unlink")),
            (false, true) => Err(self.refuse(Refusal::NotDirectory, "remove directory")),
            (false, false) => Ok(()),
            (true, true) => match self.directory()?.is_empty().await.map_err(|e| self.place(e))? {
                true => Ok(()),
                false => Err(self.refuse(Refusal::NotEmpty, "remove")),
            },
        }
    }
}
