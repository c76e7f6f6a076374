//! Lists, projects and extended attributes of files in the intent log: committed without a txg, and the same after a
//! power cut, wherever in the pool the file system is.

use super::{Rig, noise, verify};
use crate::{Content, Pool};
use dsl::props::{Types, When, parse_setting};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use vdev::Layout;
use zpl::{Ace, Changes, FileKind, FileSystem, NewFile, Stat, Who, flags, rights};

/// Where a file system is in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Root,
    Child,
    Nested,
    /// Begins as a snapshot of another, whose log must not become its own.
    Clone,
    Elsewhere,
}

impl Place {
    const ALL: [Place; 5] = [Place::Root, Place::Child, Place::Nested, Place::Clone, Place::Elsewhere];

    fn name(self) -> &'static str {
        match self {
            Place::Root => "tank",
            Place::Nested => "tank/a/b/fs",
            Place::Clone => "tank/a/clone",
            Place::Child | Place::Elsewhere => "tank/fs",
        }
    }

    /// Makes it, and all that it needs.
    async fn make(self, pool: &Pool) {
        let above: &[&str] = match self {
            Place::Root | Place::Child | Place::Elsewhere => &[],
            Place::Nested => &["tank/a", "tank/a/b"],
            Place::Clone => &["tank/a", "tank/a/origin"],
        };
        let new = zpl::NewFileSystem { accounting: zpl::Accounting::Projects, ..Default::default() };
        for name in above {
            pool.create_dataset(name, Content::FileSystem(new), Vec::new()).await.unwrap();
        }
        match self {
            Place::Root => {}
            Place::Clone => {
                let origin = pool.open_file_system_for_writing("tank/a/origin").await.unwrap();
                for file in ["x", "y"] {
                    add(&origin, file).await.sync().await.unwrap();
                }
                pool.snapshot(vec!["tank/a/origin@s".into()], Vec::new()).await.unwrap();
                pool.clone_snapshot("tank/a/origin@s", self.name(), Vec::new()).await.unwrap();
                add(&origin, "z").await.sync().await.unwrap();
            }
            _ => pool.create_dataset(self.name(), Content::FileSystem(new), Vec::new()).await.unwrap(),
        }
        if self == Place::Elsewhere {
            set(pool, self.name(), &("mountpoint", "/elsewhere")).await;
        }
    }
}

async fn set(pool: &Pool, name: &'static str, (prop, value): &(&str, &str)) {
    let (prop, value) =
        parse_setting(prop, value, Types::FILESYSTEM, When::Later, &Default::default()).unwrap();
    pool.change("set", move |pool, tx| async move { pool.dsl().set(&tx, name, &prop, &value).await })
        .await
        .unwrap();
}

/// What is compared of a file: path, what it says of itself, its list, extended attributes and content.
type Seen = Vec<(String, Stat, Vec<Ace>, Vec<(Vec<u8>, Vec<u8>)>, Vec<u8>)>;

async fn tree(fs: &FileSystem) -> Seen {
    let mut seen = Vec::new();
    let mut todo = vec![(String::new(), fs.root().await.unwrap())];
    while let Some((path, node)) = todo.pop() {
        let stat = node.stat().await.unwrap();
        let mut content = Vec::new();
        if node.is_directory() {
            for entry in node.list_all().await.unwrap() {
                let child = format!("{path}/{}", String::from_utf8_lossy(&entry.name));
                todo.push((child, fs.object(entry.object).await.unwrap()));
            }
        } else {
            content = node.read(0, 1 << 20).await.unwrap().to_vec();
        }
        // Times are those of the replay; blocks are as they come to be.
        let (mtime, ctime, atime) = Default::default();
        let stat = Stat { mtime, ctime, atime, blocks: 0, ..stat };
        seen.push((path, stat, node.acl().await.unwrap(), node.xattrs().await.unwrap(), content));
    }
    seen.sort_by(|a, b| a.0.cmp(&b.0));
    seen
}

async fn make(pool: &Pool, place: Place, props: &[(&str, &str)]) -> FileSystem {
    place.make(pool).await;
    for prop in props {
        set(pool, place.name(), prop).await;
    }
    pool.open_file_system_for_writing(place.name()).await.unwrap()
}

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Makes changes, commits, cuts the power, and looks at the tree after the replay. What `before` does is made durable by a
/// txg; commits of the files that `changes` answers must not wait for one.
fn survives(
    props: &'static [(&'static str, &'static str)],
    before: impl Fn(FileSystem) -> Work<()> + Clone + Send + 'static,
    changes: impl Fn(FileSystem) -> Work<Vec<&'static str>> + Clone + Send + 'static,
) {
    Place::ALL.into_iter().for_each(|place| survives_at(place, props, before.clone(), changes.clone()));
}

fn survives_at(
    place: Place,
    props: &'static [(&'static str, &'static str)],
    before: impl FnOnce(FileSystem) -> Work<()> + Send + 'static,
    changes: impl FnOnce(FileSystem) -> Work<Vec<&'static str>> + Send + 'static,
) {
    let name = place.name();
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let (own, told) = (rig.clone(), Arc::new(Mutex::new(Seen::new())));
    let tell = told.clone();
    rig.run(5, async move {
        let pool = own.create_as("openzfs-2.2").await;
        let fs = make(&pool, place, props).await;
        before(fs.clone()).await;
        pool.sync().await.unwrap();
        // The first commit begins the log, with a txg.
        add(&fs, "first").await.sync().await.unwrap();
        pool.sync().await.unwrap();
        let own_log = |log: &zil::Log| log.objset().id() == fs.object_set().id();
        let log = pool.intent_logs().into_iter().find(own_log).unwrap();
        let waited = log.stats().fallbacks;
        let committed = changes(fs.clone()).await;
        for path in committed {
            fs.resolve(path.as_bytes(), false).await.unwrap().sync().await.unwrap();
        }
        assert_eq!(log.stats().fallbacks, waited, "no commit has waited for a txg");
        *tell.lock().unwrap() = tree(&fs).await;
    });
    rig.disks.power_cut(9);
    let own = rig.clone();
    let expected = std::mem::take(&mut *told.lock().unwrap());
    rig.run(6, async move {
        let pool = own.open(true).await.unwrap();
        let header = pool.dsl().open_by_name(name).await.unwrap().objset().phys().zil_header;
        assert!(!header.log.is_hole());
        let disk = tree(&pool.open_file_system(name).await.unwrap()).await;
        assert!(disk != expected, "{place:?}: it is in the log alone");
        pool.close().await.unwrap();
        let pool = own.open(false).await.unwrap();
        assert_eq!(pool.problems(), Vec::<String>::new(), "{place:?}");
        let fs = pool.open_file_system(name).await.unwrap();
        assert_eq!(tree(&fs).await, expected, "{place:?}");
        let report = pool.verify(|_| ()).await.unwrap();
        assert!(report.is_sound(), "{:?}", report.damage);
        pool.export().await.unwrap();
    });
}

async fn add(fs: &FileSystem, path: &str) -> zpl::Node {
    let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
    let above = fs.resolve(above.as_bytes(), false).await.unwrap();
    above.create(name.as_bytes(), &NewFile::new(FileKind::Regular, 0o644)).await.unwrap()
}

async fn add_directory(fs: &FileSystem, name: &str) -> zpl::Node {
    let root = fs.root().await.unwrap();
    root.create(name.as_bytes(), &NewFile::new(FileKind::Directory, 0o755)).await.unwrap()
}

/// The first of all in a dataset waits for its txg: the feature has to be on disk.
async fn first_xattr(fs: FileSystem) {
    let file = add(&fs, "old").await;
    file.set_xattr(b"user.old", b"old").await.unwrap();
    file.set_xattr(b"user.large", &noise(1, 40_000)).await.unwrap();
}

#[test]
fn extended_attributes_in_dnodes_are_logged_and_those_that_move_between_the_places() {
    survives(
        &[("xattr", "sa")],
        |fs| Box::pin(first_xattr(fs)),
        |fs| {
            Box::pin(async move {
                let (old, new) = (fs.resolve(b"old", false).await.unwrap(), add(&fs, "new").await);
                new.set_xattr(b"user.a", &noise(2, 300)).await.unwrap();
                new.set_xattr(b"user.b", b"gone soon").await.unwrap();
                new.remove_xattr(b"user.b").await.unwrap();
                // From the list into a file, and back.
                old.set_xattr(b"user.old", &noise(3, 33_000)).await.unwrap();
                old.set_xattr(b"user.large", &noise(4, 100)).await.unwrap();
                let other = add(&fs, "other").await;
                other.set_xattr(b"user.x", &noise(5, 50_000)).await.unwrap();
                other.set_xattr(b"user.x", &noise(6, 35_000)).await.unwrap();
                other.set_xattr(b"user.a/b", &noise(7, 32_769)).await.unwrap();
                // A file without a name is not asked for.
                let gone = add(&fs, "gone").await;
                fs.root().await.unwrap().unlink(b"gone").await.unwrap();
                gone.set_xattr(b"user.gone", b"1").await.unwrap();
                vec!["old", "new", "other"]
            })
        },
    );
}

#[test]
fn extended_attributes_that_are_files_are_logged() {
    survives(
        &[("xattr", "dir")],
        |fs| Box::pin(first_xattr(fs)),
        |fs| {
            Box::pin(async move {
                let old = fs.resolve(b"old", false).await.unwrap();
                old.set_xattr(b"user.old", b"newer").await.unwrap();
                old.set_xattr(b"user.empty", b"").await.unwrap();
                old.remove_xattr(b"user.large").await.unwrap();
                let new = add(&fs, "new").await;
                new.set_xattr(b"user.n", &noise(8, 100)).await.unwrap();
                new.set_xattr(b"user.n", b"").await.unwrap();
                // Their names and values go with any commit.
                vec![""]
            })
        },
    );
}

/// A list that lets user 7 read, and is taken over by what is made in the directory.
fn list(flags: u16, mode: [u32; 3]) -> Vec<Ace> {
    let ace = |who, flags, rights| Ace { kind: 0, flags, rights, who };
    let [owner, group, everyone] = mode;
    vec![
        ace(Who::User(7), flags, rights::READ_DATA | rights::READ_ACL),
        ace(Who::NamedGroup(8), 0, rights::EXECUTE),
        ace(Who::Owner, 0, owner | rights::WRITE_ACL),
        ace(Who::Group, 0, group),
        ace(Who::Everyone, 0, everyone | rights::READ_ACL),
    ]
}

#[test]
fn lists_are_logged_and_what_is_taken_over_from_directories() {
    survives(
        &[("acltype", "nfsv4"), ("aclinherit", "passthrough"), ("aclmode", "passthrough")],
        |fs| Box::pin(async move { drop(add(&fs, "old").await) }),
        |fs| {
            Box::pin(async move {
                let old = fs.resolve(b"old", false).await.unwrap();
                let (read, write) = (rights::READ_DATA, rights::WRITE_DATA);
                old.set_acl(&list(0, [read | write, read, 0])).await.unwrap();
                let directory = add_directory(&fs, "d").await;
                directory.set_acl(&list(0x3, [read | write, read, read])).await.unwrap();
                let file = add(&fs, "d/file").await;
                assert!(file.acl().await.unwrap().iter().any(|ace| ace.who == Who::User(7)));
                let below = directory.create(b"below", &NewFile::new(FileKind::Directory, 0o700)).await;
                assert!(below.unwrap().acl().await.unwrap().iter().any(|ace| ace.who == Who::User(7)));
                file.change(&Changes { permissions: Some(0o600), ..Changes::default() }).await.unwrap();
                // The directory's list counts for the file, though it is not asked for.
                vec!["old", "d/file"]
            })
        },
    );
}

fn posix(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let entry = |(tag, bits, id): &(u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &bits.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    [2u32.to_le_bytes().to_vec(), entries.iter().flat_map(entry).collect()].concat()
}

#[test]
fn posix_lists_are_logged_with_the_mode_that_they_are() {
    const ACCESS: &[u8] = b"system.posix_acl_access";
    const DEFAULT: &[u8] = b"system.posix_acl_default";
    let none = u32::MAX;
    let of =
        move |group| posix(&[(1, 7, none), (2, 6, 1000), (4, group, none), (16, 7, none), (32, 0, none)]);
    survives(
        &[("xattr", "sa"), ("acltype", "posix")],
        |fs| Box::pin(first_xattr(fs)),
        move |fs| {
            Box::pin(async move {
                let old = fs.resolve(b"old", false).await.unwrap();
                old.set_xattr(ACCESS, &of(5)).await.unwrap();
                old.change(&Changes { permissions: Some(0o740), ..Changes::default() }).await.unwrap();
                let directory = add_directory(&fs, "d").await;
                directory.set_xattr(DEFAULT, &of(4)).await.unwrap();
                let file = add(&fs, "d/file").await;
                assert!(file.xattr(ACCESS).await.unwrap().is_some());
                let plain = add(&fs, "plain").await;
                plain.set_xattr(ACCESS, &of(5)).await.unwrap();
                let mode = posix(&[(1, 6, none), (4, 4, none), (32, 4, none)]);
                plain.set_xattr(ACCESS, &mode).await.unwrap();
                vec!["old", "d", "d/file", "plain"]
            })
        },
    );
}

#[test]
fn projects_are_logged_and_given_to_what_is_made() {
    survives(
        &[],
        |fs| Box::pin(async move { drop(add(&fs, "old").await) }),
        |fs| {
            Box::pin(async move {
                let old = fs.resolve(b"old", false).await.unwrap();
                let to = |project| Changes { project: Some(project), ..Changes::default() };
                old.change(&to(5)).await.unwrap();
                let directory = add_directory(&fs, "d").await;
                let own = directory.stat().await.unwrap().flags | flags::PROJINHERIT;
                directory.change(&Changes { flags: Some(own), ..to(6) }).await.unwrap();
                add(&fs, "d/file").await;
                vec!["old", "d/file"]
            })
        },
    );
}

/// What was synced in the pool's own file system was lost, since its log was claimed twice, and the second claim cut it
/// off behind what the first had taken.
#[test]
fn files_synced_in_the_root_file_system_and_all_others_at_once_survive_a_power_cut() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    const FILES: [&str; 5] = ["f1", "f2", "f3", "f4", "f5"];
    let places = [Place::Root, Place::Child, Place::Nested];
    rig.run(9, async move {
        let pool = own.create().await;
        for place in places {
            let fs = make(&pool, place, &[]).await;
            for (i, name) in FILES.into_iter().enumerate() {
                let file = add(&fs, name).await;
                file.write(0, &noise(i as u64, 1000)).await.unwrap();
                file.sync().await.unwrap();
            }
        }
    });
    rig.disks.power_cut(4);
    let own = rig.clone();
    rig.run(10, async move {
        let pool = own.open(false).await.unwrap();
        assert_eq!(pool.problems(), Vec::<String>::new());
        for place in places {
            let fs = pool.open_file_system(place.name()).await.unwrap();
            for (i, name) in FILES.into_iter().enumerate() {
                let file = fs.resolve(name.as_bytes(), false).await.unwrap();
                assert_eq!(
                    file.read(0, 2000).await.unwrap().to_vec(),
                    noise(i as u64, 1000),
                    "{place:?} {name}"
                );
            }
        }
        verify(&pool).await;
        pool.export().await.unwrap();
    });
}

/// Without the feature a commit waits for the txg, and loses nothing.
#[test]
fn without_the_feature_a_txg_makes_extended_attributes_durable() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(7, async move {
        let fs = make(&own.create().await, Place::Child, &[("xattr", "sa")]).await;
        let file = add(&fs, "f").await;
        file.set_xattr(b"user.a", b"value").await.unwrap();
        file.sync().await.unwrap();
    });
    rig.disks.power_cut(3);
    let own = rig.clone();
    rig.run(8, async move {
        let pool = own.open(false).await.unwrap();
        let file =
            pool.open_file_system(Place::Child.name()).await.unwrap().resolve(b"f", false).await.unwrap();
        assert_eq!(file.xattr(b"user.a").await.unwrap().as_deref(), Some(&b"value"[..]));
        pool.export().await.unwrap();
    });
}
