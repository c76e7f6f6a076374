//! Another block size for a volume that is in use.
//!
//! `volblocksize` is fixed by the format. So a volume with the other block size is made beside the old one, and becomes
//! its copy while clients go on ([`disk::SharedVolume`]); in the end it takes name, settings and identity of the old one, in
//! one txg, and the old one is destroyed:
//!
//! ```text
//!   tank/a  16K ────────────── in service ─────────────────┐ closed: one txg ┌─ tank/a  64K, in service
//!   tank/a.copy-64K  ◀── copied; written to as well ───────┘                 └─ the old one is gone
//!                         │ cancelled, failed
//!                         └──▶ destroyed; after a crash, when the pool is opened next
//! ```
//!
//! The exchange is not seen before it is on disk: the block size that is shown is the one that a crash leaves.
//!
//! Sessions of clients stay: they have the same LUN as before, which says that its block limits are others.
//!
//! A half copy is known by a property of its own that names, by its guid, the volume it is a copy of. It is destroyed only
//! while that volume is there.
//!
//! Not here: volumes with snapshots. Those have the blocks they have, and would be lost or stay behind under another name;
//! so it is refused.

mod exchange;
mod state;

pub(crate) use state::{COPY_OF, Migrations};

use crate::appliance::{Appliance, By};
use crate::pools::Open;
use disk::{Mirror, SharedVolume};
use dsl::props::{Prop, PropName, Source, Value};
use exchange::{exchange, is_settable, settings_of};
use ondisk::ObjsetType;
use pool::{Content, Pool};
use state::{Migration, lock};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use units::{Error, Kind, Result, pretty_size};
use world::sync::Event;

impl Appliance {
    /// Begins to give a volume another block size; a daemon's caller does not wait for the end. The block size that it
    /// has already ends what is under way; the one that it is getting changes nothing.
    pub(crate) async fn change_block_size(
        &self,
        open: &Open,
        dataset: &str,
        block: u64,
        by: &By,
    ) -> Result<()> {
        let pool = &open.pool;
        let _turn = self.0.migrations.turns.of(&pool.name()).await;
        if let Some(running) = self.0.migrations.running(dataset) {
            if block == running.from {
                self.0.migrations.cancel(|name| name == dataset).await;
                return Ok(());
            }
            if block == running.to {
                return Ok(());
            }
            let why = format!(
                "it is being copied into blocks of {}; 'volblocksize={}' ends that",
                pretty_size(running.to),
                pretty_size(running.from)
            );
            return Err(Error::new(Kind::Busy, "change block size").because(why));
        }
        self.remove_half_copies(pool).await?;
        let Some((migration, properties)) = plan(pool, dataset, block).await? else { return Ok(()) };
        let content = Content::Volume { size: migration.size, block_size: block };
        pool.create_dataset(&migration.copy, content, properties).await?;
        let migration = Arc::new(migration);
        lock(&self.0.migrations.all).insert(dataset.into(), migration.clone());
        let work = self.clone().migrate(migration.clone(), pool.clone(), dataset.to_string(), by.clone());
        let task = world::spawn(work);
        if !self.0.config.is_daemon {
            task.await;
        }
        Ok(())
    }

    async fn migrate(self, migration: Arc<Migration>, pool: Pool, dataset: String, by: By) {
        let outcome = self.copy_and_exchange(&migration, &pool, &dataset).await;
        if outcome.is_err() {
            // What cannot be removed now is removed when the pool is opened next.
            let _ = remove(&pool, &migration.copy).await;
        } else {
            self.was_set_late(&dataset, "volblocksize", (migration.from, migration.to), &by);
        }
        migration.end(outcome);
        self.san_changed();
    }

    /// What there is to say of it, if something.
    async fn copy_and_exchange(
        &self,
        migration: &Migration,
        pool: &Pool,
        dataset: &str,
    ) -> Result<Option<String>> {
        let (served, _held) = self.use_volume(dataset).await?;
        let copy = pool.open_volume(&migration.copy).await?;
        let mirror = served.mirror_to(copy).await?;
        let exchanged = match migration.copy(&mirror).await {
            Ok(()) => exchange_in_service(migration, pool, &served, &mirror).await,
            Err(e) => Err(e),
        };
        if exchanged.is_err() {
            served.unmirror().await;
        }
        exchanged
    }

    /// Destroys what is left of migrations that were cut off.
    pub(crate) async fn remove_half_copies(&self, pool: &Pool) -> Result<()> {
        if pool.is_read_only() {
            return Ok(());
        }
        let at_work: BTreeSet<String> =
            self.0.migrations.below(|_| true).iter().map(|m| m.copy.clone()).collect();
        for copy in half_copies(pool).await? {
            if !at_work.contains(&copy) {
                remove(pool, &copy).await?;
            }
        }
        Ok(())
    }
}

async fn exchange_in_service(
    migration: &Migration,
    pool: &Pool,
    served: &SharedVolume,
    mirror: &Mirror,
) -> Result<Option<String>> {
    // What is in memory goes to disk first, or the txg for which everybody waits would be a long one.
    pool.sync().await?;
    migration.check()?;
    let closed = served.close().await;
    mirror.catch_up().await?;
    let (old, copy) = (served.name().to_string(), migration.copy.clone());
    let (from, to) = (migration.from, migration.to);
    let note = pool
        .change_unseen("exchange volumes", move |pool, tx| async move {
            exchange(&pool, &tx, (&old, from), (&copy, to)).await
        })
        .await?;
    // Under its new name; as it is, if that cannot be read.
    let volume = pool.open_volume(served.name()).await.unwrap_or_else(|_| mirror.volume().clone());
    closed.open_with(volume);
    Ok(note)
}

/// What is to be done, and the properties of the copy; nothing for the block size that it has.
async fn plan(pool: &Pool, dataset: &str, block: u64) -> Result<Option<(Migration, Vec<(PropName, Value)>)>> {
    let _reading = pool.reading().await;
    let dsl = pool.dsl();
    let stats = dsl.stats(dataset).await?;
    let size = crate::shares::number(&stats, Prop::VolSize).await?;
    let from = crate::shares::number(&stats, Prop::VolBlockSize).await?;
    if from == block {
        return Ok(None);
    }
    zvol::check(size, block)?;
    if !dsl.snapshots(dataset).await?.is_empty() {
        return Err(Error::new(Kind::Busy, "change block size").because(
            "it has snapshots, and they stay in the blocks they have: destroy them first, or make another volume and copy",
        ));
    }
    let Some((parent, _)) = dsl::name::split_parent(dataset) else {
        return Err(Error::invalid("a pool is no volume"));
    };
    let parent = dsl.find(parent).await?;
    let (needed, room) = (stats.found.phys.referenced, dsl.available(parent.dir_id, &parent.phys).await?);
    if needed > room {
        let why = format!(
            "out of space: the copy needs {}, and {} are available",
            pretty_size(needed),
            pretty_size(room)
        );
        return Err(Error::new(Kind::NoSpace, "change block size").because(why));
    }
    let mut properties: Vec<(PropName, Value)> = settings_of(&stats)
        .await?
        .into_iter()
        .filter(|(name, _)| matches!(name, PropName::Native(_)))
        .collect();
    // Until it is in service nothing in it is promised to anybody.
    let disabled = dsl::props::parse_value(Prop::Sync.row(), "disabled", dsl::props::Types::VOLUME)?;
    properties.retain(|(name, _)| is_settable(name) && *name != PropName::Native(Prop::Sync));
    properties.push((PropName::Native(Prop::Sync), disabled));
    let guid = stats.found.phys.guid.0.to_string();
    properties.push((PropName::User(COPY_OF.into()), Value::Text(guid)));
    let copy = format!("{dataset}.copy-{}", pretty_size(block));
    let new = dsl::NewDataset { name: &copy, kind: ObjsetType::Zvol, props: &properties };
    dsl.check_create(&new).await?;
    let migration = Migration {
        copy,
        from,
        to: block,
        size,
        copied: AtomicU64::new(0),
        cancelled: AtomicBool::new(false),
        ended: Event::new(),
        outcome: Mutex::default(),
    };
    Ok(Some((migration, properties)))
}

/// Volumes that are half copies of volumes that are there.
async fn half_copies(pool: &Pool) -> Result<Vec<String>> {
    let _reading = pool.reading().await;
    let (mut marked, mut guids) = (Vec::new(), BTreeSet::new());
    for dataset in pool.dsl().descendants(&pool.name()).await? {
        let stats = pool.dsl().stats(&dataset).await?;
        if stats.kind != ObjsetType::Zvol {
            continue;
        }
        guids.insert(stats.found.phys.guid.0);
        if let Some((Value::Text(of), Source::Local)) = stats.get(&PropName::User(COPY_OF.into())).await? {
            marked.push((dataset, of.parse::<u64>().ok()));
        }
    }
    let is_half = |of: &Option<u64>| of.is_some_and(|guid| guids.contains(&guid));
    Ok(marked.into_iter().filter(|(_, of)| is_half(of)).map(|(dataset, _)| dataset).collect())
}

async fn remove(pool: &Pool, dataset: &str) -> Result<()> {
    let dataset = dataset.to_string();
    pool.change("remove half a copy", move |pool, tx| async move {
        let plan = pool.dsl().plan_destroy(&dataset, false).await?;
        pool.dsl().destroy(&tx, &plan).await
    })
    .await
}
