//! Walking every block of a pool: what verification and scrub have in common.
//!
//! ```text
//!   sets      the MOS │ snapshot, snapshot, head │ … of every dataset object there is, hidden ones included
//!                │          each from the txg of the snapshot before it on: so every block is met once
//!   walk      dmu::traverse ─▶ block ─▶ task: Check::block, a bounded number at once
//!                │
//!   suspects  what was wrong ─▶ is it still in the tree? ── no: it was freed and reused while we walked
//!                                                        └ yes: damage
//! ```
//!
//! A pool that is written to changes under the walk: a block is freed, and some txgs later its place holds another.
//! So what seems damaged is looked up again in the tree as it is by then. When a block that leads to others was
//! replaced in this way, what hung from it was not seen, and the set is walked again.
//!
//! A tree that leads to the same blocks again and again never ends: two indirect blocks that point to one another's
//! children make 2^48 of them. But in one set each block has a place of its own, so no walk meets more of them than the
//! pool has room for ([`Walker::left`]).
//!
//! Not here: what is done with a block ([`crate::verify`], [`crate::scrub`]).

use crate::pool::{Pool, lock};
use dmu::{Visit, Visitor, locate, traverse_objset};
use dsl::phys::{DatasetPhys, DirPhys};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use ondisk::mos::directory;
use ondisk::{BlockPointer, Feature, ObjectType};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tunables::Tunable;
use units::{Error, Guid, HashMap, HashSet, Kind, ObjectId, ObjsetId, Result, Txg};
use world::Pending;
use world::sync::{Group, Semaphore};
use zio::{BlockStore, Bookmark, same_block};

/// Blocks under way at once, and their bytes in units of 4 KiB: what one device is busy with, and no more memory than that.
const AT_ONCE: usize = 32;
const UNIT: u64 = 4 << 10;
const UNITS: usize = (16 << 20) / UNIT as usize;
/// How often a set that changes under the walk is walked again.
const WALKS_MAX: usize = 5;

/// An object set to be walked.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    /// As people call it.
    pub name: Arc<str>,
    pub id: ObjsetId,
    /// Of the dataset: its object may be another's later.
    pub guid: Guid,
    pub root: BlockPointer,
    /// Blocks born up to here belong to the snapshot before.
    pub since: Txg,
    pub is_head: bool,
}

/// What seems to be wrong with a block.
#[derive(Debug)]
pub(crate) struct Suspect {
    pub at: Bookmark,
    /// Missing for what cannot be understood although its checksum is right: that is damage in any case.
    pub bp: Option<BlockPointer>,
    pub error: Error,
}

/// What is done with each block.
pub(crate) trait Check: Send + Sync + 'static {
    /// A walk of a set begins, or begins again because the set has changed.
    fn begins(&self) {}

    /// Looks at one block; an error says what is wrong with it. It is called in the order of the walk, and what it returns
    /// is done in any order.
    fn block(&self, set: &Set, at: Bookmark, bp: &BlockPointer) -> Pending<Result<()>>;

    /// What hangs from a block was not met, whether the block is damaged or another by now.
    fn missed(&self) {}

    /// A block is damaged beyond doubt, told once for each walk of a set.
    fn damaged(&self, set: &Set, suspect: Suspect);

    /// The walk is to end here.
    fn is_stopped(&self) -> bool;
}

/// The object sets of the pool as they are now.
pub(crate) async fn sets(pool: &Pool) -> Result<Vec<Set>> {
    let _unchanged = pool.reading().await;
    let mut ids = Vec::new();
    for_each_dataset(pool, |id, _| ids.push(id)).await?;
    let mut sets = vec![mos_set(pool)];
    for id in ids {
        sets.extend(dataset_set(pool, id).await?);
    }
    Ok(sets)
}

/// The pool's own object set.
pub(crate) fn mos_set(pool: &Pool) -> Set {
    let (id, guid, root) = (ObjsetId::MOS, Guid(0), root_of_mos(pool));
    Set { name: "MOS".into(), id, guid, root, since: Txg::NONE, is_head: false }
}

/// Tells of every dataset object there is, snapshots and hidden ones included. The caller keeps sync tasks away.
pub(crate) async fn for_each_dataset(pool: &Pool, mut tell: impl FnMut(ObjectId, DatasetPhys)) -> Result<()> {
    let mut from = ObjectId(1);
    loop {
        let ids = pool.mos().object_ids(from, 1024).await?;
        let Some(last) = ids.last() else { return Ok(()) };
        from = ObjectId(last.0 + 1);
        for id in ids {
            if let Some(phys) = dataset_phys(pool, id).await? {
                tell(id, phys);
            }
        }
    }
}

/// What an object says of itself, if it is a dataset.
pub(crate) async fn dataset_phys(pool: &Pool, id: ObjectId) -> Result<Option<DatasetPhys>> {
    let is_dataset = |phys: &ondisk::DnodePhys| phys.bonus_kind == ObjectType::DSL_DATASET;
    let Some(dnode) = pool.mos().dnode_phys(id).await?.filter(is_dataset) else { return Ok(None) };
    DatasetPhys::decode(&dnode.bonus).map(Some).map_err(|e| e.at(format!("dataset object {id}")))
}

/// The set of a dataset object.
pub(crate) async fn dataset_set(pool: &Pool, id: ObjectId) -> Result<Option<Set>> {
    let Some(phys) = dataset_phys(pool, id).await? else { return Ok(None) };
    let name = match pool.dsl().dataset_name(id).await {
        Ok(name) => name,
        // What is half made or half destroyed may have no name; its blocks count all the same.
        Err(_) => format!("object {id}"),
    };
    Ok(Some(Set {
        name: name.into(),
        id: ObjsetId(id.0),
        guid: phys.guid,
        root: phys.bp.clone(),
        since: phys.prev_snap_txg,
        is_head: !phys.is_snapshot(),
    }))
}

fn root_of_mos(pool: &Pool) -> BlockPointer {
    pool.uberblock().root
}

/// The root of the set that has this number by now: `None` when the dataset is gone.
pub(crate) async fn root_now(pool: &Pool, id: ObjsetId) -> Result<Option<BlockPointer>> {
    if id == ObjsetId::MOS {
        return Ok(Some(root_of_mos(pool)));
    }
    Ok(dataset_now(pool, ObjectId(id.0)).await?.map(|phys| phys.bp))
}

/// The root of this very set by now: `None` when its dataset is gone, even if another has its number.
pub(crate) async fn root_of(pool: &Pool, set: &Set) -> Result<Option<BlockPointer>> {
    if set.id == ObjsetId::MOS {
        return Ok(Some(root_of_mos(pool)));
    }
    let phys = dataset_now(pool, ObjectId(set.id.0)).await?;
    Ok(phys.filter(|phys| phys.guid == set.guid).map(|phys| phys.bp))
}

/// A dataset with all its changes. `None` when it is gone, and its object free or something else.
pub(crate) async fn dataset_now(pool: &Pool, id: ObjectId) -> Result<Option<DatasetPhys>> {
    let Some(bonus) = bonus_now(pool, id, ObjectType::DSL_DATASET).await? else { return Ok(None) };
    DatasetPhys::decode(&bonus).map(Some).map_err(|e| e.at(format!("dataset object {id}")))
}

/// As [`dataset_now`], a directory.
pub(crate) async fn dir_now(pool: &Pool, id: ObjectId) -> Result<Option<DirPhys>> {
    let Some(bonus) = bonus_now(pool, id, ObjectType::DSL_DIR).await? else { return Ok(None) };
    DirPhys::decode(&bonus).map(Some).map_err(|e| e.at(format!("directory object {id}")))
}

async fn bonus_now(pool: &Pool, id: ObjectId, kind: ObjectType) -> Result<Option<Arc<[u8]>>> {
    match pool.mos().object(id).await {
        Ok(object) => Ok((object.attrs().bonus_kind == kind).then(|| object.bonus())),
        Err(e) if e.kind() == Kind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Whether the pool still uses this very block under this name. The caller keeps sync tasks away, or is one.
pub(crate) async fn is_in_use(pool: &Pool, at: Bookmark, bp: &BlockPointer) -> Result<bool> {
    let Some(root) = root_now(pool, at.objset).await? else { return Ok(false) };
    let store: Arc<dyn BlockStore> = Arc::new(pool.pipeline().clone());
    let found = locate(&store, &root, at).await?;
    // A block that its txg wrote twice in the same place has the same address and birth, and other bytes.
    let checksum = |bp: &BlockPointer| bp.as_plain().map(|p| p.checksum);
    Ok(same_block(&found, bp) && checksum(&found) == checksum(bp))
}

/// Walks one set, and what a set that changes hides from one walk. Answers whether all of it was seen.
pub(crate) async fn walk(pool: &Pool, set: &Set, check: Arc<dyn Check>) -> Result<bool> {
    let mut set = set.clone();
    // What is told of in one walk is not news in the next.
    let told = Arc::default();
    for _ in 0..WALKS_MAX {
        let (suspects, missed) = walk_once(pool, &set, &check, &told).await?;
        if !settle(pool, &set, suspects, check.as_ref(), &told).await? && !missed {
            return Ok(true);
        }
        let root = {
            let _unchanged = pool.reading().await;
            root_of(pool, &set).await?
        };
        match root {
            Some(root) => set.root = root,
            None => return Ok(true),
        }
    }
    Ok(false)
}

/// What seemed damaged and was not looked up again yet, and whether something was missed of what was.
async fn walk_once(
    pool: &Pool,
    set: &Set,
    check: &Arc<dyn Check>,
    told: &Told,
) -> Result<(Vec<Suspect>, bool)> {
    check.begins();
    let suspects = Arc::new(Mutex::new(Vec::new()));
    let missed = Arc::new(AtomicBool::new(false));
    let walker = Walker {
        pool: pool.clone(),
        missed: missed.clone(),
        set: Arc::new(set.clone()),
        check: check.clone(),
        group: Group::new(AT_ONCE),
        room: Arc::new(Semaphore::new(UNITS)),
        suspects: suspects.clone(),
        told: told.clone(),
        left: AtomicU64::new(most(pool).await?),
    };
    let store: Arc<dyn BlockStore> = Arc::new(pool.pipeline().clone());
    let walked = traverse_objset(&store, set.id, &set.root, set.since, &walker).await;
    let Ok(()) = walker.group.finish().await;
    match walked {
        Err(e) if e.kind() != Kind::Cancelled => Err(e),
        _ => Ok((std::mem::take(&mut lock(&suspects)), missed.load(Ordering::Relaxed))),
    }
}

/// Tells damage from change. Answers whether something was missed because of a change.
async fn settle(
    pool: &Pool,
    set: &Set,
    suspects: Vec<Suspect>,
    check: &dyn Check,
    told: &Told,
) -> Result<bool> {
    let pointers: HashMap<Bookmark, BlockPointer> =
        suspects.iter().filter_map(|s| Some((s.at, s.bp.clone()?))).collect();
    pool.room_for_errors().await;
    let unchanged = pool.reading().await;
    let (mut missed, mut bad) = (false, Vec::new());
    for mut suspect in suspects {
        suspect.bp = suspect.bp.or_else(|| pointers.get(&suspect.at).cloned());
        let is_real = match &suspect.bp {
            Some(bp) if !pool.is_read_only() => is_in_use(pool, suspect.at, bp).await.unwrap_or(true),
            Some(_) => true,
            // The walk could not read it, but the look at all its copies could: something was in between.
            None if suspect.error.kind() == Kind::Checksum && !pool.is_read_only() => false,
            None => true,
        };
        missed |= !is_real;
        if is_real && is_news(told, suspect.at) {
            bad.extend(suspect.bp.clone().map(|bp| (suspect.at, bp)));
            check.damaged(set, suspect);
        }
    }
    // To read each once more may take long; what was bad and in use counts, whatever becomes of it.
    drop(unchanged);
    if !pool.is_read_only() {
        let mut under_way = FuturesUnordered::new();
        for (at, bp) in &bad {
            if under_way.len() >= AT_ONCE {
                under_way.next().await;
            }
            under_way.push(pool.pipeline().blame_for(bp, *at));
        }
        while under_way.next().await.is_some() {}
    }
    Ok(missed && !check.is_stopped())
}

/// Damage of one set that was told of.
type Told = Arc<Mutex<HashSet<Bookmark>>>;

/// So many are remembered; what is beyond is told again when a set is walked again.
const TOLD_MAX: usize = 64 << 10;

fn is_news(told: &Told, at: Bookmark) -> bool {
    let mut told = lock(told);
    match told.len() < TOLD_MAX {
        true => told.insert(at),
        false => !told.contains(&at),
    }
}

struct Walker {
    pool: Pool,
    missed: Arc<AtomicBool>,
    set: Arc<Set>,
    check: Arc<dyn Check>,
    group: Group<Infallible>,
    room: Arc<Semaphore>,
    suspects: Arc<Mutex<Vec<Suspect>>>,
    told: Told,
    /// Bytes of the devices that the blocks still to be met may take.
    left: AtomicU64,
}

/// Deduplicated and cloned blocks are met so many times at most, on average.
const SHARED_MAX: u64 = 1024;

/// The bytes of all blocks that one walk may meet.
async fn most(pool: &Pool) -> Result<u64> {
    let dsl = pool.dsl();
    let mut is_shared =
        [Feature::BlockCloning, Feature::FastDedup].iter().any(|f| dsl.features().is_active(*f));
    // What has deduplicated blocks is only read.
    if pool.is_read_only() && !is_shared {
        let entries = dsl.core().directory().entries().await?;
        is_shared = entries.iter().any(|e| e.name().starts_with(directory::DEDUP_PREFIX));
    }
    let times = if is_shared { SHARED_MAX } else { 1 };
    Ok(pool.space().usage_total().space.saturating_mul(times))
}

/// With so many suspects a walk stops to look them up.
const SUSPECTS_AT_ONCE: usize = 4096;

fn suspect(suspects: &Mutex<Vec<Suspect>>, one: Suspect) {
    lock(suspects).push(one);
}

impl Walker {
    async fn settle_some(&self) -> Result<()> {
        if lock(&self.suspects).len() < SUSPECTS_AT_ONCE {
            return Ok(());
        }
        let suspects = std::mem::take(&mut *lock(&self.suspects));
        if settle(&self.pool, &self.set, suspects, self.check.as_ref(), &self.told).await? {
            self.missed.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Visitor for Walker {
    fn visit<'a>(
        &'a self,
        at: Bookmark,
        bp: &'a BlockPointer,
    ) -> Pin<Box<dyn Future<Output = Result<Visit>> + Send + 'a>> {
        Box::pin(async move {
            if self.check.is_stopped() {
                return Err(Error::new(Kind::Cancelled, "walk over the pool"));
            }
            self.settle_some().await?;
            let bytes: u64 = bp.dvas().iter().map(|dva| dva.asize.bytes()).sum();
            let taken = |left: u64| left.checked_sub(bytes);
            if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).is_err() {
                let too_many =
                    "its blocks take more than the pool has: it leads to the same ones again and again";
                return Err(Error::corrupt(too_many).at(format!("dataset '{}'", self.set.name)));
            }
            let units = (bp.psize().0.div_ceil(UNIT) as usize).clamp(1, UNITS);
            let room = self.room.acquire_owned(units).await;
            let suspects = self.suspects.clone();
            let looked = self.check.block(&self.set, at, bp);
            let bp = bp.clone();
            let work = async move {
                if let Err(error) = looked.await {
                    suspect(&suspects, Suspect { at, bp: Some(bp), error });
                }
                drop(room);
                Ok(())
            };
            self.group.spawn(work).await;
            Ok(Visit::Descend)
        })
    }

    fn reads_ahead(&self) -> bool {
        !self.pool.0.tunables.is_on(Tunable::NoScrubPrefetch)
    }

    fn damaged(&self, at: Bookmark, error: Error) {
        self.check.missed();
        suspect(&self.suspects, Suspect { at, bp: None, error });
    }
}
