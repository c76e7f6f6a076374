//! Pools that were left in the midst of synchronous writes: `zdb` reads their logs and claims them, and we replay them.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::process::ExitCode;

use common::{digest, open, verify};
use interop::harness::{self, Need, trial};
use interop::{Scratch, copy_sparse, zdb};
use pool::{Content, CreateOptions, Host, Pool};
use vdev::{Bias, Group, Layout, NewLeaf};
use world::Buf;

const BLOCK: u64 = 16 << 10;
const SIZE: u64 = 8 << 20;

fn main() -> ExitCode {
    let needs = [Need::Program("zdb")];
    let layouts = [("one_device", 1, Layout::Stripe), ("raidz1", 3, Layout::Raidz { parity: 1 })];
    let trials = layouts.into_iter().map(|(name, devices, layout)| {
        let name = format!("zdb_reads_and_claims_the_log_of_a_dirty_pool_on_{name}");
        trial(name, &needs, move || left_dirty(devices, layout))
    });
    harness::main(trials.collect())
}

async fn create(directory: &Path, devices: usize, layout: Layout) -> Pool {
    let path = |i: usize| directory.join(format!("disk{i}"));
    (0..devices).for_each(|i| std::fs::File::create(path(i)).unwrap().set_len(128 << 20).unwrap());
    let leaves = (0..devices).map(|i| NewLeaf::look_at(&path(i)).unwrap()).collect();
    let features = ondisk::feature::compatibility_set(ondisk::feature::DEFAULT_COMPATIBILITY).unwrap();
    let options = CreateOptions {
        name: "tank".into(),
        groups: vec![Group { layout, bias: Bias::Normal, leaves }],
        ashift: 12,
        features: features.into_iter().collect(),
        root_props: Vec::new(),
        pool_props: Vec::new(),
        compatibility: None,
        comment: None,
        host: Host { id: 1, name: "interop".into() },
        cache: std::sync::Arc::new(arc::Cache::new(64 << 20)),
        tunables: Default::default(),
    };
    pool::create(options).await.unwrap()
}

/// Bytes that do not compress.
fn noise(seed: u64, len: usize) -> Buf {
    let mut state = seed.wrapping_mul(2) | 1;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u8
    };
    Buf::copy_from(&(0..len).map(|_| next()).collect::<Vec<_>>())
}

fn left_dirty(devices: usize, layout: Layout) {
    let scratch = Scratch::new();
    let directory = scratch.path().to_owned();
    let wanted = linux::block_on(async move {
        let pool = create(&directory, devices, layout).await;
        let content = Content::Volume { size: SIZE, block_size: BLOCK };
        pool.create_dataset("tank/v", content, Vec::new()).await.unwrap();
        let volume = pool.open_volume("tank/v").await.unwrap();
        // The first commit begins the log with a txg; the following are in it, and nowhere else.
        volume.write_durable(0, noise(1, 4096)).await.unwrap();
        for i in 2..40u64 {
            volume.write_durable(i * 4096, noise(i, 4096)).await.unwrap();
        }
        volume.write_durable(1 << 20, noise(50, 128 << 10)).await.unwrap();
        volume.write_durable(2 << 20, noise(51, 20 << 10)).await.unwrap();
        volume.zero(1 << 20, 32 << 10).await.unwrap();
        volume.flush().await.unwrap();
        digest(&volume).await
    });
    let logs = zdb::intent_logs(scratch.path(), "tank");
    for found in ["TX_WRITE", "TX_TRUNCATE"] {
        assert!(logs.contains(found), "no {found} in:\n{logs}");
    }
    zdb::assert_clean(scratch.path(), "tank");
    // The images as a crash would have left them; the pool above still has its own.
    let crashed = Scratch::new();
    let images: Vec<_> = (0..devices).map(|i| crashed.join(format!("disk{i}"))).collect();
    for image in &images {
        copy_sparse(&scratch.join(image.file_name().unwrap()), image).unwrap();
    }
    linux::block_on(async move {
        let pool = open(images, "tank", false).await.unwrap();
        let volume = pool.open_volume("tank/v").await.unwrap();
        assert_eq!(digest(&volume).await, wanted);
        volume.write_durable(0, noise(60, 4096)).await.unwrap();
        verify(&pool).await;
        assert_eq!(pool.problems(), Vec::<String>::new());
        drop(volume);
        pool.export().await.unwrap();
    });
    let logs = zdb::intent_logs(crashed.path(), "tank");
    assert!(!logs.contains("TX_WRITE"), "an exported pool has a log:\n{logs}");
    zdb::assert_clean(crashed.path(), "tank");
}
