//! Data and holes at random, through the mount, against a file in memory; by seed.

use crate::bench::{Bench, NEEDS};
use interop::harness::{Trial, trial};
use rustix::fs::{FallocateFlags, OFlags, SeekFrom};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

const SIZE_MAX: u64 = 3 << 20;
const PAGE: u64 = 4096;

pub fn trials() -> Vec<Trial> {
    vec![trial("a_file_has_what_was_written_to_it_in_whatever_way", &NEEDS, model)]
}

/// How many operations of each seed, and the first seed: `FILE_OPERATIONS` and `FILE_SEED` go further.
fn given(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n.max(1)
    }
}

struct Both {
    file: File,
    direct: File,
    model: Vec<u8>,
    chance: Chance,
}

fn model() {
    let bench = Bench::new();
    let (operations, first) = (given("FILE_OPERATIONS", 1500), given("FILE_SEED", 1));
    for seed in first..first + 2 {
        println!("seed {seed}, {operations} operations");
        let path = bench.root().join(format!("f{seed}"));
        let open = |direct: OFlags| {
            let mut how = OpenOptions::new();
            how.read(true).write(true).create(true).truncate(false);
            how.custom_flags(direct.bits() as i32).open(&path).unwrap()
        };
        let (file, direct) = (open(OFlags::empty()), open(OFlags::DIRECT));
        let mut both = Both { file, direct, model: Vec::new(), chance: Chance(seed) };
        for step in 0..operations {
            let what = both.step();
            let len = both.file.metadata().unwrap().len();
            assert_eq!(len, both.model.len() as u64, "seed {seed} step {step}: size after {what}");
            if step % 50 == 49 {
                both.compare(&format!("seed {seed} step {step} after {what}"));
            }
        }
        drop(both.file.sync_all());
        let model = both.model;
        drop((both.file, both.direct));
        bench.unmount(false).unwrap();
        bench.mount();
        assert!(std::fs::read(&path).unwrap() == model, "seed {seed}: as it came back from disk");
    }
}

impl Both {
    fn range(&mut self, within: u64) -> (u64, u64) {
        let at = self.chance.below(within);
        let most = match self.chance.below(4) {
            0 => 100,
            1 => 5000,
            2 => 140_000,
            _ => 1 << 20,
        };
        (at, 1 + self.chance.below(most.min(within - at)))
    }

    fn grow(&mut self, to: u64) {
        if self.model.len() < to as usize {
            self.model.resize(to as usize, 0);
        }
    }

    fn step(&mut self) -> &'static str {
        let size = self.model.len() as u64;
        match self.chance.below(12) {
            0..=2 => {
                let (at, len) = self.range(SIZE_MAX);
                let fill = self.bytes(len);
                self.file.write_all_at(&fill, at).unwrap();
                self.put(at, &fill);
                "write"
            }
            3 => {
                let (at, len) = self.range(SIZE_MAX - PAGE);
                let (at, len) = (at / PAGE * PAGE, len.next_multiple_of(PAGE));
                let fill = self.bytes(len);
                let mut room = vec![0u8; (len + PAGE) as usize];
                let aligned = room.as_ptr().align_offset(PAGE as usize);
                room[aligned..aligned + len as usize].copy_from_slice(&fill);
                self.direct.write_all_at(&room[aligned..aligned + len as usize], at).unwrap();
                self.put(at, &fill);
                "direct write"
            }
            4..=6 => {
                let (at, len) = self.range(SIZE_MAX);
                self.check(at, len, "read");
                "read"
            }
            7 => {
                let to = self.chance.below(SIZE_MAX);
                self.file.set_len(to).unwrap();
                self.model.resize(to as usize, 0);
                "truncate"
            }
            8 => {
                let (at, len) = self.range(SIZE_MAX);
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                rustix::fs::fallocate(&self.file, flags, at, len).unwrap();
                self.clear(at, len);
                "punch"
            }
            9 => {
                let (at, len) = self.range(SIZE_MAX);
                let keep = self.chance.below(2) == 0;
                let keep_size = if keep { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
                rustix::fs::fallocate(&self.file, FallocateFlags::ZERO_RANGE | keep_size, at, len).unwrap();
                if !keep {
                    self.grow(at + len);
                }
                self.clear(at, len);
                "zero"
            }
            10 if size > 0 => {
                let (at, len) = self.range(size);
                let to = self.chance.below(SIZE_MAX - len);
                if at + len <= to || to + len <= at {
                    let (mut from, mut target) = (at, to);
                    let n = rustix::fs::copy_file_range(
                        &self.file,
                        Some(&mut from),
                        &self.file,
                        Some(&mut target),
                        len as usize,
                    );
                    let bytes = self.model[at as usize..at as usize + n.unwrap()].to_vec();
                    self.put(to, &bytes);
                }
                "copy"
            }
            _ => {
                let at = self.chance.below(SIZE_MAX);
                self.seek(at);
                "seek"
            }
        }
    }

    fn bytes(&mut self, len: u64) -> Vec<u8> {
        let first = self.chance.below(255) + 1;
        (0..len).map(|i| (first + i % 251) as u8).collect()
    }

    fn put(&mut self, at: u64, bytes: &[u8]) {
        self.grow(at + bytes.len() as u64);
        self.model[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
    }

    fn clear(&mut self, at: u64, len: u64) {
        let end = (at + len).min(self.model.len() as u64);
        if at < end {
            self.model[at as usize..end as usize].fill(0);
        }
    }

    fn check(&self, at: u64, len: u64, what: &str) {
        let end = (at + len).min(self.model.len() as u64);
        let expected = self.model.get(at as usize..end as usize).unwrap_or(&[]);
        let mut bytes = vec![1; len as usize];
        let mut n = 0;
        while n < bytes.len() {
            match self.file.read_at(&mut bytes[n..], at + n as u64).unwrap() {
                0 => break,
                more => n += more,
            }
        }
        assert_eq!(n, expected.len(), "{what}: how much there is at {at} of {len}");
        let wrong = bytes[..n].iter().zip(expected).position(|(a, b)| a != b);
        assert_eq!(wrong, None, "{what}: byte that differs in {at}..{end}");
    }

    /// Wherever the file system says there is a hole, there are zeros; and it says where data is.
    fn seek(&self, at: u64) {
        let size = self.model.len() as u64;
        let next = self.model.get(at as usize..).and_then(|rest| rest.iter().position(|b| *b != 0));
        match rustix::fs::seek(&self.file, SeekFrom::Data(at)) {
            Ok(data) => {
                assert!(data >= at && data < size);
                assert!(
                    next.is_none_or(|next| data <= at + next as u64),
                    "data before {data} is called a hole"
                );
            }
            Err(_) => assert!(next.is_none(), "there is data behind {at}"),
        }
        match rustix::fs::seek(&self.file, SeekFrom::Hole(at)) {
            Ok(hole) => assert!(hole >= at && hole <= size),
            Err(_) => assert!(at >= size),
        }
    }

    fn compare(&self, when: &str) {
        self.check(0, SIZE_MAX + 1, when);
    }
}
