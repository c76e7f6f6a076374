//! Renaming: one transaction, so that both names are there before and one after, or each the other's.

use super::log::new_node;
use super::make::Plan;
use super::names::entry;
use super::{COST, NewFile, load_all};
use crate::file_system::node::Node;
use crate::flags;
use crate::quotas::Resource;
use crate::sa::Attr;
use crate::stat::FileKind;
use ondisk::Record;
use ondisk::zil::{Rename, RenameKind};
use units::{Error, Result};

/// What becomes of a file that has the new name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renaming {
    /// It loses it.
    Replace,
    /// Then nothing is renamed.
    NoReplace,
    /// It gets the old one; it must be there.
    Exchange,
    /// It loses it, and the old name is given to a new file, by which overlays know that below it something is not there: a
    /// device of number 0. It belongs to these.
    Whiteout { uid: u32, gid: u32 },
}

impl Renaming {
    fn whiteout(self) -> Option<NewFile<'static>> {
        match self {
            Renaming::Whiteout { uid, gid } => {
                Some(NewFile { uid, gid, ..NewFile::new(FileKind::CharDevice, 0) })
            }
            _ => None,
        }
    }
}

/// Directories nested deeper than this are a loop.
const DEPTH_MAX: usize = 1 << 16;

impl Node {
    /// Whether `other` is this directory or above it.
    async fn is_within(&self, other: &Node) -> Result<bool> {
        let root = self.file_system().root().await?.id();
        let mut at = self.clone();
        for _ in 0..DEPTH_MAX {
            if at.id() == other.id() {
                return Ok(true);
            }
            if at.id() == root {
                return Ok(false);
            }
            at = at.parent().await?;
        }
        Err(self.place(Error::corrupt("directories that are within each other")))
    }

    /// Gives the file that this directory calls `name` the name `new_name` in `target`.
    pub async fn rename(&self, name: &[u8], target: &Node, new_name: &[u8], how: Renaming) -> Result<()> {
        let fs = self.file_system();
        let writer = fs.writer()?;
        fs.check_name(new_name)?;
        let (from, to) = (self.directory()?, target.directory()?);
        let names = fs.0.names.lock().await;
        let (stored, id) = self.stored_entry(name).await?.ok_or_else(|| self.missing(name))?;
        let node = fs.object(id).await?;
        let there = target.stored_entry(new_name).await?;
        let is_same_name =
            self.id() == target.id() && there.as_ref().is_some_and(|(name, _)| *name == stored);
        let other = match (&there, how) {
            (Some(_), Renaming::NoReplace) if !is_same_name => return Err(target.exists(new_name)),
            (None, Renaming::Exchange) => return Err(target.missing(new_name)),
            (Some((_, other)), _) => Some(fs.object(*other).await?),
            (None, _) => None,
        };
        // Two names of one file are the same after as before, unless only the spelling changes.
        if other.as_ref().is_some_and(|other| other.id() == node.id())
            && (!is_same_name || stored == new_name)
        {
            return Ok(());
        }
        if is_same_name && how.whiteout().is_some() {
            return Err(node.place(Error::invalid("the old name is the new one, and cannot name a whiteout")));
        }
        let other = other.filter(|other| other.id() != node.id());
        if node.is_directory() && target.is_within(&node).await? {
            return Err(node.place(Error::invalid("a directory cannot move into itself")));
        }
        if let Some(other) = &other {
            if how == Renaming::Exchange {
                if other.is_directory() && self.is_within(other).await? {
                    return Err(other.place(Error::invalid("a directory cannot move into itself")));
                }
            } else {
                other.check_removal(node.is_directory()).await?;
            }
        }
        // The two directories may be one.
        let mut nodes = vec![self, &node];
        nodes.extend((self.id() != target.id()).then_some(target));
        let target_at = nodes.len() - 1;
        let target_at = if self.id() == target.id() { 0 } else { target_at };
        nodes.extend(other.as_ref());
        let mut all = load_all(&nodes).await?;
        all[target_at].must_have_names()?;
        for loaded in &all {
            loaded.node.check_flags(&loaded.attributes, flags::IMMUTABLE | flags::APPENDONLY, "rename")?;
        }
        if self.id() != target.id() {
            node.check_project(&all[1].attributes, &all[target_at].attributes, "rename")?;
            if let (Some(other), Renaming::Exchange) = (&other, how) {
                let their = &all[all.len() - 1].attributes;
                other.check_project(their, &all[0].attributes, "rename")?;
            }
        }
        let left = how.whiteout();
        let plan = match &left {
            Some(new) => Some(Plan::below(self, &all[0].attributes, new).await?),
            None => None,
        };
        if let Some(plan) = &plan {
            fs.check_quota(plan.owner(), &Resource::ALL, "make a whiteout").await?;
        }
        let tx = fs.begin(3 * COST).await?;
        fs.note_long_name(&tx, new_name);
        let whiteout = match &plan {
            Some(plan) => Some(fs.make_object(&tx, plan).await?.1),
            None => None,
        };
        let mut freed = None;
        match (&other, how) {
            (Some(other), Renaming::Exchange) => {
                let their_name = there.as_ref().map_or(new_name, |(name, _)| name);
                from.update(&tx, &stored[..], entry(other.id().object, other.kind()))
                    .await
                    .map_err(|e| self.place(e))?;
                to.update(&tx, their_name, entry(id, node.kind())).await.map_err(|e| target.place(e))?;
                let their = all.len() - 1;
                all[their].set(Attr::Parent, &[self.id().object.0])?;
                all[their].touch(false)?;
                let moved = i64::from(other.is_directory()) - i64::from(node.is_directory());
                all[0].add(Attr::Links, moved)?;
                all[target_at].add(Attr::Links, -moved)?;
            }
            _ => {
                if let Some((name, _)) = &there {
                    to.remove(&tx, &name[..]).await.map_err(|e| target.place(e))?;
                }
                if let Some(whiteout) = &whiteout {
                    let entry = entry(whiteout.object, FileKind::CharDevice);
                    from.update(&tx, &stored[..], entry).await.map_err(|e| self.place(e))?;
                } else if !is_same_name {
                    from.remove(&tx, &stored[..]).await.map_err(|e| self.place(e))?;
                }
                to.insert(&tx, new_name, entry(id, node.kind())).await.map_err(|e| target.place(e))?;
                if !is_same_name && whiteout.is_none() {
                    all[0].add(Attr::Size, -1)?;
                }
                if there.is_none() {
                    all[target_at].add(Attr::Size, 1)?;
                }
                if node.is_directory() {
                    all[0].add(Attr::Links, -1)?;
                    all[target_at].add(Attr::Links, 1)?;
                }
                if let Some(other) = &other {
                    let their = all.len() - 1;
                    let left = match other.is_directory() {
                        true => 0,
                        false => all[their].word(Attr::Links)?.saturating_sub(1),
                    };
                    all[their].set(Attr::Links, &[left])?;
                    all[their].touch(false)?;
                    if other.is_directory() {
                        all[target_at].add(Attr::Links, -1)?;
                    }
                    if left == 0 {
                        tx.forget(other.id().object);
                        let gone = other.id().object.0;
                        writer.unlinked.update(&tx, &zap::int_name(gone), gone).await?;
                        freed = Some(());
                    }
                }
            }
        }
        all[1].set(Attr::Parent, &[target.id().object.0])?;
        all[1].touch(false)?;
        all[0].touch(true)?;
        all[target_at].touch(true)?;
        for loaded in &all {
            loaded.store(&tx).await?;
        }
        // Who replaces a file wants to find the new content after a crash, or the old.
        all[1..].iter().for_each(|loaded| tx.promote(loaded.node.id().object));
        let (kind, target_name) = match (how, &there, &left, &whiteout) {
            (Renaming::Exchange, Some((name, _)), ..) => (RenameKind::Exchange, &name[..]),
            (_, _, Some(new), Some(made)) => (RenameKind::Whiteout(new_node(new, made)), new_name),
            _ => (RenameKind::Plain, new_name),
        };
        let (source, target_id) = (self.id().object, target.id().object);
        let (how, source_name) = (kind, &stored[..]);
        // What a log cannot tell is made durable by the txg.
        if plan.as_ref().is_none_or(Plan::is_plain) {
            tx.log(Record::Rename(Rename { how, source, target: target_id, source_name, target_name }));
        }
        drop((tx, all, names));
        fs.settle().await?;
        match (freed, other) {
            (Some(()), Some(other)) => other.release().await,
            _ => Ok(()),
        }
    }
}
