//! What the kernel asks, answered from files: one function for each request, which knows nothing of the protocol.
//!
//! ```text
//!   names.rs        lookup, create, link, remove, rename        data.rs    read, write, allocate, seek, copy, sync
//!   attributes.rs   getattr, setattr, statfs                    xattr.rs   extended attributes
//!   listing.rs      directories                                 control.rs .zfs and the snapshots in it
//!   rights.rs       set-user-id and set-group-id
//! ```
//!
//! Whatever gives an entry back counts it as told to the kernel, once it is certain that the answer will be that.

mod attributes;
mod control;
mod data;

mod listing;
mod names;
mod rights;
mod xattr;

pub(crate) use attributes::Setting;
pub(crate) use data::{IO_MAX, Reading, Writing};
pub(crate) use names::{Asker, New};

use crate::attr::Attr;
use crate::counted::{Counted, Counts};
use crate::device::Device;
use crate::errno::{Result, errno};
use crate::nodes::{CONTROL, Nodes, ROOT, SNAPSHOTS, number, parts};
use crate::options::{Options, Snapshots};
use control::Trees;
use probe::{Event, Family, Label, Op, Probe};
use rustix::io::Errno;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use units::ObjectId;
use world::Pending;
use zpl::{FileKind, FileSystem, Node, Time};

/// How long the kernel believes what it was told. Everything it changes itself it knows; others may change files too.
pub(crate) const BELIEVED: Duration = Duration::from_secs(1);

/// What there is of a dataset besides its files.
pub trait Dataset: Send + Sync + 'static {
    fn space(&self) -> Pending<units::Result<Space>>;
    /// The names of its snapshots, without the dataset's, each with its number, which never changes.
    fn snapshots(&self) -> Pending<units::Result<Vec<(String, u64)>>>;
    /// When one was taken, destroyed or called otherwise for the last time; `None` where that is not known.
    fn snapshots_changed(&self) -> Pending<units::Result<Option<Time>>>;
    /// The number of one; `None` when there is none of that name.
    fn snapshot(&self, name: &str) -> Pending<units::Result<Option<u64>>>;
    fn open_snapshot(&self, name: &str) -> Pending<units::Result<FileSystem>>;
    /// Where requests are told, or their stages.
    fn probe(&self, _family: Family) -> Probe {
        Probe::none()
    }
    /// What is told of panics in requests.
    fn domain(&self) -> Option<Arc<dyn world::Domain>> {
        None
    }
}

/// In bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// What the files take.
    pub used: u64,
    /// What more may be written, by quotas and reservations.
    pub available: u64,
    /// How many files there are.
    pub files: u64,
    /// `recordsize`.
    pub record_size: u32,
}

/// See the module.
pub(crate) struct Served {
    begun: Handle,
    /// The same to be written, of a mount that was begun read-only and is so no more.
    for_writing: OnceLock<Handle>,
    dataset: std::sync::Arc<dyn Dataset>,
    pub probe: Probe,
    pub stages: Probe,
    /// Where requests past the cache are told.
    past_cache: Probe,
    pub counts: Counts,
    /// `.zfs` is listed, and it can be reached at all.
    shows_snapshots: AtomicBool,
    reaches_snapshots: AtomicBool,
    /// When something was read is noted, as the properties say; by a mount option, and read-only, never.
    notes_access: AtomicBool,
    pub posix_acl: bool,
    /// Who is told of what it does not expect; from the moment it can be.
    pub kernel: OnceLock<Arc<Device>>,
    nodes: Nodes,
    trees: Trees,
    made: Time,
    /// A file answers to several spellings of its name.
    has_aliases: bool,
}

/// The file system, and its root.
struct Handle {
    fs: FileSystem,
    root: Node,
}

/// What a number means.
#[derive(Clone)]
pub(crate) enum Place {
    File(File),
    /// `.zfs`
    Control,
    /// `.zfs/snapshot`
    Snapshots,
}

/// A file of the file system or of one of its snapshots.
#[derive(Clone)]
pub(crate) struct File {
    pub tree: u16,
    pub node: Node,
}

impl Served {
    pub async fn new(
        fs: FileSystem,
        dataset: std::sync::Arc<dyn Dataset>,
        options: &Options,
    ) -> units::Result<Served> {
        let root = fs.root().await?;
        let made = root.stat().await?.crtime;
        let has_aliases = !fs.normalization().is_none();
        let served = Served {
            begun: Handle { fs, root },
            for_writing: OnceLock::new(),
            probe: dataset.probe(Family::Fs),
            stages: dataset.probe(Family::FsStages),
            past_cache: dataset.probe(Family::FsDirect),
            counts: Counts::default(),
            dataset,
            shows_snapshots: AtomicBool::new(false),
            reaches_snapshots: AtomicBool::new(false),
            notes_access: AtomicBool::new(false),
            posix_acl: options.posix_acl,
            kernel: OnceLock::new(),
            nodes: Nodes::default(),
            trees: Trees::default(),
            made,
            has_aliases,
        };
        served.follow(options);
        Ok(served)
    }

    /// Goes by other options from now on.
    pub fn follow(&self, options: &Options) {
        self.notes_access.store(options.atime && !options.read_only, Ordering::Relaxed);
        self.reaches_snapshots.store(options.snapshots != Snapshots::Disabled, Ordering::Relaxed);
        let shows = options.snapshots == Snapshots::Visible;
        if self.shows_snapshots.swap(shows, Ordering::Relaxed) != shows
            && let Some(kernel) = self.kernel.get()
        {
            // The listing that it keeps.
            kernel.invalidate(ROOT, 0, 0);
        }
    }

    /// A mount that was begun read-only is served from a handle for writing from now on, files too that the kernel knows
    /// already. To be done before the kernel lets writes through.
    pub async fn write_by(&self, fs: FileSystem) -> units::Result<()> {
        if self.fs().is_for_writing() {
            return Ok(());
        }
        let root = fs.root().await?;
        if self.for_writing.set(Handle { fs, root }).is_err() {
            return Ok(());
        }
        for number in self.nodes.of_tree(0) {
            self.hold_for_writing(number).await?;
        }
        Ok(())
    }

    /// What the kernel knows of is held by the handle that changes it, so that a file lives on when it has no name any more.
    async fn hold_for_writing(&self, number: u64) -> units::Result<()> {
        let node = self.fs().object(ObjectId(parts(number).1)).await?;
        self.nodes.exchange(number, node);
        Ok(())
    }

    fn reaches_snapshots(&self) -> bool {
        self.reaches_snapshots.load(Ordering::Relaxed)
    }

    pub fn fs(&self) -> &FileSystem {
        &self.handle().fs
    }

    pub fn root(&self) -> &Node {
        &self.handle().root
    }

    fn handle(&self) -> &Handle {
        self.for_writing.get().unwrap_or(&self.begun)
    }

    /// How long the kernel may believe what is under a name, and that nothing is. It does not know that what it does to one
    /// spelling it does to all others.
    pub fn believed(&self) -> Duration {
        if self.has_aliases { Duration::ZERO } else { BELIEVED }
    }

    /// The numbers of the files of which the kernel may have pages that are not written yet.
    pub fn files(&self) -> Vec<u64> {
        self.nodes.files()
    }

    /// What the kernel means by a number.
    pub async fn place(&self, asked: u64) -> Result<Place> {
        let is_of_snapshots = matches!(asked, CONTROL | SNAPSHOTS) || parts(asked).0 != 0;
        if is_of_snapshots && !self.reaches_snapshots() {
            return Err(Errno::STALE);
        }
        match asked {
            ROOT => return Ok(Place::File(File { tree: 0, node: self.root().clone() })),
            CONTROL => return Ok(Place::Control),
            SNAPSHOTS => return Ok(Place::Snapshots),
            _ => {}
        }
        let (tree, object) = parts(asked);
        if let Some(node) = self.nodes.get(asked) {
            return Ok(Place::File(File { tree, node }));
        }
        // A handle that a client kept, or a file that could not be opened when its name was listed.
        let fs = self.tree(tree).ok_or(Errno::STALE)?;
        let node = fs.object(ObjectId(object)).await.map_err(|e| match e.kind() {
            units::Kind::NotFound => Errno::STALE,
            _ => errno(&e),
        })?;
        if node.is_xattr() { Err(Errno::STALE) } else { Ok(Place::File(File { tree, node })) }
    }

    /// As [`Served::place`], of what is stored; what is not cannot be changed.
    pub async fn file(&self, asked: u64) -> Result<File> {
        match self.place(asked).await? {
            Place::File(file) => Ok(file),
            Place::Control | Place::Snapshots => Err(Errno::PERM),
        }
    }

    /// By which number the kernel knows a file.
    fn number(&self, file: &File) -> u64 {
        let object = file.node.id().object;
        if file.tree == 0 && object == self.root().id().object { ROOT } else { number(file.tree, object.0) }
    }

    async fn attr(&self, file: &File) -> Result<Attr> {
        let mut stat = file.node.stat().await.map_err(|e| errno(&e))?;
        if stat.kind == FileKind::Regular && stat.size == 0 {
            // As OpenZFS: programs choose their buffers by it, and the only block of an empty file says nothing of those
            // to come.
            stat.block_size = self.fs().settings().record_size.min(IO_MAX as u64) as u32;
        }
        Ok(crate::attr::file_attr(self.number(file), &stat))
    }

    /// The attributes of a file that the kernel is told of, which it asked for by this name of a directory if by any.
    async fn told(&self, file: &File, name: Option<(u64, &[u8])>) -> Result<(Attr, u64)> {
        let attr = self.attr(file).await?;
        if attr.number != ROOT {
            self.nodes.tell(attr.number, &file.node, name);
            let is_of_begun = file.tree == 0 && !file.node.file_system().is_for_writing();
            if is_of_begun && self.for_writing.get().is_some() {
                self.hold_for_writing(attr.number).await.map_err(|e| errno(&e))?;
            }
        }
        Ok((attr, self.generation(file)))
    }

    /// What a handle must agree in besides the number. A tree has its number by the order in which a mount meets snapshots:
    /// a handle of another mount could name a file of another snapshot, whose own generation is the same.
    fn generation(&self, file: &File) -> u64 {
        let own = file.node.generation();
        // The kernel keeps the lower 32 bits.
        self.snapshot_id(file.tree).map_or(own, |id| own ^ (id + 1).wrapping_mul(0x9e37_79b1))
    }

    /// What stands for a name that is not there.
    pub fn nothing(&self) -> Attr {
        crate::attr::made_up_directory(0, self.made)
    }

    /// What statistics call a file, if any tell files apart.
    pub fn called(&self, number: u64) -> Option<Label> {
        let told = [&self.probe, &self.stages, &self.past_cache];
        let is_wanted = told.into_iter().any(Probe::wants_files);
        is_wanted.then(|| self.nodes.label(self.fs().name(), number))
    }

    /// So many bytes of a file went past the cache.
    fn tell_past_cache(&self, op: Op, number: u64, offset: u64, bytes: u64) {
        if bytes > 0 && self.past_cache.is_open() {
            let file = self.called(number);
            let file = file.as_ref();
            self.past_cache.tell(|| Event { op, offset, bytes, object: number, file, ..Event::default() });
        }
    }

    /// What was asked of files whose blocks have the present `recordsize`.
    pub fn counted(&self) -> Counted {
        self.counts.told(self.fs().settings().record_size)
    }

    /// Bytes of a file's blocks, and what `recordsize` says that they should have.
    fn blocks_of(&self, node: &Node) -> (u64, u64) {
        (node.object().block_size(), self.fs().settings().record_size)
    }

    /// It was read just now.
    async fn note_access(&self, node: &Node) {
        if self.notes_access.load(Ordering::Relaxed) {
            // Not knowing when is no reason not to read.
            let _ = node.accessed().await;
        }
    }

    /// The kernel gives a file back `count` times.
    pub async fn forget(&self, number: u64, count: u64) {
        if let Some(node) = self.nodes.forget(number, count) {
            self.let_go(node).await;
        }
    }

    /// A file that cannot be freed now is freed when the file system is opened the next time.
    async fn let_go(&self, node: Node) {
        let _ = node.release().await;
    }

    /// The kernel has forgotten everything.
    pub async fn release_all(&self) {
        for node in self.nodes.take_all() {
            self.let_go(node).await;
        }
    }
}
