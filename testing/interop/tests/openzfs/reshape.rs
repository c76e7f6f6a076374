//! Vdevs come and go, and after each step OpenZFS's judge finds nothing wrong with the pool.

use std::path::{Path, PathBuf};

use crate::common::{new, open, verify};
use interop::harness::{Need, Trial, trial};
use interop::{Scratch, golden, programs, zdb};
use pool::{Content, Pool};
use units::VdevId;
use vdev::{AuxKind, Bias, Group, Layout, NewLeaf};

const POOL: &str = "tank";
const SIZE: u64 = 128 << 20;
const VOLUME: u64 = 4 << 20;

pub fn trials() -> Vec<Trial> {
    let zdb = [Need::Program("zdb")];
    vec![
        trial("logs_come_and_go_and_zdb_finds_nothing_wrong", &zdb, logs),
        trial("vdevs_of_every_kind_are_added_and_zdb_finds_nothing_wrong", &zdb, every_kind),
        trial("zdb_reads_the_labels_of_spares_and_caches", &zdb, beside),
        trial("a_log_device_that_was_replayed_can_go", &[Need::Golden("zilb")], replayed),
    ]
}

fn leaf(dir: &Path, name: &str) -> NewLeaf {
    new::leaf(&dir.join(name), SIZE)
}

fn group(dir: &Path, bias: Bias, layout: Layout, names: &[&str]) -> Group {
    Group { layout, bias, leaves: names.iter().map(|n| leaf(dir, n)).collect() }
}

fn images(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect()
}

async fn create(dir: PathBuf) {
    let data = group(&dir, Bias::Normal, Layout::Stripe, &["data"]);
    let pool = pool::create(new::options(POOL, data)).await.unwrap();
    let content = Content::Volume { size: VOLUME, block_size: 16 << 10 };
    pool.create_dataset("tank/v", content, Vec::new()).await.unwrap();
    fill(&pool, 1).await;
    pool.export().await.unwrap();
}

/// Writes all of the volume.
async fn fill(pool: &Pool, seed: u8) {
    let volume = pool.open_volume("tank/v").await.unwrap();
    let chunk: Vec<u8> =
        (0..1 << 20).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8 ^ seed).collect();
    for at in (0..VOLUME).step_by(chunk.len()) {
        volume.write(at, world::Buf::copy_from(&chunk)).await.unwrap();
    }
    volume.flush().await.unwrap();
}

/// One opening of the pool, in which `work` is done; then the judge.
fn step<F: Future<Output = ()> + Send>(
    scratch: &Scratch,
    work: impl FnOnce(Pool, PathBuf) -> F + Send + 'static,
) {
    let dir = scratch.path().to_path_buf();
    linux::block_on(async move {
        let pool = open(images(&dir), POOL, false).await.unwrap();
        work(pool.clone(), dir).await;
        verify(&pool).await;
        pool.export().await.unwrap();
    });
    zdb::assert_clean(scratch.path(), POOL);
}

fn start() -> Scratch {
    let scratch = Scratch::new();
    let dir = scratch.path().to_path_buf();
    linux::block_on(create(dir));
    zdb::assert_clean(scratch.path(), POOL);
    scratch
}

/// What zdb says of the pool's configuration in its MOS.
fn config(scratch: &Scratch) -> String {
    let mut zdb = programs::command("zdb");
    zdb.args(["-e", "-p"]).arg(scratch.path()).args(["-C", POOL]);
    programs::run(&mut zdb)
}

fn logs() {
    let scratch = start();
    step(&scratch, |pool, dir| async move {
        pool.add_vdevs(&[group(&dir, Bias::Log, Layout::Stripe, &["log"])], 12).await.unwrap();
        fill(&pool, 2).await;
    });
    assert!(config(&scratch).contains("is_log: 1"));
    step(&scratch, |pool, dir| async move {
        pool.add_vdevs(&[group(&dir, Bias::Log, Layout::Mirror, &["m0", "m1"])], 12).await.unwrap();
    });
    step(&scratch, |pool, _| async move {
        pool.remove_log(VdevId(1)).await.unwrap();
        fill(&pool, 3).await;
    });
    let text = config(&scratch);
    assert!(text.contains("type: 'hole'") && text.contains("vdev_children: 3"), "{text}");
    step(&scratch, |pool, _| async move { pool.remove_log(VdevId(2)).await.unwrap() });
    assert!(!config(&scratch).contains("is_log: 1"));
    step(&scratch, |pool, dir| async move {
        let again = NewLeaf::look_at(&dir.join("log")).unwrap();
        let group = Group { layout: Layout::Stripe, bias: Bias::Log, leaves: vec![again] };
        pool.add_vdevs(&[group], 12).await.unwrap();
    });
}

fn every_kind() {
    let scratch = start();
    step(&scratch, |pool, dir| async move {
        let normal = group(&dir, Bias::Normal, Layout::Stripe, &["more"]);
        let special = group(&dir, Bias::Special, Layout::Mirror, &["s0", "s1"]);
        let dedup = group(&dir, Bias::Dedup, Layout::Stripe, &["dedup"]);
        let raidz = group(&dir, Bias::Normal, Layout::Raidz { parity: 1 }, &["r0", "r1", "r2"]);
        pool.add_vdevs(&[normal, special, dedup, raidz], 12).await.unwrap();
        fill(&pool, 4).await;
    });
    step(&scratch, |pool, _| async move { fill(&pool, 5).await });
}

fn beside() {
    let scratch = start();
    step(&scratch, |pool, dir| async move {
        pool.add_side_devices(AuxKind::Spare, &[leaf(&dir, "spare")]).await.unwrap();
        pool.add_side_devices(AuxKind::Cache, &[leaf(&dir, "cache")]).await.unwrap();
    });
    let label = |name: &str| programs::run(programs::command("zdb").arg("-l").arg(scratch.join(name)));
    for (name, state) in [("spare", "state: 3"), ("cache", "state: 4")] {
        let text = label(name);
        assert!(text.contains(state) && text.contains("labels = 0 1 2 3"), "{text}");
    }
    step(&scratch, |pool, _| async move {
        let status = pool.tree().status();
        assert_eq!((status.spares.len(), status.caches.len()), (1, 1));
        pool.remove_side_device(AuxKind::Spare, status.spares[0].guid).await.unwrap();
        pool.remove_side_device(AuxKind::Cache, status.caches[0].guid).await.unwrap();
    });
}

/// OpenZFS was stopped with its log full. The import replays it, so the device is free to go, and nothing needs it.
fn replayed() {
    let scratch = Scratch::new();
    let images = golden::pool("zilb").copy(&scratch, &[]);
    linux::block_on(async move {
        let pool = open(images.clone(), "zilb", false).await.unwrap();
        assert_eq!(pool.waiting_logs(), []);
        let log = pool.tree().tops().into_iter().find(|t| t.is_log).unwrap();
        pool.remove_log(log.id).await.unwrap();
        assert!(pool.tree().top(log.id).is_none_or(|top| !top.is_log));
        pool.export().await.unwrap();
        let is_log = |path: &PathBuf| path.to_string_lossy().contains("zilb-log");
        let (logs, rest): (Vec<PathBuf>, Vec<PathBuf>) = images.into_iter().partition(is_log);
        assert!(!logs.is_empty() && !rest.is_empty());
        let pool = open(rest, "zilb", false).await.unwrap();
        verify(&pool).await;
        pool.export().await.unwrap();
    });
}
