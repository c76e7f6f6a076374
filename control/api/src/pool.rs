//! Pools, their vdevs and what is being done to them.

use crate::{Layout, Property, VdevStats};
use serde::{Deserialize, Serialize};

/// A pool that is imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    pub name: String,
    pub guid: u64,
    /// The txg of the newest uberblock.
    pub txg: u64,
    /// `ONLINE`, `DEGRADED`, ..., and `UNAVAIL` for one whose devices could not be opened.
    pub health: String,
    /// Every native property, every feature and the user's own.
    pub properties: Vec<Property>,
    /// The root; a pool that could not be opened has none.
    pub vdevs: Option<Vdev>,
    pub scan: Option<Scan>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_scrub: Option<ErrorScrub>,
    /// What is lost.
    pub errors: DataErrors,
    /// One line for each device that cannot be used: which, why, and what helps.
    pub unusable: Vec<String>,
    /// Why nothing can be written any more, until it is opened again; its health is `SUSPENDED` then.
    pub suspended: Option<String>,
    /// Intent logs that wait to be replayed, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<String>,
    /// Why it could not be opened.
    pub problem: Option<String>,
    /// Nanoseconds of a clock that only runs forward: when the counters were read.
    pub clock_ns: u64,
}

impl Pool {
    pub fn property(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|p| p.name == name)
    }

    /// The scrub of the error log, unless a scrub or a resilver has begun since.
    pub fn newest_error_scrub(&self) -> Option<&ErrorScrub> {
        let began = self.scan.as_ref().map_or(0, |scan| scan.started);
        self.error_scrub.as_ref().filter(|scrub| scrub.started >= began)
    }
}

/// What of a pool's data is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataErrors {
    /// Blocks that are known to be lost.
    pub blocks: u64,
    /// What they are of, by name: files, else datasets and objects.
    pub names: Vec<String>,
    /// Blocks that none of the names is about.
    pub more: u64,
    /// What else was met since the pool was opened, in sentences.
    pub problems: Vec<String>,
}

impl DataErrors {
    /// How many there are to tell of.
    pub fn count(&self) -> u64 {
        self.blocks + self.problems.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// A line for each, and one for those that have none.
    pub fn lines(&self) -> Vec<String> {
        let more = (self.more > 0).then(|| format!("and {} more blocks", self.more));
        self.names.iter().cloned().chain(more).chain(self.problems.iter().cloned()).collect()
    }
}

/// What a top-level vdev, or a device beside the tree, is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    Normal,
    Log,
    Special,
    Dedup,
    Cache,
    Spare,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vdev {
    /// The word on disk: `root`, `mirror`, `raidz`, `file`, `disk`, ...
    pub kind: String,
    pub guid: u64,
    /// Its place among its siblings.
    pub id: u64,
    pub path: Option<String>,
    /// Of raidz.
    pub parity: u64,
    pub class: Option<Class>,
    pub state: String,
    /// The reason of a state other than online, as `zpool status` words it.
    pub why: Option<String>,
    pub read_errors: u64,
    pub write_errors: u64,
    pub checksum_errors: u64,
    /// Operations that took too long, of a device; of a group, of all its devices.
    #[serde(default)]
    pub slow_ios: u64,
    /// Allocatable bytes, and what of them is taken; of top-level vdevs and the root only.
    pub space: Option<(u64, u64)>,
    /// The bytes of a device.
    pub size: u64,
    /// How many bytes more a top-level vdev would have if it took all that its devices have now.
    #[serde(default)]
    pub expandable: u64,
    /// The last sequential rebuild, or the one under way; of top-level vdevs only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuild: Option<Box<Rebuild>>,
    pub fragmentation: Option<u64>,
    pub ashift: Option<u32>,
    /// Of a device: the smallest unit that it writes without reading first, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical_block: Option<u32>,
    pub stats: VdevStats,
    /// Those that users have set on it.
    #[serde(default)]
    pub properties: Vec<Property>,
    /// What was written to it; of cache and log devices of open pools only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wear: Option<Box<crate::DeviceWear>>,
    /// How far it was trimmed and initialized; of devices only.
    #[serde(default)]
    pub swept: Vec<crate::Swept>,
    pub children: Vec<Vdev>,
}

impl Vdev {
    pub fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }

    /// It and everything below it, parents first.
    pub fn walk(&self) -> Vec<&Vdev> {
        let mut all = vec![self];
        self.children.iter().for_each(|c| all.extend(c.walk()));
        all
    }
}

/// A scrub or resilver, the last one or the one under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scan {
    /// Else it is a scrub.
    pub is_resilver: bool,
    pub state: ScanState,
    /// Seconds since 1970.
    pub started: u64,
    pub ended: u64,
    pub paused: Option<u64>,
    pub to_examine: u64,
    pub examined: u64,
    pub issued: u64,
    pub repaired: u64,
    pub errors: u64,
    /// Seconds that this pass has been going, and what was looked at in it.
    pub elapsed: u64,
    pub pass_examined: u64,
}

/// A scrub of the blocks in the error log alone, the last one or the one under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorScrub {
    pub state: ScanState,
    /// Seconds since 1970.
    pub started: u64,
    pub ended: u64,
    pub paused: Option<u64>,
    /// Blocks that are still to be looked at.
    pub to_examine: u64,
    /// Blocks that were, and how many of them could not be had.
    pub examined: u64,
    pub errors: u64,
}

/// A device of a mirror that is copied to in the order of the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuild {
    pub state: ScanState,
    /// Seconds since 1970.
    pub started: u64,
    pub ended: u64,
    /// Milliseconds of all its passes.
    pub elapsed_ms: u64,
    /// Bytes of the vdev: looked at, copied, and to be looked at in all.
    pub scanned: u64,
    pub issued: u64,
    pub expected: u64,
    /// Bytes written to devices.
    pub rebuilt: u64,
    /// Pieces that could not be read anywhere.
    pub errors: u64,
    /// Of this pass, since the pool was opened.
    pub pass_ms: u64,
    pub pass_scanned: u64,
    pub pass_issued: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScanState {
    #[default]
    Running,
    Finished,
    Canceled,
}

/// Devices named together on the command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VdevGroup {
    pub class: Class,
    pub layout: Layout,
    pub devices: Vec<Device>,
}

/// A path; it is absolute when it travels, since the service may stand elsewhere.
pub type Device = String;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewPool {
    pub name: String,
    pub vdevs: Vec<VdevGroup>,
    /// Take devices that seem to be in use, and layouts that do not match.
    pub force: bool,
    /// Check everything, change nothing.
    pub dry_run: bool,
    /// Leave every feature off that is not asked for by name.
    pub no_features: bool,
    pub properties: Vec<(String, String)>,
    pub fs_properties: Vec<(String, String)>,
    /// What it is called while it is imported here.
    pub temporary_name: Option<String>,
}

impl NewPool {
    /// Of devices in one layout, with all that is not said as it is by default.
    pub fn of(name: &str, layout: Layout, devices: &[&str]) -> NewPool {
        let devices = devices.iter().map(ToString::to_string).collect();
        let vdevs = vec![VdevGroup { class: Class::Normal, layout, devices }];
        NewPool { name: name.into(), vdevs, ..NewPool::default() }
    }
}

/// Vdevs and devices for a pool that there is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewVdevs {
    pub pool: String,
    pub vdevs: Vec<VdevGroup>,
    /// Check everything, change nothing.
    pub dry_run: bool,
    /// Take devices that seem to be in use.
    pub allow_in_use: bool,
    /// Take a layout that does not match that of the pool.
    pub allow_replication_mismatch: bool,
    /// Take vdevs whose sectors are of another size than the pool's.
    pub allow_ashift_mismatch: bool,
    /// Of the new vdevs; `None`: the pool's property, if it is set, else as the devices say.
    pub ashift: Option<u64>,
}

/// How a pool is named that is not imported yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolChoice {
    Name(String),
    Guid(u64),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolImport {
    pub pool: PoolChoice,
    pub new_name: Option<String>,
    /// The new name is not written to the pool.
    pub temporary: bool,
    /// Directories and devices to look at.
    pub search: Vec<String>,
    pub destroyed: bool,
    pub force: bool,
    /// A log device may be missing: what was on it is lost.
    #[serde(default)]
    pub missing_log: bool,
    /// Nothing of it is mounted, though the daemon mounts by itself.
    #[serde(default)]
    pub no_mount: bool,
    /// How far it may go back when what is newest cannot be read.
    #[serde(default)]
    pub rewind: Option<Rewind>,
    pub properties: Vec<(String, String)>,
}

/// Going back to an older txg, for reading only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewind {
    /// Only say what would be.
    pub dry_run: bool,
    /// As far as there are uberblocks; else no further than where nothing has been overwritten yet.
    pub extreme: bool,
    /// To this one, whatever is newer.
    pub txg: Option<u64>,
}

/// An older state of a pool, of which less is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WentBack {
    pub txg: u64,
    /// Seconds since 1970.
    pub time: u64,
    /// How many seconds before its newest state that was.
    pub discarded: u64,
}

/// One side of every mirror becomes a pool of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolSplit {
    pub pool: String,
    pub new_name: String,
    /// By path, name or guid; of mirrors of which none is named, the last.
    pub devices: Vec<String>,
    /// Check everything, change nothing.
    pub dry_run: bool,
    /// Of the new pool. With an `altroot` it stays imported, else it is exported.
    pub properties: Vec<(String, String)>,
}

/// A pool that was found on devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Importable {
    pub name: String,
    pub guid: u64,
    pub health: String,
    pub destroyed: bool,
    pub exported: bool,
    pub version: u64,
    pub comment: Option<String>,
    /// The host that had it last, when that was another one: hostname and hostid.
    pub other_host: Option<(String, u64)>,
    /// Features that this program cannot read, and so cannot import at all.
    pub unsupported: Vec<String>,
    pub vdevs: Vdev,
}
