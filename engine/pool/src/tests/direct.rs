//! Reads and writes of files past the cache: what is read from devices and what stays in memory, by `direct`, flag and
//! alignment.

use super::{Rig, noise};
use crate::{Content, Pool};
use dsl::props::{Prop, PropName, Value};
use vdev::Layout;
use zpl::{FileKind, FileSystem, NewFile, Node};

const NAME: &str = "tank/fs";
const RECORD: u64 = 128 << 10;
const SIZE: u64 = 8 * RECORD;

async fn set(pool: &Pool, prop: Prop, value: u64) {
    let set = pool.change("set", move |pool, tx| async move {
        pool.dsl().set(&tx, NAME, &PropName::Native(prop), &Value::Number(value)).await
    });
    set.await.unwrap();
}

fn device_reads(pool: &Pool) -> u64 {
    pool.tree().leaves().iter().map(|leaf| leaf.stats.snapshot().read.ops).sum()
}

async fn make(pool: &Pool) -> FileSystem {
    pool.create_dataset(NAME, Content::FileSystem(Default::default()), Vec::new()).await.unwrap();
    pool.open_file_system_for_writing(NAME).await.unwrap()
}

async fn add(fs: &FileSystem, name: &str) -> Node {
    let new = NewFile::new(FileKind::Regular, 0o644);
    fs.root().await.unwrap().create(name.as_bytes(), &new).await.unwrap()
}

/// The property's three values, as numbers: disabled, standard, always.
const VALUES: [u64; 3] = [0, 1, 2];

/// Whether a request goes past the cache, as OpenZFS's manual has it.
fn goes_past(direct: u64, is_asked: bool, is_aligned: bool) -> bool {
    is_aligned && (direct == 2 || direct == 1 && is_asked)
}

#[test]
fn a_read_past_the_cache_leaves_nothing_there_and_finds_what_is() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let (own, bytes) = (rig.clone(), noise(1, SIZE as usize));
    rig.run(1, async move {
        let pool = own.create().await;
        let fs = make(&pool).await;
        add(&fs, "f").await.write(0, &bytes).await.unwrap();
        pool.sync().await.unwrap();
        drop(fs);
        pool.export().await.unwrap();
        for direct in VALUES {
            for (is_asked, is_aligned) in [(false, false), (false, true), (true, false), (true, true)] {
                // The cache of a pool that was just opened is empty.
                let pool = own.open(false).await.unwrap();
                set(&pool, Prop::Direct, direct).await;
                let fs = pool.open_file_system_for_writing(NAME).await.unwrap();
                let file = fs.resolve(b"f", false).await.unwrap();
                let whole = || async {
                    let mut at = if is_aligned { 0 } else { 512 };
                    let (before, mut from_devices) = (device_reads(&pool), 0);
                    while at < SIZE {
                        let (data, passed) = file.read_as(at, 64 << 10, is_asked).await.unwrap();
                        assert!(data[..] == bytes[at as usize..][..data.len()]);
                        at += 64 << 10;
                        from_devices += passed;
                    }
                    (device_reads(&pool) - before, from_devices)
                };
                whole().await;
                let (reads, from_devices) = whole().await;
                let passes = goes_past(direct, is_asked, is_aligned);
                let what = format!("direct {direct}, asked {is_asked}, aligned {is_aligned}");
                assert_eq!((reads > 0, from_devices), (passes, if passes { SIZE } else { 0 }), "{what}");
                // What an ordinary reader has brought into the cache is served from there, whatever was asked for.
                file.read(0, SIZE as usize).await.unwrap();
                assert_eq!(whole().await, (0, 0), "{what}");
                drop((file, fs));
                pool.export().await.unwrap();
            }
        }
    });
}
