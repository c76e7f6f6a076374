//! The shapes: who asks for which blocks, in the manner of traces that are published.
//!
//! ```text
//!   loop      one block after the other, round and round, a tenth more of them than fit
//!   scan      half of the requests by Zipf .9; between them, in runs, blocks that are wanted once
//!   recent    blocks that are new, and as often one again of the last half a cacheful of these
//!   zipf      by Zipf with .8 and 1.0 over the set
//!   oltp      an index (a tenth, by Zipf 1), rows (uniform), and the end of a log that grows
//!   files     files of 4 KiB to 2 MiB by Zipf .8, read whole: directory, dnodes, indirect blocks, data
//!   listing   directories by Zipf .8, all dnodes of each; one in four times the files' first blocks as well
//!   volume    8 KiB anywhere in a volume, through the indirect blocks above
//! ```
//!
//! Blocks are of 8 KiB where nothing else is said. Metadata is as the engine has it: blocks of dnodes of 16 KiB, indirect
//! blocks of 16 KiB in memory for 128 pointers, so that a set of some thousand blocks has three levels, as a large one has
//! with 1024.

use crate::Options;

pub(crate) const SMALL: u64 = 8 << 10;
pub(crate) const LARGEST: u64 = 128 << 10;
/// What is charged for a block beyond its bytes, as the engine does.
const OVERHEAD: u64 = 160;
const PAGE: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Data,
    Metadata,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    pub id: u64,
    pub kind: Kind,
    pub bytes: u32,
}

impl Block {
    pub(crate) fn charge(&self) -> u64 {
        u64::from(self.bytes).next_multiple_of(PAGE) + OVERHEAD
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Loop,
    Scan,
    Recent,
    Zipf8,
    Zipf1,
    Oltp,
    Files,
    Listing,
    Volume,
}

impl Shape {
    pub const ALL: [Shape; 9] = [
        Shape::Loop,
        Shape::Scan,
        Shape::Recent,
        Shape::Zipf8,
        Shape::Zipf1,
        Shape::Oltp,
        Shape::Files,
        Shape::Listing,
        Shape::Volume,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Shape::Loop => "loop",
            Shape::Scan => "scan",
            Shape::Recent => "recent",
            Shape::Zipf8 => "zipf.8",
            Shape::Zipf1 => "zipf1",
            Shape::Oltp => "oltp",
            Shape::Files => "files",
            Shape::Listing => "listing",
            Shape::Volume => "volume",
        }
    }

    pub fn named(name: &str) -> Option<Shape> {
        Shape::ALL.into_iter().find(|shape| shape.name() == name)
    }

    /// Whether there is metadata beside the data.
    pub fn is_mixed(self) -> bool {
        matches!(self, Shape::Files | Shape::Listing | Shape::Volume)
    }
}

/// Bytes of a set of so many blocks.
pub(crate) fn set_bytes(blocks: u64) -> u64 {
    blocks * SMALL
}

/// What is asked for, in order.
#[derive(Clone, Debug)]
pub struct Trace {
    pub requests: Vec<Block>,
}

impl Trace {
    /// The same for the same options. Loop and recent depend on the size of the cache.
    pub(crate) fn new(shape: Shape, options: &Options, cache: u64) -> Trace {
        let mut made = Maker { dice: Dice(options.seed), requests: Vec::new(), wanted: options.requests };
        let blocks = options.blocks;
        match shape {
            Shape::Loop => made.round(cache / (SMALL + OVERHEAD) * 11 / 10),
            Shape::Scan => made.scan(blocks),
            Shape::Recent => made.recent(cache / (SMALL + OVERHEAD) / 2),
            Shape::Zipf8 => made.zipf(blocks, 0.8),
            Shape::Zipf1 => made.zipf(blocks, 1.0),
            Shape::Oltp => made.oltp(blocks),
            Shape::Files => made.files(blocks),
            Shape::Listing => made.listing(blocks),
            Shape::Volume => made.volume(blocks),
        }
        made.requests.truncate(options.requests);
        Trace { requests: made.requests }
    }
}

/// A seeded generator (SplitMix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The `k`-th most wanted of `n` is wanted in proportion to 1/k^s.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(n: u64, s: f64) -> Zipf {
        let mut sum = 0.0;
        let weights = (1..=n).map(|k| {
            sum += (k as f64).powf(-s);
            sum
        });
        Zipf(weights.collect())
    }

    fn roll(&self, dice: &mut Dice) -> u64 {
        let wanted = dice.unit() * self.0.last().copied().unwrap_or(0.0);
        self.0.partition_point(|sum| *sum <= wanted) as u64
    }
}

/// Where the ids of one sort of blocks begin.
const SORT: u64 = 1 << 40;

struct Maker {
    dice: Dice,
    requests: Vec<Block>,
    wanted: usize,
}

impl Maker {
    fn is_more(&self) -> bool {
        self.requests.len() < self.wanted
    }

    fn data(&mut self, id: u64, bytes: u64) {
        self.requests.push(Block { id, kind: Kind::Data, bytes: bytes as u32 });
    }

    fn metadata(&mut self, sort: u64, id: u64) {
        self.requests.push(Block { id: sort * SORT + id, kind: Kind::Metadata, bytes: 16 << 10 });
    }

    fn round(&mut self, n: u64) {
        for i in 0..self.wanted as u64 {
            self.data(i % n.max(1), SMALL);
        }
    }

    fn recent(&mut self, reach: u64) {
        let mut new = 0;
        while self.is_more() {
            self.data(new, SMALL);
            new += 1;
            let again = new - 1 - self.dice.below(reach.min(new));
            self.data(again, SMALL);
        }
    }

    fn zipf(&mut self, blocks: u64, s: f64) {
        let zipf = Zipf::new(blocks, s);
        while self.is_more() {
            let id = zipf.roll(&mut self.dice);
            self.data(id, SMALL);
        }
    }

    fn scan(&mut self, blocks: u64) {
        let (zipf, run, mut scanned) = (Zipf::new(blocks, 0.9), blocks / 4, SORT);
        while self.is_more() {
            for _ in 0..run {
                let id = zipf.roll(&mut self.dice);
                self.data(id, SMALL);
            }
            for _ in 0..run {
                self.data(scanned, SMALL);
                scanned += 1;
            }
        }
    }

    /// Of each transaction: three blocks of an index, a row, and the block at the end of the log; eight of them fill that.
    fn oltp(&mut self, blocks: u64) {
        let (index, rows) = (blocks / 10, blocks - blocks / 10);
        let zipf = Zipf::new(index, 1.0);
        let mut n = 0;
        while self.is_more() {
            for _ in 0..3 {
                let id = zipf.roll(&mut self.dice);
                self.data(id, SMALL);
            }
            let row = self.dice.below(rows);
            self.data(SORT + row, SMALL);
            self.data(2 * SORT + n / 8, SMALL);
            n += 1;
        }
    }

    /// Sizes of files that have the bytes of the set in all, with many small ones: 4 KiB doubled up to nine times.
    fn sizes(&mut self, blocks: u64) -> Vec<u64> {
        let (mut left, mut sizes) = (set_bytes(blocks), Vec::new());
        while left > 0 {
            let doubled = (0..9).take_while(|_| self.dice.below(100) < 60).count();
            let size = (4096u64 << doubled).min(left);
            sizes.push(size);
            left -= size;
        }
        sizes
    }

    fn files(&mut self, blocks: u64) {
        let sizes = self.sizes(blocks);
        let zipf = Zipf::new(sizes.len() as u64, 0.8);
        // Files that are wanted alike are spread over directories and blocks of dnodes.
        let n = sizes.len() as u64;
        let scatter = (n * 5 / 8..).find(|step| gcd(*step, n) == 1).unwrap_or(1);
        while self.is_more() {
            let file = zipf.roll(&mut self.dice) * scatter % n;
            self.metadata(1, file / 64);
            self.metadata(2, file / 32);
            let size = sizes[file as usize];
            if size > LARGEST {
                self.metadata(3, file);
            }
            for i in 0..size.div_ceil(LARGEST) {
                self.data(file * 64 + i, size.min(LARGEST));
            }
        }
    }

    fn listing(&mut self, blocks: u64) {
        // 256 files in each: 8 blocks of dnodes, and a first block of data for each file.
        let directories = (blocks / 128).max(1);
        let zipf = Zipf::new(directories, 0.8);
        while self.is_more() {
            let directory = zipf.roll(&mut self.dice);
            self.metadata(1, directory);
            for i in 0..8 {
                self.metadata(2, directory * 8 + i);
            }
            if self.dice.below(4) == 0 {
                for i in 0..256 {
                    self.data(directory * 256 + i, SMALL);
                }
            }
        }
    }

    fn volume(&mut self, blocks: u64) {
        while self.is_more() {
            let block = self.dice.below(blocks);
            self.metadata(3, block / (128 * 128));
            self.metadata(2, block / 128);
            self.data(block, SMALL);
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
