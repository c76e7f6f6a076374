//! Every kind of record that a file system of version 5 can have, from the values that a log would hold.

use super::*;
use crate::{FileKind, NewFileSystem, flags};
use dmu::{Dirty, NoBlockAccounting, Policy, SyncCtx};
use ondisk::ObjsetType;
use ondisk::zil::*;
use std::sync::Arc;
use tunables::Tunables;
use txg::Txgs;
use units::{Kind, ObjsetId};
use zil::Replayer;
use zio::MemStore;

const ROOT: ObjectId = ObjectId(34);

struct Bench {
    txgs: Txgs,
    replay: Replay,
}

impl Bench {
    async fn record(&self, record: Record<'_>) -> Result<()> {
        self.with_block(record, None).await
    }

    async fn with_block(&self, record: Record<'_>, block: Option<&Buf>) -> Result<()> {
        let tx = self.txgs.begin_unthrottled();
        self.replay.replay(&tx, &record, block).await
    }

    async fn make(&self, what: CreateKind, directory: ObjectId, node: NewNode, name: &[u8]) -> Result<()> {
        let target: &[u8] = if what == CreateKind::Symlink { b"there" } else { b"" };
        let (extended, acl, domains) = (None, None, vec![]);
        self.record(Record::Create(Create { what, directory, node, extended, acl, domains, name, target }))
            .await
    }

    async fn find(&self, path: &str) -> Node {
        self.replay.fs.resolve(path.as_bytes(), false).await.unwrap()
    }

    async fn content(&self, path: &str) -> Vec<u8> {
        self.find(path).await.read(0, 1 << 20).await.unwrap().to_vec()
    }
}

fn node(object: u64, mode: u64) -> NewNode {
    let object = ObjectId(object);
    NewNode { object, slots: 1, mode, uid: 7, gid: 8, generation: 5, created: [11, 12], device: 0 }
}

fn with_replay<F: Future<Output = ()> + Send + 'static>(test: impl FnOnce(Arc<Bench>) -> F + Send + 'static) {
    sim::run(12, sim::Config::default(), async move {
        let txgs = Txgs::new(Txg(9), &Tunables::default());
        let set =
            ObjSet::create(Arc::new(MemStore::new()), ObjsetId(54), ObjsetType::Zfs, Policy::mos(), Txg(10));
        crate::create(&set, &Tx::syncing(Txg(10)), NewFileSystem::default()).await.unwrap();
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
        let settings = crate::Settings { record_size: 16 << 10, ..Default::default() };
        let options = WriteOptions {
            txgs: txgs.clone(),
            space_reservation: None,
            settings,
            log: None,
            has_logged_xattrs: false,
        };
        let replay = Replay::open("tank/fs", &set, options).await.unwrap();
        test(Arc::new(Bench { txgs: txgs.clone(), replay })).await;
        txgs.sync().await.unwrap();
        txgs.close();
        sync.await;
    });
}

#[test]
fn names_of_every_kind_come_and_go_with_their_numbers() {
    with_replay(|bench| async move {
        let root = bench.replay.fs.root().await.unwrap().id().object;
        assert_ne!(root, ROOT);
        bench.make(CreateKind::Directory, root, node(100, 0o040_755), b"dir").await.unwrap();
        let dir = ObjectId(100);
        bench.make(CreateKind::File, dir, node(101, 0o100_640), b"file").await.unwrap();
        let device = NewNode { device: 8 << 20 | 17, slots: 2, ..node(104, 0o060_600) };
        bench.make(CreateKind::File, dir, device, b"device").await.unwrap();
        bench.make(CreateKind::Symlink, dir, node(103, 0o120_777), b"link").await.unwrap();
        let stat = bench.find("dir/file").await.stat().await.unwrap();
        assert_eq!((stat.object.0, stat.generation, stat.uid, stat.gid), (101, 5, 7, 8));
        assert_eq!((stat.crtime.seconds, stat.mtime.nanos, stat.permissions), (11, 12, 0o640));
        let device = bench.find("dir/device").await;
        assert_eq!(device.stat().await.unwrap().rdev, (8, 17));
        assert_eq!(device.object().attrs().slots, 2);
        assert_eq!(bench.find("dir/link").await.read_link().await.unwrap(), b"there");
        // Taken, by a file or by the second half of one.
        for taken in [101, 105] {
            let again = bench.make(CreateKind::File, dir, node(taken, 0o100_640), b"other").await;
            assert_eq!(again.unwrap_err().kind(), Kind::Exists, "{taken}");
        }
        let named = |object, name| Record::Link(Link { directory: root, object: ObjectId(object), name });
        bench.record(named(101, b"second")).await.unwrap();
        let renaming = |how, source_name, target_name| {
            Record::Rename(Rename { how, source: dir, target: root, source_name, target_name })
        };
        bench.record(renaming(RenameKind::Exchange, b"link", b"second")).await.unwrap();
        assert_eq!(bench.find("second").await.kind(), FileKind::Symlink);
        bench.record(renaming(RenameKind::Plain, b"device", b"second")).await.unwrap();
        assert_eq!(bench.find("second").await.id().object.0, 104);
        let whiteout = RenameKind::Whiteout(node(110, 0o020_000));
        bench.record(renaming(whiteout, b"file", b"moved")).await.unwrap();
        assert_eq!(bench.find("dir/file").await.kind(), FileKind::CharDevice);
        assert_eq!(bench.find("moved").await.id().object.0, 101);
        let remove = |name, is_directory| Record::Remove(Remove { directory: dir, name, is_directory });
        for name in [&b"file"[..], b"link"] {
            bench.record(remove(name, false)).await.unwrap();
        }
        assert_eq!(bench.record(remove(b"link", false)).await.unwrap_err().kind(), Kind::NotFound);
        // A number that was given back is free when the txg is on disk.
        assert!(bench.make(CreateKind::File, dir, node(110, 0o100_600), b"new").await.is_err());
        bench.txgs.sync().await.unwrap();
        bench.make(CreateKind::File, dir, node(110, 0o100_600), b"new").await.unwrap();
        bench.record(remove(b"new", false)).await.unwrap();
        let directory = Remove { directory: root, name: b"dir", is_directory: true };
        bench.record(Record::Remove(directory)).await.unwrap();
        assert_eq!(bench.replay.fs.root().await.unwrap().list_all().await.unwrap().len(), 2);
    });
}

#[test]
fn content_is_what_the_records_say_and_nothing_lies_behind_the_end() {
    with_replay(|bench| async move {
        let root = bench.replay.fs.root().await.unwrap().id().object;
        bench.make(CreateKind::File, root, node(100, 0o100_644), b"f").await.unwrap();
        let object = ObjectId(100);
        bench.record(Record::Write(Write::copied(object, 2, b"abc"))).await.unwrap();
        assert_eq!(bench.content("f").await, b"\0\0abc");
        // By pointer: ten bytes of a block that had more by then.
        let block = Buf::copy_from(&[9; 1024]);
        let write = Write { object, offset: 5, length: 10, ..Write::default() };
        bench.with_block(Record::Write(write.clone()), Some(&block)).await.unwrap();
        assert_eq!(bench.content("f").await, [9; 15]);
        let more = Write { length: 20, ..write.clone() };
        bench.record(Record::Write2(more)).await.unwrap();
        assert_eq!(bench.content("f").await, [9; 25]);
        bench.replay.finish().await.unwrap();
        bench.record(Record::Truncate(Truncate { object, offset: 30, length: 0 })).await.unwrap();
        assert_eq!(bench.content("f").await, [&[9; 25][..], &[0; 5]].concat());
        bench.record(Record::Truncate(Truncate { object, offset: 20, length: 15 })).await.unwrap();
        assert_eq!(bench.content("f").await, [&[9; 20][..], &[0; 15]].concat());
        bench.record(Record::Truncate(Truncate { object, offset: 3, length: 0 })).await.unwrap();
        assert_eq!(bench.content("f").await, [9; 3]);
        let beyond = Write { length: 2000, ..write };
        assert_eq!(
            bench.with_block(Record::Write(beyond), Some(&block)).await.unwrap_err().kind(),
            Kind::Corrupt
        );
    });
}

#[test]
fn attributes_lists_and_extended_attributes_are_set() {
    with_replay(|bench| async move {
        let root = bench.replay.fs.root().await.unwrap().id().object;
        bench.make(CreateKind::File, root, node(100, 0o100_644), b"f").await.unwrap();
        let object = ObjectId(100);
        let extended =
            ExtendedAttributes { requested: vec![0x40 | 0x100, 0, 0], values: 0x40, ..Default::default() };
        let set = SetAttr {
            object,
            mask: 1 | 2 | 8 | 32 | SetAttr::HAS_EXTENDED,
            mode: 0o100_600,
            uid: 1000,
            gid: 9,
            size: 5,
            modified: [1, 2],
            extended: Some(extended),
            ..SetAttr::default()
        };
        bench.record(Record::SetAttr(set)).await.unwrap();
        let file = bench.find("f").await;
        let stat = file.stat().await.unwrap();
        assert_eq!((stat.permissions, stat.uid, stat.gid, stat.size), (0o600, 1000, 8, 5));
        assert_eq!((stat.mtime.seconds, stat.mtime.nanos), (1, 2));
        assert_eq!(stat.flags & (flags::IMMUTABLE | flags::NODUMP), flags::IMMUTABLE);
        // Immutable now; what is in the log was allowed all the same.
        bench.record(Record::Write(Write::copied(object, 0, b"new"))).await.unwrap();
        assert!(file.write(0, b"x").await.is_err());
        let ace = Ace { kind: 0, flags: 0x4000, mask: 0x21, ..Ace::default() };
        let acl = LogAcl { count: 1, entries: vec![ace], ..LogAcl::default() };
        bench.record(Record::Acl(Acl { object, acl })).await.unwrap();
        assert_eq!(file.stat().await.unwrap().permissions, 0o555);
        assert_eq!(file.acl().await.unwrap().len(), 1);
        for value in [&b"value"[..], b"", b""] {
            bench.record(Record::SetSaXattr(SetSaXattr { object, name: b"user.a", value })).await.unwrap();
            let found = file.xattr(b"user.a").await.unwrap();
            assert_eq!(found.as_deref(), Some(value).filter(|value| !value.is_empty()));
        }
        // As files of a directory.
        bench.make(CreateKind::XattrDirectory, object, node(200, 0o040_755), b"").await.unwrap();
        bench.make(CreateKind::File, ObjectId(200), node(201, 0o100_644), b"user.b").await.unwrap();
        bench.record(Record::Write(Write::copied(ObjectId(201), 0, b"file"))).await.unwrap();
        assert_eq!(file.xattr(b"user.b").await.unwrap().as_deref(), Some(&b"file"[..]));
        assert!(bench.replay.node(ObjectId(201)).await.unwrap().is_xattr());
        bench.record(Record::SetSaXattr(SetSaXattr { object, name: b"user.b", value: b"" })).await.unwrap();
        assert!(file.xattr(b"user.b").await.unwrap().is_some(), "only the list is meant");
        let listed = SetSaXattr { object, name: b"user.b", value: b"listed" };
        bench.record(Record::SetSaXattr(listed)).await.unwrap();
        let remove = Remove { directory: ObjectId(200), name: b"user.b", is_directory: false };
        bench.record(Record::Remove(remove)).await.unwrap();
        assert_eq!(file.xattr(b"user.b").await.unwrap().as_deref(), Some(&b"listed"[..]));
        let slashed = bench.make(CreateKind::File, ObjectId(200), node(202, 0o100_644), b"user.c/d").await;
        slashed.unwrap();
        assert_eq!(file.xattr(b"user.c/d").await.unwrap().as_deref(), Some(&b""[..]));
        let everyone = Ace { kind: 0, flags: 0x4000, mask: 0x1, ..Ace::default() };
        let (owner, user) =
            (Ace { flags: 0x1000, mask: 0x3, ..everyone }, Ace { who: 9, flags: 0, ..everyone });
        let entries = vec![user, owner, everyone];
        bench.record(Record::AclV0(AclV0 { object, entries })).await.unwrap();
        assert_eq!(file.stat().await.unwrap().permissions, 0o644);
        assert_eq!(file.acl().await.unwrap()[0].who, crate::Who::User(9));
        let foreign = NewNode { uid: 1 << 32, ..node(300, 0o100_644) };
        let foreign = bench.make(CreateKind::File, root, foreign, b"g").await;
        assert_eq!(foreign.unwrap_err().kind(), Kind::Unsupported);
    });
}
