//! Walks over trees at random: what is held is bounded, and what cannot be read ahead is as if it had not been tried.

use super::*;
use ondisk::{Dva, ObjectType, Plain};
use sim::{Config, Rng};
use std::time::Duration;
use tunables::{Tunable, Tunables};
use units::{Checksum, Compression, Endian, Error, Kind, Lsize, ObjectId, ObjsetId, Psize, Result, Txg};
use world::Pending;
use zio::{ReadAhead, WriteSpec};

/// Answers after a while, with the block's number; blocks whose number ends in 7 cannot be read.
struct Late {
    ahead: Arc<ReadAhead>,
    rng: Mutex<Rng>,
    reads: AtomicU64,
    /// Bytes that are being read, and the most that were.
    under_way: Arc<AtomicU64>,
    most: AtomicU64,
    /// Every block is in memory.
    is_warm: bool,
}

impl Late {
    fn new(seed: u64, (blocks, bytes): (u64, u64)) -> Late {
        let tunables = Tunables::new();
        tunables.set(Tunable::TraverseIndirectPrefetchLimit, blocks).unwrap();
        tunables.set(Tunable::TraverseBytesMax, bytes).unwrap();
        Late {
            ahead: Arc::new(ReadAhead::tuned(tunables)),
            rng: Mutex::new(Rng::new(seed)),
            reads: AtomicU64::new(0),
            under_way: Arc::default(),
            most: AtomicU64::new(0),
            is_warm: false,
        }
    }
}

impl BlockStore for Late {
    fn cached(&self, bp: &BlockPointer) -> Option<Buf> {
        self.is_warm.then(|| Buf::copy_from(&number_of(bp).to_le_bytes()))
    }

    fn read(&self, bp: &BlockPointer, _: Bookmark, class: ReadClass) -> Pending<Result<Buf>> {
        assert_eq!(class, ReadClass::Ahead);
        self.reads.fetch_add(1, Ordering::Relaxed);
        let late = Duration::from_micros(self.rng.lock().unwrap().below(100));
        let (number, bytes, under_way) = (number_of(bp), bp.lsize().0, self.under_way.clone());
        let now = under_way.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.most.fetch_max(now, Ordering::Relaxed);
        Box::pin(async move {
            world::sleep(late).await;
            under_way.fetch_sub(bytes, Ordering::Relaxed);
            match number % 10 == 7 {
                true => Err(Error::new(Kind::Io, "read")),
                false => Ok(Buf::copy_from(&number.to_le_bytes())),
            }
        })
    }

    fn ahead(&self) -> Arc<ReadAhead> {
        self.ahead.clone()
    }

    fn write(&self, _: Buf, _: &BlockPointer, _: WriteSpec) -> Pending<Result<BlockPointer>> {
        unreachable!("walks write nothing")
    }

    fn free(&self, _: &BlockPointer, _: Txg) {}

    fn charged(&self, _: &BlockPointer) -> u64 {
        0
    }

    fn charge_max(&self, _: u64, _: u8) -> u64 {
        0
    }
}

fn number_of(bp: &BlockPointer) -> u64 {
    bp.as_plain().unwrap().checksum[0]
}

fn block(level: i8, number: u64, lsize: u64) -> (BlockPointer, Bookmark) {
    let plain = Plain {
        dvas: [Dva::default(); 3],
        lsize: Lsize(lsize),
        psize: Psize(lsize),
        compression: Compression::Off,
        checksum_kind: Checksum::Fletcher4,
        kind: ObjectType::ZVOL,
        level: level as u8,
        birth: Txg(4),
        physical_birth: Txg(0),
        fill: 1,
        checksum: [number, 0, 0, 0],
        endian: Endian::NATIVE,
        dedup: false,
        rewritten: false,
        crypt: None,
    };
    (BlockPointer::Plain(plain), Bookmark { objset: ObjsetId(1), object: ObjectId(1), level, blkid: number })
}

/// Goes down a tree at random, and answers how many blocks were there when it came to them.
async fn go(ahead: &WalkAhead, rng: &mut Rng, level: i8, most: u64) -> u64 {
    let lsize = 512 << rng.below(5);
    let list: Vec<_> = (0..rng.below(40)).map(|_| block(level, rng.below(1 << 40), lsize)).collect();
    ahead.open(list.clone());
    let mut found = 0;
    for (bp, at) in list {
        // Some are passed by.
        if rng.below(8) == 0 {
            continue;
        }
        if let Some(buf) = ahead.take(at).await {
            assert_eq!(buf[..], number_of(&bp).to_le_bytes(), "no block answers for another");
            assert_ne!(number_of(&bp) % 10, 7);
            found += 1;
        }
        assert!(ahead.held.load(Ordering::Relaxed) <= most);
        world::sleep(Duration::from_micros(rng.below(20))).await;
        if level > 1 && rng.below(4) == 0 {
            found += Box::pin(go(ahead, rng, level - 1, most)).await;
        }
    }
    ahead.close();
    found
}

#[test]
fn what_is_ahead_of_a_walk_is_bounded_and_what_fails_is_as_if_it_had_not_been_read() {
    let mut all = 0;
    for seed in 0..64 {
        let (blocks, bytes) = (Rng::new(seed).below(20), 1 << (10 + seed % 8));
        all += sim::run(seed, Config::default(), async move {
            let store = Arc::new(Late::new(seed, (blocks, bytes)));
            let ahead = WalkAhead::new(store.clone(), ReadClass::Ahead);
            let found = go(&ahead, &mut Rng::new(seed), 4, bytes).await;
            let most = store.most.load(Ordering::Relaxed);
            assert!(most <= bytes && most <= 4 * blocks * (8 << 10), "{most} of {bytes}, {blocks} a list");
            // Broken off with what it was about to go through.
            ahead.open((0..40).map(|n| block(9, n, 512)));
            ahead.finish().await;
            world::sleep(Duration::from_millis(1)).await;
            assert_eq!((store.under_way.load(Ordering::Relaxed), ahead.held.load(Ordering::Relaxed)), (0, 0));
            assert!(blocks > 0 || store.reads.load(Ordering::Relaxed) == 0, "switched off");
            found
        });
    }
    assert!(all > 1000, "{all} blocks were there in time");
}

#[test]
fn a_list_within_others_finds_room_and_what_is_needed_last_waits() {
    sim::run(1, Config::default(), async {
        let store = Arc::new(Late::new(1, (1000, 64 << 10)));
        let ahead = WalkAhead::new(store.clone(), ReadClass::Ahead);
        let reads = || store.reads.load(Ordering::Relaxed);
        let list = |level: i8| (0..100).map(move |n| block(level, 10 * n, 1 << 10));
        let mut begun = Vec::new();
        for level in [3, 2, 1] {
            let before = reads();
            ahead.open(list(level));
            begun.push(reads() - before);
        }
        assert_eq!(begun, [32, 16, 8], "each has half of what is left");
        ahead.take(block(1, 0, 0).1).await.unwrap();
        assert_eq!(reads(), 57, "in place of the one that was taken");
        ahead.finish().await;
    });
}

#[test]
fn a_block_that_is_in_memory_costs_no_read_and_no_task() {
    sim::run(2, Config::default(), async {
        let store = Arc::new(Late { is_warm: true, ..Late::new(2, (8, 1 << 20)) });
        let ahead = WalkAhead::new(store.clone(), ReadClass::Ahead);
        ahead.open((0..100).map(|n| block(1, n, 1 << 10)));
        for n in 0..100 {
            assert_eq!(ahead.take(block(1, n, 0).1).await.unwrap()[..], n.to_le_bytes());
        }
        assert_eq!((store.reads.load(Ordering::Relaxed), ahead.held.load(Ordering::Relaxed)), (0, 0));
    });
}
