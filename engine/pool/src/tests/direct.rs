//! Reads and writes of files past the cache: what is read from devices and what stays in memory, by `direct`, flag and
//! alignment.

use super::{Rig, noise};
use crate::{Content, Pool};
use dsl::props::{Prop, PropName, Value};
use sim::Rng;
use std::sync::{Arc, Mutex};
use tunables::{Tunable, Tunables};
use vdev::Layout;
use world::sync::join_all_bounded;
use zpl::{FileKind, FileSystem, NewFile, Node, Writing};

const NAME: &str = "tank/fs";
const RECORD: u64 = 128 << 10;
const SIZE: u64 = 8 * RECORD;

async fn set(pool: &Pool, prop: Prop, value: u64) {
    let set = pool.change("set", move |pool, tx| async move {
        pool.dsl().set(&tx, NAME, &PropName::Native(prop), &Value::Number(value)).await
    });
    set.await.unwrap();
}

async fn write(fs: &FileSystem, file: &Node, offset: u64, bytes: &[u8], is_direct: bool) -> u64 {
    let how = Writing { is_direct, ..Writing::default() };
    file.write_as(offset, fs.parts(offset, bytes), how).await.unwrap()
}

fn device_writes(pool: &Pool) -> u64 {
    pool.tree().leaves().iter().map(|leaf| leaf.stats.snapshot().write.bytes).sum()
}

fn device_reads(pool: &Pool) -> u64 {
    pool.tree().leaves().iter().map(|leaf| leaf.stats.snapshot().read.ops).sum()
}

async fn make(pool: &Pool) -> FileSystem {
    pool.create_dataset(NAME, Content::FileSystem(Default::default()), Vec::new()).await.unwrap();
    pool.open_file_system_for_writing(NAME).await.unwrap()
}

async fn add(fs: &FileSystem, name: &str) -> Node {
    let new = NewFile::new(FileKind::Regular, 0o644);
    fs.root().await.unwrap().create(name.as_bytes(), &new).await.unwrap()
}

/// The property's three values, as numbers: disabled, standard, always.
const VALUES: [u64; 3] = [0, 1, 2];

/// Whether a request goes past the cache, as OpenZFS's manual has it.
fn goes_past(direct: u64, is_asked: bool, is_aligned: bool) -> bool {
    is_aligned && (direct == 2 || direct == 1 && is_asked)
}

#[test]
fn a_read_past_the_cache_leaves_nothing_there_and_finds_what_is() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let (own, bytes) = (rig.clone(), noise(1, SIZE as usize));
    rig.run(1, async move {
        let pool = own.create().await;
        let fs = make(&pool).await;
        add(&fs, "f").await.write(0, &bytes).await.unwrap();
        pool.sync().await.unwrap();
        drop(fs);
        pool.export().await.unwrap();
        for direct in VALUES {
            for (is_asked, is_aligned) in [(false, false), (false, true), (true, false), (true, true)] {
                // The cache of a pool that was just opened is empty.
                let tunables = Tunables::new();
                let pool = own.open_tuned(false, tunables.clone()).await.unwrap();
                set(&pool, Prop::Direct, direct).await;
                let fs = pool.open_file_system_for_writing(NAME).await.unwrap();
                let file = fs.resolve(b"f", false).await.unwrap();
                let whole = || async {
                    let mut at = if is_aligned { 0 } else { 512 };
                    let (before, mut from_devices) = (device_reads(&pool), 0);
                    while at < SIZE {
                        let (data, passed) = file.read_as(at, 64 << 10, is_asked).await.unwrap();
                        assert!(data[..] == bytes[at as usize..][..data.len()]);
                        at += 64 << 10;
                        from_devices += passed;
                    }
                    (device_reads(&pool) - before, from_devices)
                };
                whole().await;
                let (reads, from_devices) = whole().await;
                let passes = goes_past(direct, is_asked, is_aligned);
                let what = format!("direct {direct}, asked {is_asked}, aligned {is_aligned}");
                assert_eq!((reads > 0, from_devices), (passes, if passes { SIZE } else { 0 }), "{what}");
                tunables.set(Tunable::DioEnabled, 0).unwrap();
                whole().await;
                assert_eq!(whole().await, (0, 0), "{what}: none may, so that it is in the cache now");
                tunables.set(Tunable::DioEnabled, 1).unwrap();
                // What an ordinary reader has brought into the cache is served from there, whatever was asked for.
                file.read(0, SIZE as usize).await.unwrap();
                assert_eq!(whole().await, (0, 0), "{what}");
                drop((file, fs));
                pool.export().await.unwrap();
            }
        }
    });
}

#[test]
fn a_write_past_the_cache_is_on_its_device_when_it_is_answered_and_not_in_memory() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(2, async move {
        let pool = own.create().await;
        let fs = make(&pool).await;
        let mut seed = 0;
        for direct in VALUES {
            set(&pool, Prop::Direct, direct).await;
            for (is_asked, is_aligned) in [(false, false), (false, true), (true, false), (true, true)] {
                let what = format!("direct {direct}, asked {is_asked}, aligned {is_aligned}");
                let passes = goes_past(direct, is_asked, is_aligned);
                seed += 1;
                let file = add(&fs, &format!("f{seed}")).await;
                // Behind the first block, with which the blocks of a file have their size.
                file.write(0, &noise(100 + seed, 2 * RECORD as usize)).await.unwrap();
                pool.sync().await.unwrap();
                let (at, written) =
                    (if is_aligned { 2 * RECORD } else { 2 * RECORD + 512 }, device_writes(&pool));
                // Two pieces that end within a record, so that one of them is parts and whole records.
                let bytes = noise(seed, SIZE as usize);
                let (first, second) = bytes.split_at((SIZE - 40_960) as usize);
                let mut on_devices = write(&fs, &file, at, first, is_asked).await;
                on_devices += write(&fs, &file, at + first.len() as u64, second, is_asked).await;
                let expected = if passes { SIZE - RECORD } else { 0 };
                assert_eq!(on_devices, expected, "{what}");
                let written = device_writes(&pool) - written;
                assert!(
                    if passes { written >= expected } else { written < RECORD },
                    "{what}: {written} bytes"
                );
                let read = async || {
                    let (before, mut all) = (device_reads(&pool), Vec::new());
                    while all.len() < SIZE as usize {
                        let from = at + all.len() as u64;
                        all.extend_from_slice(&file.read_as(from, 64 << 10, true).await.unwrap().0);
                    }
                    all.truncate(SIZE as usize);
                    assert!(all == bytes, "{what}");
                    device_reads(&pool) > before
                };
                assert_eq!(read().await, passes, "{what}: before the sync");
                pool.sync().await.unwrap();
                assert_eq!(read().await, passes, "{what}: after the sync");
                assert!(file.read(at, SIZE as usize).await.unwrap()[..] == bytes[..], "{what}");
            }
        }
        super::verify(&pool).await;
        drop(fs);
        pool.export().await.unwrap();
    });
}

/// What is written behind takes space before its txg is synced, and none that is not there: a pool that gets full by it says
/// so to the writer, has what it acknowledged, and gives all of it back.
#[test]
fn a_pool_that_gets_full_by_what_is_written_behind_loses_nothing_and_gives_it_back() {
    for layout in [Layout::Stripe, Layout::Raidz { parity: 1 }] {
        let rig = Rig::new(layout, 3, 64 << 20);
        let own = rig.clone();
        rig.run(4, async move {
            let pool = own.create().await;
            pool.0.tunables.set(Tunable::WriteBehindMin, 0).unwrap();
            let fs = make(&pool).await;
            let (file, mut all) = (add(&fs, "f").await, Vec::new());
            let refused = loop {
                let bytes = noise(all.len() as u64, 4 * RECORD as usize);
                match file.write(all.len() as u64, &bytes).await {
                    Ok(()) => all.extend(bytes),
                    Err(e) => break e,
                }
                assert!(all.len() < 256 << 20, "it gets full");
            };
            assert_eq!(refused.kind(), units::Kind::NoSpace, "{refused}");
            file.sync().await.unwrap();
            pool.sync().await.unwrap();
            for at in (0..all.len()).step_by(1 << 20) {
                let found = file.read(at as u64, 1 << 20).await.unwrap();
                assert!(found[..] == all[at..][..found.len()], "{layout:?} at {at}");
            }
            super::verify(&pool).await;
            file.truncate(0).await.unwrap();
            for _ in 0..8 {
                pool.sync().await.unwrap();
            }
            file.write(0, &all[..32 << 20]).await.unwrap();
            super::verify(&pool).await;
            drop((file, fs));
            pool.export().await.unwrap();
        });
    }
}

/// What a file was at each moment since it was durable the last time, and what snapshots have.
#[derive(Default)]
struct Told {
    states: Vec<Vec<u8>>,
    snapshots: Vec<(String, Vec<u8>)>,
}

impl Told {
    fn is_now(&mut self, model: &[u8], is_durable: bool) {
        if is_durable {
            self.states.clear();
        }
        self.states.push(model.to_vec());
    }
}

const MOST: u64 = 640 << 10;

/// Works on a file through both ways, against bytes in memory, until the power is cut.
async fn work(pool: Pool, fs: FileSystem, seed: u64, told: Arc<Mutex<Told>>) {
    let (mut rng, mut model, file) = (Rng::new(seed), Vec::<u8>::new(), add(&fs, "f").await);
    fs.sync().await.unwrap();
    told.lock().unwrap().states.push(Vec::new());
    for step in 0..60 + rng.below(80) {
        let (offset, len) = (rng.below(MOST), 1 + rng.below(200 << 10));
        let (page, pages) = (offset / 4096 * 4096, len.next_multiple_of(4096));
        let put = |model: &mut Vec<u8>, at: u64, bytes: &[u8]| {
            model.resize(model.len().max(at as usize + bytes.len()), 0);
            model[at as usize..][..bytes.len()].copy_from_slice(bytes);
        };
        let mut is_durable = false;
        match rng.below(16) {
            0..=3 => {
                let bytes = noise((seed << 20) + step, pages as usize);
                write(&fs, &file, page, &bytes, true).await;
                put(&mut model, page, &bytes);
            }
            4 => {
                let (bytes, how) = (noise(step, pages as usize), Writing { durably: true, is_direct: true });
                file.write_as(page, fs.parts(page, &bytes), how).await.unwrap();
                put(&mut model, page, &bytes);
                is_durable = true;
            }
            // Several at once, beside each other.
            5 => {
                let parts: Vec<(u64, Vec<u8>)> =
                    (0..6).map(|i| (i * (80 << 10), noise(step * 9 + i, 80 << 10))).collect();
                let mut writes = Vec::new();
                for (at, bytes) in parts.clone() {
                    let (fs, file) = (fs.clone(), file.clone());
                    let work = async move { write(&fs, &file, at, &bytes, step % 3 > 0).await };
                    writes.push(world::spawn(work));
                }
                join_all_bounded(6, writes).await;
                parts.iter().for_each(|(at, bytes)| put(&mut model, *at, bytes));
                // They may have come in any order.
                file.sync().await.unwrap();
                is_durable = true;
            }
            6 | 7 => {
                let bytes = vec![step as u8; len as usize];
                write(&fs, &file, offset, &bytes, false).await;
                put(&mut model, offset, &bytes);
            }
            8 => {
                file.truncate(offset).await.unwrap();
                model.resize(offset as usize, 0);
            }
            9 => {
                file.punch_hole(offset, len).await.unwrap();
                let end = model.len().min((offset + len) as usize);
                model[end.min(offset as usize)..end].fill(0);
            }
            10 => {
                pool.sync().await.unwrap();
                is_durable = true;
            }
            11 => {
                file.sync().await.unwrap();
                is_durable = true;
            }
            12 if step % 3 == 0 => {
                let name = format!("{NAME}@s{step}");
                pool.snapshot(vec![name.clone()], Vec::new()).await.unwrap();
                told.lock().unwrap().snapshots.push((name, model.clone()));
                is_durable = true;
            }
            // One after the other: they are written behind.
            13 => {
                for piece in 0..2 + rng.below(6) {
                    let (at, bytes) = (page + piece * (64 << 10), noise(step * 9 + piece, 64 << 10));
                    write(&fs, &file, at, &bytes, false).await;
                    put(&mut model, at, &bytes);
                    told.lock().unwrap().is_now(&model, false);
                    if rng.below(4) == 0 {
                        file.sync().await.unwrap();
                        told.lock().unwrap().is_now(&model, true);
                    }
                }
                is_durable = false;
            }
            _ => world::sleep(std::time::Duration::from_millis(rng.below(900))).await,
        }
        told.lock().unwrap().is_now(&model, is_durable);
        let (data, _) = file.read_as(page, pages as usize, rng.below(2) == 0).await.unwrap();
        let from = model.len().min(page as usize);
        let expected = &model[from..model.len().min((page + pages) as usize)];
        assert!(data[..] == *expected, "seed {seed} step {step}: {page} and {pages} bytes");
        if step % 10 == 0 {
            assert!(file.read(0, 2 << 20).await.unwrap()[..] == model[..], "seed {seed} step {step}");
        }
    }
}

/// An fsync of a large file finds most of it on the devices.
#[test]
fn a_file_that_is_written_in_order_is_written_behind() {
    for behind in [true, false] {
        let rig = Rig::new(Layout::Stripe, 1, 256 << 20);
        let own = rig.clone();
        rig.run(3, async move {
            let pool = own.create().await;
            let fs = make(&pool).await;
            let file = add(&fs, "f").await;
            if !behind {
                pool.0.tunables.set(Tunable::WriteBehindMin, 1 << 50).unwrap();
            }
            pool.sync().await.unwrap();
            let (before, mut all) = (device_writes(&pool), Vec::new());
            for step in 0..64 {
                let bytes = noise(step, 4 * RECORD as usize);
                write(&fs, &file, all.len() as u64, &bytes, false).await;
                all.extend(bytes);
                world::sleep(std::time::Duration::from_millis(2)).await;
            }
            let written = device_writes(&pool) - before;
            let len = all.len() as u64;
            assert_eq!(written >= len - (4 << 20), behind, "{written} of {len} bytes");
            file.sync().await.unwrap();
            pool.sync().await.unwrap();
            let in_all = device_writes(&pool) - before;
            assert!(in_all < len + len / 4, "each block is written once: {in_all} of {len} bytes");
            assert!(file.read(0, all.len()).await.unwrap()[..] == all[..]);
            super::verify(&pool).await;
            drop((file, fs));
            pool.export().await.unwrap();
        });
    }
}

/// A device that has few writes at once, as suits a txg with time, does not keep up with a client.
#[test]
fn devices_have_more_at_once_of_what_comes_faster_than_it_is_written_behind() {
    for (pieces, is_hastened) in [(16, false), (80, true)] {
        let rig = Rig::new(Layout::Stripe, 1, 256 << 20);
        let own = rig.clone();
        rig.run(5, async move {
            let pool = own.create().await;
            let fs = make(&pool).await;
            let file = add(&fs, "f").await;
            pool.sync().await.unwrap();
            let mut most = 0;
            for step in 0..pieces {
                let bytes = noise(step, 4 * RECORD as usize);
                write(&fs, &file, step * 4 * RECORD, &bytes, false).await;
                let active = |leaf: &Arc<vdev::Leaf>| leaf.depths()[vdev::Priority::AsyncWrite.index()].1;
                world::sleep(std::time::Duration::from_micros(50)).await;
                most = most.max(pool.tree().leaves().iter().map(active).max().unwrap_or(0));
            }
            assert_eq!(most > 2, is_hastened, "{most} at once, of {pieces} pieces");
            drop((file, fs));
            pool.export().await.unwrap();
        });
    }
}

/// `DIRECT_SEED` begins there, `DIRECT_SEEDS` says how many.
#[allow(clippy::disallowed_methods)] // it says which runs, nothing of the engine
fn given(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

#[test]
fn what_was_written_past_the_cache_and_through_it_is_what_a_model_has_after_a_power_cut() {
    let (first, count) = (given("DIRECT_SEED", 1), given("DIRECT_SEEDS", 12));
    for seed in first..first + count {
        let layout = [Layout::Stripe, Layout::Mirror, Layout::Raidz { parity: 1 }][seed as usize % 3];
        let rig = Rig::new(layout, 1 + seed as usize % 3, 96 << 20);
        let (own, told) = (rig.clone(), Arc::<Mutex<Told>>::default());
        let tell = told.clone();
        rig.run(seed, async move {
            let pool = own.create().await;
            let fs = make(&pool).await;
            set(&pool, Prop::RecordSize, (16 << 10) << (seed % 4)).await;
            set(&pool, Prop::Direct, 1 + seed % 2).await;
            set(&pool, Prop::Sync, u64::from(seed % 5 == 4)).await;
            pool.0.tunables.set(Tunable::WriteBehindMin, 0).unwrap();
            work(pool, fs, seed, tell).await;
        });
        rig.disks.power_cut(seed);
        let (own, told) = (rig.clone(), std::mem::take(&mut *told.lock().unwrap()));
        rig.run(seed + 1000, async move {
            let pool = own.open(false).await.unwrap();
            assert_eq!(pool.problems(), Vec::<String>::new(), "seed {seed}");
            let content = async |name: &str| {
                let fs = pool.open_file_system(name).await.unwrap();
                fs.resolve(b"f", false).await.unwrap().read(0, 2 << 20).await.unwrap().to_vec()
            };
            let found = content(NAME).await;
            let known = told.states.contains(&found);
            assert!(known, "seed {seed}: {} bytes, none of {} states", found.len(), told.states.len());
            for (name, state) in &told.snapshots {
                assert!(content(name).await == *state, "seed {seed}: {name}");
            }
            super::verify(&pool).await;
            pool.export().await.unwrap();
        });
    }
}
