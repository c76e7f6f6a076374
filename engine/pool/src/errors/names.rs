//! What people call the objects that data errors are in.
//!
//! ```text
//!   object ─▶ its parent ─▶ … ─▶ root         known for each file by itself
//!      ▲         │ the entry with this number   one pass over a directory finds the names of all that are wanted in it
//!      └─────────┘
//! ```
//!
//! What has no place in a tree has none: metadata, files that were unlinked while open, extended attributes, and what can
//! itself not be read.

use super::DataError;
use super::list::Objects;
use crate::pool::Pool;
use dmu::ObjSet;
use ondisk::ObjsetType;
use ondisk::mos::zvol;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use units::{ObjectId, ObjsetId, Result};
use zap::{Cursor, Zap};
use zio::BlockStore;
use zpl::FileSystem;

/// A path of more parts is a circle.
const DEPTH_MAX: usize = 4096;
/// Directories of more entries are not searched for names.
const ENTRIES_MAX: u64 = 1 << 20;
const PAGE: usize = 1024;
/// The number of the object that a directory entry leads to; above it is the kind of the file.
const OBJECT_OF_ENTRY: u64 = (1 << 48) - 1;

pub(super) async fn name(pool: &Pool, objects: Objects) -> Vec<DataError> {
    let mut by_set: BTreeMap<ObjsetId, Objects> = BTreeMap::new();
    for ((set, object), blocks) in objects {
        by_set.entry(set).or_default().insert((set, object), blocks);
    }
    let mut errors = Vec::new();
    for (set, objects) in by_set {
        errors.extend(name_set(pool, set, objects).await);
    }
    errors
}

async fn name_set(pool: &Pool, id: ObjsetId, objects: Objects) -> Vec<DataError> {
    let (mut dataset, mut paths, mut ranges) = (None, BTreeMap::new(), BTreeMap::new());
    if id != ObjsetId::MOS {
        dataset = pool.dsl().dataset_name(ObjectId(id.0)).await.ok();
        let wanted: Vec<ObjectId> = objects.keys().map(|(_, object)| *object).collect();
        if let Ok(Some(set)) = open(pool, id).await {
            match set.kind() {
                ObjsetType::Zfs => paths = paths_of(&set, &wanted).await.unwrap_or_default(),
                ObjsetType::Zvol => {
                    if let Some(blocks) = objects.get(&(id, zvol::DATA)) {
                        ranges.insert(zvol::DATA, ranges_of(&set, blocks).await.unwrap_or_default());
                    }
                }
                _ => {}
            }
        }
    }
    let of = |(objset, object): (ObjsetId, ObjectId)| DataError {
        dataset: dataset.clone(),
        objset,
        object,
        path: paths.get(&object).cloned(),
        ranges: ranges.get(&object).cloned().unwrap_or_default(),
    };
    objects.into_keys().map(of).collect()
}

/// The object set as it is on disk, beside the handle that is open.
async fn open(pool: &Pool, id: ObjsetId) -> Result<Option<ObjSet>> {
    let Some(root) = crate::walk::root_now(pool, id).await?.filter(|root| !root.is_hole()) else {
        return Ok(None);
    };
    let store: Arc<dyn BlockStore> = Arc::new(pool.pipeline().clone());
    ObjSet::open(store, id, root, dmu::Policy::mos()).await.map(Some)
}

/// What bad blocks of a volume's data cover.
async fn ranges_of(set: &ObjSet, blocks: &BTreeSet<(i64, u64)>) -> Result<Vec<(u64, u64)>> {
    let Some(dnode) = set.dnode_phys(zvol::DATA).await? else { return Ok(Vec::new()) };
    let size =
        Zap::open(set.object(zvol::PROPERTIES).await?).lookup_u64(zvol::SIZE).await?.unwrap_or(u64::MAX);
    let block = u64::from(dnode.data_block_sectors) * 512;
    let mut spans = Vec::new();
    for (level, number) in blocks.iter().filter(|(level, _)| *level >= 0) {
        let level = u8::try_from(*level).unwrap_or(u8::MAX);
        let span = dnode.span(level).map_or(u64::MAX, |blocks| blocks.saturating_mul(block));
        let from = number.saturating_mul(span);
        spans.push((from, from.saturating_add(span).min(size)));
    }
    spans.retain(|(from, end)| from < end);
    spans.sort_unstable();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for (from, end) in spans {
        match ranges.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(end),
            _ => ranges.push((from, end)),
        }
    }
    Ok(ranges.into_iter().map(|(from, end)| (from, end - from)).collect())
}

/// The paths of those objects that are files with a place in the tree.
async fn paths_of(set: &ObjSet, wanted: &[ObjectId]) -> Result<BTreeMap<ObjectId, String>> {
    let fs = FileSystem::open("", set).await?;
    let root = fs.root().await?.id().object;
    let mut parents: BTreeMap<ObjectId, ObjectId> = BTreeMap::new();
    for object in wanted {
        let mut object = *object;
        for _ in 0..DEPTH_MAX {
            if object == root || parents.contains_key(&object) {
                break;
            }
            let Some(parent) = parent_of(&fs, object).await else { break };
            parents.insert(object, parent);
            object = parent;
        }
    }
    let mut children: BTreeMap<ObjectId, BTreeSet<ObjectId>> = BTreeMap::new();
    for (object, parent) in &parents {
        children.entry(*parent).or_default().insert(*object);
    }
    let mut names = BTreeMap::new();
    for (directory, wanted) in children {
        // One that cannot be read hides the names in it, and no others.
        let _unreadable = names_in(set, directory, wanted, &mut names).await;
    }
    let path = |object: &ObjectId| Some((*object, path_of(*object, root, &parents, &names)?));
    Ok(wanted.iter().filter_map(path).collect())
}

async fn parent_of(fs: &FileSystem, object: ObjectId) -> Option<ObjectId> {
    let object = fs.object_set().dnode_phys(object).await.ok().flatten().filter(is_file).map(|_| object)?;
    let node = fs.object(object).await.ok().filter(|node| !node.is_xattr())?;
    Some(node.parent().await.ok()?.id().object)
}

/// Other objects are no files, and are not to be taken for such.
fn is_file(dnode: &ondisk::DnodePhys) -> bool {
    use ondisk::ObjectType as Type;
    matches!(dnode.kind, Type::PLAIN_FILE_CONTENTS | Type::DIRECTORY_CONTENTS)
}

async fn names_in(
    set: &ObjSet,
    directory: ObjectId,
    mut wanted: BTreeSet<ObjectId>,
    names: &mut BTreeMap<ObjectId, String>,
) -> Result<()> {
    let table = Zap::open(set.object(directory).await?);
    if table.len().await? > ENTRIES_MAX {
        return Ok(());
    }
    let mut from = Some(Cursor::START);
    while let Some(at) = from.filter(|_| !wanted.is_empty()) {
        let page = table.page(at, PAGE).await?;
        for entry in &page.entries {
            let object = entry.value.as_u64().map(|value| ObjectId(value & OBJECT_OF_ENTRY));
            if let Some(object) = object.filter(|object| wanted.remove(object)) {
                names.insert(object, entry.name().into_owned());
            }
        }
        from = page.next;
    }
    Ok(())
}

fn path_of(
    object: ObjectId,
    root: ObjectId,
    parents: &BTreeMap<ObjectId, ObjectId>,
    names: &BTreeMap<ObjectId, String>,
) -> Option<String> {
    if object == root {
        return Some("/".into());
    }
    let (mut path, mut object) = (String::new(), object);
    for _ in 0..DEPTH_MAX {
        if object == root {
            return Some(path);
        }
        path = format!("/{}{path}", names.get(&object)?);
        object = *parents.get(&object)?;
    }
    None
}
