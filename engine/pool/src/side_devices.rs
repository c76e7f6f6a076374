//! Spares and cache devices: what stands beside the tree.
//!
//! ```text
//!   MOS directory ─ spares ──▶ packed nvlist { spares:  [ { type, guid, path … } … ] }
//!                 └ l2cache ─▶ packed nvlist { l2cache: [ … ] }
//!   their labels    state (spare or l2cache) and guid; whose they are only the MOS of a pool says
//! ```
//!
//! They are known, shown, added and removed. Where they are, their labels say when the pool is opened: the list has the
//! paths that they had, and is written anew when these are others. What is done with cache devices is in
//! [`crate::cache_devices`]; which spare takes the place of another device, in `spares`. A spare may serve several pools, so
//! it keeps the guid and the labels that it has; a cache device serves one, and leaves without labels.

use crate::guids::Guids;
use crate::pool::Pool;
use dmu::{NewObject, Tx};
use ondisk::mos::directory;
use ondisk::{NvList, NvValue, ObjectType, PoolState};
use units::{Error, Guid, Kind, ObjectId, Result};
use vdev::label::read::read_labels;
use vdev::{AuxKind, Candidate, Device, NewLeaf, Spec};
use world::Boxed;
use world::OpenMode;

/// Of the packed list.
const BLOCK: u32 = 16 << 10;
/// A longer list is not one.
const LEN_MAX: u64 = 16 << 20;

const KINDS: [AuxKind; 2] = [AuxKind::Spare, AuxKind::Cache];

/// The entry of the MOS directory, and in the list the one pair.
fn key(kind: AuxKind) -> &'static str {
    match kind {
        AuxKind::Spare => directory::SPARES,
        AuxKind::Cache => directory::L2CACHE,
    }
}

impl Pool {
    /// Opens those that the pool knows. Without them it can do, so whatever is wrong becomes a problem. When the pool is
    /// being opened, `found` says where they are.
    pub(crate) async fn load_side_devices(&self, found: Option<&Candidate>) {
        for kind in KINDS {
            if let Err(e) = self.load_kind(kind, found).await {
                self.0.note_problem(e.at(format!("list of {} devices", key(kind))));
            }
        }
    }

    async fn load_kind(&self, kind: AuxKind, found: Option<&Candidate>) -> Result<()> {
        let mut specs = self.read_list(kind).await?;
        let known = self.0.tree.aux(kind);
        for spec in &mut specs {
            if let Some(device) = known.iter().find(|device| device.spec.guid == spec.guid) {
                spec.path = device.spec.path.clone();
            } else if let Some(device) = found.and_then(|found| found.find_beside(spec)) {
                spec.set_path(device);
            }
        }
        self.0.tree.set_aux(kind, specs).await?;
        self.follow_cache_devices();
        Ok(())
    }

    async fn read_list(&self, kind: AuxKind) -> Result<Vec<Spec>> {
        let inner = &self.0;
        let Some(id) = inner.dsl.core().directory().lookup_u64(key(kind)).await? else {
            return Ok(Vec::new());
        };
        let object = inner.mos.object(ObjectId(id)).await?;
        let len = object.bonus().first_chunk().map_or(0, |b| u64::from_ne_bytes(*b));
        if len > LEN_MAX {
            return Err(Error::corrupt(format!("it has {len} bytes")));
        }
        if len == 0 {
            return Ok(Vec::new());
        }
        let list = NvList::decode(&object.read(0, len as usize).await?)?;
        list.opt_lists(key(kind))?.unwrap_or_default().iter().map(Spec::decode_below_root).collect()
    }

    /// Has the lists say where the devices are now, without waiting for it. Where that fails, or the pool is closed before,
    /// labels say it the next time as well.
    pub(crate) fn list_side_devices_anew(&self) {
        if !self.is_read_only() {
            let pool = self.clone();
            world::spawn(async move {
                for kind in KINDS {
                    let _ = pool.list_anew(kind).await;
                }
            });
        }
    }

    async fn list_anew(&self, kind: AuxKind) -> Result<()> {
        let inner = &self.0;
        if inner.tree.aux(kind).is_empty() {
            return Ok(());
        }
        let _one_at_a_time = inner.reshaping.lock().await;
        let now: Vec<Spec> = inner.tree.aux(kind).into_iter().map(|d| d.spec).collect();
        let listed = self.read_list(kind).await?;
        let is_known = |spec: &Spec| now.iter().any(|other| other.guid == spec.guid);
        // What could not be taken in stays in the list.
        if listed == now || !listed.iter().all(is_known) {
            return Ok(());
        }
        self.change("list devices", move |pool, tx| async move { pool.write_list(&tx, kind, &now).await })
            .await
    }

    /// A pool that was split off has none of those in its list. In syncing context.
    pub(crate) async fn forget_side_devices(&self, tx: &Tx, kind: AuxKind) -> Result<()> {
        match self.0.dsl.core().directory().lookup_u64(key(kind)).await? {
            Some(_) => self.write_list(tx, kind, &[]).await,
            None => Ok(()),
        }
    }

    async fn write_list(&self, tx: &Tx, kind: AuxKind, specs: &[Spec]) -> Result<()> {
        let inner = &self.0;
        let directory = inner.dsl.core().directory();
        let object = match directory.lookup_u64(key(kind)).await? {
            Some(id) => inner.mos.object(ObjectId(id)).await?,
            None => {
                let new = NewObject::new(ObjectType::PACKED_NVLIST, BLOCK)
                    .with_bonus(ObjectType::PACKED_NVLIST_SIZE, vec![0; 8]);
                let object = inner.mos.allocate(tx, new).await?;
                directory.insert(tx, key(kind), object.id().0).await?;
                object
            }
        };
        let list = NvValue::ListArray(specs.iter().map(|s| s.encode(false)).collect());
        let packed = NvList::new().with(key(kind), list).encode();
        object.write(tx, 0, &packed).await?;
        object.set_bonus(tx, (packed.len() as u64).to_ne_bytes())
    }

    /// A spare has become an ordinary device: it leaves the list. In syncing context.
    pub(crate) async fn forget_spare(&self, tx: &Tx, guid: Guid) -> Result<()> {
        let spares = self.0.tree.aux(AuxKind::Spare).into_iter().map(|d| d.spec);
        let kept: Vec<Spec> = spares.filter(|s| s.guid != guid).collect();
        self.write_list(tx, AuxKind::Spare, &kept).await
    }

    /// Labels these devices and adds them.
    pub fn add_side_devices<'a>(&'a self, kind: AuxKind, leaves: &'a [NewLeaf]) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            if self.is_read_only() {
                return Err(Error::new(Kind::ReadOnly, "add devices").at(format!("pool '{}'", self.name())));
            }
            let inner = &self.0;
            let _one_at_a_time = inner.reshaping.lock().await;
            let (mut fresh, mut guids) = (Vec::new(), Guids::of(self));
            let mut specs: Vec<Spec> = inner.tree.aux(kind).into_iter().map(|d| d.spec).collect();
            for leaf in leaves {
                let known = spare_guid(kind, leaf).await;
                let spec = Spec::create_aux(kind, leaf, known.unwrap_or_else(|| guids.draw()))?;
                if specs.iter().any(|s| s.guid == spec.guid) {
                    return Err(Error::invalid(format!("'{}' is one of the pool's already", leaf.path)));
                }
                if known.is_none() {
                    fresh.push(spec.clone());
                }
                specs.push(spec);
            }
            inner.tree.label_aux(kind, &fresh, self.config().version).await?;
            self.set_side_devices(kind, specs).await
        })
    }

    /// Takes one out of the pool.
    pub fn remove_side_device(&self, kind: AuxKind, guid: Guid) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let inner = &self.0;
            let _one_at_a_time = inner.reshaping.lock().await;
            let all: Vec<Spec> = inner.tree.aux(kind).into_iter().map(|d| d.spec).collect();
            let (gone, kept): (Vec<Spec>, Vec<Spec>) = all.into_iter().partition(|s| s.guid == guid);
            let Some(gone) = gone.into_iter().next() else {
                return Err(Error::new(Kind::NotFound, "remove device"));
            };
            if kind == AuxKind::Spare && inner.tree.find_leaf(guid).is_some() {
                return Err(Error::new(Kind::Busy, "remove device")
                    .because("it is a spare in use; 'zpool detach' takes it back first"));
            }
            if kind == AuxKind::Spare {
                self.load_kind(kind, None).await?;
                self.give_spares_back().await;
            }
            self.set_side_devices(kind, kept).await?;
            if kind == AuxKind::Cache
                && let Err(e) = inner.tree.unlabel(&gone).await
            {
                inner.note_problem(format!(
                    "the labels of '{}', which was removed, are still there: {e}",
                    gone.name()
                ));
            }
            let class = if kind == AuxKind::Cache { "l2cache" } else { "spare" };
            let what = format!("{} vdev ({class}) {}", self.name(), gone.path.unwrap_or_default());
            self.change("record event", |pool, tx| async move {
                pool.0.dsl.record_event(&tx, "vdev remove", &what, None).await
            })
            .await
        })
    }

    pub(crate) async fn set_side_devices(&self, kind: AuxKind, specs: Vec<Spec>) -> Result<()> {
        let list = specs.clone();
        self.change("list devices", move |pool, tx| async move { pool.write_list(&tx, kind, &list).await })
            .await?;
        self.0.tree.set_aux(kind, specs).await?;
        self.follow_cache_devices();
        Ok(())
    }
}

/// The guid of a device that is a spare already, of another pool.
async fn spare_guid(kind: AuxKind, leaf: &NewLeaf) -> Option<Guid> {
    let disk = Device::whole(&leaf.path).open(OpenMode::ReadOnly).await.ok()?;
    let owner = read_labels(&disk).await.owner()?;
    (kind == AuxKind::Spare && owner.state == PoolState::Spare).then_some(owner.leaf)
}
