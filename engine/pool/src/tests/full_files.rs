//! File systems without room: of the pool, of a quota.

use super::{Rig, noise, verify};
use crate::{Content, Pool};
use dsl::props::{PropName, Types, Value, When, parse_setting};
use units::{Kind, Result};
use vdev::Layout;
use zpl::{Changes, FileKind, FileSystem, NewFile, Node, Refusal, Renaming};

const SET: &str = "tank/fs";
const REGULAR: NewFile<'static> = NewFile {
    kind: FileKind::Regular,
    permissions: 0o644,
    umask: 0,
    uid: 0,
    gid: 0,
    rdev: (0, 0),
    target: b"",
};

fn setting(name: &str, value: &str) -> (PropName, Value) {
    parse_setting(name, value, Types::FILESYSTEM, When::Later, &Default::default()).unwrap()
}

async fn set(pool: &Pool, name: &str, value: &str) {
    let (prop, value) = setting(name, value);
    pool.change("set", move |pool, tx| async move { pool.dsl().set(&tx, SET, &prop, &value).await })
        .await
        .unwrap();
}

/// Every name with size, links and extended attributes, which no refused request may change.
async fn shape(fs: &FileSystem) -> Vec<(Vec<u8>, u64, u64, usize)> {
    let mut found = Vec::new();
    let root = fs.root().await.unwrap();
    for entry in root.list_all().await.unwrap() {
        let node = fs.object(entry.object).await.unwrap();
        let stat = node.stat().await.unwrap();
        found.push((entry.name, stat.size, stat.links, node.xattr_names().await.unwrap().len()));
    }
    let stat = root.stat().await.unwrap();
    found.push((b".".to_vec(), stat.size, stat.links, 0));
    found.sort();
    found
}

/// Writes until it is refused; the error is answered.
async fn fill(file: &Node) -> units::Error {
    for n in 0.. {
        if let Err(e) = file.write(n * (1 << 20), &noise(n, 1 << 20)).await {
            return e;
        }
        // What is free is known when a txg has synced.
        if n % 4 == 3 {
            file.file_system().sync().await.unwrap();
        }
    }
    unreachable!("there is an end to every pool")
}

/// Whether it was refused for want of room, and how.
fn refusal(result: Result<()>) -> Option<Option<Refusal>> {
    let e = result.err()?;
    assert_eq!(e.kind(), Kind::NoSpace, "{e}");
    Some(Refusal::of(&e))
}

/// Each request that takes space is refused in the same way, and changes nothing; what frees space works.
async fn nothing_half_done(fs: &FileSystem, expected: Option<Refusal>) {
    let root = fs.root().await.unwrap();
    let (full, small) = (root.lookup(b"full").await.unwrap(), root.lookup(b"small").await.unwrap());
    let before = shape(fs).await;
    let directory = NewFile { kind: FileKind::Directory, ..REGULAR };
    let link = NewFile { kind: FileKind::Symlink, target: b"somewhere", ..REGULAR };
    let refused = [
        refusal(root.create(b"new", &REGULAR).await.map(drop)),
        refusal(root.create(b"dir", &directory).await.map(drop)),
        refusal(root.create(b"symlink", &link).await.map(drop)),
        refusal(root.link(b"link", &small).await),
        refusal(root.rename(b"small", &root, b"renamed", Renaming::Replace).await),
        refusal(root.rename(b"small", &root, b"full", Renaming::Exchange).await),
        refusal(small.write(0, b"more").await),
        refusal(small.write(1 << 20, &noise(1, 300_000)).await),
        refusal(small.truncate(1 << 30).await),
        refusal(small.allocate(0, 1 << 30, false).await),
        refusal(small.set_xattr(b"user.more", &noise(2, 1000)).await),
        refusal(small.set_xattr(b"user.file", &noise(2, 60_000)).await),
        refusal(small.change(&Changes { permissions: Some(0o600), ..Changes::default() }).await),
    ];
    for (n, refused) in refused.into_iter().enumerate() {
        assert_eq!(refused, Some(expected), "request {n}");
    }
    assert_eq!(shape(fs).await, before);
    // Ways out.
    small.remove_xattr(b"user.small").await.unwrap();
    full.punch_hole(0, 2 << 20).await.unwrap();
    full.truncate(1 << 20).await.unwrap();
    root.unlink(b"gone").await.unwrap();
    root.remove_directory(b"empty").await.unwrap();
    small.truncate(0).await.unwrap();
}

async fn made(pool: &Pool) -> FileSystem {
    let fs = pool.open_file_system_for_writing(SET).await.unwrap();
    let root = fs.root().await.unwrap();
    for name in ["full", "small", "gone"] {
        root.create(name.as_bytes(), &REGULAR).await.unwrap();
    }
    root.create(b"empty", &NewFile { kind: FileKind::Directory, ..REGULAR }).await.unwrap();
    let small = root.lookup(b"small").await.unwrap();
    small.write(0, b"small").await.unwrap();
    small.set_xattr(b"user.small", b"value").await.unwrap();
    fs
}

async fn room_again(pool: &Pool, fs: &FileSystem) {
    for _ in 0..5 {
        pool.sync().await.unwrap();
        pool.change("touch", |pool, tx| async move { pool.0.touch(&tx).await }).await.unwrap();
    }
    let small = fs.resolve(b"small", true).await.unwrap();
    small.write(0, b"there is room again").await.unwrap();
    fs.sync().await.unwrap();
}

#[test]
fn a_full_pool_refuses_files_whole_and_gives_back() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        let pool = own.create().await;
        pool.create_dataset(SET, Content::FileSystem(Default::default()), Vec::new()).await.unwrap();
        let fs = made(&pool).await;
        let e = fill(&fs.resolve(b"full", true).await.unwrap()).await;
        assert_eq!(e.kind(), Kind::NoSpace, "{e}");
        pool.sync().await.unwrap();
        nothing_half_done(&fs, None).await;
        room_again(&pool, &fs).await;
        drop(fs);
        verify(&pool).await;
        assert_eq!(pool.problems(), Vec::<String>::new());
        pool.export().await.unwrap();
    });
}

#[test]
fn a_dataset_at_its_quota_refuses_as_one_over_quota_while_the_pool_has_room() {
    for quota in ["quota", "refquota"] {
        let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
        let own = rig.clone();
        rig.run(1, async move {
            let pool = own.create().await;
            pool.create_dataset(SET, Content::FileSystem(Default::default()), Vec::new()).await.unwrap();
            set(&pool, quota, "10M").await;
            let fs = made(&pool).await;
            fill(&fs.resolve(b"full", true).await.unwrap()).await;
            pool.sync().await.unwrap();
            nothing_half_done(&fs, Some(Refusal::OverQuota)).await;
            room_again(&pool, &fs).await;
            drop(fs);
            verify(&pool).await;
            pool.export().await.unwrap();
        });
    }
}

/// What others have reserved is not there.
#[test]
fn a_reservation_keeps_room_for_its_dataset_alone() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        let pool = own.create().await;
        pool.create_dataset(SET, Content::FileSystem(Default::default()), Vec::new()).await.unwrap();
        let reserved = vec![setting("reservation", "20M")];
        pool.create_dataset("tank/kept", Content::FileSystem(Default::default()), reserved).await.unwrap();
        let fs = made(&pool).await;
        fill(&fs.resolve(b"full", true).await.unwrap()).await;
        pool.sync().await.unwrap();
        nothing_half_done(&fs, None).await;
        let kept = pool.open_file_system_for_writing("tank/kept").await.unwrap();
        let file = kept.root().await.unwrap().create(b"f", &REGULAR).await.unwrap();
        file.write(0, &noise(1, 5 << 20)).await.unwrap();
        kept.sync().await.unwrap();
        drop((file, kept, fs));
        pool.export().await.unwrap();
    });
}
