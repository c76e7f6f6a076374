//! An open file, directory, link or device.
//!
//! A [`Node`] is a handle: cheap to clone, and all handles of one file share what is open of it. Its attributes are
//! decoded from the object's bonus whenever they are asked for, so that a reader sees what the newest txg says.

use crate::file_system::FileSystem;
use crate::file_system::stream::Stream;
use crate::refusal::Refusal;
use crate::sa::{Attr, Attributes, Tables};
use crate::stat::{FileKind, Stat, Time, kind_of};
use dmu::{Object, PrefetchStreams};
use ondisk::ObjectType;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use units::{Error, ObjectId, Result};
use zap::Zap;

/// What a file is known by outside: enough for an NFS handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId {
    pub object: ObjectId,
    pub generation: u64,
}

/// See the module.
#[derive(Clone)]
pub struct Node {
    fs: FileSystem,
    open: Arc<Opened>,
}

/// What all handles of a file share.
pub(crate) struct Opened {
    object: Object,
    generation: u64,
    kind: FileKind,
    is_xattr: bool,
    directory: OnceLock<Zap<Object>>,
    prefetch_streams: PrefetchStreams,
    /// When it was last read, if that is not stored yet.
    atime: Mutex<Option<Time>>,
    stream: Stream,
    /// Held by the task that changes the file.
    lock: world::sync::Mutex<()>,
}

impl Opened {
    pub fn new(tables: &Tables, object: Object) -> Result<Opened> {
        let attributes = decode(tables, &object)?;
        Ok(Opened {
            generation: attributes.require(Attr::Gen)?,
            kind: kind_of(attributes.require(Attr::Mode)?)?,
            is_xattr: attributes.word(Attr::Flags)?.unwrap_or(0) & crate::flags::XATTR != 0,
            object,
            directory: OnceLock::new(),
            prefetch_streams: PrefetchStreams::default(),
            atime: Mutex::default(),
            stream: Stream::default(),
            lock: world::sync::Mutex::new(()),
        })
    }
}

/// The attributes in an object's bonus.
fn decode(tables: &Tables, object: &Object) -> Result<Attributes> {
    let bonus = object.bonus();
    match object.attrs().bonus_kind {
        ObjectType::SA => Attributes::decode(bonus, tables),
        ObjectType::ZNODE => Attributes::decode_znode(&bonus),
        other => Err(Error::corrupt(format!("no file: its bonus holds '{other}'"))),
    }
}

impl Node {
    pub(crate) fn new(fs: FileSystem, open: Arc<Opened>) -> Node {
        Node { fs, open }
    }

    pub fn file_system(&self) -> &FileSystem {
        &self.fs
    }

    pub fn id(&self) -> NodeId {
        NodeId { object: self.object().id(), generation: self.open.generation }
    }

    pub fn generation(&self) -> u64 {
        self.open.generation
    }

    pub fn kind(&self) -> FileKind {
        self.open.kind
    }

    pub fn is_directory(&self) -> bool {
        self.open.kind == FileKind::Directory
    }

    /// Whether it is an extended attribute or a directory of them, which no path leads to.
    pub fn is_xattr(&self) -> bool {
        self.open.is_xattr
    }

    pub fn object(&self) -> &Object {
        &self.open.object
    }

    pub(crate) async fn lock(&self) -> world::sync::MutexGuard<'_, ()> {
        self.open.lock.lock().await
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.open.stream
    }

    pub(crate) fn pending_atime(&self) -> MutexGuard<'_, Option<Time>> {
        // Under this lock a value is taken or put.
        self.open.atime.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file has no other opener.
    pub(crate) fn is_last(&self) -> bool {
        Arc::strong_count(&self.open) == 1
    }

    pub(crate) fn prefetch_streams(&self) -> &PrefetchStreams {
        &self.open.prefetch_streams
    }

    pub(crate) fn place(&self, error: Error) -> Error {
        error.at(self.fs.place(self.object().id()))
    }

    pub(crate) fn refuse(&self, why: Refusal, doing: &str) -> Error {
        self.place(why.when(doing))
    }

    /// The names in it, if it is a directory.
    pub(crate) fn directory(&self) -> Result<&Zap<Object>> {
        if !self.is_directory() {
            return Err(self.refuse(Refusal::NotDirectory, "look into"));
        }
        Ok(self.open.directory.get_or_init(|| Zap::open(self.object().clone()).with_long_names()))
    }

    /// The attributes that the bonus has: all but those that did not fit.
    pub(crate) fn bonus_attributes(&self) -> Result<Attributes> {
        decode(&self.fs.0.tables, self.object()).map_err(|e| self.place(e))
    }

    /// All attributes.
    pub(crate) async fn attributes(&self) -> Result<Attributes> {
        let mut attributes = self.bonus_attributes()?;
        if self.object().attrs().bonus_kind == ObjectType::SA
            && let Some(spill) = self.object().read_spill().await.map_err(|e| self.place(e))?
        {
            attributes.decode_more(&spill, &self.fs.0.tables).map_err(|e| self.place(e.at("spill block")))?;
        }
        Ok(attributes)
    }

    /// An attribute wherever it is; the spill block is asked only when the bonus does not have it.
    pub(crate) async fn attribute(&self, attr: Attr) -> Result<Option<Vec<u8>>> {
        let attributes = self.bonus_attributes()?;
        if attributes.has(attr) || !self.object().has_spill() {
            return Ok(attributes.bytes(attr).map(<[u8]>::to_vec));
        }
        Ok(self.attributes().await?.bytes(attr).map(<[u8]>::to_vec))
    }

    /// Everything a file says of itself.
    pub async fn stat(&self) -> Result<Stat> {
        let attributes = self.bonus_attributes()?;
        let first = Stat::decode(self.object().id(), &attributes);
        let needs_spill = self.object().has_spill()
            && (first.is_err()
                || [Attr::Xattr, Attr::Projid, Attr::Rdev].iter().any(|attr| !attributes.has(*attr)));
        let stat = if needs_spill {
            // What most ask for is in the bonus: a spill block that cannot be read hides little.
            match self.attributes().await {
                Ok(all) => Stat::decode(self.object().id(), &all),
                Err(e) => first.or(Err(e)),
            }
        } else {
            first
        };
        let object = self.object();
        let attrs = object.attrs();
        // As OpenZFS counts: halves of a unit are rounded up, and the dnode's own slots belong to the file.
        let blocks = (object.used() + 256) / 512 + u64::from(attrs.slots);
        let mut stat = stat.map_err(|e| self.place(e))?;
        stat.atime = self.pending_atime().unwrap_or(stat.atime);
        Ok(Stat { blocks, block_size: attrs.block_size, ..stat })
    }

    pub(crate) fn size(&self) -> Result<u64> {
        self.bonus_attributes()?.require(Attr::Size).map_err(|e| self.place(e))
    }

    /// The directory that the file was made in or moved to; of a directory, "..".
    pub async fn parent(&self) -> Result<Node> {
        let parent = self.bonus_attributes()?.require(Attr::Parent).map_err(|e| self.place(e))?;
        self.fs.object(ObjectId(parent)).await
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Node({}:{})", self.fs.0.name, self.object().id())
    }
}
