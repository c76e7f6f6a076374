//! A volume over blocks in memory, against an array of bytes.

use crate::{Begun, DATA, Extent, PROPERTIES, Piece, Replay, Volume, create};
use dmu::{Dirty, NoBlockAccounting, ObjSet, Policy, SyncCtx, Tx};
use ondisk::zil::{Truncate, Write};
use ondisk::{ObjsetType, Record};
use std::sync::Arc;
use tunables::Tunables;
use txg::Txgs;
use units::{Kind, ObjsetId, Txg};
use world::Buf;
use zil::Replayer;
use zio::MemStore;

const SIZE: u64 = 1 << 20;
const BLOCK: u64 = 4096;

/// A volume whose pool syncs by itself, in the simulator.
fn with_volume<F: Future<Output = ()> + Send + 'static>(
    test: impl FnOnce(Volume, ObjSet, Txgs) -> F + Send + 'static,
) {
    sim::run(7, sim::Config::default(), async move {
        let txgs = Txgs::new(Txg(9), &Tunables::default());
        let set =
            ObjSet::create(Arc::new(MemStore::new()), ObjsetId(54), ObjsetType::Zvol, Policy::mos(), Txg(10));
        create(&set, &Tx::syncing(Txg(10)), SIZE, BLOCK, 17).await.unwrap();
        let (syncing, owner) = (set.clone(), txgs.clone());
        let sync = world::spawn(async move {
            while let Some(txg) = owner.next_to_sync().await {
                let ctx = SyncCtx {
                    txg,
                    pass: 1,
                    block_accounting: Arc::new(NoBlockAccounting),
                    dirty: Dirty::default(),
                };
                syncing.sync(&ctx).await.unwrap();
                owner.done(txg);
            }
        });
        let volume = Volume::open("tank/vol", &set, Some(txgs.clone())).await.unwrap();
        test(volume, set, txgs.clone()).await;
        txgs.close();
        sync.await;
    });
}

async fn bytes(volume: &Volume, offset: u64, len: u64) -> Vec<u8> {
    volume.read(offset, len).await.unwrap().iter().flat_map(|b| b.to_vec()).collect()
}

/// The parts in which a front receives a write.
fn cut(offset: u64, data: &[u8]) -> Vec<Buf> {
    let first = ((BLOCK - offset % BLOCK) as usize).min(data.len());
    let rest = data[first..].chunks(BLOCK as usize);
    std::iter::once(&data[..first]).chain(rest).map(Buf::copy_from).collect()
}

#[test]
fn writes_trims_and_flushes_in_any_order_leave_what_an_array_of_bytes_would_hold() {
    with_volume(|volume, _, _| async move {
        let mut oracle = vec![0u8; SIZE as usize];
        for step in 0..800u64 {
            let offset = world::random_u64() % SIZE;
            let len = (world::random_u64() % 30_000 + 1).min(SIZE - offset);
            let range = offset as usize..(offset + len) as usize;
            match world::random_u64() % 8 {
                0..=3 => {
                    let byte = step as u8 | 1;
                    let data = vec![byte; len as usize];
                    let parts = if step % 2 == 0 { vec![Buf::copy_from(&data)] } else { cut(offset, &data) };
                    volume.write_parts(offset, parts, false).await.unwrap();
                    oracle[range].fill(byte);
                }
                4 => {
                    volume.zero(offset, len).await.unwrap();
                    oracle[range].fill(0);
                }
                5 => {
                    volume.trim(offset, len).await.unwrap();
                    let (first, end) = (offset.next_multiple_of(BLOCK), (offset + len) / BLOCK * BLOCK);
                    if first < end {
                        oracle[first as usize..end as usize].fill(0);
                    }
                }
                6 => volume.flush().await.unwrap(),
                _ => assert_eq!(bytes(&volume, offset, len).await, oracle[range], "step {step}"),
            }
        }
        assert_eq!(bytes(&volume, 0, SIZE).await, oracle);
    });
}

#[test]
fn writers_of_parts_of_one_block_do_not_lose_each_other() {
    with_volume(|volume, _, _| async move {
        for _ in 0..20 {
            let writers: Vec<_> = (0..8u64)
                .map(|i| {
                    let volume = volume.clone();
                    world::spawn(async move {
                        volume.write(i * 512, Buf::copy_from(&[i as u8 + 1; 512])).await.unwrap()
                    })
                })
                .collect();
            for writer in writers {
                writer.await;
            }
            let got = bytes(&volume, 0, BLOCK).await;
            assert!((0..8).all(|i| got[i * 512..(i + 1) * 512] == [i as u8 + 1; 512]));
            volume.flush().await.unwrap();
            volume.zero(0, BLOCK).await.unwrap();
        }
    });
}

fn shapes(pieces: Vec<Piece>) -> Vec<String> {
    let shape = |piece| match piece {
        Piece::Data(buf) => format!("data {}", buf.len()),
        Piece::Hole(len) => format!("hole {len}"),
    };
    pieces.into_iter().map(shape).collect()
}

#[test]
fn a_block_keeps_a_buffer_of_its_own_but_not_one_that_is_much_larger() {
    with_volume(|volume, _, _| async move {
        let own = Buf::copy_from(&[1; BLOCK as usize]);
        let large = Buf::copy_from(&[2; 16 * BLOCK as usize]);
        let slices = (0..16).map(|i| large.slice(i * BLOCK as usize..(i + 1) * BLOCK as usize));
        volume.write_parts(0, vec![own.clone()], false).await.unwrap();
        volume.write_parts(BLOCK, slices.collect(), false).await.unwrap();
        let read = volume.read(0, 17 * BLOCK).await.unwrap();
        assert_eq!(read[0].as_ptr(), own.as_ptr(), "not copied");
        assert!(read[1..].iter().all(|b| b.capacity() < 2 * BLOCK as usize), "its neighbours can go");
    });
}

#[test]
fn holes_are_mapped_and_a_volume_ends_where_it_ends() {
    with_volume(|volume, _, txgs| async move {
        volume.write(3 * BLOCK, Buf::copy_from(&[1; 2 * BLOCK as usize])).await.unwrap();
        for round in 0..2 {
            let map = volume.extents(0, SIZE, 10).await.unwrap();
            let expected = [(3 * BLOCK, true), (2 * BLOCK, false), (SIZE - 5 * BLOCK, true)];
            assert_eq!(map, expected.map(|(len, hole)| Extent { len, hole }), "round {round}");
            let expected = ["hole 11776", "data 4096", "data 4096", "hole 1028096"];
            assert_eq!(shapes(volume.pieces(512, SIZE - 512).await.unwrap()), expected, "round {round}");
            if let Begun::Done(pieces) = volume.begin_read(512, SIZE - 512) {
                assert_eq!(shapes(pieces.unwrap()), expected, "round {round}");
            }
            assert_eq!(shapes(volume.pieces(5 * BLOCK - 1, 2).await.unwrap()), ["data 1", "hole 1"]);
            volume.flush().await.unwrap();
        }
        assert_eq!(volume.write(SIZE - 1, Buf::copy_from(&[1; 2])).await.unwrap_err().kind(), Kind::Invalid);
        assert_eq!(volume.read(u64::MAX, 2).await.unwrap_err().kind(), Kind::Invalid);
        let tx = txgs.begin_unthrottled();
        assert_eq!(volume.resize(&tx, 1000).await.unwrap_err().kind(), Kind::Invalid);
        volume.resize(&tx, 4 * BLOCK).await.unwrap();
        volume.resize(&tx, SIZE).await.unwrap();
        drop(tx);
        assert_eq!(bytes(&volume, 3 * BLOCK, BLOCK).await, [1; BLOCK as usize]);
        assert_eq!(bytes(&volume, 4 * BLOCK, BLOCK).await, [0; BLOCK as usize], "what was cut off is gone");
    });
}

#[test]
fn records_beyond_the_end_of_a_volume_are_passed_over_and_those_of_other_objects_refused() {
    with_volume(|volume, set, txgs| async move {
        let replay = Replay::open(&set).await.unwrap();
        let tx = txgs.begin_unthrottled();
        let data = vec![7; 2 * BLOCK as usize];
        let write = |object, offset| Record::Write(Write::copied(object, offset, &data));
        replay.replay(&tx, &write(DATA, SIZE - BLOCK), None).await.unwrap();
        replay.replay(&tx, &write(DATA, SIZE + BLOCK), None).await.unwrap();
        let truncate = Record::Truncate(Truncate { object: DATA, offset: SIZE, length: BLOCK });
        replay.replay(&tx, &truncate, None).await.unwrap();
        for wrong in [write(DATA, u64::MAX - 5), write(PROPERTIES, 0)] {
            assert_eq!(replay.replay(&tx, &wrong, None).await.unwrap_err().kind(), Kind::Corrupt);
        }
        drop(tx);
        assert_eq!(bytes(&volume, SIZE - BLOCK, BLOCK).await, [7; BLOCK as usize]);
        assert_eq!(set.object(DATA).await.unwrap().attrs().max_blkid, SIZE / BLOCK - 1);
    });
}

/// The end of a hole at the end of a volume of 2^64 bytes has no number: reading there panicked.
#[test]
fn a_volume_larger_than_any_can_be_is_refused() {
    with_volume(|_, set, txgs| async move {
        let properties = zap::Zap::open(set.object(PROPERTIES).await.unwrap());
        for (size, is_volume) in [(1 << 62, true), (1 << 63, false), (u64::MAX, false)] {
            properties.update(&txgs.begin_unthrottled(), "size", size).await.unwrap();
            let opened = Volume::open("tank/vol", &set, None).await;
            assert_eq!(opened.as_ref().map(Volume::size).ok(), is_volume.then_some(size));
            if let Ok(volume) = opened {
                assert_eq!(bytes(&volume, size - 10, 10).await, [0; 10]);
            }
        }
    });
}
