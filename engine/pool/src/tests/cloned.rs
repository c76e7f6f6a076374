//! Intent logs that say that blocks were cloned into a volume. Nothing here writes such records, so they are made by hand.

use super::{BLOCK, Rig, VOLUME, fill, make_volume, noise, read_all, verify};
use crate::Pool;
use codec::checksum::sealed;
use ondisk::zil::CloneRange;
use ondisk::{BlockPointer, LogRecord, Plain, Record, Trailer, Writer, ZilChain};
use units::{Checksum, Endian, Kind, Result, Txg};
use vdev::Layout;
use world::Buf;
use zio::{Bookmark, LogStore};
use zvol::DATA;

const OTHER: &str = "tank/w";
const SIZE: u64 = 16 * BLOCK;
/// Of a log block.
const LEN: usize = 8 << 10;

/// The pointers to the first `n` blocks of a volume as they are on disk.
async fn pointers(pool: &Pool, name: &str, n: u64) -> Vec<BlockPointer> {
    let dataset = pool.dsl().open_by_name(name).await.unwrap();
    let set = dataset.objset();
    let mut found = Vec::new();
    for blkid in 0..n {
        let at = Bookmark { objset: set.id(), object: DATA, level: 0, blkid };
        found.push(dmu::locate(set.store(), &set.root(), at).await.unwrap());
    }
    found
}

/// Gives a volume that was never opened a log of this one record.
async fn put_log(pool: &Pool, name: &str, record: Record<'_>) {
    let dataset = pool.dsl().open_by_name(name).await.unwrap();
    let set = dataset.objset();
    let tx = pool.txgs().begin_unthrottled();
    let (store, words) = (pool.pipeline(), |number| [7, 9, set.id().0, number]);
    let mut places: Vec<Plain> = Vec::new();
    for number in 1..=2 {
        let place = store.allocate_log(LEN as u64, tx.txg()).await.unwrap();
        places.push(Plain { checksum: words(number), ..place });
    }
    let [first, second] = <[Plain; 2]>::try_from(places).unwrap();
    // It is younger than every txg that will be on disk.
    let record = LogRecord { txg: Txg(tx.txg().0 + 100), seq: 1, ignores_case: false, record };
    let mut block = vec![0; LEN];
    let used = (ZilChain::SIZE + record.length()) as u64;
    let mut w = Writer::native(&mut block);
    ZilChain { next: BlockPointer::Plain(second), used, trailer: Trailer::new(first.checksum) }
        .encode(&mut w);
    record.encode(&mut w);
    sealed::seal(Checksum::Zilog2, Endian::NATIVE, &mut block, first.checksum, None);
    store.write_log(&first, Buf::copy_from(&block), true).await.unwrap();
    store.flush_all().await.unwrap();
    set.update_phys(&tx, |phys| phys.zil_header.log = BlockPointer::Plain(first));
    tx.dirtied(1);
    drop(tx);
    pool.sync().await.unwrap();
}

fn clone_of(pointers: Vec<BlockPointer>, to: u64) -> Record<'static> {
    let length = pointers.len() as u64 * BLOCK;
    Record::CloneRange(CloneRange { object: DATA, offset: to * BLOCK, length, block_size: BLOCK, pointers })
}

/// Two volumes; `work` is done to the pool, then the power goes, and the pool is opened.
fn after_a_cut<W: Future<Output = ()> + Send, T: Future<Output = ()> + Send>(
    work: impl FnOnce(Pool) -> W + Send + 'static,
    then: impl FnOnce(Result<Pool>) -> T + Send + 'static,
) {
    let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
    let disks = rig.disks.clone();
    let own = rig.clone();
    rig.run(1, async move {
        let pool = own.create().await;
        for name in [VOLUME, OTHER] {
            make_volume(&pool, name, SIZE).await;
        }
        fill(&pool, VOLUME, 5).await;
        pool.export().await.unwrap();
    });
    let own = rig.clone();
    rig.run(2, async move { work(own.open(false).await.unwrap()).await });
    disks.power_cut(3);
    let own = rig.clone();
    rig.run(4, async move { then(own.open(false).await).await });
}

#[test]
fn blocks_cloned_into_a_volume_are_copied_as_they_were_though_their_owner_has_others_since() {
    let first = noise(5, SIZE as usize);
    after_a_cut(
        |pool: Pool| async move {
            let mut cloned = pointers(&pool, VOLUME, 3).await;
            cloned.push(BlockPointer::HOLE);
            put_log(&pool, OTHER, clone_of(cloned, 7)).await;
            // Its log is replayed as well, and frees two of the blocks.
            let volume = pool.open_volume(VOLUME).await.unwrap();
            volume.write_durable(9 * BLOCK, Buf::copy_from(&[1; 512])).await.unwrap();
            volume.write_durable(0, Buf::copy_from(&noise(9, 2 * BLOCK as usize))).await.unwrap();
        },
        |pool: Result<Pool>| async move {
            let pool = pool.unwrap();
            let block = |n: u64| (n * BLOCK) as usize;
            let found = read_all(&pool, OTHER).await.unwrap();
            assert!(found[block(7)..block(10)] == first[..block(3)], "the blocks as they were");
            assert!(found[..block(7)].iter().chain(&found[block(10)..]).all(|b| *b == 0));
            let found = read_all(&pool, VOLUME).await.unwrap();
            assert!(
                found[..block(2)] == noise(9, block(2))
                    && found[block(2)..block(9)] == first[block(2)..block(9)]
            );
            assert_eq!(pool.problems(), Vec::<String>::new());
            verify(&pool).await;
            pool.export().await.unwrap();
        },
    );
}

#[test]
fn logs_that_clone_from_each_other_are_left_to_those_who_count_references() {
    after_a_cut(
        |pool: Pool| async move {
            let cloned = pointers(&pool, VOLUME, 2).await;
            for name in [OTHER, VOLUME] {
                put_log(&pool, name, clone_of(cloned.clone(), 8)).await;
            }
        },
        |pool: Result<Pool>| async move {
            let refused = pool.unwrap_err();
            assert_eq!(refused.kind(), Kind::Unsupported);
            let told = refused.to_string();
            assert!(
                told.contains("'tank/v'") && told.contains("'tank/w'") && told.contains("readonly"),
                "{told}"
            );
        },
    );
}

#[test]
fn a_clone_that_cannot_be_meant_is_no_reason_to_lose_the_rest() {
    after_a_cut(
        |pool: Pool| async move {
            let cloned = pointers(&pool, VOLUME, 2).await;
            // Three blocks of which two are named.
            let Record::CloneRange(clone) = clone_of(cloned, 7) else { panic!("it is one") };
            let wrong = CloneRange { length: 3 * BLOCK, ..clone };
            put_log(&pool, OTHER, Record::CloneRange(wrong)).await;
        },
        |pool: Result<Pool>| async move {
            let refused = pool.unwrap_err();
            assert_eq!(refused.kind(), Kind::Unsupported, "{refused}");
            assert!(refused.to_string().contains("2 cloned blocks"), "{refused}");
        },
    );
}
