//! What the cold part brings and costs, by what blocks hold: `cargo bench -p arc --bench cold -- --percent 25,50`.
//!
//! ```text
//!   a set of blocks, prepared ─▶ 400,000 requests of one seed ─▶ cache of 32 MiB, cold part off, and of so many percent
//!     text      this repository's documents and sources             ─▶ hits, hits on compressed blocks, CPU time
//!     pages     of a database: rows of numbers, names, dates; a third of the page is free
//!     random    random bytes
//! ```
//!
//! A miss puts the prepared block in, without a copy: the CPU time is that of the cache, and a miss has nothing of what
//! reading the pool would cost. The first quarter of the requests is not counted.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a benchmark measures real time, and prints it"
)]

use arc::{Access, BlockId, Cache, Kind, Opening, Request};
use std::hint::black_box;
use std::path::Path;
use units::{Sectors, Txg, VdevId};
use world::Buf;

const CACHE: u64 = 32 << 20;
const REQUESTS: usize = 400_000;
const COUNTED: f64 = (REQUESTS - REQUESTS / 4) as f64;

fn id(n: u64) -> BlockId {
    BlockId { opening: Opening::default(), vdev: VdevId(0), offset: Sectors(n * 256), birth: Txg(7) }
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

/// The `k`-th of `n` is wanted in proportion to 1/k^s.
fn zipf(n: u64, s: f64) -> impl Fn(&mut Dice) -> u64 {
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=n)
        .map(|k| {
            sum += (k as f64).powf(-s);
            sum
        })
        .collect();
    move |dice| {
        let wanted = dice.unit() * sum;
        sums.partition_point(|s| *s <= wanted).min(n as usize - 1) as u64
    }
}

/// What is asked for: shapes over `set` blocks, of which `fit` fit into the cache.
fn shape(name: &str, set: u64, fit: u64) -> Vec<u64> {
    let mut dice = Dice(60_221);
    let requests = 0..REQUESTS as u64;
    match name {
        "zipf" => {
            let roll = zipf(set, 0.9);
            requests.map(|_| roll(&mut dice)).collect()
        }
        "oltp" => {
            let (index, rows) = (set / 10, set - set / 10);
            let roll = zipf(index, 1.0);
            let of = |i: u64| match i % 5 {
                0..3 => roll(&mut dice),
                3 => index + dice.below(rows),
                _ => index + (i / 40) % rows,
            };
            requests.map(of).collect()
        }
        "uniform" => requests.map(|_| dice.below(set)).collect(),
        "loop" => requests.map(|i| i % set).collect(),
        "scan" => {
            let roll = zipf(set / 2, 0.9);
            let of =
                |i: u64| if (i / set).is_multiple_of(2) { roll(&mut dice) } else { set / 2 + i % (set / 2) };
            requests.map(of).collect()
        }
        "recent" => {
            let of = |i: u64| {
                if i.is_multiple_of(2) { i / 2 } else { i / 2 - dice.below((fit / 2).min(i / 2 + 1)) }
            };
            requests.map(of).collect()
        }
        "change" => {
            let (before, after) = (shape("zipf", set, fit), shape("recent", set, fit));
            let quarter = REQUESTS / 4;
            before[..quarter].iter().copied().chain(after[quarter..].iter().map(|n| set + n)).collect()
        }
        "moved" => {
            let zipf = shape("zipf", set, fit);
            zipf.iter().enumerate().map(|(i, n)| n + set * (i * 4 / REQUESTS) as u64).collect()
        }
        _ => panic!("no such shape: {name}"),
    }
}

/// All there is below a directory of what people wrote.
fn written(directory: &Path, text: &mut Vec<u8>) {
    let mut entries: Vec<_> =
        std::fs::read_dir(directory).into_iter().flatten().flatten().map(|e| e.path()).collect();
    entries.sort();
    for path in entries {
        let is = |extension: &str| path.extension().is_some_and(|e| e == extension);
        if path.is_dir() {
            written(&path, text);
        } else if is("md") || is("rs") {
            text.extend(std::fs::read(&path).unwrap_or_default());
        }
    }
}

fn text() -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut text = Vec::new();
    ["docs", "engine", "control", "fronts", "tools"]
        .iter()
        .for_each(|name| written(&root.join(name), &mut text));
    text
}

/// Pages of 8 KiB, in blocks of any size.
fn pages(len: usize, dice: &mut Dice) -> Vec<u8> {
    const NAMES: [&str; 12] = [
        "Meyer", "Schmidt", "Okafor", "Tanaka", "Rossi", "Dubois", "Novak", "Garcia", "Larsen", "Singh",
        "Cohen", "Silva",
    ];
    let mut block = vec![0; len];
    for page in block.chunks_mut(8192) {
        let (mut low, mut high) = (24, page.len());
        page[..8].copy_from_slice(&(dice.next() >> 20).to_le_bytes());
        while low + 4 + 128 < page.len() * 2 / 3 - (page.len() - high) + 24 + 4 {
            let row = format!(
                "{:08}|{}, {}|2026-{:02}-{:02}T{:02}:{:02}|{:.2}|{:x}|open",
                dice.below(100_000_000),
                NAMES[dice.below(12) as usize],
                NAMES[dice.below(12) as usize],
                1 + dice.below(12),
                1 + dice.below(28),
                dice.below(24),
                dice.below(60),
                dice.below(1_000_000) as f64 / 100.0,
                dice.next(),
            );
            high -= row.len();
            page[high..high + row.len()].copy_from_slice(row.as_bytes());
            page[low..low + 4].copy_from_slice(&((high as u32) << 16 | row.len() as u32).to_le_bytes());
            low += 4;
        }
    }
    block
}

fn contents(what: &str, blocks: u64, len: usize) -> Vec<Buf> {
    let mut dice = Dice(7);
    let text = text();
    let of = |n: u64| match what {
        "text" => {
            let start = n as usize * len % (text.len() - len);
            Buf::copy_from(&text[start..start + len])
        }
        "pages" => Buf::copy_from(&pages(len, &mut dice)),
        _ => Buf::copy_from(&(0..len / 8).flat_map(|_| dice.next().to_le_bytes()).collect::<Vec<u8>>()),
    };
    (0..blocks).map(of).collect()
}

/// User and system time of this thread, in ns.
fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[derive(Default)]
struct Ran {
    hits: usize,
    cold: u64,
    ns: f64,
    full: u64,
    packed: u64,
}

fn run(requests: &[u64], blocks: &[Buf], percent: u64) -> Ran {
    let cache = Cache::new(CACHE);
    cache.set_cold(percent);
    let (mut hits, mut before, mut cold, mut began) = (0, 0, 0, 0);
    for (i, &n) in requests.iter().enumerate() {
        if i == requests.len() / 4 {
            (before, cold, began) = (hits, cache.stats().data.cold_hits, cpu());
        }
        if black_box(cache.get(&id(n), Access::Demand)).is_some() {
            hits += 1;
        } else {
            let block = &blocks[n as usize % blocks.len()];
            cache.insert(Request::demand(id(n), Kind::Data), block.clone());
        }
    }
    let took = cpu() - began;
    let stats = cache.stats().data;
    Ran {
        hits: hits - before,
        cold: stats.cold_hits - cold,
        ns: took as f64 / COUNTED,
        full: stats.cold_full_bytes,
        packed: stats.cold_bytes,
    }
}

fn words(name: &str, or: &str) -> Vec<String> {
    let args: Vec<String> = std::env::args().collect();
    let given = args.iter().position(|arg| arg == name).and_then(|i| args.get(i + 1));
    given.map_or(or, |given| given).split(',').map(String::from).collect()
}

fn main() {
    let percents: Vec<u64> =
        words("--percent", "50").iter().map(|w| w.parse().expect("a share in percent")).collect();
    let shapes = words("--shapes", "zipf,oltp,uniform,loop,scan,recent");
    let sizes = words("--sizes", "16");
    let sets: Vec<f64> = words("--sets", "3").iter().map(|w| w.parse().expect("a set, in caches")).collect();
    println!(
        "| blocks | set | shape | share | hits, off | on | compressed | CPU ns, off | on | us a miss | kept |"
    );
    println!("|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    for size in &sizes {
        let len = size.parse::<usize>().expect("a size in KiB") << 10;
        let fit = CACHE / (len as u64 + 160);
        for what in words("--contents", "text,pages,random") {
            let blocks = contents(&what, 3 * fit, len);
            for (shape_name, set) in shapes.iter().flat_map(|s| sets.iter().map(move |t| (s, *t))) {
                let requests = shape(shape_name, (fit as f64 * set) as u64, fit);
                let off = run(&requests, &blocks, 0);
                for percent in &percents {
                    let on = run(&requests, &blocks, *percent);
                    let spared = on.hits as f64 - off.hits as f64;
                    let each = (on.ns - off.ns) * COUNTED / spared / 1000.0;
                    let each = if spared > COUNTED / 1000.0 { format!("{each:.0}") } else { "-".into() };
                    let times = on.full as f64 / on.packed as f64;
                    let kept = if on.full == 0 { "-".into() } else { format!("{times:.2}x") };
                    let of = |n: f64| format!("{:.1} %", n * 100.0 / COUNTED);
                    println!(
                        "| {what}, {size}K | {set} | {shape_name} | {percent} % | {} | {} | {} | {:.0} | {:.0} | {each} | {kept} |",
                        of(off.hits as f64),
                        of(on.hits as f64),
                        of(on.cold as f64),
                        off.ns,
                        on.ns,
                    );
                }
            }
        }
    }
}
