//! What of a change goes into the intent log, and when it is durable.
//!
//! ```text
//!   begin ─▶ Change: a hold on the open txg ─▶ names, blocks, attributes, in memory ─▶ log(record) ─▶ dropped
//!                                                                                        │
//!                                           dropped without: only its txg makes it durable, and the next commit waits
//! ```
//!
//! The record is made in the transaction, under the locks of what it speaks of: so records are in the order of the
//! changes. Nothing is logged of a file that has no name any more: no client will ask for it after a crash.
//!
//! What directories give to that which is made in them (lists, project) goes into the sequence of names at once, as do
//! extended attributes that are files: what builds on them comes after them.
//!
//! [`Node::sync`] commits the log as far as the file is concerned, with all names there are: see `zil::log`'s `files`.

use super::make::{Made, NewFile};
use crate::acl::{Ace, log_entries};
use crate::acl_rules::hints;
use crate::file_system::FileSystem;
use crate::file_system::node::Node;
use crate::stat::FileKind;
use dmu::{EarlyBlock, Object, SyncMode, Tx};
use ondisk::zil::{Create, CreateKind, LogAcl, NewNode, Remove, SetSaXattr, Truncate};
use ondisk::{Feature, Record};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{ObjectId, Result, Txg};
use world::Buf;
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

    /// It was not promised to any client, and nothing that is logged builds on it.
    pub fn needs_no_record(&self) {
        self.is_logged.store(true, Ordering::Release);
    }

    pub fn log(&self, record: Record<'_>) {
        self.needs_no_record();
        if let Some(log) = &self.log {
            log.record(&self.tx, record);
        }
    }

    /// `acl` is what the file has taken over from its directory, if that says more than the mode.
    pub fn log_create(
        &self,
        directory: ObjectId,
        name: &[u8],
        new: &NewFile<'_>,
        made: &Made,
        acl: Option<LogAcl<'static>>,
    ) {
        let what = match new.kind {
            FileKind::Directory => CreateKind::Directory,
            FileKind::Symlink => CreateKind::Symlink,
            _ => CreateKind::File,
        };
        let node = new_node(new, made);
        let (extended, domains, target) = (None, Vec::new(), new.target);
        self.log(Record::Create(Create { what, directory, node, extended, acl, domains, name, target }));
    }

    /// The hidden directory of `file` was made, or a file in such a directory.
    pub fn log_hidden(&self, above: ObjectId, name: &[u8], new: &NewFile<'_>, made: &Made) {
        let what = match new.kind {
            FileKind::Directory => CreateKind::XattrDirectory,
            _ => CreateKind::File,
        };
        let (directory, node) = (above, new_node(new, made));
        let (extended, acl, domains, target) = (None, None, Vec::new(), &[][..]);
        self.log(Record::Create(Create { what, directory, node, extended, acl, domains, name, target }));
    }

    /// A file in a hidden directory holds `value` and nothing else. It stands in the sequence of names, so that it is
    /// never far from its name.
    pub fn log_hidden_value(&self, object: &Object, value: &[u8], is_new: bool) {
        if !is_new {
            self.log_truncate(object.id(), 0, 0);
            self.promote(object.id());
        }
        if let Some(log) = self.log.as_ref().filter(|_| !value.is_empty()) {
            log.write_file(
                &self.tx,
                object,
                0,
                &[Buf::copy_from(value)],
                Hint { soon: true, may_point: false },
            );
        }
    }

    /// A file in a hidden directory is gone.
    pub fn log_hidden_removal(&self, directory: ObjectId, name: &[u8], object: ObjectId) {
        self.forget(object);
        self.log(Record::Remove(Remove { directory, name, is_directory: false }));
    }

    /// An extended attribute in the dnode; without `value` it was removed. See [`FileSystem::logs_listed_xattr`].
    pub fn log_listed_xattr(&self, object: ObjectId, name: &[u8], value: Option<&[u8]>) {
        self.log(Record::SetSaXattr(SetSaXattr { object, name, value: value.unwrap_or(&[]) }));
    }

    /// `size` is what the file had before.
    pub fn log_write(&self, object: &Object, offset: u64, parts: &[Buf], size: u64, soon: bool) {
        self.needs_no_record();
        let Some(log) = &self.log else { return };
        let end = offset + parts.iter().map(|part| part.len() as u64).sum::<u64>();
        let may_point = end > size || size >= end.next_multiple_of(object.block_size());
        let soon = soon || log.mode() == SyncMode::Always;
        log.write_file(&self.tx, object, offset, parts, Hint { soon, may_point });
    }

    /// As [`Change::log_write`], of a write whose blocks `early` go to their devices at once.
    pub fn log_write_early(
        &self,
        object: &Object,
        offset: u64,
        parts: &[Buf],
        early: &[(u64, EarlyBlock)],
        soon: bool,
    ) {
        self.needs_no_record();
        if let Some(log) = &self.log {
            log.write_file_early(&self.tx, object, offset, parts, early, soon);
        }
    }

    /// A commit would have a write of `len` bytes at `offset` go to its own place first.
    pub fn points(&self, object: &Object, offset: u64, len: u64) -> bool {
        let log = self.log.as_ref().filter(|log| log.mode() != SyncMode::Disabled);
        log.is_some_and(|log| log.points(offset, len, object.block_size()))
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

/// A list as records hold it; `hints` are the file's flags. None if it names somebody whom records cannot.
pub(super) fn log_acl(list: &[Ace], hints: u64) -> Option<LogAcl<'static>> {
    let decided = [(hints::AUTO_INHERIT, 1), (hints::PROTECTED, 2), (hints::DEFAULTED, 4)];
    let flags = decided.into_iter().filter(|(hint, _)| hints & hint != 0).map(|(_, bit)| bit).sum();
    Some(LogAcl { count: list.len() as u64, flags, entries: log_entries(list)?, ..LogAcl::default() })
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
    /// Whether the log can be told of an extended attribute in a dnode. That takes a feature of the pool, which has to
    /// be on disk before: so the first of them is made durable by its txg. And a record without a value says that the
    /// attribute was removed.
    pub(super) fn logs_listed_xattr(&self, tx: &Change, value: Option<&[u8]>) -> bool {
        let Ok(writer) = self.writer() else { return false };
        if !self.settings().logs_xattrs || value.is_some_and(<[u8]>::is_empty) {
            return false;
        }
        let none = Txg::NONE.0;
        match writer.xattrs_logged_from.load(Ordering::Acquire) {
            from if from == none => {
                self.0.set.use_feature(tx, Feature::ZilSaXattr);
                // The first one.
                let (ours, order) = (tx.txg().0, Ordering::AcqRel);
                _ = writer.xattrs_logged_from.compare_exchange(none, ours, order, Ordering::Acquire);
                false
            }
            from => writer.txgs.synced_txg() >= Txg(from),
        }
    }

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
        match &fs.writer()?.log {
            Some(log) => log.commit_file(self.id().object).await,
            None => fs.sync().await,
        }
    }
}
