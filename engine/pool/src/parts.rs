//! What a pool is put together from, whether it was just made or was found on its devices, and what those devices tell
//! the layers above them.

use crate::assemble::Knot;
use crate::intent_log::IntentLogs;
use crate::pool::{Inner, Pool};
use crate::tasks::Tasks;
use dmu::ObjSet;
use dsl::Dsl;
use metaslab::{Class, Space, VdevSpec};
use ondisk::Uberblock;
use probe::Hub;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};
use tunables::Tunables;
use txg::Txgs;
use units::{Asize, Psize, Txg};
use vdev::label::config::PoolConfig;
use vdev::{Bias, Top, Tree};
use zio::{Pipeline, Worst};

/// What a pool is put together from.
pub(crate) struct Parts {
    pub config: PoolConfig,
    pub name_on_disk: Option<String>,
    pub tree: Arc<Tree>,
    pub space: Arc<Space>,
    pub space_log: Knot,
    pub pipeline: Pipeline,
    pub mos: ObjSet,
    pub dsl: Dsl,
    pub uberblock: Uberblock,
    pub read_only: bool,
    pub tunables: Arc<Tunables>,
    pub hub: Hub,
}

/// `open_txg` is the first txg that changes go into.
pub(crate) fn assemble(parts: Parts, open_txg: Txg) -> Pool {
    let Parts {
        config,
        name_on_disk,
        tree,
        space,
        space_log,
        pipeline,
        mos,
        dsl,
        uberblock,
        read_only,
        tunables,
        hub,
    } = parts;
    let intent_logs = IntentLogs::new(pipeline.clone());
    dsl.set_log_keeper(intent_logs.clone());
    pipeline.second_level().set_synced(uberblock.txg);
    let pool = Pool(Arc::new(Inner {
        config: Mutex::new(config),
        name_on_disk,
        left_behind: Mutex::default(),
        tree,
        space,
        space_log,
        pipeline,
        mos,
        dsl,
        txgs: Txgs::new(open_txg.back(1), &tunables),
        tunables,
        hub,
        asked: Mutex::default(),
        uberblock: Mutex::new(uberblock),
        // The first commit after opening writes all labels: a crash may have left some that do not agree.
        config_dirty: AtomicBool::new(true),
        tasks: Tasks::default(),
        mos_delta: Arc::default(),
        read_only,
        admin: Arc::new(world::sync::RwLock::new(())),
        mos_writing: Default::default(),
        reshaping: world::sync::Mutex::new(()),
        branching: world::sync::Mutex::new(()),
        syncing: Mutex::new(None),
        syncs_on: AtomicUsize::new(0),
        healer: Mutex::new(None),
        multihost: Default::default(),
        trimmer: Default::default(),
        device_watch: Default::default(),
        sweeps: Default::default(),
        rebuilds: Default::default(),
        spares: Default::default(),
        feeder: Mutex::default(),
        scrub: crate::scrub::Scrub::default(),
        error_scrub: crate::error_scrub::ErrorScrub::default(),
        errors: crate::errors::Errors::default(),
        intent_logs,
        vdev_properties: Mutex::default(),
        load_guid: world::random_u64(),
        problems: Mutex::default(),
        file_systems: Mutex::default(),
        followed: world::sync::Mutex::new(None),
        opening: world::sync::Mutex::new(()),
        waiting_logs: Mutex::default(),
        panics: Mutex::default(),
        claimed_logs: Mutex::default(),
    }));
    pool.watch_suspension();
    pool.tell_statistics();
    pool
}

/// What the allocator is to know of a top-level vdev.
pub(crate) fn space_spec(top: &Arc<Top>, bias: Bias) -> VdevSpec {
    let geometry = {
        let top = top.clone();
        move |psize: Psize| Asize(top.psize_to_asize(psize.0))
    };
    VdevSpec {
        vdev: top.id,
        class: class_of(bias),
        ashift: top.ashift,
        asize: top.asize(),
        metaslab_shift: top.metaslab_shift,
        data_disks: top.data_disks() as u32,
        deflate_ratio: top.deflate_ratio(),
        geometry: Arc::new(geometry),
    }
}

fn class_of(bias: Bias) -> Class {
    match bias {
        Bias::Normal => Class::Normal,
        Bias::Log => Class::Log,
        Bias::Special => Class::Special,
        Bias::Dedup => Class::Dedup,
    }
}

/// The smallest sector among the devices that hold ordinary blocks.
pub(crate) fn min_alloc(tree: &Tree) -> u64 {
    tree.tops().iter().filter(|t| !t.is_log).map(|t| t.min_alloc()).min().unwrap_or(512)
}

/// What the worst place for a block costs: by the device whose single sectors are charged most for their bytes.
pub(crate) fn worst(tree: &Tree) -> Worst {
    let tops = tree.tops();
    let ordinary = || tops.iter().filter(|t| !t.is_log);
    let sector = ordinary().map(|t| t.min_alloc()).max().unwrap_or(units::SECTOR);
    let charge = |t: &Arc<Top>| {
        let of_one = (t.psize_to_asize(t.min_alloc()) >> units::SECTOR_SHIFT) * t.deflate_ratio();
        of_one * (sector / t.min_alloc())
    };
    Worst { sector, charge: ordinary().map(charge).max().unwrap_or(sector).max(sector) }
}
