//! A pool on a file, a file system in it, and that mounted.

use dsl::props::{Prop, PropName, Value};
use fuse::{Dataset, Mount, Options, Space};
use interop::Scratch;
use interop::harness::{Need, ROOT};
use pool::{Content, CreateOptions, Host, OpenOptions, Pool};
use probe::{Breakdown, Family, Hub, Probe};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use vdev::{Bias, Group, Layout, NewLeaf};
use world::{OpenMode, Pending};
use zpl::FileSystem;

pub const FUSE: Need = Need::Other("/dev/fuse", || Path::new("/dev/fuse").exists());
pub const NEEDS: [Need; 2] = [FUSE, ROOT];
const SIZE: u64 = 1 << 30;
pub const DATASET: &str = "tank/files";
/// How the names of trials end whose mounts may be served so.
pub const OVER_IO_URING: &str = "_over_io_uring";

/// The engine runs on threads of its own; the test is a client as any other.
pub struct Bench {
    scratch: Scratch,
    orders: Sender<Order>,
    engine: Option<JoinHandle<()>>,
    /// Where requests are told.
    pub hub: Hub,
    /// Nothing says how much space there is until it is unset.
    pub is_stuck: Arc<AtomicBool>,
}

enum Order {
    Unmount(bool, Sender<units::Result<()>>),
    Stays(Sender<bool>),
    Change(fn(&mut Options), Sender<units::Result<()>>),
    Leave(Sender<()>),
    Mount(fn(&mut Options), Sender<()>),
}

impl Bench {
    pub fn new() -> Bench {
        Bench::with(|_| ())
    }

    pub fn with(change: fn(&mut Options)) -> Bench {
        Bench::sized(SIZE, change)
    }

    pub fn sized(size: u64, change: fn(&mut Options)) -> Bench {
        let scratch = Scratch::new();
        let device = scratch.join("device");
        rustix::fs::ftruncate(File::create(&device).unwrap(), size).unwrap();
        let (orders, taken) = channel();
        let (at, begun) = (scratch.join("mnt"), channel());
        let hub = Hub::new();
        let told = hub.clone();
        let is_stuck: Arc<AtomicBool> = Arc::default();
        let stuck = is_stuck.clone();
        let over_io_uring = std::thread::current().name().is_some_and(|trial| trial.ends_with(OVER_IO_URING));
        let engine = std::thread::spawn(move || {
            linux::block_on(async move {
                let taken = Arc::new(Mutex::new(taken));
                let mut wanted = Options::new(DATASET);
                wanted.over_io_uring = over_io_uring;
                change(&mut wanted);
                let mut pool = create(&device, wanted.posix_acl).await;
                let open = async |pool: &Pool, wanted: &Options| {
                    let options = wanted.clone();
                    let fs = match options.read_only {
                        true => pool.open_file_system(DATASET).await.unwrap(),
                        false => pool.open_file_system_for_writing(DATASET).await.unwrap(),
                    };
                    let facts = Arc::new(Facts(pool.clone(), told.clone(), stuck.clone()));
                    fuse::mount(fs, facts, &at, options, Vec::new()).await.unwrap()
                };
                let mut mount: Option<Mount> = Some(open(&pool, &wanted).await);
                let mut has_left = false;
                begun.0.send(()).unwrap();
                loop {
                    // Orders come from a thread that waits for nothing here: asked for now and then.
                    let order = taken.lock().unwrap().try_recv();
                    match order {
                        Ok(Order::Unmount(force, done)) => {
                            let left = mount.as_ref().unwrap().unmount(force).await;
                            if left.is_ok() {
                                mount = None;
                            }
                            done.send(left).unwrap();
                        }
                        Ok(Order::Stays(done)) => done.send(mount.as_ref().unwrap().stays().await).unwrap(),
                        Ok(Order::Change(change, done)) => {
                            let mount = mount.as_ref().unwrap();
                            let mut now = mount.options();
                            change(&mut now);
                            let becomes_writable = mount.options().read_only && !now.read_only;
                            let for_writing = match becomes_writable {
                                true => Some(pool.open_file_system_for_writing(DATASET).await.unwrap()),
                                false => None,
                            };
                            assert!(mount.can_become(&now));
                            done.send(mount.change(&now, for_writing).await).unwrap();
                        }
                        Ok(Order::Leave(done)) => {
                            mount.take().unwrap().unmount(false).await.unwrap();
                            pool.export().await.unwrap();
                            has_left = true;
                            done.send(()).unwrap();
                        }
                        Ok(Order::Mount(change, done)) => {
                            change(&mut wanted);
                            if has_left {
                                pool = again(&device).await;
                                has_left = false;
                            }
                            mount = Some(open(&pool, &wanted).await);
                            done.send(()).unwrap();
                        }
                        Err(std::sync::mpsc::TryRecvError::Empty) => {
                            world::sleep(std::time::Duration::from_millis(5)).await;
                        }
                        Err(std::sync::mpsc::TryRecvError::Disconnected) => break,
                    }
                }
                if let Some(mount) = mount {
                    mount.unmount(true).await.unwrap();
                }
                pool.close().await.unwrap();
            });
        });
        begun.1.recv().expect("the file system could be mounted");
        Bench { scratch, orders, engine: Some(engine), hub, is_stuck }
    }

    /// Where it is mounted, and beside it a directory of the machine.
    pub fn root(&self) -> PathBuf {
        self.scratch.join("mnt")
    }

    pub fn beside(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    pub fn unmount(&self, force: bool) -> units::Result<()> {
        let (done, wait) = channel();
        self.orders.send(Order::Unmount(force, done)).unwrap();
        wait.recv().unwrap()
    }

    /// Other options for the mount that there is.
    pub fn change(&self, change: fn(&mut Options)) -> units::Result<()> {
        let (done, wait) = channel();
        self.orders.send(Order::Change(change, done)).unwrap();
        wait.recv().unwrap()
    }

    pub fn stays(&self) -> bool {
        let (done, wait) = channel();
        self.orders.send(Order::Stays(done)).unwrap();
        wait.recv().unwrap()
    }

    /// Unmounts, and exports the pool: what comes to its device then is found when it is mounted again.
    pub fn leave(&self) {
        let (done, wait) = channel();
        self.orders.send(Order::Leave(done)).unwrap();
        wait.recv().unwrap();
    }

    pub fn device(&self) -> PathBuf {
        self.scratch.join("device")
    }

    pub fn mount(&self) {
        self.mount_as(|_| ());
    }

    /// With other options than before.
    pub fn mount_as(&self, change: fn(&mut Options)) {
        let (done, wait) = channel();
        self.orders.send(Order::Mount(change, done)).unwrap();
        wait.recv().unwrap();
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let (orders, _) = channel();
        self.orders = orders;
        let ended = self.engine.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.unwrap().expect("the engine ended well");
        }
    }
}

async fn create(device: &Path, posix_acl: bool) -> Pool {
    let geometry = world::open(device, OpenMode::ReadOnly).unwrap().geometry();
    let leaf = NewLeaf { path: device.display().to_string(), geometry };
    let features = ondisk::feature::compatibility_set(ondisk::feature::DEFAULT_COMPATIBILITY);
    let pool = pool::create(CreateOptions {
        name: "tank".into(),
        groups: vec![Group { layout: Layout::Stripe, bias: Bias::Normal, leaves: vec![leaf] }],
        ashift: 12,
        features: features.into_iter().flatten().collect(),
        root_props: Vec::new(),
        root: Default::default(),
        pool_props: Vec::new(),
        compatibility: None,
        comment: None,
        host: Host::new(1, "test"),
        cache: Arc::new(arc::Cache::new(128 << 20)),
        hub: Default::default(),
        tunables: Arc::default(),
    })
    .await
    .unwrap();
    let content = Content::FileSystem(zpl::NewFileSystem::default());
    let acl_type = (PropName::Native(Prop::AclType), Value::Number(posix_acl.into()));
    pool.create_dataset(DATASET, content, vec![acl_type]).await.unwrap();
    pool
}

async fn again(device: &Path) -> Pool {
    let found = pool::scan(vec![vdev::Device::whole(device.display().to_string())]).await;
    let options = OpenOptions {
        read_only: false,
        name: None,
        host: Host::new(1, "test"),
        force: false,
        missing_log: false,
        copy_over: false,
        cache: Arc::new(arc::Cache::new(128 << 20)),
        hub: Default::default(),
        tunables: Arc::default(),
    };
    pool::open(&found[0], options).await.unwrap()
}

struct Facts(Pool, Hub, Arc<AtomicBool>);

impl Dataset for Facts {
    fn space(&self) -> Pending<units::Result<Space>> {
        let is_stuck = self.2.clone();
        Box::pin(async move {
            while is_stuck.load(Ordering::SeqCst) {
                world::sleep(Duration::from_millis(10)).await;
            }
            Ok(Space { used: 0, available: SIZE / 2, files: 1, record_size: 128 << 10 })
        })
    }

    fn snapshots_changed(&self) -> Pending<units::Result<Option<zpl::Time>>> {
        Box::pin(async { Ok(None) })
    }

    fn snapshots(&self) -> Pending<units::Result<Vec<(String, u64)>>> {
        let pool = self.0.clone();
        Box::pin(async move {
            let all = pool.dsl().snapshots(DATASET).await?;
            Ok(all.into_iter().map(|(name, id)| (name.rsplit('@').next().unwrap().into(), id.0)).collect())
        })
    }

    fn snapshot(&self, name: &str) -> Pending<units::Result<Option<u64>>> {
        let (all, name) = (self.snapshots(), name.to_string());
        Box::pin(async move { Ok(all.await?.into_iter().find(|(n, _)| *n == name).map(|(_, id)| id)) })
    }

    fn open_snapshot(&self, name: &str) -> Pending<units::Result<FileSystem>> {
        let (pool, name) = (self.0.clone(), format!("{DATASET}@{name}"));
        Box::pin(async move { pool.open_file_system(&name).await })
    }

    fn probe(&self, family: Family) -> Probe {
        self.1.probe(family, &[(Breakdown::Dataset, DATASET)])
    }
}
