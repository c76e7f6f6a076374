//! What reading an extended attribute costs, by where it is kept: counted in blocks that are not in the cache.
//!
//! ```text
//!   xattr=dir              block of dnodes ─▶ hidden directory's names ─▶ the value            3
//!   xattr=sa, 512 bytes    block of dnodes ─▶ spill block                                      2
//!   xattr=sa, 1 KiB        block of dnodes                                                     1
//! ```
//!
//! What all files share (root block, indirect blocks of dnodes, tables of attributes) is read before by looking at another
//! file; the files that are counted are so far apart that no two share a block of dnodes. A file, its hidden directory and
//! the value were made one after the other and are in one block of dnodes. Names are not embedded into block pointers, as
//! a pool with `embedded_data` does: there the hidden directory's block goes, and two remain.

use super::{Rig, noise};
use crate::{Content, Pool};
use dsl::props::{Types, When, parse_setting};
use ondisk::Feature;
use vdev::Layout;
use zpl::{FileKind, FileSystem, NewFile, NodeId};

const NAME: &[u8] = b"user.test";
const SIZE: usize = 512;
/// Enough for many blocks of 32 dnodes.
const FILES: u64 = 512;

/// What was counted.
#[derive(Debug, PartialEq)]
struct Cost {
    /// Reads of each file looked at.
    reads: Vec<u64>,
    /// Blocks in the cache when all values were read, for all files, without what they share.
    blocks: u64,
}

fn cost(xattr: &'static str, dnode_size: &'static str, embeds: bool) -> Cost {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(3, async move {
        let pool = own.create_with(|feature| embeds || feature != Feature::EmbeddedData).await;
        let setting = |name, value| {
            parse_setting(name, value, Types::FILESYSTEM, When::Create, &Default::default()).unwrap()
        };
        let props = vec![setting("xattr", xattr), setting("dnodesize", dnode_size)];
        pool.create_dataset("tank/fs", Content::FileSystem(Default::default()), props).await.unwrap();
        let fs = pool.open_file_system_for_writing("tank/fs").await.unwrap();
        let root = fs.root().await.unwrap();
        let mut files = Vec::new();
        for n in 0..FILES {
            let name = format!("{n}");
            let file = root.create(name.as_bytes(), &NewFile::new(FileKind::Regular, 0o644)).await.unwrap();
            file.set_xattr(NAME, &noise(n, SIZE)).await.unwrap();
            files.push(file.id());
        }
        drop((root, fs));
        pool.export().await.unwrap();
        drop(pool);
        let pool = own.open(true).await.unwrap();
        let fs = pool.open_file_system("tank/fs").await.unwrap();
        read(&fs, 0, files[0]).await;
        let mut reads = Vec::new();
        let mut last = block_of(files[0]);
        for (n, id) in (0..).zip(&files) {
            // A file whose three dnodes are in one block, which was not read yet.
            if block_of(*id) == last || id.object.0 % 32 > 29 {
                continue;
            }
            last = block_of(*id);
            let before = misses(&pool);
            read(&fs, n, *id).await;
            reads.push(misses(&pool) - before);
        }
        let pool = {
            drop(fs);
            pool.close().await.unwrap();
            drop(pool);
            own.open(true).await.unwrap()
        };
        let fs = pool.open_file_system("tank/fs").await.unwrap();
        // One file more than its own blocks: what is shared.
        read(&fs, 0, files[0]).await;
        let own_blocks = reads[0];
        let shared = blocks(&pool) - own_blocks;
        for (n, id) in (0..).zip(&files) {
            read(&fs, n, *id).await;
        }
        Cost { reads, blocks: blocks(&pool) - shared }
    })
}

async fn read(fs: &FileSystem, n: u64, id: NodeId) {
    let file = fs.node(id).await.unwrap();
    assert_eq!(file.xattr(NAME).await.unwrap(), Some(noise(n, SIZE)));
}

/// The block of dnodes that a file is in.
fn block_of(id: NodeId) -> u64 {
    id.object.0 / 32
}

fn misses(pool: &Pool) -> u64 {
    let stats = pool.pipeline().cache().stats();
    stats.data.demand_misses + stats.metadata.demand_misses
}

fn blocks(pool: &Pool) -> u64 {
    let stats = pool.pipeline().cache().stats();
    stats.data.blocks + stats.metadata.blocks
}

#[test]
fn a_cold_value_takes_three_reads_or_two_or_one_and_a_sixteenth_of_the_cache() {
    let directory = cost("dir", "legacy", false);
    assert!(directory.reads.len() >= 10 && directory.reads.iter().all(|n| *n == 3), "{directory:?}");
    let spilled = cost("sa", "legacy", false);
    assert!(spilled.reads.len() >= 10 && spilled.reads.iter().all(|n| *n == 2), "{spilled:?}");
    let large = cost("sa", "1k", false);
    assert!(large.reads.len() >= 10 && large.reads.iter().all(|n| *n == 1), "{large:?}");
    // 32 files in a block of dnodes and a spill block each, or 16 in a block and nothing else: 33/32 to 1/16.
    assert!(large.blocks <= FILES / 16 + 1, "{large:?}");
    assert!(spilled.blocks >= 16 * large.blocks, "{} and {} blocks", spilled.blocks, large.blocks);
    assert!(directory.blocks >= 2 * FILES, "{directory:?}");
    // Where a pool embeds small blocks, the hidden directory is in the pointer to it.
    let embedded = cost("dir", "legacy", true);
    assert!(embedded.reads.iter().all(|n| *n == 2), "{embedded:?}");
}
