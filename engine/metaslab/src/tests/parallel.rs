//! Several threads at once: allocating and freeing while txgs are synced and metaslabs come and go.

#![allow(clippy::disallowed_methods, reason = "real threads, to find what a single one cannot")]

use super::{Dice, MemoryLog, run, spec};
use crate::{Class, Request, Space};
use ondisk::Dva;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, RwLock};
use units::{Psize, Txg, VdevId};

const SECTOR: u64 = 4096;

/// One flag for each sector: a task that is given a sector that is taken has found the bug.
struct Flags(Vec<Vec<AtomicBool>>);

impl Flags {
    fn set(&self, dva: &Dva, to: bool) {
        let first = (dva.offset.bytes() / SECTOR) as usize;
        for flag in &self.0[dva.vdev.0 as usize][first..first + (dva.asize.bytes() / SECTOR) as usize] {
            assert_eq!(flag.swap(to, SeqCst), !to, "{dva}");
        }
    }
}

/// Ends the threads, also when the one that leads them panics.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

#[test]
fn no_sector_is_given_to_two_threads() {
    let log = Arc::new(MemoryLog::default());
    let specs: Vec<_> = (0..2).map(|v| spec(v, Class::Normal, 64 << 20, 22)).collect();
    let space = run(Space::open(log.clone(), specs.clone(), true)).unwrap();
    let flags =
        Flags((0..2).map(|_| (0..(64 << 20) / SECTOR).map(|_| AtomicBool::new(false)).collect()).collect());
    let (open, done) = (RwLock::new(10), AtomicBool::new(false));
    // What each thread has in use at the end.
    let mut kept: Vec<Vec<(Dva, u64)>> = Vec::new();
    std::thread::scope(|s| {
        let workers: Vec<_> = (1..=3)
            .map(|seed| {
                let (space, flags, open, done) = (&space, &flags, &open, &done);
                s.spawn(move || {
                    let mut dice = Dice(seed);
                    let mut mine = Vec::new();
                    while !done.load(SeqCst) {
                        // Held open for as long as this thread works for it.
                        let held = open.read().unwrap();
                        let txg = *held;
                        if mine.len() < 300 && dice.roll(5) < 3 {
                            let psize = Psize((1 + dice.roll(16)) * SECTOR);
                            let copies = 1 + dice.roll(2) as u8;
                            let request = Request::new(Class::Normal, psize, copies, Txg(txg));
                            let Ok(dvas) = run(space.allocate(&request)) else { continue };
                            for dva in &dvas[..usize::from(copies)] {
                                flags.set(dva, true);
                                mine.push((*dva, txg));
                            }
                        } else if !mine.is_empty() {
                            let (dva, _) = mine.swap_remove(dice.roll(mine.len() as u64) as usize);
                            flags.set(&dva, false);
                            space.free(&dva, Txg(txg)).unwrap();
                        }
                        drop(held);
                        std::thread::yield_now();
                    }
                    mine
                })
            })
            .collect();
        let stop = Stop(&done);
        for _ in 0..150 {
            std::thread::sleep(std::time::Duration::from_millis(1));
            let txg = {
                let mut open = open.write().unwrap();
                *open += 1;
                Txg(*open - 1)
            };
            let mut pass = 1;
            while run(space.sync(txg, pass)).unwrap() {
                pass += 1;
            }
            run(space.sync_done(txg)).unwrap();
            space.vdevs().iter().for_each(|v| v.metaslabs[txg.0 as usize % 16].lock().unload());
        }
        drop(stop);
        kept = workers.into_iter().map(|w| w.join().unwrap()).collect();
    });
    let last = *open.read().unwrap();
    for txg in last..last + 6 {
        while run(space.sync(Txg(txg), 2)).unwrap() {}
        run(space.sync_done(Txg(txg))).unwrap();
    }
    let mut used: BTreeMap<u32, u64> = BTreeMap::new();
    for (dva, _) in kept.iter().flatten() {
        *used.entry(dva.vdev.0).or_default() += dva.asize.bytes();
    }
    let again = run(Space::open(log.copy(), specs, true)).unwrap();
    run(again.preload());
    assert!(again.take_problems().is_empty());
    for vdev in [VdevId(0), VdevId(1)] {
        assert_eq!(again.usage_of_vdev(vdev).unwrap().allocated, used[&vdev.0]);
        assert_eq!(space.usage_of_vdev(vdev).unwrap().allocated, used[&vdev.0]);
    }
}
