//! Making and removing names, and with them files.

use super::{COST, load_all, now};
use crate::attributes::{FLAGS, NO_EXECS_DENIED, trivial_acl};
use crate::file_system::FileSystem;
use crate::node::Node;
use crate::refusal::Refusal;
use crate::sa::{Attr, Attributes};
use crate::stat::{FileKind, flags};
use dmu::NewObject;
use ondisk::zil::{Link, Remove};
use ondisk::{DnodePhys, ObjectType, Record};
use units::{Error, Kind, ObjectId, Result};
use zap::{Options, Zap};

/// The longest name, in bytes, as all clients know it.
const NAME_MAX: usize = 255;
/// The longest target of a symbolic link.
const TARGET_MAX: usize = 4095;
/// As many names as OpenZFS allows a file.
const LINKS_MAX: u64 = (1 << 31) - 1;
/// Slots of a dnode, and so its bonus.
const SLOTS: u8 = 1;

/// What a new file is.
#[derive(Clone, Copy, Debug)]
pub struct NewFile<'a> {
    pub kind: FileKind,
    /// The lower twelve bits of its mode.
    pub permissions: u32,
    pub uid: u32,
    pub gid: u32,
    /// Of devices.
    pub rdev: (u32, u32),
    /// Of symbolic links.
    pub target: &'a [u8],
}

/// What a log says of the making of a file: it becomes the same one again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Birth {
    pub object: ObjectId,
    pub slots: u8,
    pub generation: u64,
    /// Seconds and nanoseconds.
    pub at: [u64; 2],
}

/// What became of it.
pub(super) struct Made {
    pub object: ObjectId,
    pub slots: u8,
    /// With the kind.
    pub mode: u64,
    pub generation: u64,
    pub at: [u64; 2],
}

impl NewFile<'_> {
    /// A file or directory of root's.
    pub fn new(kind: FileKind, permissions: u32) -> NewFile<'static> {
        NewFile { kind, permissions, uid: 0, gid: 0, rdev: (0, 0), target: b"" }
    }

    /// The number of a device, as it is stored; 0 for other files.
    pub(super) fn device(&self) -> u64 {
        match self.kind {
            FileKind::BlockDevice | FileKind::CharDevice => {
                u64::from(self.rdev.0) << 20 | u64::from(self.rdev.1 & 0xf_ffff)
            }
            _ => 0,
        }
    }

    /// In the order in which OpenZFS stores them, so that layouts are shared.
    pub(super) fn attributes(
        &self,
        fs: &FileSystem,
        (generation, time): (u64, [u64; 2]),
        parent: ObjectId,
        project: Option<u64>,
    ) -> Result<Attributes> {
        let mode = u64::from(self.kind.mode_bits() | self.permissions & 0o7777);
        let is_directory = self.kind == FileKind::Directory;
        let acl = trivial_acl(mode);
        let mut attributes = Attributes::default();
        let mut set = |attr, words: &[u64]| attributes.set_words(attr, words, fs.tables());
        set(Attr::Mode, &[mode])?;
        let size = if is_directory { 2 } else { self.target.len() as u64 };
        set(Attr::Size, &[size])?;
        set(Attr::Gen, &[generation])?;
        set(Attr::Uid, &[self.uid.into()])?;
        set(Attr::Gid, &[self.gid.into()])?;
        set(Attr::Parent, &[parent.0])?;
        let executable = if mode & 0o111 == 0o111 { 0 } else { NO_EXECS_DENIED };
        set(Attr::Flags, &[FLAGS & !executable | project.map_or(0, |_| flags::PROJID)])?;
        for attr in [Attr::Atime, Attr::Mtime, Attr::Ctime, Attr::Crtime] {
            set(attr, &time)?;
        }
        set(Attr::Links, &[if is_directory { 2 } else { 1 }])?;
        if let Some(project) = project {
            set(Attr::Projid, &[project])?;
        }
        if matches!(self.kind, FileKind::BlockDevice | FileKind::CharDevice) {
            set(Attr::Rdev, &[self.device()])?;
        }
        set(Attr::DaclCount, &[acl.len() as u64 / 8])?;
        attributes.set(Attr::DaclAces, &acl, fs.tables())?;
        if self.kind == FileKind::Symlink {
            attributes.set(Attr::Symlink, self.target, fs.tables())?;
        }
        Ok(attributes)
    }
}

impl FileSystem {
    pub(super) fn check_name(&self, name: &[u8]) -> Result<()> {
        let refuse =
            |why: Refusal| Err(why.when(format!("use the name '{}'", String::from_utf8_lossy(name))));
        if name.is_empty() || name == b"." || name == b".." || name.iter().any(|b| *b == 0 || *b == b'/') {
            return Err(Error::invalid(format!("'{}' is no name of a file", String::from_utf8_lossy(name))));
        }
        if name.len() > NAME_MAX {
            return refuse(Refusal::NameTooLong);
        }
        if self.is_utf8_only() && std::str::from_utf8(name).is_err() {
            return refuse(Refusal::NotUtf8);
        }
        Ok(())
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

    /// A directory that somebody has removed takes no names any more.
    pub(super) fn must_have_names(&self) -> Result<()> {
        match self.links()? {
            0 => Err(self.refuse(Refusal::Stale, "make a name in")),
            _ => Ok(()),
        }
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
        fs.check_name(name)?;
        if new.target.len() > TARGET_MAX || (new.kind == FileKind::Symlink) == new.target.is_empty() {
            return Err(self.place(Refusal::NameTooLong.when("make a link to that")));
        }
        let directory = self.directory()?;
        let _names = fs.0.names.lock().await;
        let mut parent = self.load().await?;
        self.must_have_names()?;
        self.check_flags(&parent.attributes, flags::IMMUTABLE, "make a name in")?;
        if self.entry(name).await?.is_some() {
            return Err(self.exists(name));
        }
        let project = parent.attributes.word(Attr::Projid).map_err(|e| self.place(e))?;
        let tx = fs.begin(COST).await?;
        let born = birth.map_or_else(|| (tx.txg().0, now()), |birth| (birth.generation, birth.at));
        let slots = birth.map_or(SLOTS, |birth| birth.slots);
        let mut attributes = new.attributes(fs, born, self.id().object, project)?;
        if self.is_xattr() {
            let own = attributes.require(Attr::Flags)?;
            attributes.set_words(Attr::Flags, &[own | flags::XATTR], fs.tables())?;
        }
        let room = DnodePhys::bonus_max(slots.into(), 1, false);
        let encoded = attributes.encode(fs.tables(), &tx, room).await?;
        let content = match new.kind {
            FileKind::Directory => ObjectType::DIRECTORY_CONTENTS,
            _ => ObjectType::PLAIN_FILE_CONTENTS,
        };
        let mut object = NewObject::new(content, 512).with_bonus(ObjectType::SA, encoded.bonus);
        object.slots = slots;
        let object = match birth {
            Some(birth) => fs.0.set.claim_free(&tx, birth.object, &object).await?,
            None => fs.0.set.allocate(&tx, object).await?,
        };
        let id = object.id();
        if let Err(e) = directory.insert(&tx, name, entry(id, new.kind)).await {
            fs.0.set.free(&tx, id).await?;
            return Err(self.place(e));
        }
        object.set_spill(&tx, encoded.spill.as_deref().map(super::padded))?;
        if new.kind == FileKind::Directory {
            let options = Options { normalization: fs.normalization(), ..Options::default() };
            Zap::format(object.clone(), &tx, options, world::random_u64())?;
            parent.add(Attr::Links, 1)?;
        }
        parent.add(Attr::Size, 1)?;
        parent.touch(true)?;
        parent.store(&tx).await?;
        let mode = attributes.require(Attr::Mode)?;
        let made = Made { object: id, slots, mode, generation: born.0, at: born.1 };
        tx.log_create(self.id().object, name, new, &made);
        fs.object(id).await
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
        self.must_have_names()?;
        node.must_have_names()?;
        if file.word(Attr::Links)? >= LINKS_MAX {
            return Err(node.refuse(Refusal::TooLarge, "link"));
        }
        self.check_flags(&parent.attributes, flags::IMMUTABLE, "make a name in")?;
        node.check_flags(&file.attributes, flags::IMMUTABLE | flags::APPENDONLY, "link")?;
        if self.entry(name).await?.is_some() {
            return Err(self.exists(name));
        }
        let tx = fs.begin(COST).await?;
        directory.insert(&tx, name, entry(node.id().object, node.kind())).await.map_err(|e| self.place(e))?;
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

    /// Removes a name that is not a directory's; with its last name the file goes, as soon as nobody has it open.
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
        let tx = fs.begin(COST).await?;
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
