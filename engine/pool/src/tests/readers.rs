//! A reader that comes between the passes of a sync, with a pointer of the pass before, is not told of damage.

use super::{Rig, noise, verify};
use ondisk::{BlockPointer, ObjectType};
use units::{Checksum, Compression, ObjectId, ObjsetId};
use vdev::Layout;
use world::Buf;
use zio::{BlockStore, Bookmark, ReadClass, WriteSpec, same_block};

#[test]
fn a_block_that_is_written_again_in_its_place_is_never_missed() {
    let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
    let own = rig.clone();
    rig.run(11, async move {
        let pool = own.create().await;
        let pipeline = pool.0.pipeline.clone();
        for objset in [ObjsetId::MOS, ObjsetId(54)] {
            let tx = pool.0.txgs.begin_unthrottled();
            let at = Bookmark { objset, object: ObjectId(3), level: 0, blkid: 9 };
            let write = async |seed: u64, old: &BlockPointer, pass: u32| {
                let spec = WriteSpec {
                    keep: true,
                    kind: ObjectType::DNODE,
                    level: 0,
                    compression: Compression::Off,
                    checksum: Checksum::Fletcher4,
                    copies: 3,
                    txg: tx.txg(),
                    pass,
                    fill: 1,
                    special_up_to: 0,
                    urgent: false,
                    at,
                };
                pipeline.write(Buf::copy_from(&noise(seed, 16 << 10)), old, spec).await.unwrap()
            };
            let read = async |bp: &BlockPointer| {
                // The cache may drop anything at any time.
                pipeline.cache().clear();
                pipeline.read(bp, at, ReadClass::Demand).await.unwrap()
            };
            let first = write(1, &BlockPointer::HOLE, 1).await;
            assert_eq!(read(&first).await[..], noise(1, 16 << 10));
            let second = write(2, &first, 2).await;
            let is_in_place = same_block(&first, &second);
            assert_eq!(is_in_place, objset == ObjsetId::MOS, "only the pool's own set needs it");
            let seen = if is_in_place { 2 } else { 1 };
            assert_eq!(read(&first).await[..], noise(seen, 16 << 10));
            assert_eq!(read(&second).await[..], noise(2, 16 << 10));
            pipeline.txg_synced(tx.txg());
            assert_eq!(read(&second).await[..], noise(2, 16 << 10));
            let third = write(3, &second, 2).await;
            assert!(!same_block(&second, &third), "its txg is over");
            pipeline.free(&second, tx.txg());
            pipeline.free(&third, tx.txg());
            if !is_in_place {
                pipeline.free(&first, tx.txg());
            }
            drop(tx);
            pool.sync().await.unwrap();
        }
        verify(&pool).await;
        pool.export().await.unwrap();
    });
}
