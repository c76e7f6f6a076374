//! Straight on the engine: a pool of its own, a task for each stream, no kernel in between.
//!
//! ```text
//!   create ─▶ directories ─▶ steps ─▶ export
//!                            Cold: export, open with an empty cache
//! ```

use super::pool::{FILE_SYSTEM, Rig, with_rig};
use super::{Backing, Ios, Op, Outcome, PERMISSIONS, Phase, Shape, Singles, Step, Way, XATTR};
use pool::Pool;
use std::sync::{Arc, OnceLock};
use units::{Error, Kind, Result};
use zpl::{Changes, FileKind, FileSystem, NewFile, Node, NodeId, Time};

/// Runs the steps one way, on a new pool. Not to be called from within a world.
pub fn run(backing: &Backing, way: &Way, shape: Shape, steps: &'static [Step]) -> Result<Outcome> {
    let way = way.clone();
    with_rig(backing, shape.files, move |rig| async move { all(&rig, &way, shape, steps).await })
}

/// What is known of the files, whatever pool handle is open.
struct Known {
    shape: Shape,
    directories: Vec<NodeId>,
    files: Vec<OnceLock<NodeId>>,
}

/// The pool, opened. Handles of files hold it open, and go before it is closed.
struct Open {
    pool: Pool,
    fs: FileSystem,
    directories: Vec<Node>,
}

async fn all(rig: &Rig, way: &Way, shape: Shape, steps: &[Step]) -> Result<Outcome> {
    let pool = rig.create(way).await?;
    let fs = pool.open_file_system_for_writing(FILE_SYSTEM).await?;
    let root = fs.root().await?;
    let mut directories = Vec::new();
    for n in 0..shape.directories {
        let name = format!("dir-{n}");
        directories.push(root.create(name.as_bytes(), &NewFile::new(FileKind::Directory, 0o755)).await?);
    }
    pool.sync().await?;
    let known = Arc::new(Known {
        shape,
        directories: directories.iter().map(Node::id).collect(),
        files: (0..shape.files).map(|_| OnceLock::new()).collect(),
    });
    drop(root);
    let mut open = Arc::new(Open { pool, fs, directories });
    let (mut outcome, mut is_cold) = (Outcome::default(), false);
    for step in steps {
        match step {
            Step::Cold => {
                open = again(rig, open, &known, false).await?;
                is_cold = true;
            }
            Step::Single => {
                open = again(rig, open, &known, true).await?;
                outcome.singles = Some(single(&open, &known).await?);
                open = again(rig, open, &known, false).await?;
            }
            Step::Run(op) => {
                outcome.phases.push(phase(&open, &known, *op, is_cold).await?);
                is_cold = false;
            }
        }
    }
    close(open).await?;
    Ok(outcome)
}

async fn close(open: Arc<Open>) -> Result<()> {
    let open = Arc::into_inner(open).ok_or_else(|| Error::new(Kind::Busy, "close the pool"))?;
    let Open { pool, fs, directories } = open;
    drop((fs, directories));
    pool.export().await
}

/// The pool again, with nothing in its cache but the directories' own attributes.
async fn again(rig: &Rig, open: Arc<Open>, known: &Known, read_only: bool) -> Result<Arc<Open>> {
    close(open).await?;
    let pool = rig.open(read_only).await?;
    let fs = match read_only {
        true => pool.open_file_system(FILE_SYSTEM).await?,
        false => pool.open_file_system_for_writing(FILE_SYSTEM).await?,
    };
    let mut directories = Vec::new();
    for id in &known.directories {
        directories.push(fs.node(*id).await?);
    }
    Ok(Arc::new(Open { pool, fs, directories }))
}

async fn phase(open: &Arc<Open>, known: &Arc<Known>, op: Op, is_cold: bool) -> Result<Phase> {
    let before = open.ios();
    let begun = world::now();
    let start = |stream| {
        let (open, known) = (open.clone(), known.clone());
        world::spawn_on(stream, async move { run_stream(&open, &known, stream, op).await })
    };
    let streams: Vec<_> = (0..known.shape.streams).map(start).collect();
    let mut done = Ok(());
    for stream in streams {
        done = done.and(stream.await);
    }
    done?;
    open.pool.sync().await?;
    Ok(Phase {
        op,
        is_cold,
        files: known.shape.files,
        elapsed: world::now().since(begun),
        ios: Some(open.ios().since(before)),
        cached: Some(open.cached()),
    })
}

async fn run_stream(open: &Open, known: &Known, stream: usize, op: Op) -> Result<()> {
    for file in known.shape.of_stream(stream) {
        open.act(known, op, file).await.map_err(|e| e.at(Shape::name(file)))?;
    }
    Ok(())
}

impl Open {
    async fn act(&self, known: &Known, op: Op, file: u64) -> Result<()> {
        let name = Shape::name(file);
        let (name, directory) = (name.as_bytes(), &self.directories[known.shape.directory(file)]);
        match op {
            Op::Create => {
                let node = directory.create(name, &NewFile::new(FileKind::Regular, PERMISSIONS)).await?;
                known.files[file as usize].get_or_init(|| node.id());
                node.release().await
            }
            Op::SetXattr => {
                let value = known.shape.value_of(file);
                self.node(known, file).await?.set_xattr(XATTR.as_bytes(), &value).await
            }
            Op::GetXattr => {
                let value = self.node(known, file).await?.xattr(XATTR.as_bytes()).await?;
                verify(value.as_deref() == Some(&known.shape.value_of(file)[..]), "value")
            }
            Op::Lookup => {
                let found = directory.lookup(name).await?;
                verify(known.files[file as usize].get() == Some(&found.id()), "object")
            }
            Op::GetAttr => {
                let stat = self.node(known, file).await?.stat().await?;
                verify(stat.permissions == PERMISSIONS, "mode")
            }
            Op::SetAttr => {
                let mtime = Some(Time { seconds: file as i64, nanos: 0 });
                self.node(known, file).await?.change(&Changes { mtime, ..Changes::default() }).await
            }
            Op::Unlink => directory.unlink(name).await,
        }
    }

    async fn node(&self, known: &Known, file: u64) -> Result<Node> {
        let id = known.files[file as usize].get().ok_or_else(|| Error::invalid("the file was never made"))?;
        self.fs.node(*id).await
    }

    /// Of all devices together.
    fn ios(&self) -> Ios {
        self.pool.tree().leaves().iter().fold(Ios::default(), |sum, leaf| {
            let stats = leaf.stats.snapshot();
            Ios { reads: sum.reads + stats.read.ops, writes: sum.writes + stats.write.ops }
        })
    }

    fn cached(&self) -> u64 {
        let stats = self.pool.pipeline().cache().stats();
        stats.data.blocks + stats.metadata.blocks
    }
}

fn verify(is_right: bool, what: &str) -> Result<()> {
    if is_right { Ok(()) } else { Err(Error::corrupt(format!("not the {what} that was set"))) }
}

/// How many values are read by themselves.
const SINGLES_MAX: u64 = 64;
/// So far are they apart that no two share a block of dnodes.
const APART: u64 = 256;
/// Files before this may share a block of dnodes with what every file needs.
const FIRST: u64 = 64;

/// Reads values far from each other. Before each another one is read, half the way to the next: it brings what
/// many files share, indirect blocks above all, so that what is counted is the file's own.
async fn single(open: &Open, known: &Known) -> Result<Singles> {
    let files = known.shape.files;
    let values = (files / APART).min(SINGLES_MAX);
    let mut singles = Singles { values, reads: 0 };
    for n in 0..values {
        let file = n * (files / values) + FIRST;
        open.act(known, Op::GetXattr, file + APART / 2).await?;
        let before = open.ios();
        open.act(known, Op::GetXattr, file).await?;
        singles.reads += open.ios().since(before).reads;
    }
    Ok(singles)
}
