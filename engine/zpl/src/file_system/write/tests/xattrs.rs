//! Extended attributes in every place where they can be.

use super::*;
use crate::{XattrMode, Xattrs};

fn settings(xattr: Xattrs, dnode_size: u16) -> Settings {
    Settings { record_size: 16 << 10, xattr, dnode_size, ..Settings::default() }
}

async fn file(fs: &FileSystem, name: &str) -> Node {
    let root = fs.root().await.unwrap();
    root.create(name.as_bytes(), &NewFile::new(FileKind::Regular, 0o640)).await.unwrap()
}

#[test]
fn a_large_dnode_is_filled_before_a_spill_block_is_made() {
    for (dnode_size, fits) in [(512, 20), (1024, 500), (2048, 1500), (16 << 10, 15_000)] {
        with_settings(
            NewFileSystem::default(),
            settings(Xattrs::Attribute, dnode_size),
            move |fs| async move {
                let file = file(&fs, "f").await;
                assert_eq!(usize::from(file.object().attrs().slots), usize::from(dnode_size) / 512);
                file.set_xattr(b"user.a", &vec![7; fits]).await.unwrap();
                assert!(!file.object().has_spill(), "{dnode_size}");
                file.set_xattr(b"user.b", &vec![8; fits + 100]).await.unwrap();
                assert!(file.object().has_spill(), "{dnode_size}");
                fs.sync().await.unwrap();
                assert_eq!(file.xattr(b"user.a").await.unwrap(), Some(vec![7; fits]));
                assert_eq!(file.xattr(b"user.b").await.unwrap(), Some(vec![8; fits + 100]));
            },
        );
    }
}

#[test]
fn a_name_may_have_slashes_but_no_zeros() {
    for xattr in [Xattrs::Attribute, Xattrs::Directory] {
        with_settings(NewFileSystem::default(), settings(xattr, 512), |fs| async move {
            let file = file(&fs, "f").await;
            file.set_xattr(b"user.boo/hoo", b"woof").await.unwrap();
            assert_eq!(file.xattr(b"user.boo/hoo").await.unwrap(), Some(b"woof".to_vec()));
            assert_eq!(file.xattr_names().await.unwrap(), [b"user.boo/hoo".to_vec()]);
            file.remove_xattr(b"user.boo/hoo").await.unwrap();
            for name in [&b""[..], b".", b"..", b"user.a\0b"] {
                assert_eq!(file.set_xattr(name, b"x").await.unwrap_err().kind(), Kind::Invalid);
            }
        });
    }
}

/// An object that is not on disk yet has more slots than its first: no other object gets them.
#[test]
fn large_and_small_dnodes_never_overlap() {
    with_settings(NewFileSystem::default(), settings(Xattrs::Attribute, 2048), |fs| async move {
        let root = fs.root().await.unwrap();
        let mut kept = Vec::new();
        for n in 0..200u64 {
            let sizes = [512, 1024, 2048, 4096, 16 << 10];
            let dnode_size = sizes[(world::random_u64() % 5) as usize];
            fs.set_settings(settings(Xattrs::Attribute, dnode_size)).unwrap();
            let name = format!("{n}");
            let file = file(&fs, &name).await;
            file.set_xattr(b"user.n", name.as_bytes()).await.unwrap();
            kept.push(name);
            if n % 3 == 0 {
                let gone = kept.swap_remove((world::random_u64() % kept.len() as u64) as usize);
                drop(file);
                root.unlink(gone.as_bytes()).await.unwrap();
            }
            if n % 40 == 39 {
                fs.sync().await.unwrap();
            }
        }
        let mut taken = std::collections::BTreeSet::new();
        for name in kept {
            let file = root.lookup(name.as_bytes()).await.unwrap();
            assert_eq!(file.xattr(b"user.n").await.unwrap(), Some(name.into_bytes()));
            let first = file.id().object.0;
            for slot in first..first + u64::from(file.object().attrs().slots) {
                assert!(taken.insert(slot), "slot {slot}");
            }
        }
    });
}

#[test]
fn values_are_files_of_a_hidden_directory_where_that_is_asked_for_or_needed() {
    with_settings(counting(), settings(Xattrs::Directory, 512), |fs| async move {
        let file = file(&fs, "f").await;
        for round in 0..2u8 {
            for (name, len) in [("user.small", 3), ("user.large", 70_000), ("trusted.x", 0)] {
                file.set_xattr(name.as_bytes(), &vec![round; len]).await.unwrap();
                assert_eq!(file.xattr(name.as_bytes()).await.unwrap(), Some(vec![round; len]), "{name}");
            }
            assert!(!file.object().has_spill());
            fs.sync().await.unwrap();
        }
        let hidden = file.xattr_directory().await.unwrap().unwrap();
        assert!(hidden.is_xattr());
        let stat = hidden.stat().await.unwrap();
        assert_eq!((stat.size, stat.links, stat.permissions, stat.parent), (5, 2, 0o1777, file.id().object));
        let values = hidden.list_all().await.unwrap();
        let value = fs.object(values[0].object).await.unwrap();
        assert!(value.is_xattr());
        assert_eq!(value.stat().await.unwrap().parent, hidden.id().object);
        // With xattr=sa the name moves, and is in one place alone.
        fs.set_settings(settings(Xattrs::Attribute, 512)).unwrap();
        file.set_xattr(b"user.small", b"moved").await.unwrap();
        assert_eq!(file.xattr_list().await.unwrap().iter().count(), 1);
        assert_eq!(hidden.list_all().await.unwrap().len(), 2);
        // And back again, when it is too large for the list.
        file.set_xattr(b"user.small", &[9; 40_000]).await.unwrap();
        assert_eq!(file.xattr_list().await.unwrap().iter().count(), 0);
        assert_eq!(file.xattr(b"user.small").await.unwrap(), Some(vec![9; 40_000]));
        assert_eq!(file.xattr_names().await.unwrap().len(), 3);
        for name in ["user.small", "user.large", "trusted.x"] {
            file.remove_xattr(name.as_bytes()).await.unwrap();
        }
        assert_eq!(file.remove_xattr(b"user.large").await.unwrap_err().kind(), Kind::NotFound);
        assert_eq!(file.xattr_names().await.unwrap(), Vec::<Vec<u8>>::new());
        // The file takes the directory with it.
        file.set_xattr(b"user.last", &[1; 40_000]).await.unwrap();
        let (id, hidden_id) = (file.id(), hidden.id());
        drop((file, hidden, value));
        fs.root().await.unwrap().unlink(b"f").await.unwrap();
        assert_eq!(why(fs.node(id).await), Some(Refusal::Stale));
        assert_eq!(why(fs.node(hidden_id).await), Some(Refusal::Stale));
    });
}

#[test]
fn existence_is_as_asked_for_and_off_is_off() {
    with_settings(NewFileSystem::default(), settings(Xattrs::Attribute, 512), |fs| async move {
        let file = file(&fs, "f").await;
        let set = |mode| file.set_xattr_if(b"user.x", b"1", mode);
        assert_eq!(set(XattrMode::Replace).await.unwrap_err().kind(), Kind::NotFound);
        set(XattrMode::Create).await.unwrap();
        assert_eq!(set(XattrMode::Create).await.unwrap_err().kind(), Kind::Exists);
        set(XattrMode::Replace).await.unwrap();
        fs.set_settings(settings(Xattrs::Off, 512)).unwrap();
        assert_eq!(why(set(XattrMode::Any).await), Some(Refusal::SwitchedOff));
        assert_eq!(why(file.set_xattr(&[b'n'; 256], b"").await), Some(Refusal::NameTooLong));
    });
}

#[test]
fn long_names_are_a_matter_of_the_property() {
    let allowed = Settings { long_names: true, ..Settings::default() };
    with_settings(NewFileSystem::default(), allowed, |fs| async move {
        let root = fs.root().await.unwrap();
        let new = NewFile::new(FileKind::Regular, 0o644);
        let longest = [b'n'; 1023];
        root.create(&longest, &new).await.unwrap();
        assert_eq!(why(root.create(&[b'n'; 1024], &new).await), Some(Refusal::NameTooLong));
        fs.set_settings(Settings::default()).unwrap();
        assert_eq!(why(root.create(&[b'm'; 256], &new).await), Some(Refusal::NameTooLong));
        root.create(&[b'm'; 255], &new).await.unwrap();
        // What is there stays in reach.
        root.lookup(&longest).await.unwrap();
        root.rename(&longest, &root, b"short", Renaming::Replace).await.unwrap();
        assert_eq!(
            why(root.rename(b"short", &root, &longest, Renaming::Replace).await),
            Some(Refusal::NameTooLong)
        );
    });
}

/// A change that is still open in a txg when the next one has made a layout finds it in memory. The table on disk had it
/// with the next txg alone: after a crash between the two the file could not be read.
#[test]
fn a_layout_is_on_disk_with_every_txg_that_has_a_file_of_it() {
    for as_it_lies in [false, true] {
        with_files(move |fs| async move {
            let root = fs.root().await.unwrap();
            let make =
                async |name: &[u8]| root.create(name, &NewFile::new(FileKind::Regular, 0o644)).await.unwrap();
            let (first, second) = (make(b"first").await, make(b"second").await);
            fs.sync().await.unwrap();
            let older = fs.begin(COST).await.unwrap();
            let txgs = fs.writer().unwrap().txgs.clone();
            let closing = txgs.clone();
            let synced = world::spawn(async move { closing.sync().await });
            while fs.begin(COST).await.unwrap().txg() == older.txg() {
                world::sleep(std::time::Duration::from_millis(1)).await;
            }
            first.set_xattr(b"user.x", b"value").await.unwrap();
            let list = first.attributes().await.unwrap().bytes(Attr::Dxattr).unwrap().to_vec();
            // One that gets that layout in the older txg, or had got it in the newer one.
            let file = if as_it_lies { &first } else { &second };
            let mut loaded = file.load().await.unwrap();
            loaded.attributes.set(Attr::Dxattr, &list, fs.tables()).unwrap();
            loaded.store(&older).await.unwrap();
            drop((loaded, older));
            synced.await.unwrap();
            // As after a crash.
            let set = &fs.0.set;
            let again =
                ObjSet::open(set.store().clone(), ObjsetId(54), set.root(), Policy::mos()).await.unwrap();
            let again = FileSystem::open("tank/fs", &again).await.unwrap();
            let name: &[u8] = if as_it_lies { b"first" } else { b"second" };
            let found = again.root().await.unwrap().lookup(name).await.unwrap();
            assert_eq!(found.xattr(b"user.x").await.unwrap().as_deref(), Some(&b"value"[..]));
        });
    }
}
