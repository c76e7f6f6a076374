//! An open file system, or a snapshot of one.

pub(crate) mod accounts;
pub(crate) mod node;
pub(crate) mod read_ahead;
pub(crate) mod stream;
pub(crate) mod write;

use crate::file_system::accounts::Accounts;
use crate::file_system::node::{Node, NodeId, Opened};
use crate::file_system::read_ahead::Walks;
use crate::file_system::write::{WriteOptions, Writer};
use crate::refusal::Refusal;
use crate::sa::Tables;
use crate::{MASTER_NODE, VERSION};
use dmu::ObjSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use units::{Error, HashMap, ObjectId, Result};
use zap::{Match, Normalization, Zap};

/// `casesensitivity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Case {
    Sensitive = 0,
    Insensitive = 1,
    /// Names are kept apart by case, but a client may ask for either.
    Mixed = 2,
}

/// See the crate. Clones are the same file system.
#[derive(Clone)]
pub struct FileSystem(pub(crate) Arc<Inner>);

/// See [`FileSystem::downgrade`].
#[derive(Clone)]
pub struct WeakFileSystem(Weak<Inner>);

impl WeakFileSystem {
    /// The file system, if it is open.
    pub fn upgrade(&self) -> Option<FileSystem> {
        self.0.upgrade().map(FileSystem)
    }
}

pub(crate) struct Inner {
    pub name: String,
    pub set: ObjSet,
    pub version: u64,
    pub case: Case,
    pub normalization: Normalization,
    pub utf8_only: bool,
    pub tables: Arc<Tables>,
    pub root: ObjectId,
    /// Files in use, so that all users of one see one lock and one directory.
    open: Mutex<HashMap<ObjectId, Weak<Opened>>>,
    /// What writing needs; none when only reading is asked for.
    pub writer: Option<Writer>,
    /// What counts what users take as files change.
    pub accounts: Option<Arc<Accounts>>,
    pub walks: Walks,
    /// Held by the task that changes names: what is looked up stays so until it is changed.
    pub names: world::sync::Mutex<()>,
}

impl FileSystem {
    /// Opens what `set` holds; `name` is for messages.
    pub async fn open(name: &str, set: &ObjSet) -> Result<FileSystem> {
        let inner = open(name, set).await.map_err(|e| e.at(format!("dataset '{name}'")))?;
        Ok(FileSystem(Arc::new(inner)))
    }

    /// As [`FileSystem::open`], to be changed too, by one such handle and its clones at a time. Files that were unlinked
    /// while they were open, and then the program ended, are freed first.
    pub async fn open_for_writing(name: &str, set: &ObjSet, options: WriteOptions) -> Result<FileSystem> {
        let place = |e: Error| e.at(format!("dataset '{name}'"));
        let mut inner = open(name, set).await.map_err(place)?;
        if inner.version != VERSION {
            let what = format!(
                "writing to a file system of version {}; it can be read (readonly=on)",
                inner.version
            );
            return Err(place(Error::unsupported(what)));
        }
        inner.writer = Some(Writer::open(set, options).await.map_err(place)?);
        let accounts = Arc::new(Accounts::new(inner.tables.clone()));
        set.set_user_accounting(accounts.clone());
        inner.accounts = Some(accounts);
        let fs = FileSystem(Arc::new(inner));
        fs.drain().await?;
        Ok(fs)
    }

    /// A handle that does not keep it open.
    pub fn downgrade(&self) -> WeakFileSystem {
        WeakFileSystem(Arc::downgrade(&self.0))
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// It was opened to be changed, too.
    pub fn is_for_writing(&self) -> bool {
        self.0.writer.is_some()
    }

    /// Of the layout on disk, 1 to 5.
    pub fn version(&self) -> u64 {
        self.0.version
    }

    pub fn case(&self) -> Case {
        self.0.case
    }

    pub fn normalization(&self) -> Normalization {
        self.0.normalization
    }

    /// Names that are not UTF-8 are refused.
    pub fn is_utf8_only(&self) -> bool {
        self.0.utf8_only
    }

    pub fn object_set(&self) -> &ObjSet {
        &self.0.set
    }

    pub async fn root(&self) -> Result<Node> {
        self.object(self.0.root).await
    }

    /// The file that a handle from outside names: the object must still be the same file.
    pub async fn node(&self, id: NodeId) -> Result<Node> {
        let stale = || Refusal::Stale.when("open file").at(self.place(id.object));
        let node = self.object(id.object).await.map_err(|e| match e.kind() {
            units::Kind::NotFound => stale(),
            _ => e,
        })?;
        if node.generation() == id.generation { Ok(node) } else { Err(stale()) }
    }

    /// The file that is this object.
    pub async fn object(&self, id: ObjectId) -> Result<Node> {
        if let Some(open) = self.opened().get(&id).and_then(Weak::upgrade) {
            return Ok(Node::new(self.clone(), open));
        }
        let place = |e: Error| e.at(self.place(id));
        let object = self.0.set.object(id).await.map_err(place)?;
        let opened = Arc::new(Opened::new(&self.0.tables, object).map_err(place)?);
        let mut all = self.opened();
        if let Some(other) = all.get(&id).and_then(Weak::upgrade) {
            return Ok(Node::new(self.clone(), other));
        }
        if all.len() >= 1024 && all.len() == all.capacity() {
            all.retain(|_, open| open.strong_count() > 0);
        }
        all.insert(id, Arc::downgrade(&opened));
        Ok(Node::new(self.clone(), opened))
    }

    /// Those of the files that are not open.
    pub(crate) fn not_open(&self, ids: impl Iterator<Item = ObjectId>) -> Vec<ObjectId> {
        let open = self.opened();
        ids.filter(|id| open.get(id).is_none_or(|one| one.strong_count() == 0)).collect()
    }

    /// A file that is no more.
    pub(crate) fn forget(&self, id: ObjectId) {
        self.opened().remove(&id);
    }

    fn opened(&self) -> MutexGuard<'_, HashMap<ObjectId, Weak<Opened>>> {
        // Under this lock there is only an insert or a remove.
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where something happened, for messages.
    pub(crate) fn place(&self, id: ObjectId) -> String {
        format!("dataset '{}' object {id}", self.0.name)
    }

    /// How a name is looked for, unless byte by byte.
    pub(crate) fn matching(&self) -> Option<Match> {
        match self.0.case {
            _ if self.0.normalization.is_none() => None,
            Case::Mixed => Some(Match::NormalizedSameCase),
            Case::Sensitive | Case::Insensitive => Some(Match::Normalized),
        }
    }
}

impl std::fmt::Debug for FileSystem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileSystem({})", self.0.name)
    }
}

impl std::fmt::Debug for WeakFileSystem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WeakFileSystem")
    }
}

async fn open(name: &str, set: &ObjSet) -> Result<Inner> {
    let master = Zap::open(set.object(MASTER_NODE).await?);
    let version = master.require_u64("VERSION").await?;
    if version == 0 || version > VERSION {
        return Err(Error::unsupported(format!("file systems of version {version}")));
    }
    let choice = async |name: &str| Ok::<_, Error>(master.lookup_u64(name).await?.unwrap_or(0));
    let case = match choice("casesensitivity").await? {
        0 => Case::Sensitive,
        1 => Case::Insensitive,
        2 => Case::Mixed,
        other => return Err(Error::corrupt(format!("casesensitivity {other}"))),
    };
    let form = Normalization(choice("normalization").await?);
    let normalization = if case == Case::Sensitive { form } else { form.with(Normalization::UPPER) };
    let tables = match master.lookup_u64("SA_ATTRS").await? {
        Some(id) => Tables::open(set, ObjectId(id)).await?,
        None => Tables::none(),
    };
    Ok(Inner {
        name: name.into(),
        set: set.clone(),
        version,
        case,
        normalization,
        utf8_only: choice("utf8only").await? != 0,
        tables: Arc::new(tables),
        root: ObjectId(master.require_u64("ROOT").await?),
        open: Mutex::default(),
        writer: None,
        accounts: None,
        walks: Walks::default(),
        names: world::sync::Mutex::new(()),
    })
}
