//! What frees much is divided: it takes many txgs, and a power cut in the middle leaves a pool in which the rest is freed
//! later, or was never to be.

use super::{Rig, make_volume, verify};
use crate::{Content, Pool};
use dsl::props::{Limits, Types, When, parse_setting};
use sim::{Config, run_until_cut};
use std::sync::Arc;
use tunables::{Tunable, Tunables};
use vdev::Layout;
use world::Buf;
use zpl::{FileKind, FileSystem, NewFile, Node};

const SET: &str = "tank/fs";
const VOLUME: &str = "tank/v";
const RECORD: usize = 4096;
/// One block is written in each part, and each part has a level-1 block of its own.
const PART: u64 = 4 << 20;
const PARTS: u64 = 40;
/// A level-1 block has 128 KiB, and so much of them may be emptied at once: three are one too many.
const AT_ONCE: u64 = (1 << 20) / 100 * 30;
/// With another for the one that began before it was too many.
const IN_A_TXG: u64 = AT_ONCE / (128 << 10) + 1;

fn tight() -> Arc<Tunables> {
    let tunables = Tunables::new();
    tunables.set(Tunable::DirtyDataMax, 1 << 20).unwrap();
    tunables
}

async fn written(fs: &FileSystem, name: &[u8]) -> Node {
    let root = fs.root().await.unwrap();
    let file = root.create(name, &NewFile::new(FileKind::Regular, 0o644)).await.unwrap();
    for part in 0..PARTS {
        file.write(part * PART, &[part as u8 + 1; RECORD]).await.unwrap();
    }
    file
}

/// A pool with a file and a volume, synced; what each of them has in its parts is not zero.
async fn make(rig: &Rig) -> Pool {
    rig.create().await.export().await.unwrap();
    let pool = rig.open_tuned(false, tight()).await.unwrap();
    let limits = Limits::default();
    let record = parse_setting("recordsize", "4K", Types::FILESYSTEM, When::Create, &limits).unwrap();
    pool.create_dataset(SET, Content::FileSystem(Default::default()), vec![record]).await.unwrap();
    make_volume(&pool, VOLUME, PARTS * PART * 2).await;
    let fs = pool.open_file_system_for_writing(SET).await.unwrap();
    written(&fs, b"big").await.release().await.unwrap();
    written(&fs, b"cut").await.release().await.unwrap();
    let volume = pool.open_volume(VOLUME).await.unwrap();
    for part in 0..PARTS {
        volume.write(part * PART * 2, Buf::copy_from(&[part as u8 + 1; 8192])).await.unwrap();
    }
    pool.sync().await.unwrap();
    pool
}

async fn free_all(pool: &Pool) {
    let fs = pool.open_file_system_for_writing(SET).await.unwrap();
    let root = fs.root().await.unwrap();
    root.unlink(b"big").await.unwrap();
    root.lookup(b"cut").await.unwrap().truncate(PART).await.unwrap();
    let volume = pool.open_volume(VOLUME).await.unwrap();
    volume.trim(0, volume.size()).await.unwrap();
}

/// Which parts are there, from the first on.
async fn parts_of(file: &Node) -> Vec<bool> {
    let mut found = Vec::new();
    for part in 0..PARTS {
        let data = file.read(part * PART, RECORD).await.unwrap();
        found.push(data.first().is_some_and(|byte| *byte == part as u8 + 1));
    }
    found
}

#[test]
fn what_frees_much_takes_many_txgs_and_gives_all_of_it_back() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        let pool = make(&own).await;
        let before = pool.txgs().open_txg();
        free_all(&pool).await;
        let took = pool.txgs().open_txg().0 - before.0;
        assert!(took >= 3 * PARTS / IN_A_TXG - 3, "{took} txgs for {PARTS} level-1 blocks of three");
        pool.sync().await.unwrap();
        let fs = pool.open_file_system_for_writing(SET).await.unwrap();
        let cut = fs.root().await.unwrap().lookup(b"cut").await.unwrap();
        assert_eq!(cut.stat().await.unwrap().size, PART);
        assert!(cut.object().used() < 20 * RECORD as u64, "{}", cut.object().used());
        let volume = pool.open_volume(VOLUME).await.unwrap();
        assert!(volume.used() < 64 << 10, "{}", volume.used());
        verify(&pool).await;
    });
}

#[test]
fn a_power_cut_in_the_middle_of_what_frees_much_leaves_it_to_be_freed_or_as_it_was() {
    let (mut halves, mut drained) = (0, 0);
    for (n, writes) in (0..12).map(|n| (n, 60 + 170 * n)) {
        let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
        let own = rig.clone();
        let objects = rig.run(n, async move {
            let pool = make(&own).await;
            let fs = pool.open_file_system_for_writing(SET).await.unwrap();
            let objects = fs.object_set().objects();
            drop(fs);
            pool.export().await.unwrap();
            objects
        });
        let own = rig.clone();
        let outcome = run_until_cut(&rig.disks, n, Config::default(), async move {
            let pool = own.open_tuned(false, tight()).await.unwrap();
            own.disks.cut_at_write(writes);
            free_all(&pool).await;
            pool.sync().await.unwrap();
        });
        rig.disks.power_cut(n);
        let own = rig.clone();
        let (half, was_drained) = rig.run(n + 100, async move {
            let pool = own.open_tuned(false, tight()).await.unwrap();
            assert_eq!(pool.problems(), Vec::<String>::new());
            let fs = pool.open_file_system_for_writing(SET).await.unwrap();
            let root = fs.root().await.unwrap();
            let is_gone = match root.lookup(b"big").await {
                Ok(big) => {
                    assert!(parts_of(&big).await.into_iter().all(|is_there| is_there), "freed with its name");
                    false
                }
                Err(e) => {
                    assert_eq!(e.kind(), units::Kind::NotFound);
                    assert_eq!(fs.object_set().objects(), objects - 1, "it is freed");
                    true
                }
            };
            let cut = root.lookup(b"cut").await.unwrap();
            let parts = parts_of(&cut).await;
            assert!(parts[0], "what was to stay");
            let gone = parts.iter().filter(|is_there| !**is_there).count();
            verify(&pool).await;
            (gone > 0 && gone < PARTS as usize - 1, is_gone && outcome.is_none())
        });
        halves += usize::from(half);
        drained += usize::from(was_drained);
    }
    assert!(halves > 0, "some cut fell into the middle of a truncation");
    assert!(drained > 1, "some cut fell behind an unlink: {drained}");
}
