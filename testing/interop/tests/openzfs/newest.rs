//! Pools with every feature that Cenote enables, and with datasets that use them, judged by a `zdb` that knows them all.
//!
//! The default set of features is that of OpenZFS 2.1 and is judged elsewhere by the `zdb` of the machine's release; here
//! come those of 2.2 and later, as `zpool create -o compatibility=off` enables them.

use std::path::PathBuf;

use crate::common::{new, open, verify};
use dsl::props::{Limits, PropName, Types, Value, When, parse_setting};
use interop::harness::{Trial, trial};
use interop::{Scratch, zdb};
use ondisk::Feature;
use pool::{Content, CreateOptions, Pool};
use vdev::Layout;
use world::Buf;

const POOL: &str = "newest";
const SIZE: u64 = 4 << 20;

/// One volume with each: block size, compression, checksum, copies and what metadata is kept twice.
const VOLUMES: [(u64, &str, &str, &str, &str); 9] = [
    (512, "lz4", "blake3", "1", "all"),
    (8 << 10, "off", "blake3", "2", "most"),
    (16 << 10, "zstd-19", "blake3", "3", "some"),
    (16 << 10, "gzip-9", "sha512", "1", "none"),
    (64 << 10, "zle", "skein", "1", "all"),
    (128 << 10, "lzjb", "edonr", "1", "all"),
    (1 << 20, "zstd-fast-10", "blake3", "1", "all"),
    (16 << 20, "lz4", "sha256", "1", "all"),
    (4 << 10, "on", "off", "1", "all"),
];

const LAYOUTS: [(&str, Layout, usize, u32); 6] = [
    ("single", Layout::Stripe, 1, 9),
    ("stripe", Layout::Stripe, 3, 12),
    ("mirror", Layout::Mirror, 2, 12),
    ("raidz1", Layout::Raidz { parity: 1 }, 3, 9),
    ("raidz2", Layout::Raidz { parity: 2 }, 4, 12),
    ("raidz3", Layout::Raidz { parity: 3 }, 5, 9),
];

pub fn trials() -> Vec<Trial> {
    LAYOUTS.map(judged).into()
}

fn judged((name, layout, count, ashift): (&'static str, Layout, usize, u32)) -> Trial {
    trial(format!("a_{name}_with_every_feature_passes_zdb"), &[zdb::OF_2_3], move || {
        let scratch = Scratch::new();
        let images: Vec<PathBuf> = (0..count).map(|i| scratch.join(format!("{i}.img"))).collect();
        let work = images.clone();
        linux::block_on(async move {
            let pool = create(&work, layout, ashift).await;
            for (turn, volume) in VOLUMES.iter().enumerate() {
                make(&pool, turn, volume).await;
                write(&pool, turn, 1).await;
            }
            let plan = pool.dsl().plan_destroy(&volume(3), false).await.unwrap();
            let destroyed =
                pool.change("destroy", |pool, tx| async move { pool.dsl().destroy(&tx, &plan).await });
            destroyed.await.unwrap();
            pool.export().await.unwrap();
        });
        let work = images.clone();
        linux::block_on(async move {
            let pool = open(work, POOL, false).await.unwrap();
            for turn in (0..VOLUMES.len()).filter(|&turn| turn != 3) {
                write(&pool, turn, 2).await;
            }
            assert_eq!(verify(&pool).await.repairable, 0);
            assert_eq!(pool.complaints(), Vec::<String>::new());
            pool.export().await.unwrap();
        });
        zdb::assert_clean_by_2_3(scratch.path(), POOL);
    })
}

fn volume(turn: usize) -> String {
    format!("{POOL}/v{turn}")
}

async fn create(images: &[PathBuf], layout: Layout, ashift: u32) -> Pool {
    let features = new::features("off");
    assert!(features.contains(&Feature::Blake3) && features.contains(&Feature::HeadErrlog));
    let leaves = images.iter().map(|image| new::leaf(image, 256 << 20)).collect();
    let options = CreateOptions { ashift, features, ..new::options(POOL, new::group(layout, leaves)) };
    pool::create(options).await.unwrap()
}

async fn make(
    pool: &Pool,
    turn: usize,
    &(block_size, compression, checksum, copies, kept): &(u64, &str, &str, &str, &str),
) {
    let limits = Limits::default();
    let set = |name: &str, value: &str| -> (PropName, Value) {
        parse_setting(name, value, Types::VOLUME, When::Create, &limits).unwrap()
    };
    let props = vec![
        set("compression", compression),
        set("checksum", checksum),
        set("copies", copies),
        set("redundant_metadata", kept),
    ];
    let size = SIZE.next_multiple_of(block_size);
    pool.create_dataset(&volume(turn), Content::Volume { size, block_size }, props).await.unwrap();
}

/// Text that compresses, bytes that do not, zeros, and a hole; elsewhere in the second round than in the first.
async fn write(pool: &Pool, turn: usize, round: u64) {
    let opened = pool.open_volume(&volume(turn)).await.unwrap();
    let quarter = opened.size() / 4;
    let noise: Vec<u8> = (0..quarter / 8).flat_map(|_| world::random_u64().to_le_bytes()).collect();
    let text: Vec<u8> =
        (0..quarter).map(|i| b"a block of text "[i as usize % 16] ^ (i >> 14) as u8).collect();
    let at = |n: u64| (n + round) % 4 * quarter;
    opened.write(at(0), Buf::copy_from(&noise)).await.unwrap();
    opened.write(at(1), Buf::copy_from(&text)).await.unwrap();
    opened.zero(at(2), quarter).await.unwrap();
    opened.trim(at(3), quarter).await.unwrap();
    opened.flush().await.unwrap();
}
