//! What of a change goes into the intent log, and when it is durable.
//!
//! ```text
//!   begin ─▶ Change: a hold on the open txg ─▶ names, blocks, attributes, in memory ─▶ log(record) ─▶ dropped
//!                                                                                        │
//!                                           dropped without: only its txg makes it durable, and the next commit waits
//! ```
//!
//! The record is made in the transaction, under the locks of what it speaks of: so records are in the order of the
//! changes. Nothing is logged of a file that has no name any more: nobody will ask for it after a crash.
//!
//! [`Node::sync`] commits the log as far as the file is concerned, with all names there are: see `zil::log`'s `files`.

use super::make::{Made, NewFile};
use crate::file_system::FileSystem;
use crate::node::Node;
use crate::stat::FileKind;
use dmu::{Object, SyncMode, Tx};
use ondisk::Record;
use ondisk::zil::{Create, CreateKind, NewNode, Truncate};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{ObjectId, Result, Txg};
use zil::{Hint, Log};

/// A change under way.
#[derive(Debug)]
pub(crate) struct Change {
    tx: Tx,
    log: Option<Log>,
    is_logged: AtomicBool,
}

impl Change {
    pub fn new(tx: Tx, log: Option<Log>) -> Change {
        Change { tx, log, is_logged: AtomicBool::new(false) }
    }

    /// Nobody was promised it, and nothing that is logged builds on it.
    pub fn needs_no_record(&self) {
        self.is_logged.store(true, Ordering::Release);
    }

    pub fn log(&self, record: Record<'_>) {
        self.needs_no_record();
        if let Some(log) = &self.log {
            log.record(&self.tx, record);
        }
    }

    pub fn log_create(&self, directory: ObjectId, name: &[u8], new: &NewFile<'_>, made: &Made) {
        let what = match new.kind {
            FileKind::Directory => CreateKind::Directory,
            FileKind::Symlink => CreateKind::Symlink,
            _ => CreateKind::File,
        };
        let node = new_node(new, made);
        let (extended, acl, domains, target) = (None, None, Vec::new(), new.target);
        self.log(Record::Create(Create { what, directory, node, extended, acl, domains, name, target }));
    }

    /// `size` is what the file had before.
    pub fn log_write(&self, object: &Object, offset: u64, bytes: &[u8], size: u64, soon: bool) {
        self.needs_no_record();
        let Some(log) = &self.log else { return };
        let end = offset + bytes.len() as u64;
        let may_point = end > size || size >= end.next_multiple_of(object.block_size());
        let soon = soon || log.mode() == SyncMode::Always;
        log.write_file(&self.tx, object, offset, bytes, Hint { soon, may_point });
    }

    pub fn log_truncate(&self, object: ObjectId, offset: u64, length: u64) {
        self.log(Record::Truncate(Truncate { object, offset, length }));
    }

    /// What was logged of the content of a file comes before the next record.
    pub fn promote(&self, object: ObjectId) {
        if let Some(log) = &self.log {
            log.promote(object);
        }
    }

    /// The last name of a file is gone.
    pub fn forget(&self, object: ObjectId) {
        if let Some(log) = &self.log {
            log.forget(object);
        }
    }
}

/// What a log says of a file that was made.
pub(super) fn new_node(new: &NewFile<'_>, made: &Made) -> NewNode {
    NewNode {
        object: made.object,
        slots: made.slots.into(),
        mode: made.mode,
        uid: new.uid.into(),
        gid: made.gid,
        generation: made.generation,
        created: made.at,
        device: new.device(),
    }
}

impl Deref for Change {
    type Target = Tx;

    fn deref(&self) -> &Tx {
        &self.tx
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        if let Some(log) = self.log.as_ref().filter(|_| !self.is_logged.load(Ordering::Acquire)) {
            log.unlogged(&self.tx);
        }
    }
}

impl FileSystem {
    /// Makes everything durable that was changed before; with `sync=disabled`, nothing.
    pub async fn sync(&self) -> Result<()> {
        let writer = self.writer()?;
        match &writer.log {
            Some(log) => log.commit().await,
            None => writer.txgs.wait_synced(Txg(writer.changed_in.load(Ordering::Acquire))).await,
        }
    }

    /// What is left to do for a change that was made: with `sync=always` it is made durable before it is acknowledged.
    pub(super) async fn settle(&self) -> Result<()> {
        match &self.writer()?.log {
            Some(log) if log.mode() == SyncMode::Always => log.commit().await,
            _ => Ok(()),
        }
    }
}

impl Node {
    /// Makes durable what was changed of this file or directory before, with its extended attributes; of others their
    /// names, and their content where it is on the way.
    pub async fn sync(&self) -> Result<()> {
        let fs = self.file_system();
        let Some(log) = &fs.writer()?.log else { return fs.sync().await };
        if let Some(directory) = self.xattr_directory().await? {
            log.promote(directory.id().object);
            directory.list_all().await?.iter().for_each(|entry| log.promote(entry.object));
        }
        log.commit_file(self.id().object).await
    }
}
