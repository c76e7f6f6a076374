//! What is on disk lies: requests answer, with what is there or with an error, and come to an end.

use super::*;
use crate::Xattrs;
use zap::Value;

/// More than any tree here has: a walk that sees more goes in circles.
const SEEN_MAX: usize = 400;

/// Asks everything of everything there is, as far as it can be reached.
async fn look_around(fs: &FileSystem) {
    let Ok(root) = fs.root().await else { return };
    let mut todo = vec![root];
    let mut seen = 0;
    while let Some(node) = todo.pop() {
        seen += 1;
        if seen > SEEN_MAX {
            return;
        }
        let _ = node.stat().await;
        let _ = node.acl().await;
        let _ = node.xattrs().await;
        let _ = node.permissions().await;
        let _ = node.parent().await;
        let _ = node.read_link().await;
        let _ = node.read(0, 1 << 16).await;
        let _ = node.seek_data(0).await;
        let _ = node.seek_hole(0).await;
        let mut cookie = 0;
        for _ in 0..50 {
            let Ok(part) = node.list(cookie, 16).await else { break };
            for entry in &part.entries {
                if let Ok(child) = fs.object(entry.object).await {
                    todo.push(child);
                }
            }
            let Some(last) = part.entries.last().filter(|_| !part.is_end) else { break };
            cookie = last.cookie;
        }
    }
}

/// Changes everything there is to be changed, as far as it lets itself be.
async fn change_around(fs: &FileSystem) {
    let Ok(root) = fs.root().await else { return };
    let new = NewFile::new(FileKind::Regular, 0o644);
    let made = root.create(b"made", &new).await;
    for name in ["a", "b", "dir", "link", "gone"] {
        let Ok(node) = root.lookup(name.as_bytes()).await else { continue };
        let _ = node.write(10_000, &[3; 30_000]).await;
        let _ = node.set_xattr(b"user.x", &[1; 3000]).await;
        let _ = node.set_xattr(b"user.hidden", &[1; 40_000]).await;
        let _ = node.remove_xattr(b"user.first").await;
        let _ = node.change(&Changes { permissions: Some(0o600), uid: Some(5), ..Changes::default() }).await;
        let _ = node.truncate(100).await;
        let _ = node.create(b"below", &new).await;
        let _ = root.rename(name.as_bytes(), &node, b"into itself", Renaming::Replace).await;
        let _ = root.rename(name.as_bytes(), &root, b"a", Renaming::Exchange).await;
        let _ = root.unlink(name.as_bytes()).await;
        let _ = root.remove_directory(name.as_bytes()).await;
    }
    drop(made);
    let _ = root.unlink(b"made").await;
}

async fn populate(fs: &FileSystem) -> Vec<Node> {
    let root = fs.root().await.unwrap();
    let mut nodes = vec![root.clone()];
    for (name, kind) in [("a", FileKind::Regular), ("b", FileKind::Regular), ("dir", FileKind::Directory)] {
        let node = root.create(name.as_bytes(), &NewFile::new(kind, 0o755)).await.unwrap();
        for (xattr, len) in [("user.first", 100), ("user.second", 2000), ("user.third", 40_000)] {
            node.set_xattr(xattr.as_bytes(), &vec![7; len]).await.unwrap();
        }
        nodes.push(node.xattr_directory().await.unwrap().unwrap());
        nodes.push(node);
    }
    let link = NewFile { target: b"dir/inside", ..NewFile::new(FileKind::Symlink, 0o777) };
    nodes.push(root.create(b"link", &link).await.unwrap());
    let dir = root.lookup(b"dir").await.unwrap();
    for n in 0..40 {
        dir.create(format!("inside {n}").as_bytes(), &NewFile::new(FileKind::Fifo, 0o600)).await.unwrap();
    }
    nodes
}

fn flip(bytes: &mut [u8]) {
    for _ in 0..world::random_u64() % 4 + 1 {
        let at = (world::random_u64() % bytes.len().max(1) as u64) as usize;
        if let Some(byte) = bytes.get_mut(at) {
            *byte = match world::random_u64() % 3 {
                0 => 0xff,
                1 => 0,
                _ => world::random_u64() as u8,
            };
        }
    }
}

/// Attributes, names and spill blocks with wrong bytes in them.
#[test]
fn wrong_bytes_anywhere_are_errors_and_no_more() {
    for seed in 0..60 {
        sim::run(seed, sim::Config::default(), async move {
            let txgs = Txgs::new(Txg(9), &Tunables::default());
            let store = Arc::new(MemStore::new());
            let set = ObjSet::create(store, ObjsetId(54), ObjsetType::Zfs, Policy::mos(), Txg(10));
            crate::create(&set, &Tx::syncing(Txg(10)), counting()).await.unwrap();
            let settings =
                Settings { record_size: 16 << 10, xattr: Xattrs::Attribute, ..Settings::default() };
            let options = WriteOptions {
                txgs: txgs.clone(),
                space_reservation: None,
                settings,
                log: None,
                has_logged_xattrs: false,
            };
            let fs = FileSystem::open_for_writing("tank/fs", &set, options).await.unwrap();
            let nodes = populate(&fs).await;
            for _ in 0..6 {
                let node = &nodes[(world::random_u64() % nodes.len() as u64) as usize];
                let tx = fs.begin(0).await.unwrap();
                let object = node.object();
                match world::random_u64() % 3 {
                    0 => {
                        let mut bonus = object.bonus().to_vec();
                        flip(&mut bonus);
                        let _ = object.set_bonus(&tx, bonus);
                    }
                    1 => {
                        let mut block = object.read_block(0).await.unwrap().to_vec();
                        flip(&mut block);
                        let _ = object.write_block(&tx, 0, Buf::copy_from(&block));
                    }
                    _ => {
                        if let Ok(Some(spill)) = object.read_spill().await {
                            let mut spill = spill.to_vec();
                            flip(&mut spill[..64]);
                            let _ = object.set_spill(&tx, Some(Buf::copy_from(&spill)));
                        }
                    }
                }
            }
            drop(nodes);
            look_around(&fs).await;
            change_around(&fs).await;
            look_around(&fs).await;
        });
    }
}

/// It did not come to an end: each block of the hole was looked at.
#[test]
fn the_hole_of_a_file_as_large_as_can_be_is_one_answer() {
    with_files(|fs| async move {
        let root = fs.root().await.unwrap();
        let file = root.create(b"f", &NewFile::new(FileKind::Regular, 0o644)).await.unwrap();
        file.write(0, b"x").await.unwrap();
        let size = i64::MAX as u64;
        file.truncate(size).await.unwrap();
        assert_eq!(file.seek_data(1 << 20).await.unwrap(), None);
        let block = u64::from(file.stat().await.unwrap().block_size);
        assert_eq!(file.seek_hole(0).await.unwrap(), Some(block));
        fs.sync().await.unwrap();
        assert_eq!(file.seek_data(1 << 20).await.unwrap(), None);
        file.truncate(0).await.unwrap();
    });
}

/// Directories within each other: a walk up from one of them comes to an end.
#[test]
fn directories_in_a_circle_are_found_out() {
    with_files(|fs| async move {
        let root = fs.root().await.unwrap();
        let directory = NewFile::new(FileKind::Directory, 0o755);
        let a = root.create(b"a", &directory).await.unwrap();
        let b = a.create(b"b", &directory).await.unwrap();
        let file = root.create(b"f", &NewFile::new(FileKind::Regular, 0o644)).await.unwrap();
        {
            let mut loaded = a.load().await.unwrap();
            loaded.set(Attr::Parent, &[b.id().object.0]).unwrap();
            let tx = fs.begin(COST).await.unwrap();
            loaded.store(&tx).await.unwrap();
        }
        let other = root.create(b"other", &directory).await.unwrap();
        let e = root.rename(b"other", &b, b"moved", Renaming::Replace).await.unwrap_err();
        assert_eq!(e.kind(), Kind::Corrupt, "{e}");
        // Files need no look upwards.
        root.rename(b"f", &b, b"moved", Renaming::Replace).await.unwrap();
        drop((other, file));
        let mut loaded = a.load().await.unwrap();
        loaded.set(Attr::Parent, &[root.id().object.0]).unwrap();
        let tx = fs.begin(COST).await.unwrap();
        loaded.store(&tx).await.unwrap();
    });
}

#[test]
fn names_that_are_not_unicode_are_refused_where_names_are_unicode() {
    let unicode = NewFileSystem { utf8only: 1, ..NewFileSystem::default() };
    with_settings(unicode, Settings::default(), |fs| async move {
        let root = fs.root().await.unwrap();
        let new = NewFile::new(FileKind::Regular, 0o644);
        assert_eq!(why(root.create(b"\xff\xfe", &new).await), Some(Refusal::NotUtf8));
        root.create("ünï".as_bytes(), &new).await.unwrap();
        assert_eq!(
            why(root.rename("ünï".as_bytes(), &root, b"\xff", Renaming::Replace).await),
            Some(Refusal::NotUtf8)
        );
    });
    with_files(|fs| async move {
        let root = fs.root().await.unwrap();
        root.create(b"\xff\xfe", &NewFile::new(FileKind::Regular, 0o644)).await.unwrap();
        root.lookup(b"\xff\xfe").await.unwrap();
    });
}

/// Of names that are one by their case or form there is one, kept as it was given.
#[test]
fn names_that_are_alike_are_one_name_where_they_are_to_be() {
    // formC, and without regard to case.
    let alike = NewFileSystem { utf8only: 1, normalization: 0x50, casesensitivity: 1, ..Default::default() };
    with_settings(alike, Settings::default(), |fs| async move {
        let root = fs.root().await.unwrap();
        let new = NewFile::new(FileKind::Regular, 0o644);
        let file = root.create("Caf\u{e9}".as_bytes(), &new).await.unwrap();
        for name in ["CAF\u{c9}", "cafe\u{301}"] {
            assert_eq!(root.lookup(name.as_bytes()).await.unwrap().id(), file.id(), "{name}");
            assert_eq!(root.create(name.as_bytes(), &new).await.unwrap_err().kind(), Kind::Exists);
        }
        // Only the spelling changes.
        root.rename("CAFE\u{301}".as_bytes(), &root, "CAF\u{c9}".as_bytes(), Renaming::Replace)
            .await
            .unwrap();
        let names: Vec<_> = root.list_all().await.unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["CAF\u{c9}".as_bytes()]);
        root.unlink("caf\u{e9}".as_bytes()).await.unwrap();
    });
    let mixed = NewFileSystem { casesensitivity: 2, ..Default::default() };
    with_settings(mixed, Settings::default(), |fs| async move {
        let root = fs.root().await.unwrap();
        let new = NewFile::new(FileKind::Regular, 0o644);
        let upper = root.create(b"NAME", &new).await.unwrap();
        let lower = root.create(b"name", &new).await.unwrap();
        assert_ne!(upper.id(), lower.id());
        assert_eq!(root.lookup(b"NAME").await.unwrap().id(), upper.id());
    });
}

/// One block of whole sectors as large as the file, until it is as large as records are; then more of them.
#[test]
fn the_only_block_of_a_file_grows_by_sectors_up_to_the_record_size() {
    with_settings(NewFileSystem::default(), Settings::default(), |fs| async move {
        let root = fs.root().await.unwrap();
        let file = root.create(b"f", &NewFile::new(FileKind::Regular, 0o644)).await.unwrap();
        for (end, block) in [
            (1, 512),
            (512, 512),
            (513, 1024),
            (5000, 5120),
            (100_000, 100_352),
            (131_072, 131_072),
            (131_073, 131_072),
            (1 << 20, 131_072),
        ] {
            file.write(end - 1, b"x").await.unwrap();
            assert_eq!(file.stat().await.unwrap().block_size, block, "{end}");
        }
        // What has blocks keeps their size, what has one follows the property.
        fs.set_settings(Settings { record_size: 1 << 20, ..Settings::default() }).unwrap();
        file.write(3 << 20, b"x").await.unwrap();
        assert_eq!(file.stat().await.unwrap().block_size, 131_072);
        let other = root.create(b"g", &NewFile::new(FileKind::Regular, 0o644)).await.unwrap();
        other.write(500_000, b"x").await.unwrap();
        assert_eq!(other.stat().await.unwrap().block_size, 500_224);
        fs.set_settings(Settings { record_size: 4096, ..Settings::default() }).unwrap();
        other.write(600_000, b"x").await.unwrap();
        assert_eq!(other.stat().await.unwrap().block_size, 1 << 19);
    });
}

/// Directories whose tables lead round in circles end in an error that says where, for every reader.
#[test]
fn directories_that_loop_are_errors_that_name_the_object() {
    with_files(|fs| async move {
        let root = fs.root().await.unwrap();
        // Longer than a micro ZAP has them.
        let name = |n: u32| format!("{n} {}", "x".repeat(60)).into_bytes();
        for fault in ["table", "chain", "leaf"] {
            let dir = root.create(fault.as_bytes(), &NewFile::new(FileKind::Directory, 0o755)).await.unwrap();
            for n in 0..600 {
                dir.create(&name(n), &NewFile::new(FileKind::Fifo, 0o600)).await.unwrap();
            }
            fs.sync().await.unwrap();
            let object = dir.object();
            let size = object.block_size() as usize;
            let mut header = object.read_block(0).await.unwrap().to_vec();
            // Half of the first block is the table of leaves.
            let table = size / 2;
            let first: [u8; 8] = header[table..table + 8].try_into().unwrap();
            let leaf = u64::from_le_bytes(first);
            let mut block = object.read_block(leaf).await.unwrap().to_vec();
            let sound = (Buf::copy_from(&header), Buf::copy_from(&block));
            let tx = fs.begin(0).await.unwrap();
            match fault {
                // All leaves are one.
                "table" => header[table..].chunks_exact_mut(8).for_each(|p| p.copy_from_slice(&first)),
                // The table leads to the header itself.
                "leaf" => header[table..].fill(0),
                // The first entry of a bucket is followed by itself.
                _ => {
                    let buckets = 1 << (size.ilog2() - 5);
                    let at = |i: usize| 48 + 2 * i;
                    let bucket = (0..buckets).find(|i| block[at(*i)..at(*i) + 2] != [0xff; 2]).unwrap();
                    let chunk: [u8; 2] = block[at(bucket)..at(bucket) + 2].try_into().unwrap();
                    let entry = at(buckets) + 24 * usize::from(u16::from_le_bytes(chunk));
                    block[entry + 2..entry + 4].copy_from_slice(&chunk);
                }
            }
            object.write_block(&tx, 0, Buf::copy_from(&header)).unwrap();
            object.write_block(&tx, leaf, Buf::copy_from(&block)).unwrap();
            drop(tx);
            let error = dir.list_all().await.map(|all| all.len()).unwrap_err();
            assert_eq!(error.kind(), Kind::Corrupt, "{fault}: {error}");
            // Leaves are found without the table, and entries without their chain.
            let salvaged = dir.salvage(0, 601).await.unwrap();
            let gaps = usize::from(fault != "chain");
            assert_eq!(
                (salvaged.entries.len(), salvaged.gaps.len(), salvaged.next),
                (600, gaps, None),
                "{fault}"
            );
            let wanted = format!("{}", object.id().0);
            assert!(error.to_string().contains(&wanted) && !error.to_string().contains('\n'), "{error}");
            let mut failed = 0;
            for n in 0..600 {
                failed += u32::from(dir.lookup(&name(n)).await.is_err());
            }
            // A chain may have been of one, which is found all the same.
            assert!(failed > 0 || fault == "chain", "{fault}");
            // The rest of the test reads all that there is.
            object.write_block(&fs.begin(0).await.unwrap(), 0, sound.0).unwrap();
            object.write_block(&fs.begin(0).await.unwrap(), leaf, sound.1).unwrap();
            assert_eq!(dir.list_all().await.unwrap().len(), 600);
        }
    });
}

/// One entry that leads nowhere took up to 4096 others along.
#[test]
fn an_entry_with_an_odd_value_costs_itself() {
    with_files(|fs| async move {
        let root = fs.root().await.unwrap();
        let dir = root.create(b"dir", &NewFile::new(FileKind::Directory, 0o755)).await.unwrap();
        for n in 0..40u32 {
            let name = format!("name {n}");
            dir.create(name.as_bytes(), &NewFile::new(FileKind::Fifo, 0o600)).await.unwrap();
        }
        let sound = dir.list_all().await.unwrap();
        let odd = &sound[20];
        let names = dir.directory().unwrap();
        let word = names.lookup(&odd.name[..]).await.unwrap().unwrap();
        for value in [Value::from(0), Value::from(1 << 48), Value::text("text"), Value::U64(Vec::new())] {
            names.update(&fs.begin(0).await.unwrap(), &odd.name[..], value).await.unwrap();
            // A listing gives what is before it, and is not whole for any reader.
            let part = dir.list(0, 4096).await.unwrap();
            assert_eq!((&part.entries[..], part.is_end), (&sound[..20], false));
            assert_eq!(dir.list(part.entries[19].cookie, 4096).await.unwrap_err().kind(), Kind::Corrupt);
            assert!(dir.list_all().await.is_err());
            let salvaged = dir.salvage(0, 1).await.unwrap();
            let others = sound.iter().filter(|entry| entry.name != odd.name);
            assert!(salvaged.entries.iter().eq(others), "{:?}", salvaged.entries);
            assert_eq!((salvaged.gaps.len(), salvaged.next), (1, None));
            let why = salvaged.gaps[0].why.to_string();
            assert!(why.contains(&*String::from_utf8_lossy(&odd.name)), "{why}");
        }
        names.update(&fs.begin(0).await.unwrap(), &odd.name[..], word).await.unwrap();
    });
}

/// Of versions before ours only reading is known, of others nothing.
#[test]
fn file_systems_of_other_versions_are_not_changed() {
    sim::run(3, sim::Config::default(), async {
        let txgs = Txgs::new(Txg(9), &Tunables::default());
        let store = Arc::new(MemStore::new());
        let set = ObjSet::create(store, ObjsetId(54), ObjsetType::Zfs, Policy::mos(), Txg(10));
        let tx = Tx::syncing(Txg(10));
        crate::create(&set, &tx, NewFileSystem::default()).await.unwrap();
        for version in [0, 1, 2, 3, 4, 6, u64::MAX] {
            let master = Zap::open(set.object(MASTER_NODE).await.unwrap());
            master.update(&tx, "VERSION", version).await.unwrap();
            let read = FileSystem::open("tank/fs", &set).await.map(|fs| fs.version());
            let (txgs, settings) = (txgs.clone(), Settings::default());
            let options =
                WriteOptions { txgs, space_reservation: None, settings, log: None, has_logged_xattrs: false };
            let refused = FileSystem::open_for_writing("tank/fs", &set, options).await.unwrap_err();
            assert_eq!(refused.kind(), Kind::Unsupported, "{version}");
            let said = refused.to_string();
            if (1..5).contains(&version) {
                assert_eq!(read.unwrap(), version);
                let why =
                    format!("writing to a file system of version {version}; it can be read (readonly=on)");
                assert!(said.contains(&why), "{said}");
            } else {
                assert_eq!(read.unwrap_err().kind(), Kind::Unsupported, "{version}");
                assert!(said.contains(&format!("file systems of version {version}")), "{said}");
            }
        }
    });
}
