//! Changing files.
//!
//! ```text
//!   names lock (who changes names) ─▶ locks of the files, in the order of their objects ─▶ their attributes, read
//!                                                                                            │
//!                       names, blocks and attributes change, in memory ◀─ transaction ◀──────┘
//! ```
//!
//! A transaction is begun last, because its holder must not wait for locks: the holder of a lock may be waiting for a
//! txg to sync. All that can fail comes before the first change: there is room, or none; attributes and names were read.
//!
//! A file whose last name goes is put on the list of unlinked files in the same transaction. It is freed when its last
//! handle is released, or at the next opening of the file system; a long one in pieces, over several txgs.
//!
//! What takes space needs room in the dataset and the quotas of the owner; what frees it (unlink, truncate, removing
//! attributes) needs neither, so that there is a way out of a full pool.
//!
//! Each change is logged in its transaction (`log.rs`), so that `sync` waits for the intent log and not for the txg.
//!
//! Not here: rights (fronts know who asks).

mod attributes;
mod behind;
mod data;
mod direct;
mod log;
mod make;
mod names;
mod owner;
mod rename;
mod replay;
mod xattr;

pub use attributes::Changes;
pub use direct::Writing;
pub use make::NewFile;
pub use rename::Renaming;
pub use replay::Replay;
pub use xattr::XattrMode;

use crate::MASTER_NODE;
use crate::file_system::FileSystem;
use crate::file_system::node::Node;
use crate::quotas::Quotas;
use crate::refusal::Refusal;
use crate::sa::{Attr, Attributes, Tables};
use crate::settings::Settings;
use dmu::{ObjSet, Object, Tx};
use log::Change;
use ondisk::{DnodePhys, ObjectType};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use txg::{Claim, Reach, SpaceReservation, Txgs};
use units::{Error, Kind, ObjectId, Result, Txg};
use world::{Buf, IoBuf};
use zap::Zap;

/// What a change of names may take on the devices, in bytes: a block of names, a dnode, their parents.
const COST: u64 = 64 << 10;

/// What a file system is opened with to be changed.
#[derive(Clone)]
pub struct WriteOptions {
    pub txgs: Txgs,
    /// Without one there is room without end.
    pub space_reservation: Option<Arc<SpaceReservation>>,
    pub settings: Settings,
    /// Without a log what is to be durable waits for a txg.
    pub log: Option<zil::Log>,
    /// It is on disk already that the log may have records of extended attributes; see [`Settings::logs_xattrs`].
    pub has_logged_xattrs: bool,
}

impl fmt::Debug for WriteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriteOptions({:?})", self.settings)
    }
}

pub(crate) struct Writer {
    txgs: Txgs,
    space_reservation: Option<Arc<SpaceReservation>>,
    log: Option<zil::Log>,
    /// They may change; see [`FileSystem::set_settings`].
    pub settings: Mutex<Settings>,
    pub quotas: Quotas,
    unlinked: Zap<Object>,
    /// The newest txg that something was changed in.
    changed_in: AtomicU64,
    /// The txg since which it is on disk that the log may have records of extended attributes; none before the first.
    xattrs_logged_from: AtomicU64,
    /// The txg of the record that is being replayed; none outside of a replay.
    replaying_in: AtomicU64,
    behind: behind::UnderWay,
}

impl Writer {
    pub async fn open(set: &ObjSet, options: WriteOptions) -> Result<Writer> {
        let master = Zap::open(set.object(MASTER_NODE).await?);
        let queue = master.require_u64("DELETE_QUEUE").await?;
        let unlinked = Zap::open(set.object(ObjectId(queue)).await?);
        let quotas = Quotas::open(set).await?;
        let WriteOptions { txgs, space_reservation, settings, log, has_logged_xattrs } = options;
        let since = if has_logged_xattrs { txgs.synced_txg() } else { Txg::NONE };
        Ok(Writer {
            txgs,
            space_reservation,
            log,
            settings: Mutex::new(settings),
            quotas,
            unlinked,
            changed_in: AtomicU64::new(0),
            xattrs_logged_from: AtomicU64::new(since.0),
            replaying_in: AtomicU64::new(0),
            behind: behind::UnderWay::default(),
        })
    }

    /// Joins the open txg when there is room for `bytes` more; `reach` says how far into what is kept back.
    async fn begin(&self, set: &ObjSet, bytes: u64, reach: Reach) -> Result<Tx> {
        if let Some(txg) = self.replaying_in() {
            return self.txgs.join(txg).ok_or_else(|| Error::invalid("the record's txg is over"));
        }
        // A file's dnode and those of what its name is in, tables of names, the partly written blocks at both ends: what
        // is dirtied is counted exactly, this is only for the time until then.
        let around = set.store().charge_max(BLOCK, 2) * 4;
        let devices = set.store().charge_max(bytes, set.policy().copies).saturating_add(around);
        let claim = Claim { memory: bytes, devices, reach };
        let begun = match &self.space_reservation {
            Some(space_reservation) => self.txgs.begin_in(space_reservation, bytes, claim).await,
            None => self.txgs.begin_for(claim).await,
        };
        match begun {
            Ok(tx) => {
                self.changed_in.fetch_max(tx.txg().0, Ordering::AcqRel);
                Ok(tx)
            }
            Err(e)
                if e.kind() == Kind::NoSpace
                    && self
                        .space_reservation
                        .as_ref()
                        .is_some_and(|space_reservation| space_reservation.is_quota()) =>
            {
                Err(Refusal::OverQuota.when("write"))
            }
            Err(e) => Err(e),
        }
    }
}

/// The usual size of blocks.
const BLOCK: u64 = 128 << 10;

impl Writer {
    /// All changes that one record makes are in one txg, whose holder asks for them one by one.
    pub(crate) fn replaying_in(&self) -> Option<Txg> {
        Some(Txg(self.replaying_in.load(Ordering::Acquire))).filter(|txg| *txg != Txg::NONE)
    }
}

/// A file that is about to change: its lock and its attributes.
pub(crate) struct Loaded<'a> {
    node: &'a Node,
    attributes: Attributes,
    _lock: world::sync::MutexGuard<'a, ()>,
}

impl FileSystem {
    pub(crate) fn writer(&self) -> Result<&Writer> {
        let denied = || Error::new(Kind::ReadOnly, format!("change dataset '{}'", self.name()));
        self.0.writer.as_ref().ok_or_else(denied)
    }

    async fn begin(&self, bytes: u64) -> Result<Change> {
        self.begin_reaching(bytes, Reach::Normal).await
    }

    /// As [`FileSystem::begin`], for what in the end frees space: neither quotas nor a pool that is nearly full stop it.
    pub(crate) async fn begin_freeing(&self) -> Result<Change> {
        self.begin_reaching(COST, Reach::Freeing).await
    }

    async fn begin_reaching(&self, bytes: u64, reach: Reach) -> Result<Change> {
        let writer = self.writer()?;
        let begun = writer.begin(&self.0.set, bytes, reach).await;
        let tx = begun.map_err(|e| e.at(format!("dataset '{}'", self.name())))?;
        Ok(Change::new(tx, writer.log.clone()))
    }

    fn tables(&self) -> &Tables {
        &self.0.tables
    }

    /// Frees what has no name any more.
    pub(crate) async fn drain(&self) -> Result<()> {
        for entry in self.writer()?.unlinked.entries().await? {
            let Some(id) = entry.value.as_u64().map(ObjectId) else { continue };
            // One that cannot be freed stays where it is, and the rest of the file system is usable.
            if let Ok(node) = self.object(id).await
                && let Ok(emptied) = self.free_most(&node).await
            {
                let _ = self.destroy(&node, emptied).await;
            }
        }
        Ok(())
    }

    /// Frees what of a file that has no name is too much for one txg; returns what the rest empties. The caller needs no
    /// lock: what a crash leaves is on the list of unlinked files.
    async fn free_most(&self, node: &Node) -> Result<u64> {
        let end = node.object().attrs().max_blkid.saturating_add(1);
        node.free_ahead(0..end).await
    }

    /// Frees a file that has no name, with its extended attributes; `emptied` is what [`FileSystem::free_most`] has said.
    async fn destroy(&self, node: &Node, emptied: u64) -> Result<()> {
        let mut all = vec![node.id().object];
        if let Some(directory) = node.xattr_directory().await? {
            all.extend(directory.list_all().await?.iter().map(|entry| entry.object));
            all.push(directory.id().object);
        }
        let _lock = node.lock().await;
        let tx = self.begin_freeing().await?;
        tx.needs_no_record();
        tx.empties(emptied);
        self.writer()?.unlinked.remove(&tx, &zap::int_name(node.id().object.0)).await?;
        for id in all {
            self.0.set.free(&tx, id).await?;
            self.forget(id);
        }
        Ok(())
    }
}

impl Node {
    /// Gives a handle back. With the last handle of a file that has no name any more the file goes.
    pub async fn release(self) -> Result<()> {
        let fs = self.file_system().clone();
        if fs.0.writer.is_none() || !self.is_last() {
            return Ok(());
        }
        if self.links()? > 0 {
            return self.store_atime().await;
        }
        let emptied = fs.free_most(&self).await?;
        let _names = fs.0.names.lock().await;
        if self.is_last() { fs.destroy(&self, emptied).await } else { Ok(()) }
    }

    fn links(&self) -> Result<u64> {
        self.bonus_attributes()?.require(Attr::Links).map_err(|e| self.place(e))
    }

    pub(crate) async fn load(&self) -> Result<Loaded<'_>> {
        let lock = self.lock().await;
        Ok(Loaded { node: self, attributes: self.attributes().await?, _lock: lock })
    }

    /// How long the bonus may be.
    fn bonus_room(&self) -> usize {
        DnodePhys::bonus_max(self.object().attrs().slots.into(), 1, false)
    }

    async fn store(&self, tx: &Tx, attributes: &Attributes) -> Result<()> {
        if self.object().attrs().bonus_kind != ObjectType::SA {
            return Err(self.place(Error::unsupported("changing a file of before version 5")));
        }
        let tables = self.file_system().tables();
        let encoded = match self.take_atime() {
            Some(atime) => {
                let mut attributes = attributes.clone();
                attributes.set_words(Attr::Atime, &atime, tables).map_err(|e| self.place(e))?;
                attributes.encode(tables, tx, self.bonus_room()).await
            }
            None => attributes.encode(tables, tx, self.bonus_room()).await,
        };
        let encoded = encoded.map_err(|e| self.place(e))?;
        let object = self.object();
        match encoded.spill.as_deref() {
            // A bonus has less room beside the pointer to a spill block.
            Some(spill) => {
                object.set_bonus(tx, encoded.bonus)?;
                object.set_spill(tx, Some(padded(spill)))
            }
            None => {
                object.set_spill(tx, None)?;
                object.set_bonus(tx, encoded.bonus)
            }
        }
    }

    fn check_flags(&self, attributes: &Attributes, forbidden: u64, doing: &str) -> Result<()> {
        let flags = attributes.word(Attr::Flags).map_err(|e| self.place(e))?.unwrap_or(0);
        // What is in a log had been allowed.
        let is_allowed = flags & forbidden == 0 || self.file_system().writer()?.replaying_in().is_some();
        if is_allowed { Ok(()) } else { Err(self.refuse(Refusal::Flagged, doing)) }
    }
}

impl Loaded<'_> {
    fn word(&self, attr: Attr) -> Result<u64> {
        self.attributes.require(attr).map_err(|e| self.node.place(e))
    }

    fn set(&mut self, attr: Attr, words: &[u64]) -> Result<()> {
        let tables = self.node.file_system().tables();
        self.attributes.set_words(attr, words, tables).map_err(|e| self.node.place(e))
    }

    fn add(&mut self, attr: Attr, delta: i64) -> Result<u64> {
        let sum = self.word(attr)?.saturating_add_signed(delta);
        self.set(attr, &[sum])?;
        Ok(sum)
    }

    /// The content changed now, or only what is said of it.
    fn touch(&mut self, content: bool) -> Result<()> {
        if content {
            self.set(Attr::Mtime, &now())?;
        }
        self.set(Attr::Ctime, &now())
    }

    pub(crate) async fn store(&self, tx: &Tx) -> Result<()> {
        self.node.store(tx, &self.attributes).await
    }
}

fn now() -> [u64; 2] {
    let now = world::wall_clock();
    [now.seconds, now.nanos.into()]
}

/// A spill block is whole sectors.
fn padded(bytes: &[u8]) -> Buf {
    let mut block = IoBuf::zeroed(bytes.len().next_multiple_of(dmu::SPILL_UNIT));
    block[..bytes.len()].copy_from_slice(bytes);
    block.freeze()
}

/// Locks files in the order of their objects and reads their attributes; the answer is in the order asked for.
async fn load_all<'a>(nodes: &[&'a Node]) -> Result<Vec<Loaded<'a>>> {
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|&i| nodes[i].id().object);
    let mut loaded: Vec<Option<Loaded<'a>>> = nodes.iter().map(|_| None).collect();
    for i in order {
        loaded[i] = Some(nodes[i].load().await?);
    }
    Ok(loaded.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests;
