//! Reads that meet something bad: which reader gets what, and what is written again.

use super::{Rig, VOLUME, fill, make_volume, noise, read_all, verify};
use crate::Pool;
use ondisk::BlockPointer;
use std::sync::Arc;
use std::time::Duration;
use units::ObjectId;
use vdev::Layout;
use zio::{BlockStore, Bookmark, ReadClass};

const SIZE: usize = 2 << 20;
/// Addresses of blocks begin behind the first two labels and the boot area.
const DATA: u64 = 4 << 20;

/// The block of the volume, and its name.
pub(super) async fn block(pool: &Pool, blkid: u64) -> (Bookmark, BlockPointer) {
    let dataset = pool.dsl().open_by_name(VOLUME).await.unwrap();
    let at = Bookmark { objset: dataset.objset().id(), object: ObjectId(1), level: 0, blkid };
    let store: Arc<dyn BlockStore> = Arc::new(pool.pipeline().clone());
    let bp = dmu::locate(&store, &dataset.objset().root(), at).await.unwrap();
    pool.dsl().close_dataset(dataset.id());
    (at, bp)
}

pub(super) fn place(bp: &BlockPointer) -> u64 {
    DATA + bp.dvas()[0].offset.bytes()
}

/// A scrub walks trees that are as old as it is. What it met where a block had been that was freed since counted as a
/// checksum error of each device of a mirror, while data and devices were good.
#[test]
fn a_walk_blames_no_device_for_a_block_that_was_freed_and_a_scrub_blames_for_one_in_use() {
    let rig = Rig::new(Layout::Mirror, 2, 64 << 20);
    let own = rig.clone();
    rig.run(4, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE as u64).await;
        fill(&pool, VOLUME, 1).await;
        let (at, old) = block(&pool, 5).await;
        let there = || own.disks.get(own.path(0)).unwrap().peek(place(&old), old.psize().0 as usize);
        let (before, mut seed) = (there(), 1);
        while there() == before {
            seed += 1;
            assert!(seed < 200, "the place is used again some day");
            fill(&pool, VOLUME, seed).await;
            pool.sync().await.unwrap();
        }
        let errors = || pool.tree().leaves().iter().map(|leaf| leaf.errors().checksum).collect::<Vec<_>>();
        assert!(pool.pipeline().check_block(&old, at).await.is_err());
        assert!(pool.pipeline().read(&old, at, ReadClass::Walk).await.is_err());
        assert_eq!(errors(), [0, 0], "the place is another block's");

        let (_, now) = block(&pool, 5).await;
        own.disks.get(own.path(1)).unwrap().poke(place(&now), &[7; 512]);
        pool.scrub().await.unwrap();
        pool.scrub_wait().await;
        assert_eq!(errors(), [0, 1]);
        let scan = pool.scan_status().unwrap();
        assert!(scan.repaired > 0 && scan.errors == 0, "{scan:?}");
        assert!(read_all(&pool, VOLUME).await.unwrap() == noise(seed, SIZE));
        pool.export().await.unwrap();
    });
}

/// A reader that holds an old tree meets a bad copy of a block that was freed since, and finds a good one: the place is
/// another block's by now, and what that block has there must not be replaced.
/// It was, when reads repaired what they met at once: here with a disk that forgot a write, so that the only copy of the
/// new block was lost.
#[test]
fn a_reader_with_an_old_pointer_destroys_nothing() {
    let rig = Rig::new(Layout::Mirror, 2, 64 << 20);
    let own = rig.clone();
    let (old, before, reused, last) = rig.run(1, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE as u64).await;
        fill(&pool, VOLUME, 1).await;
        let (at, old) = block(&pool, 5).await;
        let len = old.psize().0 as usize;
        let before = own.disks.get(own.path(1)).unwrap().peek(place(&old), len);

        let mut last = 1;
        let reused = loop {
            last += 1;
            assert!(last < 200, "the place is used again some day");
            fill(&pool, VOLUME, last).await;
            pool.sync().await.unwrap();
            let now = own.disks.get(own.path(1)).unwrap().peek(place(&old), len);
            if now != before {
                break now;
            }
        };
        assert!(
            noise(last, SIZE).windows(64).any(|w| w == &reused[..64]),
            "by a block of the volume as it is"
        );

        // The second disk forgot the new block; the first has the only copy. To the reader it seems the bad one.
        own.disks.get(own.path(1)).unwrap().poke(place(&old), &before);
        pool.pipeline().read_raw(&old, at).await.unwrap();
        world::sleep(Duration::from_secs(60)).await;
        let first = own.disks.get(own.path(0)).unwrap();
        assert!(first.peek(place(&old), len) == reused, "the new block is as it was");
        pool.export().await.unwrap();
        (old, before, reused, last)
    });
    let own = rig.clone();
    rig.run(2, async move {
        let pool = own.open(false).await.unwrap();
        let (first, len) = (own.disks.get(own.path(0)).unwrap(), reused.len());
        assert!(read_all(&pool, VOLUME).await.unwrap() == noise(last, SIZE));
        verify(&pool).await;

        // What it takes to be destroyed: the same read, repairing at once.
        first.poke(place(&old), &reused);
        own.disks.get(own.path(1)).unwrap().poke(place(&old), &before);
        let top = pool.tree().top(old.dvas()[0].vdev).unwrap();
        let is_old: vdev::Verify = Arc::new(move |bytes: &[u8]| bytes == before);
        top.read_with(old.dvas()[0].offset.bytes(), len, is_old, &vdev::Care::repair()).await.unwrap();
        assert!(first.peek(place(&old), len) != reused, "a repair without asking destroys it");
        pool.close().await.unwrap();
    });
}

#[test]
fn what_a_read_finds_bad_is_repaired_soon_after_and_counted() {
    for rig in Rig::all().into_iter().filter(|r| r.redundancy() > 0) {
        let own = rig.clone();
        rig.run(1, async move {
            let pool = own.create().await;
            make_volume(&pool, VOLUME, SIZE as u64).await;
            fill(&pool, VOLUME, 1).await;
            pool.export().await.unwrap();
        });
        rig.spoil(0, 4 << 20, 40 << 20, 3);
        let own = rig.clone();
        rig.run(2, async move {
            let pool = own.open(false).await.unwrap();
            assert!(read_all(&pool, VOLUME).await.unwrap() == noise(1, SIZE), "served at once");
            assert!(pool.report().vdevs.children[0].children[0].errors.checksum > 0);
            world::sleep(Duration::from_secs(60)).await;
            let healed = pool.report().vdevs.children[0].children[0].stats.healed;
            assert!(healed >= 64 << 10, "only {healed} bytes are repaired");
            pool.export().await.unwrap();
        });
        let own = rig.clone();
        rig.run(3, async move {
            let pool = own.open(true).await.unwrap();
            assert!(read_all(&pool, VOLUME).await.unwrap() == noise(1, SIZE));
            let errors = pool.report().vdevs.children[0].children[0].errors;
            // A mirror may choose the other device this time, and meet what it did not before.
            assert!(errors.checksum == 0 || own.width() == 1, "{errors:?}");
        });
    }
}

/// `copies=2` on one device: a damaged copy is served from the other, and written again.
#[test]
fn a_damaged_copy_is_healed_by_the_other_one_on_the_same_device() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(4, async move {
        let pool = own.create().await;
        let setting = |name, value| {
            let types = dsl::props::Types::FILESYSTEM;
            dsl::props::parse_setting(name, value, types, dsl::props::When::Create, &Default::default())
                .unwrap()
        };
        let mut places = Vec::new();
        for copies in ["1", "2", "3"] {
            let name = format!("tank/of{copies}");
            let props = vec![setting("copies", copies)];
            pool.create_dataset(&name, crate::Content::FileSystem(Default::default()), props).await.unwrap();
            let fs = pool.open_file_system_for_writing(&name).await.unwrap();
            let new = zpl::NewFile::new(zpl::FileKind::Regular, 0o644);
            let file = fs.root().await.unwrap().create(b"f", &new).await.unwrap();
            file.write(0, &noise(3, 400_000)).await.unwrap();
            pool.sync().await.unwrap();
            let set = fs.object_set();
            let store: Arc<dyn BlockStore> = Arc::new(pool.pipeline().clone());
            let mut at = Bookmark { objset: set.id(), object: file.id().object, level: 0, blkid: 1 };
            let bp = dmu::locate(&store, &set.root(), at).await.unwrap();
            assert_eq!(bp.dvas().len().to_string(), copies);
            (at.level, at.blkid) = (1, 0);
            let above = dmu::locate(&store, &set.root(), at).await.unwrap();
            assert_eq!(above.dvas().len(), (bp.dvas().len() + 1).min(3), "metadata has one more");
            places.push((name, bp));
        }
        pool.export().await.unwrap();
        drop(pool);
        let disk = own.disks.get(own.path(0)).unwrap();
        for (_, bp) in &places[1..] {
            disk.poke(place(bp), &noise(9, bp.psize().0 as usize));
        }
        let pool = own.open(false).await.unwrap();
        for (name, bp) in &places[1..] {
            let file = pool.open_file_system(name).await.unwrap().resolve(b"f", false).await.unwrap();
            assert!(file.read(0, 400_000).await.unwrap()[..] == noise(3, 400_000)[..], "{name}");
            world::sleep(Duration::from_secs(60)).await;
            let (len, second) = (bp.psize().0 as usize, DATA + bp.dvas()[1].offset.bytes());
            assert!(disk.peek(place(bp), len) == disk.peek(second, len), "{name} is healed");
        }
        verify(&pool).await;
        pool.export().await.unwrap();
    });
}
