//! Trees that Cenote writes are sound to OpenZFS's judge, which also shows the files in them as they were made.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::{new, open, verify};
use dmu::Account;
use dsl::props::{Types, When, parse_setting};
use interop::harness::{Need, Trial, trial};
use interop::{Scratch, golden, programs, zdb};
use pool::{Content, CreateOptions, Pool};
use vdev::Layout;
use zpl::{Changes, FileKind, FileSystem, NewFile, Node, Renaming, Resource};

const POOL: &str = "files";
const SET: &str = "files/home";
/// Enough for the directory to become a fat ZAP of several leaves.
const MANY: usize = 3000;

pub fn trials() -> Vec<Trial> {
    let counted = [Need::Program("zdb"), Need::Golden("v28"), Need::Golden("nofeat")];
    vec![
        trial("a_tree_of_all_kinds_of_files_passes_zdb", &[Need::Program("zdb")], judged),
        trial("copies_are_as_many_as_zdb_sees", &[Need::Program("zdb")], copies),
        trial(
            "file_systems_of_older_versions_are_read_and_not_changed",
            &[Need::Golden("v1"), Need::Golden("dsl")],
            older,
        ),
        trial("what_users_take_is_counted_on_in_pools_of_openzfs", &counted, || {
            ["v28", "nofeat"].into_iter().for_each(counted_on);
        }),
    ]
}

/// The sums of users and groups are those of their files, as OpenZFS left them and after we changed files.
fn counted_on(name: &'static str) {
    let scratch = Scratch::new();
    let images = golden::pool(name).copy(&scratch, &[]);
    let again = images.clone();
    linux::block_on(async move {
        let pool = open(images, name, false).await.unwrap();
        let fs = pool.open_file_system_for_writing(name).await.unwrap();
        let before = recount(&fs).await;
        assert!(before[0].len() >= 5, "{before:?}");
        let root = fs.root().await.unwrap();
        for (n, uid) in [0, 1000, 4711].into_iter().enumerate() {
            let new = NewFile { uid, gid: 12345, ..NewFile::new(REGULAR, 0o644) };
            let file = root.create(format!("new{n}").as_bytes(), &new).await.unwrap();
            file.write(0, &noise(700_000)).await.unwrap();
        }
        pool.sync().await.unwrap();
        let after = recount(&fs).await;
        let of = |sums: &[Vec<(u64, u64)>; 2], uid: u64| {
            sums[0].iter().find(|(id, _)| *id == uid).map_or(0, |(_, bytes)| *bytes)
        };
        assert!(of(&after, 1000) > of(&before, 1000) + 700_000);
        assert_eq!(of(&before, 4711), 0);
        let changes = Changes { uid: Some(1000), ..Changes::default() };
        root.lookup(b"new2").await.unwrap().change(&changes).await.unwrap();
        root.unlink(b"new0").await.unwrap();
        root.lookup(b"new1").await.unwrap().truncate(10).await.unwrap();
        pool.sync().await.unwrap();
        let last = recount(&fs).await;
        assert_eq!(of(&last, 4711), 0);
        drop((fs, root));
        pool.export().await.unwrap();
    });
    zdb::assert_clean(scratch.path(), name);
    linux::block_on(async move {
        let pool = open(again, name, true).await.unwrap();
        recount(&pool.open_file_system(name).await.unwrap()).await;
        pool.close().await.unwrap();
    });
}

/// What every user and every group takes, by the files themselves; it must be what the sums say.
async fn recount(fs: &FileSystem) -> [Vec<(u64, u64)>; 2] {
    let set = fs.object_set();
    let mut sums = [BTreeMap::new(), BTreeMap::new()];
    for id in set.object_ids(units::ObjectId(1), usize::MAX).await.unwrap() {
        let Ok(node) = fs.object(id).await else { continue };
        let stat = node.stat().await.unwrap();
        let dnode = set.dnode_phys(id).await.unwrap().unwrap();
        for (sums, id) in sums.iter_mut().zip([stat.uid, stat.gid]) {
            *sums.entry(u64::from(id)).or_default() += 512 + dnode.used_bytes();
        }
    }
    let counted = sums.map(|sums| sums.into_iter().collect::<Vec<_>>());
    for (counted, account) in counted.iter().zip([Account::User, Account::Group]) {
        let kept: Vec<(u64, u64)> =
            fs.space_of(account).await.unwrap().into_iter().map(|(id, bytes, _)| (id, bytes)).collect();
        assert_eq!(*counted, kept, "{account:?}");
    }
    counted
}

/// In a pool of the first version OpenZFS makes file systems of the second; a newer pool has one of each older version, but
/// is only read.
fn older() {
    let scratch = Scratch::new();
    for (name, sets) in [("v1", &[("v1", 2)][..]), ("dsl", &OLDER[..])] {
        let images = golden::pool(name).copy(&scratch, &[]);
        linux::block_on(async move {
            let is_read_only = name == "dsl";
            let pool = open(images, name, is_read_only).await.unwrap();
            for (set, version) in sets {
                older_one(&pool, set, *version).await;
            }
            pool.close().await.unwrap();
        });
    }
}

const OLDER: [(&str, u64); 4] = [("dsl/zpl1", 1), ("dsl/zpl2", 2), ("dsl/zpl3", 3), ("dsl/zpl4", 4)];

async fn older_one(pool: &Pool, name: &str, version: u64) {
    let fs = pool.open_file_system(name).await.unwrap();
    assert_eq!(fs.version(), version, "{name}");
    let entries = fs.root().await.unwrap().list_all().await.unwrap();
    assert!(!entries.is_empty(), "{name}");
    for entry in &entries {
        let node = fs.object(entry.object).await.unwrap();
        // Only the first version has names that do not say what they are of.
        assert_eq!(entry.kind, (version > 1).then_some(node.kind()), "{name}");
        assert_eq!(node.object().attrs().bonus_kind, ondisk::ObjectType::ZNODE, "{name}");
        assert_eq!(node.stat().await.unwrap().kind, node.kind(), "{name}");
    }
    if name.contains('/') {
        let file = fs.resolve(b"f", true).await.unwrap();
        assert_eq!(&file.read(0, 100).await.unwrap()[..], format!("{version}\n").as_bytes(), "{name}");
    }
    let writes = fs.root().await.unwrap().unlink(b"f").await.unwrap_err();
    assert_eq!(writes.kind(), units::Kind::ReadOnly, "{name}");
    let refused = pool.open_file_system_for_writing(name).await.unwrap_err();
    if name.contains('/') {
        assert_eq!(refused.kind(), units::Kind::ReadOnly, "{refused}");
        return;
    }
    assert_eq!(refused.kind(), units::Kind::Unsupported, "{refused}");
    let said = refused.to_string();
    let why = format!("writing to a file system of version {version}; it can be read (readonly=on)");
    assert!(said.contains(&format!("'{name}'")) && said.contains(&why) && !said.contains('\n'), "{said}");
}

/// Data as often as `copies` says, the block of pointers above it as `redundant_metadata` does.
fn copies() {
    let scratch = Scratch::new();
    let image = scratch.join("a.img");
    let cases = [
        ("1", "all", 2),
        ("2", "all", 3),
        ("2", "most", 2),
        ("3", "all", 3),
        ("1", "some", 1),
        ("1", "none", 1),
    ];
    let objects = linux::block_on(async move {
        let pool = create(&image).await;
        let mut objects = Vec::new();
        for (n, (copies, redundant, above)) in cases.into_iter().enumerate() {
            // A number alone would be an object set's to zdb.
            let set = format!("{POOL}/set{n}");
            let parse = |name, value| {
                parse_setting(name, value, Types::FILESYSTEM, When::Create, &Default::default()).unwrap()
            };
            let props = vec![parse("copies", copies), parse("redundant_metadata", redundant)];
            pool.create_dataset(&set, Content::FileSystem(Default::default()), props).await.unwrap();
            let fs = pool.open_file_system_for_writing(&set).await.unwrap();
            let file = make(&fs.root().await.unwrap(), "f", REGULAR, 0o644).await;
            file.write(0, &noise(400_000)).await.unwrap();
            objects.push((set, file.id().object, copies.parse::<usize>().unwrap(), above));
        }
        pool.export().await.unwrap();
        objects
    });
    zdb::assert_clean(scratch.path(), POOL);
    for (set, object, copies, above) in objects {
        let object = object.0.to_string();
        let path = scratch.path().to_str().unwrap();
        let dump =
            programs::command("zdb").args(["-dddddd", "-e", "-p", path, &set, &object]).output().unwrap();
        let text = String::from_utf8_lossy(&dump.stdout).into_owned();
        let of = |level: &str| {
            let lines = text.lines().filter(|line| line.split_whitespace().nth(1) == Some(level));
            let place = |word: &&str| word.split(':').count() == 3;
            let counts: Vec<usize> =
                lines.map(|line| line.split_whitespace().skip(2).filter(place).count()).collect();
            counts
        };
        assert_eq!((of("L0"), of("L1")), (vec![copies; 4], vec![above]), "{set}: {text}");
    }
}

fn judged() {
    let scratch = Scratch::new();
    let image = scratch.join("a.img");
    let work = image.clone();
    linux::block_on(async move {
        let pool = create(&work).await;
        pool.create_dataset(SET, Content::FileSystem(Default::default()), Vec::new()).await.unwrap();
        let fs = pool.open_file_system_for_writing(SET).await.unwrap();
        first(&fs).await;
        pool.sync().await.unwrap();
        second(&fs).await;
        attributes(&pool, &fs).await;
        pool.sync().await.unwrap();
        recount(&fs).await;
        drop(fs);
        pool.export().await.unwrap();
    });
    zdb::assert_clean(scratch.path(), POOL);
    looks_right(scratch.path());
    linux::block_on(async move {
        let pool = open(vec![image], POOL, false).await.unwrap();
        assert_eq!(verify(&pool).await.repairable, 0);
        let fs = pool.open_file_system_for_writing(SET).await.unwrap();
        third(&fs).await;
        pool.sync().await.unwrap();
        recount(&fs).await;
        drop(fs);
        assert_eq!(pool.complaints(), Vec::<String>::new());
        pool.export().await.unwrap();
    });
    zdb::assert_clean(scratch.path(), POOL);
}

/// As OpenZFS 2.1 makes it.
async fn create(image: &Path) -> Pool {
    let data = new::group(Layout::Stripe, vec![new::leaf(image, 512 << 20)]);
    let features = new::features("openzfs-2.1-linux");
    pool::create(CreateOptions { features, ..new::options(POOL, data) }).await.unwrap()
}

const REGULAR: FileKind = FileKind::Regular;

async fn make(parent: &Node, name: &str, kind: FileKind, permissions: u32) -> Node {
    parent.create(name.as_bytes(), &NewFile::new(kind, permissions)).await.unwrap()
}

/// What is on disk after the first txgs.
async fn first(fs: &FileSystem) {
    let root = fs.root().await.unwrap();
    let many = make(&root, "many", FileKind::Directory, 0o755).await;
    for n in 0..MANY {
        make(&many, &format!("a file with the number {n}"), REGULAR, 0o644).await;
    }
    let kinds = make(&root, "kinds", FileKind::Directory, 0o1777).await;
    for (name, kind) in [
        ("fifo", FileKind::Fifo),
        ("socket", FileKind::Socket),
        ("disk", FileKind::BlockDevice),
        ("tty", FileKind::CharDevice),
    ] {
        let new = NewFile { rdev: (8, 17), uid: 1000, ..NewFile::new(kind, 0o600) };
        kinds.create(name.as_bytes(), &new).await.unwrap();
    }
    for (name, len) in [("short", 10), ("long", 1000), ("longest", 4000)] {
        let target = vec![b't'; len];
        let new = NewFile { target: &target, ..NewFile::new(FileKind::Symlink, 0o777) };
        kinds.create(name.as_bytes(), &new).await.unwrap();
    }
    let data = make(&root, "data", FileKind::Directory, 0o700).await;
    let small = make(&data, "small", REGULAR, 0o4755).await;
    small.write(0, b"a few bytes").await.unwrap();
    data.link(b"other name", &small).await.unwrap();
    let odd = make(&data, "odd", REGULAR, 0o077).await;
    odd.write(0, &noise(100_001)).await.unwrap();
    let large = make(&data, "large", REGULAR, 0o644).await;
    large.write(0, &noise(3 << 20)).await.unwrap();
    let sparse = make(&data, "sparse", REGULAR, 0o644).await;
    sparse.write(5 << 30, &noise(300_000)).await.unwrap();
    sparse.truncate(6 << 30).await.unwrap();
    let marked = make(&data, "marked", REGULAR, 0o644).await;
    marked.set_xattr(b"user.small", b"value").await.unwrap();
    marked.set_xattr(b"user.large", &noise(30_000)).await.unwrap();
}

/// More in later ones, on what is there.
async fn second(fs: &FileSystem) {
    let root = fs.root().await.unwrap();
    let many = root.lookup(b"many").await.unwrap();
    for n in (0..MANY).filter(|n| n % 3 != 0) {
        many.unlink(format!("a file with the number {n}").as_bytes()).await.unwrap();
    }
    let data = root.lookup(b"data").await.unwrap();
    data.lookup(b"odd").await.unwrap().write(90_000, &noise(200_000)).await.unwrap();
    let large = data.lookup(b"large").await.unwrap();
    large.punch_hole(500_000, 1 << 20).await.unwrap();
    large.truncate(2_500_000).await.unwrap();
    data.rename(b"large", &root, b"moved", Renaming::NoReplace).await.unwrap();
    root.rename(b"moved", &data, b"sparse", Renaming::Exchange).await.unwrap();
    let marked = data.lookup(b"marked").await.unwrap();
    marked.remove_xattr(b"user.large").await.unwrap();
    let changes = Changes { permissions: Some(0o640), uid: Some(7), gid: Some(8), ..Changes::default() };
    marked.change(&changes).await.unwrap();
    // Open while its last name goes: on the list of unlinked files when the pool is exported.
    let orphan = make(&data, "orphan", REGULAR, 0o600).await;
    orphan.write(0, &noise(400_000)).await.unwrap();
    data.unlink(b"orphan").await.unwrap();
}

/// Extended attributes wherever they can be, by properties as they are changed on the open file system.
async fn attributes(pool: &Pool, fs: &FileSystem) {
    let root = fs.root().await.unwrap();
    let dir = make(&root, "xattrs", FileKind::Directory, 0o755).await;
    for (dnode_size, xattr) in [("legacy", "dir"), ("auto", "sa"), ("4k", "sa"), ("16k", "dir")] {
        set(pool, "dnodesize", dnode_size).await;
        set(pool, "xattr", xattr).await;
        let file = make(&dir, &format!("{dnode_size} {xattr}"), REGULAR, 0o644).await;
        for len in [10, 500, 3000, 50_000] {
            file.set_xattr(format!("user.of{len}").as_bytes(), &noise(len)).await.unwrap();
        }
        file.remove_xattr(b"user.of500").await.unwrap();
        make(&dir, &format!("directory {dnode_size}"), FileKind::Directory, 0o2755).await;
    }
    set(pool, "dnodesize", "legacy").await;
    let given = make(&dir, "given away", REGULAR, 0o644).await;
    let changes = Changes { uid: Some(1234), project: Some(77), ..Changes::default() };
    given.change(&changes).await.unwrap();
    given.write(0, &noise(70_000)).await.unwrap();
    fs.set_quota(Account::User, Resource::Space, 1234, Some(10 << 20)).await.unwrap();
    fs.set_quota(Account::Project, Resource::Objects, 77, Some(5)).await.unwrap();
}

async fn set(pool: &Pool, name: &str, value: &str) {
    let limits = Default::default();
    let (prop, value) = parse_setting(name, value, Types::FILESYSTEM, When::Later, &limits).unwrap();
    pool.change("set property", move |pool, tx| async move { pool.dsl().set(&tx, SET, &prop, &value).await })
        .await
        .unwrap();
}

/// After it was opened anew.
async fn third(fs: &FileSystem) {
    let data = fs.resolve(b"data", true).await.unwrap();
    let marked = data.lookup(b"marked").await.unwrap();
    let stat = marked.stat().await.unwrap();
    assert_eq!((stat.permissions, stat.uid, stat.gid), (0o640, 7, 8));
    assert_eq!(marked.xattrs().await.unwrap(), [(b"user.small".to_vec(), b"value".to_vec())]);
    let large = data.lookup(b"sparse").await.unwrap();
    assert_eq!(large.stat().await.unwrap().size, 2_500_000);
    assert_eq!(large.seek_hole(0).await.unwrap(), Some(512 << 10));
    assert_eq!(fs.quotas(Account::User, Resource::Space).await.unwrap(), [(1234, 10 << 20)]);
    for entry in fs.resolve(b"xattrs", true).await.unwrap().list_all().await.unwrap() {
        let node = fs.object(entry.object).await.unwrap();
        let names = node.xattr_names().await.unwrap().len();
        let is_marked = entry.name.ends_with(b"dir") || entry.name.ends_with(b"sa");
        assert_eq!(names, if is_marked { 3 } else { 0 });
        for (name, value) in node.xattrs().await.unwrap() {
            assert_eq!(name, format!("user.of{}", value.len()).into_bytes());
        }
    }
    let many = fs.resolve(b"many", true).await.unwrap();
    assert_eq!(many.list_all().await.unwrap().len(), MANY / 3);
    for entry in many.list_all().await.unwrap() {
        many.unlink(&entry.name).await.unwrap();
    }
    fs.root().await.unwrap().remove_directory(b"many").await.unwrap();
}

fn noise(len: usize) -> Vec<u8> {
    (0..len.div_ceil(8)).flat_map(|_| world::random_u64().to_le_bytes()).take(len).collect()
}

/// What `zdb` shows of the files.
fn looks_right(directory: &Path) {
    let mut command = programs::command("zdb");
    command.args(["-e", "-p"]).arg(directory).args(["-dddd", SET]);
    let text = programs::run(&mut command);
    for line in [
        "other name = ",
        "(type: Block Device)",
        "(type: Socket)",
        "mode\t100077",
        "links\t2",
        "mode\t104755",
        "mode\t100640",
        "size\t2500000",
        "size\t6442450944",
        "user.small = value",
        "target\ttttttttttt\n",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{}", text.chars().take(4000).collect::<String>());
    }
    assert!(!text.contains("ERROR") && !text.contains("invalid"), "{text}");
}
