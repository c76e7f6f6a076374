//! Verified workloads on a volume of a real pool on a simulated disk, through the interface the fronts use.
#![allow(clippy::unwrap_used)]

use disk::NbdVolume;
use pool::{Content, CreateOptions, Host, OpenOptions, Pool};
use sim::{Config, Disks, Model};
use std::sync::Arc;
use workload::{Ledger, Limit, Pattern, Spec, VolumeTarget, run_verified, verify};
use world::OpenMode;

const DIR: &str = "/dev";
const DISK: &str = "/dev/disk0";
const SIZE: u64 = 4 << 20;

fn host() -> Host {
    Host::new(1, "workload")
}

fn cache() -> Arc<arc::Cache> {
    Arc::new(arc::Cache::new(16 << 20))
}

async fn create(volblocksize: u64) -> Pool {
    let geometry = world::open(DISK.as_ref(), OpenMode::ReadOnly).unwrap().geometry();
    let leaf = vdev::NewLeaf { path: DISK.into(), geometry };
    let group = vdev::Group { layout: vdev::Layout::Stripe, bias: vdev::Bias::Normal, leaves: vec![leaf] };
    let features = ondisk::feature::compatibility_set(ondisk::feature::DEFAULT_COMPATIBILITY).unwrap();
    let options = CreateOptions {
        name: "tank".into(),
        groups: vec![group],
        ashift: 12,
        features: features.into_iter().collect(),
        root_props: Vec::new(),
        root: Default::default(),
        pool_props: Vec::new(),
        compatibility: None,
        comment: None,
        host: host(),
        cache: cache(),
        hub: Default::default(),
        tunables: Default::default(),
    };
    let pool = pool::create(options).await.unwrap();
    let content = Content::Volume { size: SIZE, block_size: volblocksize };
    pool.create_dataset("tank/vol", content, Vec::new()).await.unwrap();
    pool
}

async fn import() -> Pool {
    let found = pool::scan_dirs(&[DIR]).await.unwrap();
    let options = OpenOptions {
        read_only: false,
        name: None,
        host: host(),
        force: false,
        missing_log: false,
        copy_over: false,
        cache: cache(),
        hub: Default::default(),
        tunables: Default::default(),
    };
    pool::open(&found[0], options).await.unwrap()
}

async fn target(pool: &Pool) -> Arc<VolumeTarget> {
    Arc::new(VolumeTarget(Arc::new(NbdVolume::new(pool.open_volume("tank/vol").await.unwrap()))))
}

/// What a flush has promised is there after a power cut, for blocks smaller than the volume's and equal. A request of many
/// blocks of the volume may be cut in two between them, which the ledger would call torn.
#[test]
fn what_was_flushed_survives_a_power_cut() {
    for (seed, block_size) in [(1, 4096), (2, 16384), (3, 65536), (4, 4096), (5, 512), (6, 16384)] {
        let disks = Disks::new();
        disks.add(DISK, 512 << 20, Model::NVME);
        let spec = Spec {
            block_size,
            queue_depth: 8,
            read_percent: 30,
            flush_every: 25,
            limit: Limit::Requests(100_000),
            compressible_percent: 50,
            seed,
            ..Spec::default()
        };
        let ledger = Arc::new(Ledger::new(SIZE / u64::from(block_size)));
        let (running, known, cutting) = (spec.clone(), ledger.clone(), disks.clone());
        let ended = sim::run_until_cut(&disks, seed, Config::default(), async move {
            let pool = create(u64::from(block_size).max(16384)).await;
            let target = target(&pool).await;
            cutting.cut_at_flush(40 + 7 * seed);
            run_verified(target, &running, known).await.map(|_| ())
        });
        assert!(ended.is_none(), "seed {seed}: the power was cut");
        disks.power_cut(seed);
        sim::run_with(&disks, seed, Config::default(), async move {
            let pool = import().await;
            let target = target(&pool).await;
            verify(&*target, &spec, &ledger, true).await.unwrap();
            let more = Spec { limit: Limit::Requests(500), pattern: Pattern::Sequential, ..spec.clone() };
            run_verified(target.clone(), &more, ledger.clone()).await.unwrap();
            verify(&*target, &spec, &ledger, false).await.unwrap();
            assert!(pool.complaints().is_empty(), "{:?}", pool.complaints());
        });
    }
}
