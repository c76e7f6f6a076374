//! A client beside the writing of a txg, on a device that serves one request after the other: 60 MiB/s, in simulated time.
//! And what is read together, into memory of its own for each.

use super::*;
use sim::{Disks, Model};
use std::path::Path;
use std::time::Duration;
use world::OpenMode;

const DEVICE: &str = "/d/0";
const DISK: Model = Model { channels: 1, per_mib: Duration::from_micros(16_667), ..Model::SSD };
const BLOCK: u64 = 16 << 10;
const REQUESTS: u32 = 5_000;
/// 500 a second.
const EVERY: Duration = Duration::from_millis(2);
/// Far from where it is read.
const WRITTEN_AT: u64 = 1 << 30;

fn shape(class: Priority, direction: Direction, offset: u64, len: u64) -> Shape {
    Shape { class, direction, offset, len }
}

/// How long requests of one block took that a client waited for, sorted, and how many bytes were written beside them.
fn beside(class: Priority, writers: u64) -> (Vec<Duration>, u64) {
    let disks = Disks::new();
    disks.add(DEVICE, 8 << 30, DISK);
    sim::run_with(&disks, 1, sim::Config::default(), async move {
        let disk = world::open(Path::new(DEVICE), OpenMode::ReadWrite).unwrap();
        let queue = Queue::new(&Tunables::default(), false);
        let written = Arc::new(AtomicU64::new(0));
        for writer in 0..writers {
            let (queue, disk, written) = (queue.clone(), disk.clone(), written.clone());
            drop(world::spawn(async move {
                // Blocks of all writers lie side by side, as the allocator puts those of one txg.
                for turn in 0.. {
                    let offset = WRITTEN_AT + (turn % 1000 * writers + writer) * BLOCK;
                    let shape = shape(Priority::AsyncWrite, Direction::Write, offset, BLOCK);
                    let done = queue
                        .submit(&disk, shape, Work::Write(vec![Buf::zeroed(BLOCK as usize)]), world::now())
                        .await;
                    assert!(done.result.is_ok());
                    written.fetch_add(BLOCK, Ordering::Relaxed);
                }
            }));
        }
        let requests: Vec<_> = (0..REQUESTS)
            .map(|n| {
                let (queue, disk) = (queue.clone(), disk.clone());
                world::spawn(async move {
                    world::sleep(EVERY * n).await;
                    let began = world::now();
                    let offset = u64::from(n) * 7919 % 1000 * BLOCK;
                    let (direction, work) = match class {
                        Priority::SyncRead => (Direction::Read, Work::Read),
                        _ => (Direction::Write, Work::Write(vec![Buf::zeroed(BLOCK as usize)])),
                    };
                    let shape = shape(class, direction, offset, BLOCK);
                    assert!(queue.submit(&disk, shape, work, world::now()).await.result.is_ok());
                    world::now().since(began)
                })
            })
            .collect();
        let mut took = Vec::new();
        for request in requests {
            took.push(request.await);
        }
        took.sort_unstable();
        (took, written.load(Ordering::Relaxed))
    })
}

fn shown((took, written): &(Vec<Duration>, u64)) -> (Duration, Duration, Duration, u64) {
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    (at(0.5), at(0.999), took[took.len() - 1], written >> 20)
}

#[test]
fn a_client_does_not_wait_for_what_a_txg_writes() {
    for class in [Priority::SyncRead, Priority::SyncWrite] {
        let (alone, beside) = (beside(class, 0), beside(class, 256));
        assert!(shown(&alone).2 < Duration::from_millis(1), "{class:?}: {:?}", shown(&alone));
        let (median, p999, _, written) = shown(&beside);
        assert!(median <= Duration::from_millis(2), "{class:?}: {median:?}");
        assert!(p999 <= Duration::from_millis(3), "{class:?}: {p999:?}");
        // Of 60 MiB/s for 10 s; the client takes a fifth of the device.
        assert!(written > 400, "{class:?}: {written} MiB");
    }
}

/// Reads that wait leave as a batch, across a gap, of one buffer and of several. As slices of what was read together, one of
/// them would keep the memory of all.
#[test]
fn each_part_of_a_batch_has_its_bytes_and_memory_of_its_own() {
    let disks = Disks::new();
    let image: Vec<u8> = (0..64 * BLOCK).map(|i| (i / 512 % 251) as u8).collect();
    disks.add(DEVICE, 8 << 30, DISK).poke(0, &image);
    sim::run_with(&disks, 1, sim::Config::default(), async move {
        let disk = world::open(Path::new(DEVICE), OpenMode::ReadWrite).unwrap();
        let tunables = Tunables::default();
        tunables.set(tunables::Tunable::VdevMaxActive, 1).unwrap();
        let queue = Queue::new(&tunables, false);
        // The first is alone at the device; of the others two lie side by side, and one behind a gap of a block.
        let asked = [(40, vec![BLOCK]), (0, vec![BLOCK]), (1, vec![BLOCK, 2 * BLOCK]), (5, vec![4096, 512])];
        let mut came = Duration::ZERO;
        let reads = asked.map(|(at, lens)| {
            let (queue, disk) = (queue.clone(), disk.clone());
            came += Duration::from_micros(1);
            world::spawn(async move {
                world::sleep(came).await;
                let lens: Vec<usize> = lens.into_iter().map(|len| len as usize).collect();
                let len = lens.iter().sum::<usize>() as u64;
                let shape = shape(Priority::AsyncRead, Direction::Read, at * BLOCK, len);
                let work = if lens.len() == 1 { Work::Read } else { Work::ReadParts(lens.clone()) };
                (at * BLOCK, lens, queue.submit(&disk, shape, work, world::now()).await)
            })
        });
        for (i, read) in reads.into_iter().enumerate() {
            let (at, lens, Outcome { result, batch, .. }) = read.await;
            assert_eq!(batch, (i > 0).then_some(5 * BLOCK + 4096 + 512));
            let bufs = match result.unwrap() {
                Answer::Bytes(buf) => vec![buf],
                Answer::Parts(bufs) => bufs,
                Answer::Done => Vec::new(),
            };
            let found: Vec<usize> = bufs.iter().map(|buf| buf.len()).collect();
            assert_eq!(found, lens);
            let mut at = at as usize;
            for buf in bufs {
                assert!(buf[..] == image[at..at + buf.len()], "{} bytes at {at}", buf.len());
                assert!(buf.capacity() < 2 * buf.len(), "{} bytes of {}", buf.len(), buf.capacity());
                at += buf.len();
            }
        }
    });
}
