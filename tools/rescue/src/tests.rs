//! Commands on pools of simulated disks: damaged ones, and copies among files that were there before.

use crate::{Command, Origin, Output, Search, What, run};
use sim::{Config, Disks, Model};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use units::{ObjectId, ObjsetId};
use vdev::{Bias, Group, Layout, NewLeaf};
use zio::{BlockStore, Bookmark};
use zpl::{Changes, FileKind, FileSystem, NewFile, Node, Time};

const DISK: &str = "/sim/disk";

/// A directory of this machine for a test alone.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(what: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("cenote-rescue-{what}-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        Scratch(dir)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a command printed.
#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Printed {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

struct Done {
    is_whole: bool,
    out: String,
    err: String,
}

impl Done {
    /// Nothing was complained about.
    #[track_caller]
    fn whole(self) -> String {
        assert!(self.is_whole && self.err.is_empty(), "{}", self.err);
        self.out
    }
}

async fn done(what: What, places: &[&str]) -> Done {
    done_while(what, places, false).await
}

/// `is_live`: something writes to the pool meanwhile.
async fn done_while(what: What, places: &[&str], is_live: bool) -> Done {
    let (out, err) = (Printed::default(), Printed::default());
    let output = Output::new(Box::new(out.clone()), Box::new(err.clone()), false);
    let origin = Origin::Imported { pools: vec![("tank".into(), vec![DISK.into()])], is_live };
    let places = places.iter().map(|place| place.to_string()).collect();
    let is_whole = run(Command { what, places, txg: None }, origin, output).await.unwrap();
    Done { is_whole, out: out.text(), err: err.text() }
}

async fn copy(places: &[&str], target: &Path) -> Done {
    done(What::Copy { target: target.into(), recursive: true }, places).await
}

/// Makes what `make` makes in the file system `tank/a` beside an empty `tank/b`, exports the pool and does `work`.
fn with_pool<M, W>(make: impl FnOnce(Maker) -> M + Send + 'static, work: impl FnOnce() -> W + Send + 'static)
where
    M: Future<Output = ()> + Send,
    W: Future<Output = ()> + Send,
{
    with_pool_on(1, Model::NVME, make, work);
}

/// As [`with_pool`], on a disk that is like this.
fn with_pool_on<M, W>(
    seed: u64,
    model: Model,
    make: impl FnOnce(Maker) -> M + Send + 'static,
    work: impl FnOnce() -> W + Send + 'static,
) where
    M: Future<Output = ()> + Send,
    W: Future<Output = ()> + Send,
{
    let disks = Disks::new();
    disks.add(DISK, 96 << 20, model);
    let own = disks.clone();
    sim::run_with(&disks, seed, Config::default(), async move {
        let leaves = vec![NewLeaf::look_at(Path::new(DISK)).unwrap()];
        let features = ondisk::feature::compatibility_set(ondisk::feature::DEFAULT_COMPATIBILITY).unwrap();
        let options = pool::CreateOptions {
            name: "tank".into(),
            groups: vec![Group { layout: Layout::Stripe, bias: Bias::Normal, leaves }],
            ashift: 12,
            features: features.into_iter().collect(),
            root_props: Vec::new(),
            root: Default::default(),
            pool_props: Vec::new(),
            compatibility: None,
            comment: None,
            host: pool::Host::default(),
            cache: Arc::new(arc::Cache::new(32 << 20)),
            hub: Default::default(),
            tunables: Default::default(),
        };
        let pool = pool::create(options).await.unwrap();
        for name in ["tank/a", "tank/b"] {
            let content = pool::Content::FileSystem(Default::default());
            pool.create_dataset(name, content, Vec::new()).await.unwrap();
        }
        let a = pool.open_file_system_for_writing("tank/a").await.unwrap();
        let b = pool.open_file_system_for_writing("tank/b").await.unwrap();
        make(Maker { disks: own, pool: pool.clone(), a, b }).await;
        pool.export().await.unwrap();
        drop(pool);
        work().await;
    });
}

struct Maker {
    disks: Disks,
    pool: pool::Pool,
    a: FileSystem,
    b: FileSystem,
}

impl Maker {
    /// Writes nonsense over all copies of a block of a file of `tank/a`.
    async fn spoil(&self, object: ObjectId, blkid: u64) {
        self.pool.sync().await.unwrap();
        let found = self.pool.dsl().find("tank/a").await.unwrap();
        let (_, phys) = self.pool.dsl().core().dataset(found.id).await.unwrap();
        let store: Arc<dyn BlockStore> = Arc::new(self.pool.pipeline().clone());
        let at = Bookmark { objset: ObjsetId(found.id.0), object, level: 0, blkid };
        let bp = dmu::locate(&store, &phys.bp, at).await.unwrap();
        for dva in bp.as_plain().unwrap().copies() {
            let at = (4 << 20) + dva.offset.bytes();
            self.disks.get(DISK).unwrap().poke(at, &vec![0xab; bp.psize().0 as usize]);
        }
    }
}

async fn file(fs: &FileSystem, name: &str, data: &[u8]) -> Node {
    let new = NewFile::new(FileKind::Regular, 0o644);
    let file = fs.root().await.unwrap().create(name.as_bytes(), &new).await.unwrap();
    file.write(0, data).await.unwrap();
    file
}

async fn link(fs: &FileSystem, name: &str, file: &Node) {
    fs.root().await.unwrap().link(name.as_bytes(), file).await.unwrap();
}

fn text(path: PathBuf) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn ino(path: PathBuf) -> u64 {
    std::fs::symlink_metadata(path).unwrap().ino()
}

/// How many names there are in a directory.
fn count(path: &Path) -> usize {
    std::fs::read_dir(path).unwrap().count()
}

/// Of a directory with a block that could not be read, all names behind it were missing, in every command.
#[test]
fn a_damaged_block_of_a_directory_costs_the_names_in_it() {
    const NAMES: usize = 4000;
    let scratch = Scratch::new("leaf");
    let target = scratch.path().to_path_buf();
    let make = |maker: Maker| async move {
        let root = maker.a.root().await.unwrap();
        // Of one the first two leaves, of the other the header.
        for (name, spoiled) in [("big", 1..3), ("other", 0..1)] {
            let new = NewFile::new(FileKind::Directory, 0o755);
            let directory = root.create(name.as_bytes(), &new).await.unwrap();
            for n in 0..NAMES {
                let new = NewFile::new(FileKind::Fifo, 0o600);
                directory.create(format!("name{n}").as_bytes(), &new).await.unwrap();
            }
            for blkid in spoiled {
                maker.spoil(directory.id().object, blkid).await;
            }
        }
    };
    with_pool(make, move || async move {
        let whole = |listed: usize| (NAMES * 9 / 10..NAMES).contains(&listed);
        let ls = What::List { long: false, recursive: true };
        let other = done(ls.clone(), &["tank/a:other"]).await;
        assert_eq!((other.out.lines().count(), other.err.lines().count()), (NAMES, 1), "{}", other.err);
        let list = done(ls, &["tank/a:big"]).await;
        let listed = list.out.lines().count();
        assert!(whole(listed), "{listed} names: {}", list.err);
        let search = done(What::Find(Search::default()), &["tank/a:big"]).await;
        let copied = copy(&["tank/a:big"], &target).await;
        let archive = target.join("archive");
        let archived = done(What::Archive { file: Some(archive.clone()) }, &["tank/a:big"]).await;
        assert_eq!(search.out.lines().count(), listed + 1);
        assert_eq!(count(&target.join("big")), listed);
        let archive = std::fs::read(archive).unwrap();
        let members = archive.chunks(512).filter(|head| head.starts_with(b"big/name")).count();
        assert_eq!(members, listed);
        for done in [list, search, copied, archived] {
            assert!(!done.is_whole);
            assert!((1..=2).contains(&done.err.lines().count()), "{}", done.err);
            let start = "cannot list all of 'tank/a:big': ";
            assert!(done.err.lines().all(|line| line.starts_with(start)), "{}", done.err);
            assert!(done.err.contains("no copy passed its checksum"), "{}", done.err);
        }
    });
}

/// The second name of a file was made a link to what had the first name before: the copy had contents of its own.
#[test]
fn links_are_made_to_copies_of_this_run_alone() {
    let scratch = Scratch::new("links");
    let target = scratch.path().to_path_buf();
    let make = |maker: Maker| async move {
        let first = file(&maker.a, "1", b"of the pool").await;
        link(&maker.a, "2", &first).await;
        link(&maker.a, "3", &first).await;
        let other = file(&maker.b, "1", b"another file").await;
        link(&maker.b, "2", &other).await;
        assert_eq!(first.id().object, other.id().object, "numbers are each file system's own");
    };
    with_pool(make, move || async move {
        let a = target.join("into");
        std::fs::create_dir(&a).unwrap();
        std::fs::write(a.join("1"), "foreign").unwrap();
        let said = copy(&["tank/a:1", "tank/a:2", "tank/a:3"], &a).await;
        assert!(said.err.contains("File exists") && said.err.lines().count() == 1, "{}", said.err);
        assert_eq!(text(a.join("1")), "foreign");
        assert_eq!((text(a.join("2")), text(a.join("3"))), ("of the pool".into(), "of the pool".into()));
        assert_eq!(ino(a.join("2")), ino(a.join("3")));
        assert_eq!(count(&a), 3);
        // Nor is what an earlier run has made, as it cannot be told from what only looks like it.
        std::fs::remove_file(a.join("3")).unwrap();
        copy(&["tank/a:2", "tank/a:3"], &a).await.whole();
        assert_eq!(text(a.join("3")), "of the pool");
        assert_ne!(ino(a.join("2")), ino(a.join("3")));
        // Files of several file systems may have the same number.
        let both = target.join("both");
        std::fs::create_dir(&both).unwrap();
        copy(&["tank/a", "tank/b"], &both).await.whole();
        for (dir, data) in [("a", "of the pool"), ("b", "another file")] {
            assert_eq!(text(both.join(dir).join("1")), data);
            assert_eq!(text(both.join(dir).join("2")), data);
            assert_eq!(ino(both.join(dir).join("1")), ino(both.join(dir).join("2")));
        }
    });
}

/// The second name of a socket, which archives have not, was a link to a member that was not there.
#[test]
fn an_archive_has_links_to_its_own_members_alone() {
    let scratch = Scratch::new("archive");
    let file = scratch.path().join("archive");
    let make = |maker: Maker| async move {
        let root = maker.a.root().await.unwrap();
        for (kind, name) in [(FileKind::Socket, "socket"), (FileKind::Fifo, "fifo")] {
            let node = root.create(name.as_bytes(), &NewFile::new(kind, 0o600)).await.unwrap();
            link(&maker.a, &format!("{name} again"), &node).await;
        }
    };
    with_pool(make, move || async move {
        done(What::Archive { file: Some(file.clone()) }, &["tank/a"]).await.whole();
        let mut archive = tar::Archive::new(std::fs::File::open(file).unwrap());
        let members = archive.entries().unwrap().map(|member| {
            let member = member.unwrap();
            let target = member.link_name_bytes().map(|name| name.into_owned());
            (member.path_bytes().into_owned(), target)
        });
        let expected = [("./", None), ("./fifo", None), ("./fifo again", Some("./fifo"))];
        let expected =
            expected.map(|(name, to)| (name.as_bytes().to_vec(), to.map(|to| to.as_bytes().to_vec())));
        assert_eq!(members.collect::<Vec<_>>(), expected);
    });
}

/// Copies were made under `.NAME.cenote-half`, and whatever was called so was removed: files of the pool, of this machine.
#[test]
fn a_copy_takes_no_other_file_away_however_that_is_called() {
    let scratch = Scratch::new("half");
    let target = scratch.path().to_path_buf();
    let make = |maker: Maker| async move {
        file(&maker.a, "film", b"film").await;
        file(&maker.a, ".film.cenote-half", b"of the pool").await;
    };
    with_pool(make, move || async move {
        let a = target.join("a");
        for _ in 0..2 {
            copy(&["tank/a"], &target).await.whole();
            assert_eq!(text(a.join("film")), "film");
            assert_eq!(text(a.join(".film.cenote-half")), "of the pool");
            assert_eq!(count(&a), 2);
        }
        // A file of the right size and another time is looked at with a probe, and a copy that fails leaves nothing.
        std::fs::write(a.join("film"), "mlif").unwrap();
        std::fs::write(a.join(".film.cenote-half"), "foreign").unwrap();
        let said = copy(&["tank/a"], &target).await;
        assert_eq!(said.err.matches("File exists").count(), 2, "{}", said.err);
        assert_eq!(
            (text(a.join("film")), text(a.join(".film.cenote-half"))),
            ("mlif".into(), "foreign".into())
        );
        assert_eq!(count(&a), 2);
    });
}

/// Capabilities were set before the owner, whose change takes them away, without a word.
#[test]
fn capabilities_and_the_right_to_act_as_the_owner_come_along_with_the_owner() {
    // cap_net_raw, effective and permitted.
    const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let scratch = Scratch::new("dress");
    let target = scratch.path().to_path_buf();
    let is_root = rustix::process::geteuid().is_root();
    let make = |maker: Maker| async move {
        let file = file(&maker.a, "tool", b"tool").await;
        file.set_xattr(b"user.note", b"note").await.unwrap();
        file.set_xattr(b"security.capability", &CAPABILITY).await.unwrap();
        let changes = Changes { permissions: Some(0o4555), uid: Some(7), gid: Some(8), ..Changes::default() };
        file.change(&changes).await.unwrap();
        // No number of an owner: a change to it is none, and the copy stays its maker's.
        let file = crate::tests::file(&maker.a, "trap", b"trap").await;
        let changes = Changes { uid: Some(u32::MAX), gid: Some(u32::MAX), ..changes };
        file.change(&changes).await.unwrap();
    };
    with_pool(make, move || async move {
        copy(&["tank/a"], &target).await.whole();
        let tool = target.join("a/tool");
        let there = std::fs::metadata(&tool).unwrap();
        assert_eq!(there.permissions().mode() & 0o7777, if is_root { 0o4555 } else { 0o555 });
        let trap = std::fs::metadata(target.join("a/trap")).unwrap();
        assert_eq!(trap.permissions().mode() & 0o7777, 0o555);
        let xattr = |name: &str| {
            let mut value = vec![0; 100];
            let size = rustix::fs::lgetxattr(&tool, name, &mut value[..]).unwrap_or(0);
            value.truncate(size);
            value
        };
        assert_eq!(xattr("user.note"), b"note");
        // Others than root have neither to give.
        if is_root {
            assert_eq!((there.uid(), there.gid()), (7, 8));
            assert_eq!(xattr("security.capability"), CAPABILITY);
        }
    });
}

/// Names went to the terminal as they were where an error had them in it.
#[test]
fn no_name_acts_on_the_terminal() {
    const NAME: &str = "esc\u{1b}[31mred\u{9b}1m";
    let scratch = Scratch::new("escape");
    let target = scratch.path().to_path_buf();
    let make = |maker: Maker| async move {
        file(&maker.a, NAME, b"red").await;
    };
    with_pool(make, move || async move {
        let (named, missing) = (format!("tank/a:{NAME}"), format!("tank/a:{NAME}/nothing"));
        let places = ["tank/a", &named, &missing, NAME];
        copy(&[&named], &target).await.whole();
        let file = Some(target.join(format!("{NAME}.tar")));
        for what in [
            What::List { long: true, recursive: true },
            What::Stat,
            What::Find(Search::default()),
            What::Cat,
            What::Copy { target: target.clone(), recursive: false },
            What::Copy { target: target.clone(), recursive: true },
            What::Archive { file: file.clone() },
        ] {
            for place in places {
                let done = done(what.clone(), &[place]).await;
                for c in done.out.chars().chain(done.err.chars()) {
                    assert!(
                        !c.is_control() || c == '\n',
                        "{what:?} {place:?}: {:?} {:?}",
                        done.out,
                        done.err
                    );
                }
                if let Some(file) = &file {
                    let _ = std::fs::remove_file(file);
                }
            }
        }
        // What ends a command.
        let several = Command {
            what: What::Copy { target: target.join(NAME), recursive: false },
            places: vec![named.clone(), named],
            txg: None,
        };
        let output = Output::new(Box::new(std::io::sink()), Box::new(std::io::sink()), false);
        let origin = Origin::Search(vec![target.join(NAME).join(NAME)]);
        let why = run(several, origin, output).await.unwrap_err().to_string();
        assert!(!why.chars().any(char::is_control), "{why:?}");
    });
}

/// What is read of a file beside its data was not looked for again where a txg had moved it, and the walk went on in a pool
/// that was closed: most of a tree was missing where the reader was slow.
#[test]
fn what_moves_on_while_it_is_read_is_read_all_the_same() {
    const FILES: u64 = 240;
    let content = |n: u64| -> Vec<u8> { (0..3000).map(|i| (n * 7 + i) as u8).collect() };
    for seed in 0..4 {
        let scratch = Scratch::new(&format!("live{seed}"));
        let archive = scratch.path().join("archive");
        let slow = Model { read: Duration::from_millis(2), ..Model::NVME };
        let make = move |maker: Maker| async move {
            let mut files = Vec::new();
            for n in 0..FILES {
                files.push(file(&maker.a, &format!("f{n:03}"), &content(n)).await);
            }
            maker.pool.sync().await.unwrap();
            let stop = Arc::new(AtomicBool::new(false));
            let (pool, b, is_over) = (maker.pool.clone(), maker.b.clone(), stop.clone());
            let writer = world::spawn(async move {
                // What is written over all the time can be read from no txg for long, so that this is not asked for.
                let churn = file(&b, "churn", b"").await;
                let mut rng = sim::Rng::new(seed);
                while !is_over.load(Ordering::Relaxed) {
                    let noise: Vec<u8> = (0..1 << 17).map(|_| rng.next_u64() as u8).collect();
                    for _ in 0..16 {
                        churn.write(rng.below(256) << 17, &noise).await.unwrap();
                    }
                    for _ in 0..8 {
                        let node = &files[rng.below(FILES) as usize];
                        let mtime = Some(Time { seconds: rng.below(1 << 30) as i64, nanos: 0 });
                        node.change(&Changes { mtime, ..Changes::default() }).await.unwrap();
                    }
                    pool.sync().await.unwrap();
                }
            });
            let what = What::Archive { file: Some(archive.clone()) };
            done_while(what, &["tank/a"], true).await.whole();
            stop.store(true, Ordering::Relaxed);
            writer.await;
            let mut archive = tar::Archive::new(std::fs::File::open(archive).unwrap());
            let mut found = 0;
            for member in archive.entries().unwrap() {
                let mut member = member.unwrap();
                let path = String::from_utf8(member.path_bytes().into_owned()).unwrap();
                let Some(n) = path.strip_prefix("./f").and_then(|n| n.parse().ok()) else { continue };
                let mut bytes = Vec::new();
                member.read_to_end(&mut bytes).unwrap();
                assert!(bytes == content(n), "{path}");
                found += 1;
            }
            assert_eq!(found, FILES);
        };
        with_pool_on(seed, slow, make, || async {});
    }
}
