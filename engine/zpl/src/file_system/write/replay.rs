//! What the records of the intent log mean for a file system: each change is made once more.
//!
//! ```text
//!   record ─▶ the same function that a client's request leads to ─▶ transactions, all in the txg of the record
//!             but: objects get the numbers that the record says      so the record is done when that txg has synced
//!                  flags forbid nothing: what is logged was allowed
//! ```
//!
//! Files that were unlinked, and in use when the system stopped, are freed before the first record: the log may give their
//! numbers to others.
//!
//! A write that is logged by pointer brings its whole block, as it was when the log was written: more of it may have been
//! promised than this range, by records that only say how long the file became ([`Record::Write2`]), or that name the
//! block once more. So all of it is put in place. What then lies behind the end of the file is not the file's: it becomes
//! zeros when all records are done.
//!
//! Times of files are those of the replay, but for the times that a record has: it is not in the log when a write was made.

mod acl;
mod attributes;
mod create;
mod data;
#[cfg(test)]
mod tests;

pub(super) use attributes::{FLAGS, PROJECT, mask};

use super::{Renaming, WriteOptions};
use crate::file_system::FileSystem;
use crate::file_system::node::Node;
use dmu::{ObjSet, Tx};
use ondisk::Record;
use ondisk::zil::{LogAcl, Rename, RenameKind};
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use units::{Error, ObjectId, Result, Txg};
use world::Buf;

/// Replays the log of one file system. It has no other opener.
#[derive(Debug)]
pub struct Replay {
    fs: FileSystem,
    /// Files with a block that may hold something behind their end.
    tails: Mutex<BTreeSet<ObjectId>>,
}

impl Replay {
    /// `name` is for messages.
    pub async fn open(name: &str, set: &ObjSet, options: WriteOptions) -> Result<Replay> {
        let fs = FileSystem::open_for_writing(name, set, options).await?;
        Ok(Replay { fs, tails: Mutex::default() })
    }

    /// What is left to do when all records are done.
    pub async fn finish(&self) -> Result<()> {
        let files = std::mem::take(&mut *self.tails());
        for id in files {
            match self.fs.object(id).await {
                Ok(file) => file.clear_tail().await?,
                Err(e) if e.kind() == units::Kind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn tails(&self) -> MutexGuard<'_, BTreeSet<ObjectId>> {
        // Under this lock there is only an insert.
        self.tails.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn node(&self, id: ObjectId) -> Result<Node> {
        self.fs.object(id).await
    }

    async fn apply(&self, record: &Record<'_>, block: Option<&Buf>) -> Result<()> {
        match record {
            Record::Commit => Ok(()),
            Record::Create(create) => self.create(create).await,
            Record::Remove(remove) => {
                let directory = self.node(remove.directory).await?;
                match remove.is_directory {
                    true => directory.remove_directory(remove.name).await,
                    false => directory.unlink(remove.name).await,
                }
            }
            Record::Link(link) => {
                let (directory, file) = (self.node(link.directory).await?, self.node(link.object).await?);
                directory.link(link.name, &file).await
            }
            Record::Rename(rename) => self.rename(rename).await,
            Record::Write(write) => self.write(write, block).await,
            Record::Write2(write) => {
                let end = write.offset.saturating_add(write.length);
                self.node(write.object).await?.lengthen(end).await
            }
            Record::Truncate(truncate) => self.truncate(truncate).await,
            Record::SetAttr(set) => self.set_attributes(set).await,
            Record::Acl(acl) => self.node(acl.object).await?.replace_acl(&acl.acl).await,
            Record::SetSaXattr(set) => self.set_xattr(set).await,
            Record::AclV0(old) => {
                let (count, entries) = (old.entries.len() as u64, old.entries.clone());
                let acl = LogAcl { count, entries, ..LogAcl::default() };
                self.node(old.object).await?.replace_acl(&acl).await
            }
            Record::CloneRange(_) => Err(Error::invalid("cloned blocks are copied, not cloned again")),
        }
    }

    async fn rename(&self, rename: &Rename<'_>) -> Result<()> {
        let (from, to) = (self.node(rename.source).await?, self.node(rename.target).await?);
        let how = match rename.how {
            RenameKind::Exchange => Renaming::Exchange,
            RenameKind::Plain | RenameKind::Whiteout(_) => Renaming::Replace,
        };
        from.rename(rename.source_name, &to, rename.target_name, how).await?;
        match &rename.how {
            RenameKind::Whiteout(node) => self.make(&from, rename.source_name, node, b"").await.map(drop),
            _ => Ok(()),
        }
    }
}

impl zil::Replayer for Replay {
    fn replay<'a>(
        &'a self,
        tx: &'a Tx,
        record: &'a Record<'a>,
        block: Option<&'a Buf>,
    ) -> Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>> {
        Box::pin(async move {
            let replaying_in = &self.fs.writer()?.replaying_in;
            replaying_in.store(tx.txg().0, Ordering::Release);
            let done = self.apply(record, block).await;
            replaying_in.store(Txg::NONE.0, Ordering::Release);
            done
        })
    }
}
