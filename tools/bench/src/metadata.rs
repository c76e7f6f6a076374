//! Work on names and attributes: the same steps over a mounted path, and straight on the engine.
//!
//! ```text
//!   xattrtest ┐                ┌─ mounted   a thread for each stream, system calls on a path
//!             ├─ steps, shape ─┤
//!   mds-survey┘                └─ engine    a task for each stream, on a pool of its own: in a file, or simulated
//!
//!   stream s has the files s, s + streams, s + 2 * streams ..   file f is in the directory f % directories
//! ```
//!
//! A step is one [`Op`] on every file, by all streams at once. Its time ends when what it changed is on disk, and so do
//! the device's reads and writes that are counted for it. Before a [`Step::Cold`] nothing is in the cache: the engine
//! exports its pool and opens it again; for a path it is done when asked for, and takes root.
//!
//! The engine is asked for a file by its id, as by a server whose clients have handles; only a lookup and an unlink go by
//! name. A path always goes by name.

pub mod args;
pub mod engine;
pub mod mounted;
pub(crate) mod pool;
pub mod table;

use std::path::PathBuf;
use std::time::Duration;

/// The name of the extended attribute.
pub const XATTR: &str = "user.0";

/// What is done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Create,
    SetXattr,
    /// The value must be the one that was set.
    GetXattr,
    Lookup,
    /// The file must have the mode that it was made with.
    GetAttr,
    /// The time of the last change of its data.
    SetAttr,
    Unlink,
}

impl Op {
    pub fn name(self) -> &'static str {
        match self {
            Op::Create => "create",
            Op::SetXattr => "set",
            Op::GetXattr => "get, verified",
            Op::Lookup => "lookup",
            Op::GetAttr => "getattr",
            Op::SetAttr => "setattr",
            Op::Unlink => "unlink",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Run(Op),
    /// Empties the cache.
    Cold,
    /// Reads single values with nothing of them in the cache, one after the other; of the engine alone.
    Single,
}

/// How much, by how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// All together.
    pub files: u64,
    pub directories: u64,
    pub streams: usize,
    /// Bytes of a value.
    pub value: usize,
}

/// The mode of every file.
const PERMISSIONS: u32 = 0o644;

impl Shape {
    /// The files of one stream.
    pub fn of_stream(self, stream: usize) -> impl Iterator<Item = u64> {
        (stream as u64..self.files).step_by(self.streams)
    }

    pub fn directory(self, file: u64) -> usize {
        (file % self.directories) as usize
    }

    pub fn name(file: u64) -> String {
        format!("file-{file}")
    }

    /// Bytes that do not compress, and are of this file alone.
    pub fn value_of(self, file: u64) -> Vec<u8> {
        let word = |i: u64| {
            let mut x = (file << 16 | i).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            x ^ x >> 31
        };
        (0..self.value.div_ceil(8) as u64).flat_map(|i| word(i).to_le_bytes()).take(self.value).collect()
    }
}

/// Where it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Path(Mounted),
    /// Each way by itself, on a new pool.
    Pool(Backing, Vec<Way>),
}

/// A mounted path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mounted {
    pub dir: PathBuf,
    /// Block devices whose reads and writes are counted, as `sda`; that of the path if none is named.
    pub devices: Vec<String>,
    /// Also empty the kernel's caches.
    pub drops_caches: bool,
}

/// What the engine's pool is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A file in this directory.
    File(PathBuf),
    /// Sixteen models of disks in eight mirrors, in simulated time.
    Simulated,
}

/// How a file system keeps extended attributes: values of `xattr` and `dnodesize`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    pub xattr: String,
    pub dnode_size: String,
}

impl Way {
    pub fn new(xattr: &str, dnode_size: &str) -> Way {
        Way { xattr: xattr.into(), dnode_size: dnode_size.into() }
    }
}

/// Reads and writes that devices completed; merged ones count once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ios {
    pub reads: u64,
    pub writes: u64,
}

impl Ios {
    pub fn since(self, before: Ios) -> Ios {
        let less = u64::saturating_sub;
        Ios { reads: less(self.reads, before.reads), writes: less(self.writes, before.writes) }
    }
}

/// What a step took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    pub op: Op,
    pub is_cold: bool,
    pub files: u64,
    pub elapsed: Duration,
    /// None where no device is known.
    pub ios: Option<Ios>,
    /// Blocks in the cache when it ended; the engine's alone.
    pub cached: Option<u64>,
}

/// A step that took less was not measured.
const SHORTEST: Duration = Duration::from_micros(10);

impl Phase {
    /// `None` where no time passed: on simulated disks only disks take time, and what is in memory takes none.
    pub fn per_second(&self) -> Option<f64> {
        (self.elapsed >= SHORTEST).then(|| self.files as f64 / self.elapsed.as_secs_f64())
    }
}

/// Single cold values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Singles {
    pub values: u64,
    /// Of devices.
    pub reads: u64,
}

/// All steps in one place, one way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    pub phases: Vec<Phase>,
    pub singles: Option<Singles>,
}

/// Runs the steps in every way that the place has. Not to be called from within a world.
pub fn run(
    place: &Place,
    shape: Shape,
    steps: &'static [Step],
) -> units::Result<Vec<(Option<Way>, Outcome)>> {
    match place {
        Place::Path(mounted) => Ok(vec![(None, mounted::run(mounted, shape, steps)?)]),
        Place::Pool(backing, ways) => {
            ways.iter().map(|way| Ok((Some(way.clone()), engine::run(backing, way, shape, steps)?))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_one_stream_one_directory_and_its_own_value() {
        let shape = Shape { files: 10, directories: 4, streams: 3, value: 13 };
        let mut files: Vec<u64> = (0..3).flat_map(|stream| shape.of_stream(stream)).collect();
        assert_eq!(files[..4], [0, 3, 6, 9]);
        files.sort_unstable();
        assert_eq!(files, (0..10).collect::<Vec<_>>());
        assert!(files.iter().all(|file| shape.directory(*file) < 4));
        let values: std::collections::BTreeSet<_> = files.iter().map(|file| shape.value_of(*file)).collect();
        assert!(values.len() == 10 && values.iter().all(|value| value.len() == 13));
    }
}
