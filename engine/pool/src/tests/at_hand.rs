//! What a core has at hand of the cache is what was written last, whatever else happens.

use super::{BLOCK, Rig, VOLUME, fill, make_volume, noise};
use dsl::DestroySpec;
use sim::Rng;
use vdev::Layout;
use world::Buf;
use zvol::{Begun, Piece, Volume};

const SIZE: u64 = 4 << 20;

fn bytes(pieces: Vec<Piece>) -> Vec<u8> {
    pieces.into_iter().flat_map(|piece| piece.into_buf().to_vec()).collect()
}

#[test]
fn what_was_read_twice_is_found_without_its_tree_until_a_txg_changes_the_volume() {
    let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        let cache = std::sync::Arc::new(arc::Cache::new(64 << 20));
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE).await;
        fill(&pool, VOLUME, 5).await;
        pool.export().await.unwrap();
        let pool = own.open_with(cache.clone(), Default::default()).await;
        let volume = pool.open_volume(VOLUME).await.unwrap();
        let read = async |volume: &Volume| {
            let before = cache.stats();
            for blkid in 0..SIZE / BLOCK {
                let read = volume.read(blkid * BLOCK + 512, 1024).await.unwrap();
                assert_eq!(&read[0][..], &noise(5, SIZE as usize)[(blkid * BLOCK) as usize + 512..][..1024]);
            }
            let after = cache.stats();
            let of_pointers = after.metadata.demand_hits - before.metadata.demand_hits;
            (after.at_hand - before.at_hand, of_pointers)
        };
        for _ in 0..2 {
            read(&volume).await;
        }
        assert_eq!(read(&volume).await, (SIZE / BLOCK, 0));
        volume.write(0, Buf::copy_from(&noise(5, SIZE as usize)[..512])).await.unwrap();
        // By their pointers as long as the txg is open.
        assert!(read(&volume).await.1 > 0);
        pool.sync().await.unwrap();
        for _ in 0..2 {
            read(&volume).await;
        }
        assert_eq!(read(&volume).await, (SIZE / BLOCK, 0));
        pool.export().await.unwrap();
    });
}

#[test]
fn reads_at_random_beside_all_that_changes_a_volume_return_what_was_written_last() {
    for seed in 0..5 {
        let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
        let own = rig.clone();
        rig.run(seed, async move {
            let cache = std::sync::Arc::new(arc::Cache::new([2 << 20, 6 << 20, 64 << 20][seed as usize % 3]));
            let pool = own.create().await;
            make_volume(&pool, VOLUME, SIZE).await;
            fill(&pool, VOLUME, seed).await;
            pool.export().await.unwrap();
            let mut pool = own.open_with(cache.clone(), Default::default()).await;
            let mut volume = pool.open_volume(VOLUME).await.unwrap();
            let mut expected = noise(seed, SIZE as usize);
            let mut kept = expected.clone();
            let mut rng = Rng::new(seed);
            for step in 0..2_500 {
                let longest = if rng.below(8) == 0 { 200 } else { 16 };
                let len = 512 * (1 + rng.below(longest));
                let at = (rng.below(SIZE / 512) * 512).min(SIZE - len);
                let range = at as usize..(at + len) as usize;
                match rng.below(400) {
                    0..60 => {
                        let data = noise(rng.next_u64(), len as usize);
                        volume.write(at, Buf::copy_from(&data)).await.unwrap();
                        expected[range].copy_from_slice(&data);
                    }
                    60..66 => {
                        // Only whole blocks become holes.
                        let blocks = at.next_multiple_of(BLOCK)..(at + len) / BLOCK * BLOCK;
                        if !blocks.is_empty() {
                            volume.trim(blocks.start, blocks.end - blocks.start).await.unwrap();
                            expected[blocks.start as usize..blocks.end as usize].fill(0);
                        }
                    }
                    66..74 => pool.sync().await.unwrap(),
                    74 => {
                        let name = format!("{VOLUME}@s");
                        let spec = DestroySpec { names: vec![name.clone()], ..DestroySpec::default() };
                        let _ = pool.destroy_datasets(spec).await;
                        pool.snapshot(vec![name], Vec::new()).await.unwrap();
                        kept = expected.clone();
                    }
                    75 => cache.clear(),
                    76 if rng.below(4) == 0 => {
                        drop(volume);
                        pool.export().await.unwrap();
                        pool = own.open_with(cache.clone(), Default::default()).await;
                        volume = pool.open_volume(VOLUME).await.unwrap();
                    }
                    77..160 => {
                        if let Begun::Done(found) = volume.begin_read(at, len) {
                            assert!(bytes(found.unwrap()) == expected[range], "seed {seed}, step {step}");
                        }
                    }
                    160..170 => {
                        if let Ok(of_then) = pool.open_volume(&format!("{VOLUME}@s")).await {
                            let found = bytes(of_then.pieces(at, len).await.unwrap());
                            assert!(found == kept[range], "seed {seed}, step {step}");
                        }
                    }
                    _ => {
                        let found = bytes(volume.pieces(at, len).await.unwrap());
                        assert!(found == expected[range], "seed {seed}, step {step}");
                    }
                }
            }
            assert!(cache.stats().at_hand > 100, "{:?}", cache.stats());
            drop(volume);
            pool.export().await.unwrap();
        });
    }
}
