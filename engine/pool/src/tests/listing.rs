//! What listing a directory of a cold pool brings into the cache.

use super::Rig;
use crate::{Content, Pool};
use std::time::Duration;
use vdev::Layout;
use zpl::{FileKind, FileSystem, NewFile, Node};

const FILES: usize = 200;
const DIRECTORIES: usize = 20;

fn misses(pool: &Pool) -> u64 {
    let stats = pool.pipeline().cache().stats();
    stats.data.demand_misses + stats.metadata.demand_misses
}

async fn make(fs: &FileSystem) {
    let root = fs.root().await.unwrap();
    let top = root.create(b"top", &NewFile::new(FileKind::Directory, 0o755)).await.unwrap();
    for n in 0..FILES {
        top.create(format!("{n}").as_bytes(), &NewFile::new(FileKind::Regular, 0o644)).await.unwrap();
    }
    for n in 0..DIRECTORIES {
        let name = format!("directory {n}");
        let below = top.create(name.as_bytes(), &NewFile::new(FileKind::Directory, 0o755)).await.unwrap();
        // More than fits into a block pointer.
        for n in 0..30 {
            let name = format!("{:x}", world::random_u64().wrapping_mul(n + 3));
            below.create(name.as_bytes(), &NewFile::new(FileKind::Fifo, 0o600)).await.unwrap();
        }
    }
}

/// Lists a directory; what is fetched in advance is there when it is asked for.
async fn list(node: &Node) -> Vec<Node> {
    let entries = node.list_all().await.unwrap();
    world::sleep(Duration::from_secs(1)).await;
    let mut nodes = Vec::new();
    for entry in entries {
        nodes.push(node.file_system().object(entry.object).await.unwrap());
    }
    nodes
}

/// The attributes of all names come with a listing, and for a walk down the tree what is in the directories.
#[test]
fn listing_fetches_what_is_asked_for_next() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(5, async move {
        let pool = own.create().await;
        pool.create_dataset("tank/fs", Content::FileSystem(Default::default()), Vec::new()).await.unwrap();
        let fs = pool.open_file_system_for_writing("tank/fs").await.unwrap();
        make(&fs).await;
        drop(fs);
        pool.export().await.unwrap();
        drop(pool);
        let pool = own.open(true).await.unwrap();
        let fs = pool.open_file_system("tank/fs").await.unwrap();
        let top = list(&fs.root().await.unwrap()).await.pop().unwrap();
        let entries = top.list_all().await.unwrap();
        world::sleep(Duration::from_secs(1)).await;
        let before = misses(&pool);
        let mut seen = 0;
        for entry in &entries {
            let node = fs.object(entry.object).await.unwrap();
            node.stat().await.unwrap();
            if node.is_directory() {
                seen += node.list(0, 64).await.unwrap().entries.len();
            }
        }
        assert_eq!((entries.len(), seen), (FILES + DIRECTORIES, DIRECTORIES * 30));
        assert_eq!(misses(&pool) - before, 0, "all of it was there already");
    });
}
