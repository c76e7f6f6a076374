//! Random pools against a bitmap: nothing is given twice, nothing too early, nothing is lost, and what is written says
//! what is true.

use super::{Dice, MemoryLog, run, spec};
use crate::{Class, Request, Space, TrimBatch, VdevSpec};
use ondisk::Dva;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{Kind, Psize, Txg, VdevId};

const SECTOR: u64 = 4096;
const VDEV_SIZE: u64 = 64 << 20;
const METASLAB_SHIFT: u32 = 23;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sector {
    Free,
    Used,
    /// Freed in this txg, or an earlier one whose frees are deferred.
    Waiting(u64),
    /// Free, and out of the allocator's hands: a device may discard it or write to it.
    Swept,
}

struct Oracle {
    space: Space,
    log: Arc<MemoryLog>,
    specs: Vec<VdevSpec>,
    sectors: BTreeMap<u32, Vec<Sector>>,
    /// Copies in use, and when they were born.
    blocks: Vec<(Dva, Txg)>,
    dice: Dice,
    /// Whether free space is swept meanwhile, and what of it is being swept.
    sweeps: bool,
    swept: Vec<TrimBatch>,
}

fn range_of(dva: &Dva) -> std::ops::Range<usize> {
    (dva.offset.bytes() / SECTOR) as usize..((dva.offset.bytes() + dva.asize.bytes()) / SECTOR) as usize
}

impl Oracle {
    fn new(seed: u64, specs: Vec<VdevSpec>, plain: bool, long: bool) -> Oracle {
        let log = Arc::new(MemoryLog { plain, ..MemoryLog::default() });
        let sectors =
            specs.iter().map(|s| (s.vdev.0, vec![Sector::Free; (s.asize / SECTOR) as usize])).collect();
        let space = run(Space::open(log.clone(), specs.clone(), long)).unwrap();
        let (blocks, swept) = (Vec::new(), Vec::new());
        Oracle { space, log, specs, sectors, blocks, dice: Dice(seed), sweeps: false, swept }
    }

    fn allocate(&mut self, txg: Txg) {
        let most = 1 << self.dice.roll(7);
        let psize = (1 + self.dice.roll(most)) * SECTOR;
        let copies = if self.dice.roll(8) == 0 { 1 + self.dice.roll(3) as u8 } else { 1 };
        let request = Request::new(Class::Normal, Psize(psize), copies, txg);
        match run(self.space.allocate(&request)) {
            Ok(dvas) => {
                assert!(dvas[usize::from(copies)..].iter().all(Dva::is_empty));
                let dvas = &dvas[..usize::from(copies)];
                dvas.iter().for_each(|dva| self.take(dva, psize));
                if self.dice.roll(10) == 0 {
                    for dva in dvas {
                        self.space.unallocate(dva, txg).unwrap();
                        self.set(dva, Sector::Free);
                    }
                } else {
                    self.blocks.extend(dvas.iter().map(|dva| (*dva, txg)));
                }
            }
            Err(e) => assert_eq!(e.kind(), Kind::NoSpace),
        }
    }

    fn take(&mut self, dva: &Dva, psize: u64) {
        assert_eq!(dva.asize.bytes(), psize);
        let sectors = &mut self.sectors.get_mut(&dva.vdev.0).unwrap()[range_of(dva)];
        assert!(sectors.iter().all(|s| *s == Sector::Free), "{dva} was not free");
        sectors.fill(Sector::Used);
    }

    fn set(&mut self, dva: &Dva, to: Sector) {
        self.sectors.get_mut(&dva.vdev.0).unwrap()[range_of(dva)].fill(to);
    }

    fn free(&mut self, txg: Txg) {
        if self.blocks.is_empty() {
            return;
        }
        let chosen = self.dice.roll(self.blocks.len() as u64) as usize;
        if self.blocks[chosen].1 > txg {
            return; // no txg frees what a later one wrote
        }
        let (dva, _) = self.blocks.swap_remove(chosen);
        self.space.free(&dva, txg).unwrap();
        self.set(&dva, Sector::Waiting(txg.0));
        if self.dice.roll(20) == 0 {
            let twice = self.space.free(&dva, txg).unwrap_err();
            assert_eq!(twice.kind(), Kind::Corrupt);
        }
    }

    /// Takes some free space for a sweep, or gives back what was taken.
    fn sweep(&mut self) {
        if !self.sweeps || self.dice.roll(4) > 0 {
            return;
        }
        if !self.swept.is_empty() && self.dice.roll(2) == 0 {
            let chosen = self.dice.roll(self.swept.len() as u64) as usize;
            let batch = self.swept.swap_remove(chosen);
            self.mark(&batch, Sector::Swept, Sector::Free);
            return;
        }
        let vdev = VdevId(self.dice.roll(self.specs.len() as u64) as u32);
        let min = self.dice.roll(4) * SECTOR;
        let taken: Vec<TrimBatch> = if self.dice.roll(3) == 0 {
            self.space.trim_freed(vdev, min)
        } else {
            let index = self.dice.roll(VDEV_SIZE >> METASLAB_SHIFT);
            let from = (index << METASLAB_SHIFT) + self.dice.roll(1 << METASLAB_SHIFT >> 12) * SECTOR;
            let most = (1 + self.dice.roll(300)) * SECTOR;
            let batch = run(self.space.trim_some(vdev, index as usize, (from, most), min)).unwrap();
            assert!(batch.iter().flat_map(TrimBatch::segments).all(|s| s.start >= from));
            assert!(batch.iter().flat_map(TrimBatch::segments).map(|s| s.len()).sum::<u64>() <= most);
            batch.into_iter().collect()
        };
        for batch in taken {
            self.mark(&batch, Sector::Free, Sector::Swept);
            self.swept.push(batch);
        }
    }

    /// All sectors of the batch are `from`, and become `to`.
    fn mark(&mut self, batch: &TrimBatch, from: Sector, to: Sector) {
        let sectors = self.sectors.get_mut(&batch.vdev().0).unwrap();
        for segment in batch.segments() {
            let own = &mut sectors[(segment.start / SECTOR) as usize..(segment.end / SECTOR) as usize];
            assert!(own.iter().all(|s| *s == from), "{segment:?} is {from:?}");
            own.fill(to);
        }
    }

    /// A txg with `ops` operations, some of them while it is being synced, some already for the next.
    fn txg(&mut self, txg: Txg, ops: u64, free_percent: u64) {
        for _ in 0..ops {
            if self.dice.roll(100) < free_percent {
                self.free(txg)
            } else {
                self.allocate(txg)
            }
            self.sweep();
        }
        let mut pass = 1;
        while run(self.space.sync(txg, pass)).unwrap() {
            // Writing the maps takes and frees space itself, less in each pass.
            for _ in 0..3u32.saturating_sub(pass) {
                self.allocate(txg);
                self.free(txg);
                self.allocate(txg.next());
                self.sweep();
            }
            pass += 1;
            assert!(pass < 8, "the sync does not come to rest");
        }
        let defer = self.space.usage(Class::Normal).free() > self.space.slop();
        run(self.space.sync_done(txg)).unwrap();
        for sector in self.sectors.values_mut().flatten() {
            let ripe = matches!(sector, Sector::Waiting(t) if !defer && *t == txg.0 || *t + 2 <= txg.0);
            if ripe {
                *sector = Sector::Free;
            }
        }
        self.check_sums();
    }

    fn check_sums(&self) {
        let count =
            |what: fn(&Sector) -> bool| self.sectors.values().flatten().filter(|s| what(s)).count() as u64;
        let waiting = count(|s| matches!(s, Sector::Waiting(_))) * SECTOR;
        let usage = self.space.usage(Class::Normal);
        let ahead: u64 = self.ahead();
        assert_eq!(usage.allocated + ahead, count(|s| *s == Sector::Used) * SECTOR + waiting);
        assert_eq!(usage.deferred, waiting);
    }

    /// Bytes allocated for the txg that is open while another is synced: not yet counted.
    fn ahead(&self) -> u64 {
        let states = self.space.vdevs();
        let metaslabs = states.iter().flat_map(|v| &v.metaslabs);
        metaslabs.map(|m| m.lock().allocating.iter().map(|set| set.space()).sum::<u64>()).sum()
    }

    /// Opens what is on "disk" now, and compares it with what is known to be in use.
    fn check_reopened(&self) {
        let log = self.log.copy();
        let again = run(Space::open(log.clone(), self.specs.clone(), true)).unwrap();
        let mut free_total = 0;
        for top in again.vdevs() {
            let sectors = &self.sectors[&top.spec.vdev.0];
            for metaslab in &top.metaslabs {
                run(again.load_metaslab(metaslab)).unwrap();
                let state = metaslab.lock();
                let free = state.allocatable().unwrap();
                let mut seen = vec![false; sectors.len()];
                for segment in free.ranges().iter() {
                    seen[(segment.start / SECTOR) as usize..(segment.end / SECTOR) as usize].fill(true);
                }
                let region = metaslab.place.region;
                for i in (region.start / SECTOR) as usize..(region.end / SECTOR) as usize {
                    // Space taken for the next txg is still free on disk.
                    let used = sectors[i] == Sector::Used && !self.is_ahead(top.spec.vdev.0, i);
                    assert_eq!(seen[i], !used, "{} sector {i}: {:?}", metaslab.place, sectors[i]);
                }
                assert_eq!(state.allocated + free.ranges().space(), region.len());
                free_total += free.ranges().space();
            }
        }
        assert_eq!(again.usage(Class::Normal).free(), free_total);
    }

    fn is_ahead(&self, vdev: u32, sector: usize) -> bool {
        let top = self.space.vdev(units::VdevId(vdev)).unwrap();
        let at = sector as u64 * SECTOR;
        let state = top.metaslabs[(at >> METASLAB_SHIFT) as usize].lock();
        let probe = crate::Segment::new(at, SECTOR);
        state.allocating.iter().any(|set| set.overlapping(probe).is_some())
    }
}

fn vdevs(count: u32) -> Vec<VdevSpec> {
    (0..count).map(|v| spec(v, Class::Normal, VDEV_SIZE, METASLAB_SHIFT)).collect()
}

#[test]
fn random_use_agrees_with_a_bitmap() {
    for seed in 1..=6 {
        let mut oracle = Oracle::new(seed, vdevs(1 + seed as u32 % 3), seed == 5, seed % 2 == 0);
        for txg in 10..60 {
            // Fill, churn, empty, fill again.
            let free_percent = [20, 50, 80, 45][(txg as usize / 5) % 4];
            oracle.txg(Txg(txg), 60, free_percent);
            if txg % 7 == 0 {
                oracle.check_reopened();
            }
            if txg % 5 == 0 {
                run(oracle.space.preload());
            }
        }
        oracle.check_reopened();
    }
}

/// What a sweep takes is in no use, nor was it in the txgs that the pool can go back to; and it is given to no write until
/// it is back.
#[test]
fn what_is_swept_is_in_use_nowhere() {
    let mut most_at_once = 0;
    for seed in 1..=12 {
        let mut oracle = Oracle::new(seed, vdevs(1 + seed as u32 % 2), seed == 5, seed % 2 == 0);
        oracle.sweeps = true;
        oracle.space.remember_freed(seed % 3 > 0);
        for txg in 10..60 {
            let free_percent = [20, 50, 80, 45][(txg as usize / 5) % 4];
            oracle.txg(Txg(txg), 60, free_percent);
            most_at_once = most_at_once.max(oracle.swept.len());
            if txg % 7 == 0 {
                oracle.check_reopened();
            }
            if txg % 5 == 0 {
                run(oracle.space.preload());
            }
        }
        while let Some(batch) = oracle.swept.pop() {
            oracle.mark(&batch, Sector::Swept, Sector::Free);
        }
        oracle.check_reopened();
        oracle.txg(Txg(60), 200, 10);
        oracle.check_reopened();
    }
    assert!(most_at_once > 10, "many are under way at once: {most_at_once}");
}

#[test]
fn a_full_pool_gives_its_last_sectors_and_lives_on() {
    let mut oracle = Oracle::new(99, vdevs(1), false, true);
    for txg in 10..30 {
        oracle.txg(Txg(txg), 300, 10);
    }
    let full = oracle.space.usage(Class::Normal);
    assert!(full.free() < full.space / 50, "{full:?}");
    let one = Request::new(Class::Normal, Psize(SECTOR), 1, Txg(30));
    let mut last = 0;
    while let Ok(dvas) = run(oracle.space.allocate(&one)) {
        oracle.take(&dvas[0], SECTOR);
        oracle.blocks.push((dvas[0], Txg(30)));
        last += 1;
        assert!(last < 1000);
    }
    assert!(!oracle.sectors[&0].contains(&Sector::Free), "every sector can be used");
    oracle.txg(Txg(30), 200, 95);
    oracle.check_reopened();
    oracle.txg(Txg(31), 100, 10);
    oracle.check_reopened();
}

#[test]
fn condensing_keeps_what_a_map_says() {
    let mut oracle = Oracle::new(7, vdevs(1), false, true);
    for txg in 10..200 {
        oracle.txg(Txg(txg), 300, if txg < 12 { 10 } else { 50 });
    }
    oracle.check_reopened();
    let maps = oracle.log.maps.lock().unwrap();
    assert!(maps.truncated > 5, "only {} maps were condensed", maps.truncated);
    let longest = maps.objects.values().map(|o| o.0.header.length).max().unwrap();
    assert!(longest < 40 << 10, "{longest}: maps do not grow without bound");
}

/// The histogram on disk counts exactly the segments that are free there, when the metaslab was loaded as it was written.
#[test]
fn histograms_equal_those_of_the_reloaded_space() {
    let mut oracle = Oracle::new(21, vdevs(2), false, false);
    for txg in 10..40 {
        oracle.txg(Txg(txg), 50, 40);
    }
    // No frees under way: free segments are then merged in memory as they will be after a reload.
    for txg in 40..44 {
        oracle.txg(Txg(txg), 10, 0);
    }
    let again = run(Space::open(oracle.log.copy(), oracle.specs.clone(), false)).unwrap();
    let mut compared = 0;
    for (live, top) in oracle.space.vdevs().iter().zip(again.vdevs()) {
        for (live, metaslab) in live.metaslabs.iter().zip(&top.metaslabs) {
            run(again.load_metaslab(metaslab)).unwrap();
            let state = metaslab.lock();
            let clean = live.lock().is_loaded() && live.lock().used_txg == Txg(43) && live.lock().is_idle();
            if let (Some(map), true) = (state.map, clean) {
                assert_eq!(
                    map.header.histogram.unwrap(),
                    state.allocatable().unwrap().histogram().to_map(12)
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 0);
}
