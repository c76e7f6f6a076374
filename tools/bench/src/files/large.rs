//! One large file: sequentially and at random, cold and warm.
//!
//! ```text
//!   for each block size:   write anew ─▶ read ─▶ read again ─▶ read at random ─▶ the same ─▶ write at random
//!                                        cold     warm          cold              warm         over what is there
//! ```
//!
//! A row ends after its time, or at the end of the file if it goes through it in order. Writing ends with an fsync, which
//! counts. A warm read follows one that has read all of it.

use super::peers::{Peer, Slot};
use super::{Options, Sample, everywhere};
use crate::Progress;
use crate::programs::Stop;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use units::{Error, Kind, Result, pretty_size};

const BLOCKS: [usize; 4] = [4 << 10, 16 << 10, 128 << 10, 1 << 20];
const STEP: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Write,
    Read { cold: bool },
    RandomRead { cold: bool },
    RandomWrite,
}

/// In the order in which each finds what it needs.
const WORKS: [Work; 6] = [
    Work::Write,
    Work::Read { cold: true },
    Work::Read { cold: false },
    Work::RandomRead { cold: true },
    Work::RandomRead { cold: false },
    Work::RandomWrite,
];

impl Work {
    pub fn name(self) -> &'static str {
        match self {
            Work::Write => "write",
            Work::Read { cold: true } => "read, cold",
            Work::Read { cold: false } => "read, warm",
            Work::RandomRead { cold: true } => "random read, cold",
            Work::RandomRead { cold: false } => "random read, warm",
            Work::RandomWrite => "random write",
        }
    }

    /// What of it is counted in operations; all else in bytes.
    pub fn is_random(self) -> bool {
        matches!(self, Work::RandomRead { .. } | Work::RandomWrite)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub work: Work,
    pub block: usize,
    /// For each of the places, one a round.
    pub samples: Vec<Vec<Sample>>,
}

pub(super) fn measure(
    slots: &mut [Slot],
    options: &Options,
    stop: &Stop,
    progress: Progress,
) -> Result<Vec<Row>> {
    let one = |block: usize| {
        let places = slots.len();
        WORKS.map(|work| Row { work, block, samples: vec![Vec::new(); places] })
    };
    let mut rows: Vec<Row> = BLOCKS.into_iter().flat_map(one).collect();
    let noise = noise();
    for round in 1..=options.rounds {
        for row in &mut rows {
            if stop.is_over() {
                break;
            }
            progress(&format!("{} of {}, round {round}", row.work.name(), pretty_size(row.block as u64)));
            let job = Job { work: row.work, block: row.block, options, noise: &noise };
            everywhere(slots, stop, &mut row.samples, |peer| job.run(peer, stop))?;
        }
    }
    Ok(rows)
}

struct Job<'a> {
    work: Work,
    block: usize,
    options: &'a Options,
    noise: &'a [u8],
}

impl Job<'_> {
    fn run(&self, peer: &mut dyn Peer, stop: &Stop) -> Result<Sample> {
        if let Work::Read { cold: true } | Work::RandomRead { cold: true } = self.work {
            peer.cold(stop)?;
        }
        let path = peer.root().join("large");
        let failed = |e| Error::new(Kind::Io, self.work.name()).at(path.display()).because(e);
        if let Work::Read { cold: false } | Work::RandomRead { cold: false } = self.work {
            self.read_all(&path).map_err(failed)?;
        }
        let (cpu, begun) = (peer.cpu(), Instant::now());
        let ops = self.timed(&path).map_err(failed)?;
        let elapsed = begun.elapsed();
        let cpu = peer.cpu().zip(cpu).map(|(after, before)| after.saturating_sub(before));
        if self.work == Work::Write {
            self.write_rest(&path, ops).map_err(failed)?;
        }
        Ok(Sample { bytes: ops * self.block as u64, ops, elapsed, cpu })
    }

    /// How many operations were done.
    fn timed(&self, path: &Path) -> io::Result<u64> {
        let end = Instant::now() + Duration::from_secs_f64(self.options.seconds);
        let blocks = self.options.size / self.block as u64;
        match self.work {
            Work::Write => {
                let file = File::create(path)?;
                let mut done = 0;
                while done < blocks && (done == 0 || Instant::now() < end) {
                    file.write_all_at(&self.noise[..self.block], done * self.block as u64)?;
                    done += 1;
                }
                file.sync_all().map(|()| done)
            }
            Work::Read { .. } => {
                let (file, mut buffer) = (File::open(path)?, vec![0; self.block]);
                let mut done = 0;
                while done < blocks && (done == 0 || Instant::now() < end) {
                    file.read_exact_at(&mut buffer, done * self.block as u64)?;
                    done += 1;
                }
                Ok(done)
            }
            Work::RandomRead { .. } => {
                let file = File::open(path)?;
                let buffer = vec![0; self.block];
                self.by_streams(end, blocks, buffer, |buffer, at| file.read_exact_at(buffer, at))
            }
            Work::RandomWrite => {
                let file = File::options().write(true).open(path)?;
                let write = |_: &mut Vec<u8>, at| file.write_all_at(&self.noise[..self.block], at);
                let done = self.by_streams(end, blocks, Vec::new(), write)?;
                file.sync_all().map(|()| done)
            }
        }
    }

    fn by_streams(
        &self,
        end: Instant,
        blocks: u64,
        buffer: Vec<u8>,
        work: impl Fn(&mut Vec<u8>, u64) -> io::Result<()> + Sync,
    ) -> io::Result<u64> {
        let done = AtomicU64::new(0);
        let stream = |seed: usize| -> io::Result<()> {
            let (mut random, mut buffer) = (Random::new(seed as u64 + 1), buffer.clone());
            loop {
                work(&mut buffer, random.next() % blocks * self.block as u64)?;
                done.fetch_add(1, Ordering::Relaxed);
                if Instant::now() >= end {
                    return Ok(());
                }
            }
        };
        std::thread::scope(|scope| {
            let streams: Vec<_> =
                (0..self.options.streams).map(|seed| scope.spawn(move || stream(seed))).collect();
            let panicked = |_| Err(io::Error::other("a stream ended"));
            streams.into_iter().try_for_each(|stream| stream.join().unwrap_or_else(panicked))
        })?;
        Ok(done.into_inner())
    }

    fn read_all(&self, path: &Path) -> io::Result<()> {
        let (file, mut buffer) = (File::open(path)?, vec![0; STEP]);
        (0..self.options.size / STEP as u64)
            .try_for_each(|i| file.read_exact_at(&mut buffer, i * STEP as u64))
    }

    /// Those that come after it read the whole file.
    fn write_rest(&self, path: &Path, done: u64) -> io::Result<()> {
        let file = File::options().write(true).open(path)?;
        let mut at = done * self.block as u64;
        while at < self.options.size {
            let len = STEP.min((self.options.size - at) as usize);
            file.write_all_at(&self.noise[..len], at)?;
            at += len as u64;
        }
        file.sync_all()
    }
}

/// Xorshift: it need not be good, but must cost nothing.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// What does not compress.
pub(super) fn noise() -> Vec<u8> {
    let mut random = Random::new(1);
    (0..STEP / 8).flat_map(|_| random.next().to_ne_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Plain(std::path::PathBuf);

    impl Peer for Plain {
        fn root(&self) -> &Path {
            &self.0
        }

        fn cold(&mut self, _: &Stop) -> Result<()> {
            Ok(())
        }

        fn cpu(&self) -> Option<Duration> {
            Some(Duration::ZERO)
        }
    }

    #[test]
    fn every_row_is_measured_in_its_order_and_a_place_that_fails_is_left_out() {
        let dir = std::env::temp_dir().join(format!("cenote-large-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        let options = Options { size: 4 << 20, seconds: 0.002, ..Options::default() };
        let peers = [dir.clone(), dir.join("missing")].map(|root| Box::new(Plain(root)) as Box<dyn Peer>);
        let mut slots: Vec<Slot> = peers.into_iter().map(|peer| Slot { name: "x", peer: Ok(peer) }).collect();
        let stop = Stop::after(Duration::from_secs(600));
        let rows = measure(&mut slots, &options, &stop, |_| ()).unwrap();
        assert_eq!(rows.len(), BLOCKS.len() * WORKS.len());
        for row in &rows {
            assert_eq!((row.samples[0].len(), row.samples[1].len()), (1, 0), "{row:?}");
            assert!(row.samples[0][0].bytes >= row.block as u64, "{row:?}");
        }
        assert!(slots[1].peer.as_ref().err().unwrap().contains("missing"));
        assert_eq!(std::fs::metadata(dir.join("large")).unwrap().len(), options.size);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn no_row_begins_when_the_time_is_up() {
        let stop = Stop::after(Duration::ZERO);
        let rows = measure(&mut [], &Options::default(), &stop, |_| panic!("it began")).unwrap();
        assert!(rows.iter().all(|row| row.samples.is_empty()));
    }
}
