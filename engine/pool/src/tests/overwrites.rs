//! Part of a cached block is overwritten where the block is in memory, unless there are readers of what it was.

use super::{BLOCK, Rig, VOLUME, fill, make_volume, noise, read_all};
use vdev::Layout;
use world::Buf;

const SIZE: u64 = 1 << 20;

#[test]
fn part_of_a_cached_block_is_overwritten_in_place_and_readers_and_snapshots_keep_what_they_have() {
    let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE).await;
        fill(&pool, VOLUME, 5).await;
        pool.snapshot(vec![format!("{VOLUME}@s")], Vec::new()).await.unwrap();
        pool.sync().await.unwrap();
        let volume = pool.open_volume(VOLUME).await.unwrap();
        let (first, mut expected) = (noise(5, SIZE as usize), noise(5, SIZE as usize));
        for round in 0..3u8 {
            for blkid in [3, 7, 100] {
                let place = volume.read(blkid * BLOCK, BLOCK).await.unwrap()[0].as_ptr() as usize;
                let reader = match blkid == 7 {
                    true => volume.read(blkid * BLOCK, BLOCK).await.unwrap().pop(),
                    false => None,
                };
                let before = reader.as_ref().map(|reader| reader.to_vec());
                let at = blkid * BLOCK + 512 * u64::from(round);
                volume.write(at, Buf::copy_from(&[round + 1; 512])).await.unwrap();
                expected[at as usize..at as usize + 512].fill(round + 1);
                let now = volume.read(blkid * BLOCK, BLOCK).await.unwrap()[0].as_ptr() as usize;
                assert_eq!(now == place, reader.is_none(), "block {blkid}, round {round}");
                assert_eq!(reader.map(|reader| reader.to_vec()), before, "a reader's bytes stay");
            }
            pool.sync().await.unwrap();
        }
        assert!(read_all(&pool, VOLUME).await.unwrap() == expected);
        assert!(read_all(&pool, &format!("{VOLUME}@s")).await.unwrap() == first);
        pool.export().await.unwrap();
        let pool = own.open(true).await.unwrap();
        assert!(read_all(&pool, VOLUME).await.unwrap() == expected);
        assert!(read_all(&pool, &format!("{VOLUME}@s")).await.unwrap() == first);
    });
}
