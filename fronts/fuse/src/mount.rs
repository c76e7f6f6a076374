//! A file system while it is mounted.
//!
//! ```text
//!   mount ──▶ Mount ── unmount ──────────▶ the kernel lets go ──▶ finish: requests done, files given back
//!      │         └── umount(8), or an aborted connection ──┘
//!      └ change: other options, while it is used
//! ```
//!
//! What stands at the mount point is looked at before it is touched, for others change it too:
//!
//! | whereabouts | unmount | by force |
//! |---|---|---|
//! | here | ends it, or changes nothing (`place.rs`) | gone from here, and the connection ended for users elsewhere |
//! | covered by another file system | refused, that one first | refused |
//! | moved: mounted at other places alone | refused, names them | the connection is ended |
//! | gone: this process sees it nowhere | refused until it has ended there | the connection is ended |

use crate::counted::Counted;
use crate::device::{Device, mount_flags};
use crate::loops::{self, Serving, apart, aside};
use crate::mountinfo;
use crate::options::Options;
use crate::place;
use crate::served::{Dataset, Served};
use crate::session::{Session, Terms};
use crate::transport::{self, Threads};
use crate::wire::init;
use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use units::{Error, Kind, Result};
use world::sync::Event;
use zpl::FileSystem;

/// How long a connection that was aborted may take to say so.
const GOODBYE: Duration = Duration::from_secs(10);

/// How often, and how often tried, a mount is taken back that could not be served.
const GIVE_UP_EACH: Duration = Duration::from_millis(200);
const GIVE_UP_TRIES: usize = 50;

/// Why a file system that is unmounted stays.
const ELSEWHERE: &str = "it is mounted here no more, but lives on where this process does not see it: in a mount namespace of \
    other processes, as a container has one, or while files of it are open; 'zfs unmount -f' ends it there";

const COVERED: &str = "another file system is mounted over it: unmount that first";

/// Where a file system is that was mounted: see the module.
enum Whereabouts {
    Here,
    Covered,
    Moved(Vec<PathBuf>),
    Gone,
}

/// How many file systems were mounted.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// See the module.
pub struct Mount {
    at: PathBuf,
    /// The same without links, as the kernel knows it.
    real: PathBuf,
    options: Mutex<Options>,
    served: Arc<Served>,
    /// Set when the session's threads have ended.
    ended: Arc<Event>,
    /// The number of a device that its files have. Its lower part is the kernel's number of the connection.
    device: u64,
    /// Which of all mounts of this process it is.
    number: u64,
    /// To be set when the kernel wants no answers any more.
    over: Arc<Event>,
    running: Mutex<Option<(Threads, Serving, linux::own::Served)>>,
    /// Set when all requests are done and the files given back.
    finished: Arc<Event>,
}

impl std::fmt::Debug for Mount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mount({} at {})", self.options().source, self.at.display())
    }
}

/// Mounts a file system at a directory, which is made if it is not there. It is not mounted over a directory on the way to
/// what is `needed`: what this process must reach by its path, so that it would wait for itself.
pub async fn mount(
    fs: FileSystem,
    dataset: Arc<dyn Dataset>,
    at: &Path,
    options: Options,
    needed: Vec<PathBuf>,
) -> Result<Mount> {
    let (loops, serving) = loops::start(dataset.domain());
    let served = Arc::new(Served::new(fs, dataset, &options).await?);
    let ended = Arc::new(Event::new());
    let (place, told, gone) = (at.to_path_buf(), served.clone(), ended.clone());
    let failed =
        |place: &Path, e: std::io::Error| Error::new(Kind::Io, "mount").at(place.display()).because(e);
    let overlay = options.overlay;
    let real = apart(move || place::prepare(&place, overlay, &needed)).await?;
    let (place, how, cores) = (real.clone(), options.clone(), world::cores());
    // The kernel has just been told of the place, and need not ask for it.
    let begun = aside(move || {
        let device = Arc::new(Device::mount(&place, &how)?);
        let _ = told.kernel.set(device.clone());
        let begun = || {
            let terms = Terms::new(how.posix_acl, how.over_io_uring && transport::can_have_rings());
            let can = device.greet(terms.wanted, terms.io_max, terms.background)?;
            if how.posix_acl && can & init::POSIX_ACL == 0 {
                return Err(std::io::Error::from(std::io::ErrorKind::Unsupported));
            }
            let session = Session::new(told, loops, gone, can);
            transport::start(session, &device, cores, can & init::OVER_IO_URING != 0)
        };
        begun().inspect_err(|_| give_up(&place)).map(|threads| (threads, device.clone()))
    });
    let (threads, kernel) = begun.await.map_err(|e| failed(at, e))?;
    let place = real.clone();
    // The first answer: from now on it is there for everybody.
    let there = move || std::fs::symlink_metadata(&place).map(|there| there.st_dev());
    let device = match apart(there).await {
        Ok(there) => there,
        Err(e) => {
            let place = real.clone();
            aside(move || {
                let _ = place::unmount(&place, true);
                threads.join();
            })
            .await;
            return Err(failed(at, e));
        }
    };
    let own = linux::own::Served::new(real.clone(), device);
    read_ahead(device);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let _ = kernel.connection.set(rustix::fs::minor(device));
    let over = serving.over();
    let running = Mutex::new(Some((threads, serving, own)));
    let (at, options, finished) = (at.into(), Mutex::new(options), Arc::default());
    Ok(Mount { at, real, options, served, ended, device, number, over, running, finished })
}

/// Unmounts what could not be served. What is wrong may be that nothing can be started: fusermount3 neither, for a while.
fn give_up(place: &Path) {
    for _ in 0..GIVE_UP_TRIES {
        if place::unmount(place, true).is_ok() {
            return;
        }
        std::thread::sleep(GIVE_UP_EACH);
    }
}

/// Lets the kernel read ahead by whole requests; it begins with an eighth of one. Only root may say so.
fn read_ahead(device: u64) {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let kib = (crate::served::IO_MAX / 1024).to_string();
    let _ = std::fs::write(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"), kib);
}

impl Mount {
    pub fn at(&self) -> &Path {
        &self.at
    }

    /// Those that are in force.
    pub fn options(&self) -> Options {
        self.options.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether [`Mount::change`] can bring these about: what was agreed with the kernel at the beginning stays, and what
    /// fusermount3 has mounted cannot be changed.
    pub fn can_become(&self, now: &Options) -> bool {
        rustix::process::geteuid().is_root() && self.options().can_become(now)
    }

    /// Other options from now on, while it is used; with `for_writing`, the file system opened so, where it is read-only
    /// no more. What becomes read-only must have no file open to be written: it is refused as [`Kind::Busy`], and all else
    /// is in force.
    pub async fn change(&self, now: &Options, for_writing: Option<FileSystem>) -> Result<()> {
        debug_assert!(self.options().can_become(now), "the others need a new mount");
        if let Some(fs) = for_writing {
            self.served.write_by(fs).await?;
        }
        let read_only = self.options().read_only;
        let mut steps = vec![(Options { read_only, ..now.clone() }, false)];
        if read_only != now.read_only {
            steps.push((now.clone(), true));
        }
        for (next, whole) in steps {
            let (real, device, before, served) =
                (self.real.clone(), self.device, self.options(), self.served.clone());
            let options = next.clone();
            apart(move || match mount_flags(&before) == mount_flags(&options) {
                true => Ok(()),
                false => place::change(&real, device, &options, whole),
            })
            .await
            .map_err(|e| {
                let is_busy = e.kind() == std::io::ErrorKind::ResourceBusy;
                let kind = if is_busy { Kind::Busy } else { Kind::Io };
                let failed = Error::new(kind, "change mount").at(self.at.display());
                if is_busy { failed.because("a file is open to be written") } else { failed.because(e) }
            })?;
            let options = next.clone();
            aside(move || served.follow(&options)).await;
            *self.options.lock().unwrap_or_else(PoisonError::into_inner) = next;
        }
        Ok(())
    }

    /// Later ones have higher numbers: one that was mounted over another has to be unmounted before it.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The files are given back, and the file system may be opened again.
    pub fn has_finished(&self) -> bool {
        self.finished.is_set()
    }

    /// The kernel has let go of it, asked by us or by another process.
    pub fn has_ended(&self) -> bool {
        self.ended.is_set()
    }

    /// What clients asked of its files lately.
    pub fn counted(&self) -> Counted {
        self.served.counted()
    }

    /// Waits until the kernel has let go of it.
    pub async fn ended(&self) {
        self.ended.wait().await;
    }

    /// Whether it is still mounted. When another process has taken it away the news may be on its way: it is waited for.
    pub async fn stays(&self) -> bool {
        let (at, device) = (self.real.clone(), self.device);
        let is_there = apart(move || std::fs::symlink_metadata(&at).is_ok_and(|at| at.st_dev() == device));
        if is_there.await || matches!(self.whereabouts().await, Whereabouts::Covered | Whereabouts::Moved(_))
        {
            return !self.has_ended();
        }
        world::timeout(GOODBYE, self.ended.wait()).await.is_none()
    }

    /// Why a mount that stays cannot be used where it was mounted, if so.
    pub async fn problem(&self) -> Option<String> {
        match self.whereabouts().await {
            Whereabouts::Here => None,
            Whereabouts::Covered => Some(COVERED.into()),
            Whereabouts::Moved(places) => Some(self.moved(&places)),
            Whereabouts::Gone => Some(ELSEWHERE.into()),
        }
    }

    fn moved(&self, places: &[PathBuf]) -> String {
        let (at, places) = (self.at.display(), mountinfo::list(places));
        format!(
            "it is mounted at {places}, and at '{at}' no more: unmount it there, or 'zfs unmount -f' ends it"
        )
    }

    /// The attributes of the root were changed, and not by the kernel, which asks for them anew.
    pub fn root_has_changed(&self) {
        if let Some(kernel) = self.served.kernel.get() {
            kernel.invalidate(crate::nodes::ROOT, -1, 0);
        }
    }

    /// Files of a snapshot that is to be destroyed, or called otherwise, are not served any more.
    pub async fn forget_snapshot(&self, name: &str) {
        self.served.forget_snapshot(name).await;
    }

    /// Takes the file system out of the tree. Without force it must not be in use; with it, those who use it get errors.
    /// Requests that a suspended pool holds up are not waited for longer than [`GOODBYE`]: [`Mount::finish`] does.
    pub async fn unmount(&self, force: bool) -> Result<()> {
        if !self.has_ended() {
            match self.whereabouts().await {
                Whereabouts::Here => {}
                Whereabouts::Covered => return Err(self.stays_because(Kind::Busy, COVERED)),
                Whereabouts::Moved(places) => {
                    let why = self.moved(&places);
                    return match force {
                        true => self.unmount_elsewhere(true, why).await,
                        false => Err(self.stays_because(Kind::Invalid, &why)),
                    };
                }
                Whereabouts::Gone => return self.unmount_elsewhere(force, ELSEWHERE.into()).await,
            }
            if force {
                // What programs have written into mappings is still on its way, as far as the pool takes it.
                let at = self.real.clone();
                let write_back = move || std::fs::File::open(&at).map(|dir| rustix::fs::syncfs(&dir));
                let written = async {
                    let _ = apart(write_back).await;
                    // On FUSE that begins the writing, and does not wait for it; giving up the pages of a file does.
                    if let Some(kernel) = self.served.kernel.get().cloned() {
                        let files = self.served.files();
                        let give_up = move |file: &u64| kernel.invalidate(*file, 0, 0);
                        aside(move || files.iter().for_each(give_up)).await;
                    }
                };
                let _ = world::timeout(GOODBYE, written).await;
            }
            let (at, kernel, device) = (self.real.clone(), self.served.kernel.get().cloned(), self.device);
            apart(move || {
                match force {
                    true => place::unmount(&at, true)?,
                    false => place::unmount_to_end(&at, device)?,
                }
                if let Some(kernel) = kernel.filter(|_| force) {
                    // Where that is not allowed, unmounting by force has done it as a rule.
                    let _ = kernel.abort();
                }
                Ok(())
            })
            .await?;
            if force {
                self.over.set();
            }
            if world::timeout(GOODBYE, self.ended.wait()).await.is_none() {
                let why = self.problem().await.unwrap_or_else(|| ELSEWHERE.into());
                return Err(self.stays_because(Kind::Invalid, &why));
            }
        }
        self.given_back().await
    }

    /// Nothing is left here to be unmounted; by force the connection is ended for its users elsewhere.
    async fn unmount_elsewhere(&self, force: bool, why: String) -> Result<()> {
        let mut why = why;
        if force && let Some(kernel) = self.served.kernel.get().cloned() {
            if let Err(e) = aside(move || kernel.abort()).await {
                why = format!("{why}; its connection cannot be ended ({e})");
            }
            self.over.set();
        }
        match world::timeout(GOODBYE, self.ended.wait()).await {
            Some(()) => self.given_back().await,
            None => Err(self.stays_because(Kind::Invalid, &why)),
        }
    }

    fn stays_because(&self, kind: Kind, why: &str) -> Error {
        Error::new(kind, "unmount").at(self.at.display()).because(why.to_string())
    }

    async fn given_back(&self) -> Result<()> {
        let _ = world::timeout(GOODBYE, self.finish()).await;
        Ok(())
    }

    /// To unmount by a path that leads into another file system would take that one, or nothing.
    async fn whereabouts(&self) -> Whereabouts {
        let (at, device) = (self.real.clone(), self.device);
        let there = world::timeout(GOODBYE, apart(move || std::fs::symlink_metadata(&at))).await;
        match there {
            Some(Ok(there)) if there.st_dev() != device => {}
            Some(Err(e)) if e.kind() == std::io::ErrorKind::NotFound => {}
            // It answers with an error of its own, or its pool is suspended.
            Some(_) | None => return Whereabouts::Here,
        }
        match apart(move || mountinfo::places(device)).await {
            Some(places) if places.is_empty() => Whereabouts::Gone,
            Some(places) if !places.contains(&self.real) => Whereabouts::Moved(places),
            // Where the kernel does not say.
            Some(_) | None => Whereabouts::Covered,
        }
    }

    /// After the end: waits for the requests that are under way, and gives all files back.
    pub async fn finish(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((threads, serving, own)) = running {
            let (served, finished) = (self.served.clone(), self.finished.clone());
            // It goes on when the waiting is given up.
            world::spawn(async move {
                aside(move || threads.join()).await;
                drop(own);
                serving.finish().await;
                served.release_all().await;
                finished.set();
            });
        }
        self.finished.wait().await;
    }
}
