//! Finding datasets by name, names by dataset, and what is below.

use std::collections::{BTreeMap, BTreeSet};

use dmu::Object;
use ondisk::{ObjsetPhys, ObjsetType, ZilHeader};
use units::{Error, Kind, ObjectId, Result};
use zio::{Bookmark, ReadClass};

use crate::core::no_such;
use crate::dsl::Dsl;
use crate::phys::{DatasetPhys, DirPhys};
use crate::props::Types;
use crate::zaps;

/// A head dataset or snapshot that was looked up.
#[derive(Clone, Debug)]
pub struct Found {
    pub name: String,
    pub dir_id: ObjectId,
    pub dir: DirPhys,
    pub id: ObjectId,
    pub object: Object,
    pub phys: DatasetPhys,
}

impl Found {
    pub fn is_snapshot(&self) -> bool {
        self.phys.is_snapshot()
    }
}

/// Directories that people do not see.
pub(crate) fn is_hidden(name: &str) -> bool {
    name.starts_with('$')
}

impl Dsl {
    /// The directory `name`, without a snapshot.
    pub(crate) async fn find_dir(&self, name: &str) -> Result<(ObjectId, DirPhys)> {
        let mut parts = name.split('/');
        if parts.next() != Some(self.pool_name().as_str()) {
            return Err(no_such(name));
        }
        let mut id = self.root;
        let mut phys = self.core.dir(id).await?.1;
        for part in parts {
            let children = self.core.table(phys.children).await?;
            let child = if part.is_empty() { None } else { children.lookup_u64(part).await? };
            id = ObjectId(child.ok_or_else(|| no_such(name))?);
            phys = self.core.dir(id).await?.1;
        }
        Ok((id, phys))
    }

    /// The head dataset `pool/a/b` or the snapshot `pool/a/b@s`.
    pub async fn find(&self, name: &str) -> Result<Found> {
        let (path, snapshot) = match name.split_once('@') {
            Some((path, snapshot)) => (path, Some(snapshot)),
            None => (name, None),
        };
        let (dir_id, dir) = self
            .find_dir(path)
            .await
            .map_err(|e| if e.kind() == Kind::NotFound { no_such(name) } else { e })?;
        let head = dir.head.some().ok_or_else(|| no_such(name))?;
        let (object, phys) = self.core.dataset(head).await?;
        if phys.is_snapshot() || phys.dir != dir_id {
            let what = if phys.is_snapshot() { "is a snapshot" } else { "belongs to another directory" };
            let e = Error::corrupt(format!("directory {dir_id}: its head dataset, object {head}, {what}"));
            return Err(e.at(format!("'{name}'")));
        }
        let Some(snapshot) = snapshot else {
            return Ok(Found { name: name.into(), dir_id, dir, id: head, object, phys });
        };
        let snapnames = self.core.table(phys.snapnames).await?;
        let found = if snapshot.is_empty() { None } else { snapnames.lookup_u64(snapshot).await? };
        let id = ObjectId(found.ok_or_else(|| no_such(name))?);
        let (object, phys) = self.core.dataset(id).await?;
        Ok(Found { name: name.into(), dir_id, dir, id, object, phys })
    }

    pub async fn exists(&self, name: &str) -> Result<bool> {
        match self.find(name).await {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == Kind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// The full name of a directory.
    pub async fn dir_name(&self, id: ObjectId) -> Result<String> {
        let chain = self.chain(id).await?;
        let mut name = self.pool_name();
        for pair in chain.windows(2).rev() {
            let ((child, _), (_, parent)) = (&pair[0], &pair[1]);
            let children = self.core.table(parent.children).await?;
            let entry = children.find_by_value(child.0, u64::MAX).await?;
            let nameless = || Error::corrupt(format!("directory {child} is not among its parent's children"));
            name = format!("{name}/{}", entry.ok_or_else(nameless)?.name());
        }
        Ok(name)
    }

    /// The full name of a head dataset or snapshot.
    pub async fn dataset_name(&self, id: ObjectId) -> Result<String> {
        let (_, phys) = self.core.dataset(id).await?;
        let name = self.dir_name(phys.dir).await?;
        if !phys.is_snapshot() {
            return Ok(name);
        }
        let (_, dir) = self.core.dir(phys.dir).await?;
        let (_, head) = self.core.dataset(dir.head).await?;
        let snapnames = self.core.table(head.snapnames).await?;
        let entry = snapnames.find_by_value(id.0, u64::MAX).await?;
        let nameless = || Error::corrupt(format!("snapshot {id} is not among its dataset's"));
        Ok(format!("{name}@{}", entry.ok_or_else(nameless)?.name()))
    }

    /// The child directories, in alphabetical order, without the pool's own.
    pub(crate) async fn child_dirs(&self, dir: &DirPhys) -> Result<Vec<(String, ObjectId)>> {
        let mut children = zaps::numbers(&self.core.table(dir.children).await?).await?;
        children.retain(|(name, _)| !is_hidden(name));
        children.sort();
        Ok(children.into_iter().map(|(name, id)| (name, ObjectId(id))).collect())
    }

    /// The names of a dataset's children, in alphabetical order.
    pub async fn children(&self, name: &str) -> Result<Vec<String>> {
        let (_, dir) = self.find_dir(name).await?;
        let children = self.child_dirs(&dir).await?;
        Ok(children.into_iter().map(|(child, _)| format!("{name}/{child}")).collect())
    }

    /// A dataset's snapshots, oldest first: full names and objects.
    pub async fn snapshots(&self, name: &str) -> Result<Vec<(String, ObjectId)>> {
        let head = self.find(name).await?;
        let mut found = Vec::new();
        for (snapshot, id) in zaps::numbers(&self.core.table(head.phys.snapnames).await?).await? {
            let (_, phys) = self.core.dataset(ObjectId(id)).await?;
            found.push((phys.creation_txg, format!("{name}@{snapshot}"), ObjectId(id)));
        }
        found.sort();
        Ok(found.into_iter().map(|(_, name, id)| (name, id)).collect())
    }

    /// The file systems and volumes from `name` down, parents before children, siblings in alphabetical order.
    pub async fn descendants(&self, name: &str) -> Result<Vec<String>> {
        Ok(self.dirs_from(name).await?.into_iter().map(|(name, _)| name).collect())
    }

    /// All file systems and volumes of the pool, the pool's own among them: each once, by its object, with its name.
    pub async fn heads(&self) -> Result<BTreeMap<ObjectId, String>> {
        self.heads_below(&self.pool_name()).await
    }

    /// As [`Dsl::heads`], of a dataset and those below it.
    pub async fn heads_below(&self, name: &str) -> Result<BTreeMap<ObjectId, String>> {
        let dirs = self.dirs_from(name).await?;
        Ok(dirs.into_iter().filter_map(|(name, dir)| Some((dir.head.some()?, name))).collect())
    }

    /// The directories from `name` down, in the order of [`Dsl::descendants`].
    async fn dirs_from(&self, name: &str) -> Result<Vec<(String, DirPhys)>> {
        let (_, dir) = self.find_dir(name).await?;
        let mut found = Vec::new();
        let mut todo = vec![(name.to_string(), dir)];
        let mut seen = BTreeSet::new();
        while let Some((name, dir)) = todo.pop() {
            for (child, id) in self.child_dirs(&dir).await?.into_iter().rev() {
                if !seen.insert(id) {
                    let e = Error::corrupt(format!("DSL directory {id} has two places in the tree"));
                    return Err(e.at(format!("'{name}/{child}'")));
                }
                todo.push((format!("{name}/{child}"), self.core.dir(id).await?.1));
            }
            found.push((name, dir));
        }
        Ok(found)
    }

    /// A directory, and all below it.
    pub(crate) async fn dirs_below(&self, top: ObjectId) -> Result<BTreeSet<ObjectId>> {
        let mut seen = BTreeSet::from([top]);
        let mut todo = vec![top];
        while let Some(id) = todo.pop() {
            for (_, child) in self.child_dirs(&self.core.dir(id).await?.1).await? {
                // A second place in the tree is damage; it is met where names are needed.
                if seen.insert(child) {
                    todo.push(child);
                }
            }
        }
        Ok(seen)
    }

    /// What a dataset is; a snapshot is what its dataset is, and a snapshot.
    pub async fn objset_type(&self, found: &Found) -> Result<ObjsetType> {
        if let Some(open) = self.opened().get(&found.id) {
            return Ok(open.objset().kind());
        }
        Ok(self.root_block(found).await?.map_or(ObjsetType::None, |phys| phys.kind))
    }

    /// The head of a dataset's intent log, as the open dataset or else the disk has it.
    pub async fn log_header(&self, found: &Found) -> Result<ZilHeader> {
        if let Some(open) = self.opened().get(&found.id) {
            return Ok(open.objset().phys().zil_header);
        }
        Ok(self.root_block(found).await?.map_or_else(ZilHeader::default, |phys| phys.zil_header))
    }

    /// The root block on disk; nothing if the dataset has none.
    pub(crate) async fn root_block(&self, found: &Found) -> Result<Option<ObjsetPhys>> {
        let bp = &found.phys.bp;
        if bp.is_hole() {
            return Ok(None);
        }
        let at = Bookmark::root(units::ObjsetId(found.id.0));
        let store = self.core.store();
        let block = match store.cached(bp) {
            Some(block) => block,
            None => store.read(bp, at, ReadClass::Demand).await?,
        };
        Ok(Some(ObjsetPhys::from_bytes(&block, bp.endian()).map_err(|e| e.at(at))?))
    }

    /// The kind of a dataset as properties see it.
    pub async fn types_of(&self, found: &Found) -> Result<Types> {
        if found.is_snapshot() {
            return Ok(Types::SNAPSHOT);
        }
        match self.objset_type(found).await? {
            ObjsetType::Zvol => Ok(Types::VOLUME),
            _ => Ok(Types::FILESYSTEM),
        }
    }
}
