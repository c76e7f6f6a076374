//! How fast the arithmetic is here: `cargo run --release -p codec --example speed [part of a name]`.
//!
//! Each line is the best of several rounds, since whatever else the machine does only ever makes a round slower.
//! "hot" works on one block in the cache, "stream" goes through much more memory than any cache holds.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a benchmark measures real time, and prints it"
)]

use codec::checksum::{Checksummer, Salt};
use codec::{compress, parity};
use std::hint::black_box;
use std::time::{Duration, Instant};
use units::{Checksum, Compression, Endian, ZstdLevel};

const BLOCK: usize = 128 << 10;
const STREAM: usize = 256 << 20;

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let report = |name: String, bytes: usize, mut work: Box<dyn FnMut() + '_>| {
        if name.contains(&wanted) {
            println!("{name:<44} {:>9.0} MiB/s", speed(bytes, &mut work));
        }
    };
    checksums(&report);
    compressions(&report);
    parities(&report);
    report("is_zero hot".into(), BLOCK, {
        let zeros = vec![0; BLOCK];
        Box::new(move || {
            black_box(codec::is_zero(black_box(&zeros)));
        })
    });
}

type Report<'a> = &'a dyn Fn(String, usize, Box<dyn FnMut() + '_>);

/// MiB per second of the best of many rounds, each short enough to be left alone by the scheduler now and then.
fn speed(bytes: usize, work: &mut dyn FnMut()) -> f64 {
    let once = Instant::now();
    work();
    let calls =
        (Duration::from_micros(200).as_nanos() / once.elapsed().as_nanos().max(1)).clamp(1, 10_000) as u32;
    let mut best = Duration::MAX;
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(400) {
        let round = Instant::now();
        (0..calls).for_each(|_| work());
        best = best.min(round.elapsed() / calls);
    }
    bytes as f64 / best.as_secs_f64() / (1 << 20) as f64
}

fn checksums(report: Report<'_>) {
    let summer = Checksummer::new(&Salt([7; 32]));
    let block = noise(BLOCK);
    let stream = noise(STREAM);
    for kind in (2..=14).filter_map(Checksum::from_code).filter(|kind| has_own_function(*kind)) {
        report(
            format!("{kind:?} hot"),
            BLOCK,
            Box::new(|| {
                black_box(summer.compute(kind, Endian::NATIVE, black_box(&block)));
            }),
        );
    }
    for kind in [Checksum::Fletcher4, Checksum::Fletcher2, Checksum::Blake3] {
        let mut blocks = stream.chunks(BLOCK).cycle();
        report(
            format!("{kind:?} stream"),
            BLOCK,
            Box::new(|| {
                let block = blocks.next().expect("a cycle has no end");
                black_box(summer.compute(kind, Endian::NATIVE, block));
            }),
        );
    }
    let foreign = if Endian::NATIVE == Endian::Little { Endian::Big } else { Endian::Little };
    for (name, kind, endian, data) in [
        ("Fletcher4 hot, foreign order", Checksum::Fletcher4, foreign, &block[..]),
        ("Fletcher4 hot, 512 bytes", Checksum::Fletcher4, Endian::NATIVE, &block[..512]),
        ("Fletcher4 hot, 4K", Checksum::Fletcher4, Endian::NATIVE, &block[..4096]),
        ("Blake3 hot, 4K", Checksum::Blake3, Endian::NATIVE, &block[..4096]),
    ] {
        report(
            name.into(),
            data.len(),
            Box::new(|| {
                black_box(summer.compute(kind, endian, black_box(data)));
            }),
        );
    }
}

fn has_own_function(kind: Checksum) -> bool {
    !kind.is_self_contained() && !matches!(kind, Checksum::Off | Checksum::NoParity)
}

fn compressions(report: Report<'_>) {
    let text: Vec<u8> =
        include_bytes!("../src/compress/zstd.rs").iter().copied().cycle().take(BLOCK).collect();
    // Text that repeats would flatter the encoders: change a byte here and there.
    let text: Vec<u8> = text.iter().zip(noise(BLOCK)).map(|(a, n)| if n < 8 { n } else { *a }).collect();
    let noise = noise(BLOCK);
    for kind in [
        Compression::Lzjb,
        Compression::Zle,
        Compression::Lz4,
        Compression::Gzip(1),
        Compression::Gzip(6),
        Compression::Zstd(Some(ZstdLevel::Fast(1))),
        Compression::Zstd(Some(ZstdLevel::Normal(1))),
        Compression::Zstd(None),
        Compression::Zstd(Some(ZstdLevel::Normal(9))),
    ] {
        for (name, block) in [("text", &text), ("noise", &noise)] {
            let mut encoded = vec![0; BLOCK - BLOCK / 8];
            let length = compress::compress(kind, block, &mut encoded);
            let ratio = length.map_or(1.0, |length| BLOCK as f64 / length as f64);
            let mut room = encoded.clone();
            report(
                format!("{kind:?} compress {name} x{ratio:.2}"),
                BLOCK,
                Box::new(|| {
                    black_box(compress::compress(kind, black_box(block), &mut room));
                }),
            );
            let Some(length) = length else { continue };
            let mut back = vec![0; BLOCK];
            report(
                format!("{kind:?} decompress {name}"),
                BLOCK,
                Box::new(|| {
                    compress::decompress(kind, black_box(&encoded[..length]), &mut back).expect("ours")
                }),
            );
        }
    }
}

/// Speeds are of data, parity not counted.
fn parities(report: Report<'_>) {
    for (width, size) in [(8, BLOCK / 8), (8, 2 << 20), (3, BLOCK / 4)] {
        let columns: Vec<Vec<u8>> = (0..width).map(|_| noise(size)).collect();
        let data: Vec<&[u8]> = columns.iter().map(Vec::as_slice).collect();
        for count in 1..=parity::PARITY_MAX {
            let mut made = vec![vec![0; size]; count];
            let mut slices: Vec<&mut [u8]> = made.iter_mut().map(Vec::as_mut_slice).collect();
            let names = &"PQR"[..count];
            report(
                format!("generate {names}, {width} columns of {}K", size >> 10),
                width * size,
                Box::new(|| parity::generate(black_box(&data), &mut slices)),
            );
            let mut left: Vec<Option<&[u8]>> = data.iter().copied().map(Some).collect();
            left[..count].fill(None);
            let read: Vec<Option<&[u8]>> = made.iter().map(|parity| Some(parity.as_slice())).collect();
            let mut lost = vec![vec![0; size]; count];
            let mut slices: Vec<&mut [u8]> = lost.iter_mut().map(Vec::as_mut_slice).collect();
            report(
                format!("reconstruct {count} from {names}, {width} columns of {}K", size >> 10),
                width * size,
                Box::new(|| {
                    parity::reconstruct(black_box(&left), &read, &mut slices).expect("enough parity")
                }),
            );
        }
    }
}

fn noise(length: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}
