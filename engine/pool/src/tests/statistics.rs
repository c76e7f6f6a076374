//! What statistics say of a whole pool is what was done, and what the devices, the cache and the leaves counted.

use super::{Rig, VOLUME, make_volume, noise};
use crate::Pool;
use probe::{Hub, Opened, Query};
use sim::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use world::Buf;

/// A statistic whole and by each of its breakdowns, opened at one moment.
struct Watched {
    whole: Opened,
    broken_down: Vec<Opened>,
}

impl Watched {
    fn open(hub: &Hub, text: &str) -> Watched {
        let query: Query = text.parse().unwrap();
        let by = |breakdown| {
            let query = Query { breakdown, ..query.clone() };
            hub.open(&query).unwrap()
        };
        let broken_down = query.statistic.breakdowns.iter().map(|b| by(Some(*b))).collect();
        Watched { whole: by(None), broken_down }
    }

    /// What it came to, after each breakdown has come to the same.
    fn sum(&self) -> u64 {
        let value = self.whole.take().value;
        for opened in &self.broken_down {
            let sample = opened.take();
            let parts: u64 = sample.parts.iter().map(|(_, part)| part).sum();
            assert_eq!((sample.value, parts), (value, value), "{opened:?}");
        }
        value
    }
}

/// Random work on a volume: what is read and written, durable or not.
async fn work(pool: &Pool, rng: &mut Rng) {
    let volume = pool.open_volume(VOLUME).await.unwrap();
    for _ in 0..40 {
        let len = 512 << rng.below(8);
        let offset = rng.below(volume.size() / 512 - 256) * 512;
        match rng.below(3) {
            0 => drop(volume.read(offset, len).await.unwrap()),
            _ => volume.write(offset, Buf::copy_from(&noise(rng.next_u64(), len as usize))).await.unwrap(),
        }
        if rng.below(5) == 0 {
            volume.flush().await.unwrap();
        }
    }
}

/// Everything is on disk, and nothing is under way.
async fn settle(pool: &Pool) {
    pool.sync().await.unwrap();
    pool.txgs().settled().await.unwrap();
    world::sleep(Duration::from_millis(100)).await;
}

/// Bytes read and written, reads and writes, as the leaves themselves count for `zpool iostat`.
fn leaves(pool: &Pool) -> [u64; 4] {
    let mut sums = [0; 4];
    for leaf in pool.tree().leaves() {
        let seen = leaf.stats.snapshot();
        let all = [seen.read.bytes, seen.write.bytes, seen.read.ops, seen.write.ops];
        sums.iter_mut().zip(all).for_each(|(sum, n)| *sum += n);
    }
    sums
}

#[test]
fn sums_agree_with_what_devices_cache_and_leaves_counted() {
    for (seed, rig) in Rig::all().into_iter().enumerate() {
        let devices = rig.clone();
        rig.run(seed as u64, async move {
            let of_cache = Hub::new();
            let cache = Arc::new(arc::Cache::new(1 << 20).telling(&of_cache));
            let pool = devices.create_on("tank", 0..devices.count, cache.clone(), |_| true).await;
            make_volume(&pool, VOLUME, 4 << 20).await;
            settle(&pool).await;
            let hub = pool.0.hub.clone();
            let open = |text: &str| Watched::open(&hub, text);
            let [read, written, trimmed] =
                ["read", "write", "trim"].map(|op| open(&format!("io.bytes[op={op}]")));
            let [reads, writes] = ["io.waits[op=read]", "io.waits[op=write]"].map(open);
            let [at_devices, flushes] = ["io.ops[op=write]", "io.ops[op=flush]"].map(open);
            let [commits, phases] = ["zil.commits", "txg.ops"].map(open);
            let [lookups, evicted] =
                ["arc.accesses", "arc.evicted"].map(|text| Watched::open(&of_cache, text));
            let lookups_of =
                |c: arc::Counts| c.demand_hits + c.demand_misses + c.prefetch_hits + c.prefetch_misses;
            let cached = || {
                let arc::Stats { data, metadata, .. } = cache.stats();
                [lookups_of(data) + lookups_of(metadata), data.evicted_bytes + metadata.evicted_bytes]
            };
            let counted = || {
                let disks = [devices.disks.writes(), devices.disks.flushes()];
                (leaves(&pool), disks, cached(), pool.txgs().synced_txg().0)
            };
            let before = counted();
            work(&pool, &mut Rng::new(seed as u64)).await;
            settle(&pool).await;
            let after = counted();
            let [r, w, rs, ws] = std::array::from_fn(|i| after.0[i] - before.0[i]);
            assert_eq!((written.sum(), reads.sum(), writes.sum(), trimmed.sum()), (w, rs, ws, 0));
            // Reads that lie near each other are done as one, with what is between them.
            assert!(read.sum() >= r);
            let at_disks: [u64; 2] = std::array::from_fn(|i| after.1[i] - before.1[i]);
            assert_eq!([at_devices.sum(), flushes.sum()], at_disks);
            let cached: [u64; 2] = std::array::from_fn(|i| after.2[i] - before.2[i]);
            assert!(cached[0] > 0 && cached[1] > 0);
            assert_eq!([lookups.sum(), evicted.sum()], cached);
            assert!(commits.sum() > 0);
            // Each was open, quiesced and synced; the first was open before anything looked, and is told all the same.
            assert_eq!(phases.sum(), 3 * (after.3 - before.3));
        });
    }
}

#[test]
fn disks_that_work_all_the_time_are_utilized_and_those_that_rest_are_not() {
    let rig = Rig::new(vdev::Layout::Mirror, 2, 96 << 20);
    let devices = rig.clone();
    rig.run(1, async move {
        let pool = devices.create().await;
        make_volume(&pool, VOLUME, 16 << 20).await;
        pool.sync().await.unwrap();
        let hub = pool.0.hub.clone();
        let open = |text: &str| hub.open(&text.parse().unwrap()).unwrap();
        let (all, idle) = (open("io.disks[disk]"), open("io.disks[utilization<5]"));
        world::sleep(Duration::from_secs(60)).await;
        let names = |opened: &Opened| {
            let parts = opened.take().parts;
            parts.into_iter().map(|(key, part)| (key.to_string(), part)).collect::<BTreeMap<_, _>>()
        };
        assert_eq!(names(&all), [("/sim/disk0".into(), 1), ("/sim/disk1".into(), 1)].into());
        assert_eq!(idle.take().value, 2);
        let busy = open("io.disks[utilization>=20]");
        super::fill(&pool, VOLUME, 1).await;
        assert_eq!(busy.take().value, 2);
    });
}
