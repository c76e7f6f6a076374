//! Records of attributes, lists, projects and exchanged names, in the logs of pools that were left: zdb claims them, and
//! replaying them gives the very files.
//!
//! So it must when OpenZFS replays them. `CENOTE_LEAVE_RECORDS=DIR` names a directory in which to leave the pool as it was,
//! `disk0`, and what must be in it, `DATASET.json`. When OpenZFS has imported, mounted and exported it,
//! `CENOTE_COMPARE_RECORDS=DIR` compares what is in it then; lists, projects and flags, too, which Linux does not show.
//! Up to 2.3 it has no projects for links, devices and the like, which then inherit none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::common::tree::Walk;
use crate::common::{new, open, verify};
use dsl::props::{Limits, Types, When, parse_setting};
use interop::harness::{Trial, trial};
use interop::{Scratch, copy_sparse, zdb};
use pool::{Content, CreateOptions, Pool};
use serde_json::{Map, Value, json};
use tunables::{Tunable, Tunables};
use vdev::Layout;
use zpl::{Ace, Changes, FileKind, FileSystem, NewFile, Node, Renaming, Who, flags, rights};

/// With the properties that decide how attributes and lists are kept.
const FILE_SYSTEMS: [(&str, &[(&str, &str)]); 3] = [
    ("tank/sa", &[("xattr", "sa"), ("acltype", "posix"), ("dnodesize", "auto")]),
    ("tank/dir", &[("xattr", "dir")]),
    ("tank/nfs", &[("acltype", "nfsv4"), ("aclmode", "passthrough"), ("aclinherit", "passthrough")]),
];
/// Times of files are those of their replay, and space is counted when a txg syncs.
const IGNORED: [&str; 3] = ["mtime_ns", "ctime_ns", "blocks"];
const SHOWN: u64 =
    flags::IMMUTABLE | flags::APPENDONLY | flags::NODUMP | flags::PROJINHERIT | flags::PROJID | flags::XATTR;
const ACCESS: &[u8] = b"system.posix_acl_access";
const DEFAULT: &[u8] = b"system.posix_acl_default";

/// As many records there must be, at least, in the three logs together.
const KINDS: [(&str, usize); 11] = [
    ("ACL_ACL", 3),
    ("CREATE_ACL", 3),
    ("MKDIR_ACL", 2),
    ("MKDIR", 9),
    ("MKXATTR", 6),
    ("SETSAXATTR", 8),
    ("RENAME_EXCHANGE", 6),
    ("RENAME_WHITEOUT", 6),
    ("SETATTR", 24),
    ("REMOVE", 3),
    ("WRITE", 12),
];

type Files = BTreeMap<String, Map<String, Value>>;

pub fn trials() -> Vec<Trial> {
    let name = "records_of_attributes_lists_and_projects_are_replayed_to_the_very_files";
    vec![trial(name, &[zdb::OF_2_3], replayed)]
}

async fn create(directory: &Path) -> Pool {
    let data = new::group(Layout::Stripe, vec![new::leaf(&directory.join("disk0"), 128 << 20)]);
    // Only a txg that is asked for ends a log.
    let tunables = Tunables::new();
    tunables.set(Tunable::TxgTimeout, 3600).unwrap();
    // Since 2.2 there are records of extended attributes.
    let features = new::features("openzfs-2.2");
    pool::create(CreateOptions { features, tunables, ..new::options("tank", data) }).await.unwrap()
}

fn replayed() {
    let scratch = Scratch::new();
    let directory = scratch.path().to_owned();
    let wanted = linux::block_on(async move {
        let pool = create(&directory).await;
        let mut all = Vec::new();
        for (name, props) in FILE_SYSTEMS {
            let setting = |(prop, value): &(&str, &str)| {
                parse_setting(prop, value, Types::FILESYSTEM, When::Create, &Limits::default()).unwrap()
            };
            let props = props.iter().map(setting).collect();
            pool.create_dataset(name, Content::FileSystem(Default::default()), props).await.unwrap();
            let fs = pool.open_file_system_for_writing(name).await.unwrap();
            prepare(&fs).await;
            all.push(fs);
        }
        pool.sync().await.unwrap();
        let mut wanted = BTreeMap::new();
        for fs in all {
            attributes(&fs).await;
            names(&fs).await;
            match fs.name() {
                "tank/sa" => posix_lists(&fs).await,
                "tank/nfs" => lists(&fs).await,
                _ => {}
            }
            projects(&fs).await;
            fs.sync().await.unwrap();
            wanted.insert(fs.name().to_string(), files(&pool, fs).await);
        }
        wanted
    });
    let crashed = Scratch::new();
    let image = crashed.join("disk0");
    copy_sparse(&scratch.join("disk0"), &image).unwrap();
    let logs = zdb::intent_logs_by_2_3(crashed.path(), "tank");
    for (kind, least) in KINDS {
        let is_record = |line: &&str| line.contains(&format!("TX_{kind} ")) && line.contains(" len ");
        let found = logs.lines().filter(is_record).count();
        assert!(found >= least, "{found} of TX_{kind} in:\n{logs}");
    }
    if let Some(directory) = std::env::var_os("CENOTE_LEAVE_RECORDS").map(PathBuf::from) {
        copy_sparse(&image, &directory.join("disk0")).unwrap();
        for (name, files) in &wanted {
            let file = directory.join(format!("{}.json", name.replace('/', "__")));
            std::fs::write(file, serde_json::to_string_pretty(files).unwrap()).unwrap();
        }
    }
    compare(image, wanted, false);
    zdb::assert_clean_by_2_3(crashed.path(), "tank");
    if let Some(directory) = std::env::var_os("CENOTE_COMPARE_RECORDS").map(PathBuf::from) {
        let read = |(name, _): (&str, _)| {
            let text = std::fs::read(directory.join(format!("{}.json", name.replace('/', "__")))).unwrap();
            (name.to_string(), serde_json::from_slice(&text).unwrap())
        };
        compare(directory.join("disk0"), FILE_SYSTEMS.map(read).into(), true);
    }
}

/// Opens what was left and looks for differences.
fn compare(image: PathBuf, wanted: BTreeMap<String, Files>, is_read_only: bool) {
    linux::block_on(async move {
        let pool = open(vec![image], "tank", is_read_only).await.unwrap();
        assert_eq!((pool.complaints(), pool.waiting_logs()), (Vec::new(), Vec::new()));
        let mut differences = Vec::new();
        for (name, wanted) in wanted {
            let found = files(&pool, pool.open_file_system(&name).await.unwrap()).await;
            let paths: BTreeSet<&String> = wanted.keys().chain(found.keys()).collect();
            let (none, empty) = (Map::new(), Value::Null);
            for path in paths {
                let (was, is) = (wanted.get(path).unwrap_or(&none), found.get(path).unwrap_or(&none));
                let fields: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
                let has_project = was.get("type").is_some_and(|kind| kind == "f" || kind == "d");
                for field in fields {
                    let of_project = field == "flags" || field == "project";
                    if IGNORED.contains(&field.as_str()) || is_read_only && of_project && !has_project {
                        continue;
                    }
                    let (was, is) = (was.get(field).unwrap_or(&empty), is.get(field).unwrap_or(&empty));
                    if was != is {
                        differences.push(format!("{name} {path}: {field} is {is}, not {was}"));
                    }
                }
            }
        }
        assert!(differences.is_empty(), "{}", differences.join("\n"));
        if is_read_only {
            return pool.close().await.unwrap();
        }
        verify(&pool).await;
        pool.export().await.unwrap();
    });
}

/// What a manifest has of each file, and what Linux does not show.
async fn files(pool: &Pool, fs: FileSystem) -> Files {
    let mut found = Walk::of(pool, &BTreeSet::new(), fs.clone()).await;
    for (path, entry) in &mut found {
        let node = fs.resolve(path.as_bytes(), false).await.unwrap();
        let (stat, acl) = (node.stat().await.unwrap(), node.acl().await.unwrap());
        entry.insert("flags".into(), json!(format!("{:x}", stat.flags & SHOWN)));
        entry.insert("project".into(), json!(stat.project));
        entry.insert("acl".into(), acl.iter().map(|ace| json!(format!("{ace:?}"))).collect());
        if let Some(hidden) = stat.xattr_dir {
            let hidden = fs.object(hidden).await.unwrap();
            let mut owners = Map::from_iter([(String::new(), owner(&hidden).await)]);
            for entry in hidden.list_all().await.unwrap() {
                let file = fs.object(entry.object).await.unwrap();
                owners.insert(String::from_utf8_lossy(&entry.name).into_owned(), owner(&file).await);
            }
            entry.insert("hidden".into(), Value::Object(owners));
        }
    }
    found
}

async fn owner(node: &Node) -> Value {
    let stat = node.stat().await.unwrap();
    json!([stat.uid, stat.gid, stat.project, format!("{:o}", stat.permissions), stat.size])
}

fn regular() -> NewFile<'static> {
    NewFile { uid: 7, gid: 8, ..NewFile::new(FileKind::Regular, 0o640) }
}

fn folder() -> NewFile<'static> {
    NewFile { uid: 7, gid: 8, ..NewFile::new(FileKind::Directory, 0o750) }
}

/// What is in a txg before the records; the first attribute waits for its txg, and is among it.
async fn prepare(fs: &FileSystem) {
    let root = fs.root().await.unwrap();
    for name in ["a", "b", "c", "d"] {
        let file = root.create(name.as_bytes(), &regular()).await.unwrap();
        file.write(0, &name.as_bytes().repeat(10_000)).await.unwrap();
        file.set_xattr(b"user.first", name.as_bytes()).await.unwrap();
        file.set_xattr(b"user.large", &name.as_bytes().repeat(40_000)).await.unwrap();
    }
    for name in ["one", "two", "three"] {
        let directory = root.create(name.as_bytes(), &folder()).await.unwrap();
        directory.create(b"in it", &regular()).await.unwrap();
    }
    fs.sync().await.unwrap();
    // This begins the log: had one to begin later, its txg would end those of the others.
    root.create(b"begun", &regular()).await.unwrap();
    fs.sync().await.unwrap();
}

async fn attributes(fs: &FileSystem) {
    let root = fs.root().await.unwrap();
    let file = root.create(b"attributes", &regular()).await.unwrap();
    for (name, len) in [("user.small", 10), ("user.middle", 3000), ("user.gone", 500), ("user.file", 50_000)]
    {
        file.set_xattr(name.as_bytes(), &vec![len as u8; len]).await.unwrap();
    }
    file.set_xattr(b"user.small", b"another value").await.unwrap();
    file.set_xattr(b"trusted.other", &[0, 1, 255]).await.unwrap();
    file.remove_xattr(b"user.gone").await.unwrap();
    file.set_xattr(b"user.file", &[9; 70_000]).await.unwrap();
    let old = root.lookup(b"a").await.unwrap();
    old.set_xattr(b"user.first", &[1; 60_000]).await.unwrap();
    old.remove_xattr(b"user.large").await.unwrap();
    let old = root.lookup(b"b").await.unwrap();
    old.set_xattr(b"user.large", b"small now").await.unwrap();
    old.change(&Changes { uid: Some(1000), gid: Some(2000), ..Changes::default() }).await.unwrap();
    let directory = root.lookup(b"one").await.unwrap();
    directory.set_xattr(b"user.of a directory", &[3; 9000]).await.unwrap();
    directory.set_xattr(b"user.large", &[4; 66_000]).await.unwrap();
    directory.create(b"made after", &regular()).await.unwrap();
    // The whole of one that has both kinds goes.
    let gone = root.create(b"gone", &regular()).await.unwrap();
    gone.set_xattr(b"user.small", b"x").await.unwrap();
    gone.set_xattr(b"user.large", &[5; 66_000]).await.unwrap();
    gone.sync().await.unwrap();
    drop(gone);
    root.unlink(b"gone").await.unwrap();
    file.sync().await.unwrap();
}

async fn names(fs: &FileSystem) {
    let root = fs.root().await.unwrap();
    let (two, three) = (root.lookup(b"two").await.unwrap(), root.lookup(b"three").await.unwrap());
    root.rename(b"c", &two, b"in it", Renaming::Exchange).await.unwrap();
    root.rename(b"two", &root, b"d", Renaming::Exchange).await.unwrap();
    let whiteout = Renaming::Whiteout { uid: 1, gid: 2 };
    three.rename(b"in it", &root, b"from three", whiteout).await.unwrap();
    let over = root.create(b"over", &regular()).await.unwrap();
    over.write(0, b"takes the place").await.unwrap();
    root.rename(b"over", &root, b"from three", whiteout).await.unwrap();
    root.sync().await.unwrap();
}

/// Tag, permissions and id of each entry.
fn posix(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2u32.to_le_bytes().to_vec();
    for (tag, bits, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(bits.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

async fn posix_lists(fs: &FileSystem) {
    let root = fs.root().await.unwrap();
    let none = u32::MAX;
    let list = posix(&[(1, 7, none), (2, 6, 1000), (4, 5, none), (16, 7, none), (32, 0, none)]);
    let file = root.create(b"listed", &regular()).await.unwrap();
    file.set_xattr(ACCESS, &list).await.unwrap();
    let changed = root.create(b"listed and changed", &regular()).await.unwrap();
    changed.set_xattr(ACCESS, &list).await.unwrap();
    changed.change(&Changes { permissions: Some(0o604), ..Changes::default() }).await.unwrap();
    let directory = root.create(b"with default", &folder()).await.unwrap();
    directory.set_xattr(DEFAULT, &list).await.unwrap();
    directory.set_xattr(ACCESS, &list).await.unwrap();
    directory.create(b"file", &NewFile { umask: 0o022, ..regular() }).await.unwrap();
    directory.create(b"fifo", &NewFile { kind: FileKind::Fifo, ..regular() }).await.unwrap();
    let below = directory.create(b"below", &folder()).await.unwrap();
    below.create(b"file", &NewFile { permissions: 0o777, ..regular() }).await.unwrap();
    directory.remove_xattr(DEFAULT).await.unwrap();
    directory.create(b"without", &regular()).await.unwrap();
    let taken = root.create(b"taken away", &regular()).await.unwrap();
    taken.set_xattr(ACCESS, &list).await.unwrap();
    taken.remove_xattr(ACCESS).await.unwrap();
    taken.sync().await.unwrap();
}

async fn lists(fs: &FileSystem) {
    let root = fs.root().await.unwrap();
    let named = |flags, who| Ace { kind: 0, flags, rights: rights::READ_DATA | rights::READ_ACL, who };
    let file = root.create(b"listed", &regular()).await.unwrap();
    let mut list = file.acl().await.unwrap();
    list.insert(0, named(0, Who::User(1000)));
    list.insert(1, Ace { kind: 1, ..named(0, Who::NamedGroup(50)) });
    file.set_acl(&list).await.unwrap();
    let changed = root.create(b"listed and changed", &regular()).await.unwrap();
    changed.set_acl(&list).await.unwrap();
    changed.change(&Changes { permissions: Some(0o604), ..Changes::default() }).await.unwrap();
    let directory = root.create(b"with inheritance", &folder()).await.unwrap();
    let mut list = directory.acl().await.unwrap();
    // Files and directories inherit it.
    list.insert(0, named(0x3, Who::User(1001)));
    list.insert(1, Ace { rights: rights::WRITE_DATA, ..named(0x1, Who::NamedGroup(60)) });
    directory.set_acl(&list).await.unwrap();
    directory.create(b"file", &regular()).await.unwrap();
    directory.create(b"fifo", &NewFile { kind: FileKind::Fifo, ..regular() }).await.unwrap();
    let below = directory.create(b"below", &folder()).await.unwrap();
    below.create(b"file", &NewFile { permissions: 0o777, ..regular() }).await.unwrap();
    below.create(b"deeper", &folder()).await.unwrap();
    below.sync().await.unwrap();
}

async fn projects(fs: &FileSystem) {
    let root = fs.root().await.unwrap();
    let project = |id| Changes { project: Some(id), ..Changes::default() };
    let flagged = |flags| Changes { flags: Some(flags), ..Changes::default() };
    let directory = root.create(b"project", &folder()).await.unwrap();
    directory.create(b"before", &regular()).await.unwrap();
    directory.change(&project(77)).await.unwrap();
    directory.change(&flagged(flags::PROJINHERIT)).await.unwrap();
    directory
        .create(b"after", &regular())
        .await
        .unwrap()
        .set_xattr(b"user.large", &[6; 70_000])
        .await
        .unwrap();
    let below = directory.create(b"below", &folder()).await.unwrap();
    below.create(b"link", &NewFile { target: b"x", kind: FileKind::Symlink, ..regular() }).await.unwrap();
    let moved = root.create(b"moved", &regular()).await.unwrap();
    moved.set_xattr(b"user.large", &[7; 70_000]).await.unwrap();
    moved.change(&project(78)).await.unwrap();
    let both = Changes { uid: Some(9), permissions: Some(0o4755), ..project(79) };
    root.lookup(b"a").await.unwrap().change(&both).await.unwrap();
    for (name, flag) in
        [("immutable", flags::IMMUTABLE), ("append", flags::APPENDONLY), ("no dump", flags::NODUMP)]
    {
        let file = root.create(name.as_bytes(), &regular()).await.unwrap();
        file.write(0, b"before").await.unwrap();
        file.change(&flagged(flag)).await.unwrap();
        if flag != flags::IMMUTABLE {
            file.write(6, b" and after").await.unwrap();
        }
        file.sync().await.unwrap();
    }
    below.sync().await.unwrap();
}
