//! `.zfs/snapshot`: every snapshot is a tree, opened when its directory is entered.

use super::{File, Served};
use crate::errno::{Result, errno};
use crate::nodes::TREES;
use rustix::io::Errno;
use std::sync::{Mutex, MutexGuard, PoisonError};
use zpl::FileSystem;

/// The trees of snapshots: the first one's number is 1.
#[derive(Default)]
pub(super) struct Trees(Mutex<Vec<Tree>>);

/// A tree keeps its number for ever, since the kernel may ask for it at any time.
struct Tree {
    /// Of the snapshot.
    id: u64,
    name: String,
    /// Gone when the snapshot is.
    fs: Option<FileSystem>,
}

impl Trees {
    fn all(&self) -> MutexGuard<'_, Vec<Tree>> {
        // A tree is whole at any time.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Served {
    /// The file system that a number's tree is.
    pub(super) fn tree(&self, tree: u16) -> Option<FileSystem> {
        match tree {
            0 => Some(self.fs().clone()),
            _ => self.trees.all().get(usize::from(tree) - 1)?.fs.clone(),
        }
    }

    /// The snapshot that a tree is of.
    pub(super) fn snapshot_id(&self, tree: u16) -> Option<u64> {
        self.trees.all().get(usize::from(tree).checked_sub(1)?).map(|tree| tree.id)
    }

    /// The root of a snapshot.
    pub(super) async fn snapshot_root(&self, name: &[u8]) -> Result<Option<File>> {
        let Ok(name) = std::str::from_utf8(name) else { return Ok(None) };
        let Some(id) = self.dataset.snapshot(name).await.map_err(|e| errno(&e))? else { return Ok(None) };
        let (tree, fs) = match self.tree_of(id) {
            Some(known) => known,
            None => {
                let fs = self.dataset.open_snapshot(name).await.map_err(|e| errno(&e))?;
                self.add_tree(id, name, fs)?
            }
        };
        let node = fs.root().await.map_err(|e| errno(&e))?;
        Ok(Some(File { tree, node }))
    }

    fn tree_of(&self, id: u64) -> Option<(u16, FileSystem)> {
        let all = self.trees.all();
        let at = all.iter().position(|tree| tree.id == id && tree.fs.is_some())?;
        Some((at as u16 + 1, all[at].fs.clone()?))
    }

    fn add_tree(&self, id: u64, name: &str, fs: FileSystem) -> Result<(u16, FileSystem)> {
        // Another request was faster and has opened it already.
        if let Some(known) = self.tree_of(id) {
            return Ok(known);
        }
        let mut all = self.trees.all();
        let tree =
            u16::try_from(all.len() + 1).ok().filter(|tree| TREES.contains(tree)).ok_or(Errno::NFILE)?;
        all.push(Tree { id, name: name.into(), fs: Some(fs.clone()) });
        Ok((tree, fs))
    }

    /// What is open of a snapshot is closed; its users get ESTALE. It may have been entered under another name, and a
    /// request that was under way when it was forgotten may have left a file of it.
    pub async fn forget_snapshot(&self, name: &str) {
        let id = self.dataset.snapshot(name).await.ok().flatten();
        let gone: Vec<u16> = {
            let mut all = self.trees.all();
            let its = |tree: &Tree| tree.name == name || Some(tree.id) == id;
            all.iter_mut()
                .enumerate()
                .filter(|(_, tree)| its(tree))
                .map(|(at, tree)| {
                    tree.fs = None;
                    at as u16 + 1
                })
                .collect()
        };
        for tree in gone {
            for node in self.nodes.take_tree(tree) {
                self.let_go(node).await;
            }
        }
    }
}
