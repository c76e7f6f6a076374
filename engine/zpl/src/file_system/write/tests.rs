//! Trees over blocks in memory.

mod damage;
mod lists;
mod quotas;
mod xattrs;

use super::*;
use crate::{Accounting, Changes, FileKind, NewFile, NewFileSystem, Renaming, Time};
use dmu::{Dirty, NoBlockAccounting, Policy, SyncCtx};
use ondisk::ObjsetType;
use tunables::Tunables;
use units::ObjsetId;
use zio::MemStore;

/// A file system whose pool syncs by itself, in the simulator; in the end it is opened anew and must be the same.
fn with_files<F: Future<Output = ()> + Send + 'static>(test: impl FnOnce(FileSystem) -> F + Send + 'static) {
    let settings = Settings { record_size: 16 << 10, ..Settings::default() };
    with_settings(NewFileSystem::default(), settings, test);
}

/// Everything is counted.
fn counting() -> NewFileSystem {
    NewFileSystem { accounting: Accounting::Projects, ..NewFileSystem::default() }
}

fn with_settings<F: Future<Output = ()> + Send + 'static>(
    new: NewFileSystem,
    settings: Settings,
    test: impl FnOnce(FileSystem) -> F + Send + 'static,
) {
    sim::run(11, sim::Config::default(), async move {
        let txgs = Txgs::new(Txg(9), &Tunables::default());
        let set =
            ObjSet::create(Arc::new(MemStore::new()), ObjsetId(54), ObjsetType::Zfs, Policy::mos(), Txg(10));
        crate::create(&set, &Tx::syncing(Txg(10)), new).await.unwrap();
        let (syncing, owner) = (set.clone(), txgs.clone());
        let sync = world::spawn(async move {
            while let Some(txg) = owner.next_to_sync().await {
                let ctx = SyncCtx {
                    txg,
                    pass: 1,
                    block_accounting: Arc::new(NoBlockAccounting),
                    dirty: Dirty::default(),
                };
                syncing.sync(&ctx).await.unwrap();
                owner.done(txg);
            }
        });
        let options = WriteOptions {
            txgs: txgs.clone(),
            space_reservation: None,
            settings,
            log: None,
            has_logged_xattrs: false,
        };
        let fs = FileSystem::open_for_writing("tank/fs", &set, options.clone()).await.unwrap();
        test(fs.clone()).await;
        fs.sync().await.unwrap();
        let before = tree(&fs).await;
        let store = set.store().clone();
        let again = ObjSet::open(store, ObjsetId(54), set.root(), Policy::mos()).await.unwrap();
        let again = FileSystem::open("tank/fs", &again).await.unwrap();
        assert_eq!(tree(&again).await, before, "what is on disk is what was in memory");
        txgs.close();
        sync.await;
    });
}

/// Every path, with what its file says and holds.
async fn tree(fs: &FileSystem) -> Vec<(Vec<u8>, crate::Stat, Vec<u8>)> {
    let mut found = Vec::new();
    let mut todo = vec![(Vec::new(), fs.root().await.unwrap())];
    while let Some((path, node)) = todo.pop() {
        let mut stat = node.stat().await.unwrap();
        stat.blocks = 0;
        let mut data = match node.kind() {
            FileKind::Regular => node.read(0, 1 << 20).await.unwrap().to_vec(),
            FileKind::Symlink => node.read_link().await.unwrap(),
            _ => Vec::new(),
        };
        for (name, value) in node.xattrs().await.unwrap() {
            data.extend(name);
            data.extend(value);
        }
        if node.is_directory() {
            let entries = node.list_all().await.unwrap();
            assert_eq!(stat.size, entries.len() as u64 + 2, "{}", String::from_utf8_lossy(&path));
            let mut directories = 0;
            for entry in entries {
                let child = fs.object(entry.object).await.unwrap();
                directories += u64::from(child.is_directory());
                todo.push(([&path[..], b"/", &entry.name].concat(), child));
            }
            assert_eq!(stat.links, directories + 2, "{}", String::from_utf8_lossy(&path));
        }
        found.push((path, stat, data));
    }
    found
}

fn why<T: std::fmt::Debug>(result: Result<T>) -> Option<Refusal> {
    Refusal::of(&result.unwrap_err())
}

#[test]
fn files_of_every_kind_are_made_linked_and_removed() {
    with_files(|fs| async move {
        let root = fs.root().await.unwrap();
        let dir = root.create(b"dir", &NewFile::new(FileKind::Directory, 0o755)).await.unwrap();
        let file = dir.create(b"file", &NewFile::new(FileKind::Regular, 0o644)).await.unwrap();
        let link = NewFile { target: &[b'x'; 300], ..NewFile::new(FileKind::Symlink, 0o777) };
        let link = dir.create(b"link", &link).await.unwrap();
        assert_eq!(link.read_link().await.unwrap(), [b'x'; 300], "it is in the spill block");
        let device = NewFile { rdev: (8, 17), ..NewFile::new(FileKind::BlockDevice, 0o600) };
        let device = dir.create(b"device", &device).await.unwrap();
        assert_eq!(device.stat().await.unwrap().rdev, (8, 17));
        root.link(b"second", &file).await.unwrap();
        assert_eq!(file.stat().await.unwrap().links, 2);
        assert_eq!(root.lookup(b"second").await.unwrap().id(), file.id());
        assert_eq!(
            dir.create(b"file", &NewFile::new(FileKind::Fifo, 0)).await.unwrap_err().kind(),
            Kind::Exists
        );
        assert_eq!(why(root.remove_directory(b"dir").await), Some(Refusal::NotEmpty));
        assert_eq!(why(root.unlink(b"dir").await), Some(Refusal::IsDirectory));
        assert_eq!(why(root.link(b"x", &dir).await), Some(Refusal::IsDirectory));
        assert_eq!(
            why(root.create(&[b'n'; 256], &NewFile::new(FileKind::Fifo, 0)).await),
            Some(Refusal::NameTooLong)
        );
        assert!(root.create(b"..", &NewFile::new(FileKind::Fifo, 0)).await.is_err());
        dir.unlink(b"file").await.unwrap();
        dir.unlink(b"link").await.unwrap();
        dir.unlink(b"device").await.unwrap();
        assert_eq!(file.stat().await.unwrap().links, 1);
        root.remove_directory(b"dir").await.unwrap();
        assert_eq!(why(dir.create(b"late", &NewFile::new(FileKind::Fifo, 0)).await), Some(Refusal::Stale));
        // Unlinked, but still open: it can be read, and goes with its last handle.
        file.write(0, b"still here").await.unwrap();
        root.unlink(b"second").await.unwrap();
        assert_eq!(&file.read(0, 99).await.unwrap()[..], b"still here");
        let id = file.id();
        assert_eq!(fs.writer().unwrap().unlinked.len().await.unwrap(), 4);
        for node in [file, link, device, dir] {
            node.release().await.unwrap();
        }
        assert_eq!(why(fs.node(id).await), Some(Refusal::Stale));
        assert_eq!(fs.writer().unwrap().unlinked.len().await.unwrap(), 0);
    });
}

#[test]
fn data_are_what_an_array_of_bytes_would_hold() {
    with_files(|fs| async move {
        let root = fs.root().await.unwrap();
        let file = root.create(b"f", &NewFile::new(FileKind::Regular, 0o600)).await.unwrap();
        let mut oracle: Vec<u8> = Vec::new();
        for step in 0..400u64 {
            let offset = (world::random_u64() % 100_000) >> (world::random_u64() % 12);
            let len = world::random_u64() % 20_000 + 1;
            let end = (offset + len) as usize;
            match world::random_u64() % 8 {
                0..=3 => {
                    let data = vec![step as u8 | 1; len as usize];
                    file.write(offset, &data).await.unwrap();
                    oracle.resize(oracle.len().max(end), 0);
                    oracle[offset as usize..end].copy_from_slice(&data);
                }
                4 => {
                    file.truncate(offset).await.unwrap();
                    oracle.resize(offset as usize, 0);
                }
                5 => {
                    file.punch_hole(offset, len).await.unwrap();
                    let from = (offset as usize).min(oracle.len());
                    let to = end.min(oracle.len());
                    oracle[from..to].fill(0);
                }
                6 if step % 3 == 0 => fs.sync().await.unwrap(),
                6 => {
                    file.allocate(offset, len, step % 2 == 0).await.unwrap();
                    if step % 2 != 0 {
                        oracle.resize(oracle.len().max(end), 0);
                    }
                }
                _ => {}
            }
            let read = file.read(0, 1 << 20).await.unwrap();
            assert!(read[..] == oracle[..], "step {step}: {} and {} bytes", read.len(), oracle.len());
            if let Some(data) = file.seek_data(0).await.unwrap() {
                assert!(oracle[..data as usize].iter().all(|b| *b == 0), "step {step}");
            }
        }
        assert_eq!(file.stat().await.unwrap().block_size, 16 << 10);
    });
}

#[test]
fn names_move_replace_and_change_places() {
    with_files(|fs| async move {
        let root = fs.root().await.unwrap();
        let directory = NewFile::new(FileKind::Directory, 0o755);
        let regular = NewFile::new(FileKind::Regular, 0o644);
        let (a, b) =
            (root.create(b"a", &directory).await.unwrap(), root.create(b"b", &directory).await.unwrap());
        let below = a.create(b"below", &directory).await.unwrap();
        let (x, y) = (a.create(b"x", &regular).await.unwrap(), b.create(b"y", &regular).await.unwrap());
        assert!(root.rename(b"a", &below, b"loop", Renaming::Replace).await.is_err());
        assert_eq!(a.rename(b"x", &b, b"y", Renaming::NoReplace).await.unwrap_err().kind(), Kind::Exists);
        a.rename(b"x", &b, b"y", Renaming::Exchange).await.unwrap();
        assert_eq!(a.lookup(b"x").await.unwrap().id(), y.id());
        assert_eq!(b.lookup(b"y").await.unwrap().id(), x.id());
        // A directory for a file, across directories.
        a.rename(b"below", &b, b"y", Renaming::Exchange).await.unwrap();
        assert_eq!(b.lookup(b"y").await.unwrap().id(), below.id());
        assert_eq!(below.parent().await.unwrap().id(), b.id());
        assert_eq!(why(root.rename(b"b", &a, b"x", Renaming::Replace).await), Some(Refusal::NotDirectory));
        let gone = y.id();
        drop(y);
        a.rename(b"below", &a, b"x", Renaming::Replace).await.unwrap();
        assert_eq!(a.lookup(b"x").await.unwrap().id(), x.id());
        assert_eq!(why(fs.node(gone).await), Some(Refusal::Stale));
        a.rename(b"x", &a, b"x", Renaming::Replace).await.unwrap();
        a.rename(b"x", &a, b"z", Renaming::Replace).await.unwrap();
        b.rename(b"y", &root, b"a2", Renaming::Replace).await.unwrap();
        root.rename(b"a2", &root, b"b", Renaming::Replace).await.unwrap();
        assert_eq!(root.list_all().await.unwrap().len(), 2);
    });
}

#[test]
fn a_name_that_moves_may_leave_a_whiteout() {
    with_files(|fs| async move {
        let root = fs.root().await.unwrap();
        let regular = NewFile::new(FileKind::Regular, 0o644);
        let directory = NewFile::new(FileKind::Directory, 0o755);
        let dir = root.create(b"dir", &directory).await.unwrap();
        let below = root.create(b"below", &directory).await.unwrap();
        let file = root.create(b"file", &regular).await.unwrap();
        root.create(b"old", &regular).await.unwrap();
        let how = Renaming::Whiteout { uid: 7, gid: 8 };
        root.rename(b"file", &root, b"old", how).await.unwrap();
        root.rename(b"below", &dir, b"moved", how).await.unwrap();
        assert_eq!(root.lookup(b"old").await.unwrap().id(), file.id());
        assert_eq!(dir.lookup(b"moved").await.unwrap().id(), below.id());
        for name in [&b"file"[..], b"below"] {
            let left = root.lookup(name).await.unwrap().stat().await.unwrap();
            assert_eq!((left.kind, left.rdev, left.permissions), (FileKind::CharDevice, (0, 0), 0));
            assert_eq!((left.uid, left.gid, left.links), (7, 8, 1));
        }
        // dir, file, below and old; dir alone is a directory.
        let stat = root.stat().await.unwrap();
        assert_eq!((root.list_all().await.unwrap().len(), stat.links), (4, 3));
        assert_eq!(dir.stat().await.unwrap().links, 3);
        // Onto itself it would have two names for one place.
        root.rename(b"old", &root, b"old", how).await.unwrap();
        assert_eq!(root.lookup(b"old").await.unwrap().id(), file.id());
        root.unlink(b"below").await.unwrap();
        assert_eq!(root.list_all().await.unwrap().len(), 3);
    });
}

#[test]
fn attributes_change_and_extended_ones_spill_and_come_back() {
    with_files(|fs| async move {
        let root = fs.root().await.unwrap();
        let file = root.create(b"f", &NewFile::new(FileKind::Regular, 0o644)).await.unwrap();
        let time = Time { seconds: -5, nanos: 7 };
        let changes = Changes {
            permissions: Some(0o4077),
            uid: Some(1000),
            mtime: Some(time),
            flags: Some(crate::flags::NODUMP),
            ..Changes::default()
        };
        file.change(&changes).await.unwrap();
        let stat = file.stat().await.unwrap();
        assert_eq!((stat.permissions, stat.uid, stat.gid, stat.mtime), (0o4077, 1000, 0, time));
        assert!(stat.flags & crate::flags::NODUMP != 0);
        assert!(
            file.acl().await.unwrap().iter().any(|ace| ace.kind == 1),
            "the owner is denied what others have"
        );
        for round in 0..3 {
            for (name, len) in [("user.small", 10), ("user.large", 20_000), ("security.x", 200)] {
                file.set_xattr(name.as_bytes(), &vec![round; len]).await.unwrap();
            }
            assert!(file.object().has_spill());
            assert_eq!(file.xattr(b"user.large").await.unwrap(), Some(vec![round; 20_000]));
            assert_eq!(file.xattr_names().await.unwrap().len(), 3);
            if round != 1 {
                fs.sync().await.unwrap();
            }
            file.remove_xattr(b"user.large").await.unwrap();
            file.remove_xattr(b"security.x").await.unwrap();
            assert!(!file.object().has_spill());
            assert_eq!(file.xattr(b"user.small").await.unwrap(), Some(vec![round; 10]));
        }
        assert_eq!(file.remove_xattr(b"user.none").await.unwrap_err().kind(), Kind::NotFound);
        assert_eq!(why(file.set_xattr(b"user.huge", &[0; 17 << 20]).await), Some(Refusal::TooLarge));
        file.change(&Changes { flags: Some(crate::flags::IMMUTABLE), ..Changes::default() }).await.unwrap();
        assert_eq!(why(file.write(0, b"x").await), Some(Refusal::Flagged));
        assert_eq!(why(root.unlink(b"f").await), Some(Refusal::Flagged));
        // Whoever may may take it away again.
        file.change(&changes).await.unwrap();
        file.set_xattr(b"user.a", b"b").await.unwrap();
    });
}
