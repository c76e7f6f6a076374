//! Requests and their replies.

use crate::alerts::{Alerts, AlertsTold};
use crate::analytics::{Analytics, Told};
use crate::san::{San, SanState};
use crate::shares::{Item, Shares};
use crate::{
    CacheState, Daemon, Dataset, DatasetQuery, DeferredUpdate, Doctor, Event, FileProject, Importable, Mount,
    Mounted, Nbd, NewDataset, NewPool, NewVdevs, Pool, PoolHistory, PoolImport, PoolSplit, ProjectOf, Schema,
    Secret, Services, Snapshots, Tunable, Unmount, Usage, WentBack, Whose,
};
use serde::{Deserialize, Serialize};

/// A request, and who makes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The command line, for the history of the pools that it changes.
    pub command: String,
    pub uid: u64,
    pub request: Request,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    Ping,
    /// Who serves, since when, and with how much memory.
    Daemon,
    /// What is in the cache of blocks and on cache devices, and what they did.
    Cache,
    /// The daemon closes all pools and ends.
    Shutdown,
    PoolCreate(NewPool),
    PoolAdd(NewVdevs),
    /// Takes a device, or a group of them, out of a pool for good.
    PoolRemove {
        name: String,
        guid: u64,
        /// As it was called, for messages.
        device: String,
    },
    PoolDestroy {
        name: String,
        force: bool,
    },
    /// What could be imported. Without directories it looks where devices and this home's disks are.
    PoolImportable {
        search: Vec<String>,
        destroyed: bool,
    },
    PoolImport(PoolImport),
    PoolExport {
        name: String,
        force: bool,
    },
    /// Everything about these pools, or about all.
    Pools {
        names: Vec<String>,
    },
    PoolSet {
        name: String,
        /// Of this vdev, by name, path or guid, rather than of the pool.
        #[serde(default)]
        vdev: Option<String>,
        property: String,
        value: String,
    },
    PoolHistory {
        names: Vec<String>,
    },
    PoolSync {
        names: Vec<String>,
    },
    /// What has happened to pools after the event with this number.
    Events {
        since: u64,
    },
    /// Forgets all events.
    EventsClear,
    /// Forgets the errors of the pool's devices, or of one by name, path or guid, and lets a suspended pool go on.
    PoolClear {
        name: String,
        #[serde(default)]
        device: Option<String>,
    },
    /// Does something to one device of a pool, by path, name or guid.
    PoolDevice {
        name: String,
        device: String,
        action: DeviceAction,
    },
    PoolScrub {
        name: String,
        action: ScrubAction,
    },
    /// Begins a resilver, or the one under way from its start.
    PoolResilver {
        name: String,
    },
    /// Gives a pool another guid: this one, or one that is drawn.
    PoolReguid {
        name: String,
        #[serde(default)]
        guid: Option<u64>,
    },
    /// Reads the tables of deduplicated blocks into the cache; answers how many bytes these are.
    PoolPrefetch {
        name: String,
    },
    /// Makes a pool of one side of every mirror of another.
    PoolSplit(PoolSplit),
    /// Looks at all devices of a pool again.
    PoolReopen {
        name: String,
    },
    /// Trims or initializes what is free on some devices of a pool, by path, name or guid, or on all.
    PoolSweep {
        name: String,
        #[serde(default)]
        devices: Vec<String>,
        kind: crate::SweepKind,
        action: crate::SweepAction,
    },
    LabelClear {
        device: String,
        force: bool,
    },
    Datasets(DatasetQuery),
    DatasetCreate(NewDataset),
    DatasetDestroy {
        name: String,
        /// With everything below it; of a snapshot, those of the same name below.
        recursive: bool,
        /// With all clones, wherever they are, and everything below them.
        #[serde(default)]
        clones: bool,
        /// Snapshots that cannot go yet go when their last clone or hold does.
        #[serde(default)]
        defer: bool,
        force: bool,
        dry_run: bool,
    },
    DatasetRename {
        from: String,
        to: String,
        parents: bool,
        /// Of a snapshot: those of the same name below as well.
        #[serde(default)]
        recursive: bool,
        /// Ends what clients do with it, and what programs have open in it.
        #[serde(default)]
        force: bool,
    },
    Snapshots(Snapshots),
    DatasetSet {
        name: String,
        properties: Vec<(String, String)>,
    },
    /// What users, groups or projects take of a file system or a snapshot of one, and may take.
    DatasetUsage {
        name: String,
        whose: Whose,
    },
    FileProject(FileProject),
    DatasetInherit {
        name: String,
        property: String,
        /// What came with a stream counts again.
        received: bool,
    },
    NbdExports,
    /// What is mounted.
    Mounts,
    Mount(Mount),
    Unmount(Unmount),
    /// These, or all.
    Tunables {
        names: Vec<String>,
    },
    /// All of them or none. They are kept, and hold at once.
    TunableSet {
        settings: Vec<(String, String)>,
    },
    /// Targets, initiators and their groups.
    San(San),
    /// Projects, file systems and LUNs.
    Shares(Shares),
    /// What serves clients, whether it does, and where.
    Services(Services),
    /// Properties of an administrator's own.
    Schema(Schema),
    /// What happens, counted and kept over time.
    Analytics(Analytics),
    /// What a person should know of, and where it is sent.
    Alerts(Alerts),
    /// What is set wrong, and what to change.
    Doctor(Doctor),
    /// Features that these pools, or all, could have and have not.
    DeferredUpdates {
        pools: Vec<String>,
    },
    /// Enables features of a pool, for good: those named, or all that are deferred.
    ApplyUpdates {
        pool: String,
        features: Vec<String>,
    },
    /// Writes the configuration into a file, sealed.
    ConfigurationBackup {
        to: String,
    },
    /// Replaces the configuration by what a backup holds.
    ConfigurationRestore {
        from: String,
    },
    /// The configuration as a text, sealed: what a backup's file holds.
    ConfigurationTell,
    /// Replaces the configuration by such a text.
    ConfigurationTake {
        #[serde(with = "crate::secret::revealed")]
        text: Secret,
    },
}

impl Request {
    /// Whether it changes nothing.
    pub fn is_question(&self) -> bool {
        match self {
            Request::Alerts(asked) => asked.is_question(),
            Request::Analytics(asked) => asked.is_question(),
            Request::San(asked) => asked.is_question(),
            Request::Schema(asked) => asked.is_question(),
            Request::Services(asked) => asked.is_question(),
            Request::Shares(asked) => asked.is_question(),
            Request::Ping
            | Request::Daemon
            | Request::Cache
            | Request::Doctor(_)
            | Request::PoolImportable { .. }
            | Request::Pools { .. }
            | Request::PoolHistory { .. }
            | Request::PoolSync { .. }
            | Request::PoolPrefetch { .. }
            | Request::Events { .. }
            | Request::Datasets(_)
            | Request::DatasetUsage { .. }
            | Request::FileProject(FileProject { id: None, inherits: None, .. })
            | Request::Snapshots(Snapshots::Holds { .. })
            | Request::NbdExports
            | Request::Mounts
            | Request::Tunables { .. }
            | Request::DeferredUpdates { .. }
            | Request::ConfigurationBackup { .. }
            | Request::ConfigurationTell => true,
            _ => false,
        }
    }
}

/// What is done to a device of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceAction {
    /// Takes it out of use; `temporary`: until the pool is opened again; `fault`: until its errors are cleared.
    Offline {
        temporary: bool,
        fault: bool,
    },
    /// `expand`: with all that it has room for, when every device of its group has grown.
    Online {
        #[serde(default)]
        expand: bool,
    },
    /// Another device joins it in a mirror.
    Attach(Joining),
    /// Another device takes its place.
    Replace(Joining),
    Detach,
}

/// The device that joins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joining {
    pub device: String,
    /// Even if it seems to be in use.
    pub force: bool,
    pub ashift: Option<u64>,
    /// It is copied to in the order of the disk, and a scrub verifies the checksums afterwards.
    #[serde(default)]
    pub sequential: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScrubAction {
    /// Or go on with one that is paused.
    Start,
    /// Of the blocks in the error log alone; or go on with one that is paused.
    Errors,
    /// One of the error log as well.
    Stop,
    Pause,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    Done,
    /// A backup, with the secrets in it.
    Configuration {
        #[serde(with = "crate::secret::revealed")]
        text: Secret,
    },
    Pong {
        pid: u32,
        version: String,
    },
    Daemon(Daemon),
    Cache(Box<CacheState>),
    Pools(Vec<Pool>),
    Importable(Vec<Importable>),
    /// The name a pool was imported under.
    Imported {
        name: String,
        /// What is worth a warning.
        #[serde(default)]
        warning: Option<String>,
        /// It is not read as it was last.
        #[serde(default)]
        back: Option<WentBack>,
    },
    /// How far an import would go back; not at all, when its newest state can be read.
    WouldGoBack(Option<WentBack>),
    History(Vec<PoolHistory>),
    Events(Vec<Event>),
    Count(u64),
    Datasets(Vec<Dataset>),
    Usage(Vec<Usage>),
    ProjectOf(ProjectOf),
    /// What was, or would be, set on a new dataset besides what was asked for, and what is worth a warning.
    Created {
        settings: Vec<(String, u64)>,
        warning: Option<String>,
    },
    /// What was, or would be, destroyed, and what that gives back.
    Destroyed {
        names: Vec<String>,
        reclaimed: u64,
    },
    Holds(Vec<crate::Hold>),
    ShareSnapshots(Vec<crate::ShareSnapshot>),
    Automatics(Vec<crate::Automatic>),
    Dependents(Vec<crate::shares::Dependent>),
    Nbd(Nbd),
    Mounts(Vec<Mounted>),
    /// Those asked for, or those that were set.
    Tunables(Vec<Tunable>),
    San(Box<SanState>),
    Schema(Vec<crate::CustomProperty>),
    Services(Vec<crate::ServiceState>),
    Items(Vec<Item>),
    DeferredUpdates(Vec<DeferredUpdate>),
    Analytics(Told),
    Alerts(AlertsTold),
    Advice(Vec<doctor::Advice>),
    /// As `doctor::Facts` reads them.
    Facts {
        text: String,
    },
    /// The devices that a pool was, or would be, made of.
    SplitOff {
        devices: Vec<String>,
    },
    /// The name that a new thing was given.
    Named {
        name: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_one_line_of_json_and_comes_back_the_same() {
        let call = Call {
            command: "zpool export tank".into(),
            uid: 0,
            request: Request::PoolExport { name: "tank".into(), force: true },
        };
        let line = serde_json::to_string(&call).unwrap();
        assert_eq!(
            line,
            r#"{"command":"zpool export tank","uid":0,"request":{"pool_export":{"name":"tank","force":true}}}"#
        );
        assert_eq!(serde_json::from_str::<Call>(&line).unwrap(), call);
    }

    #[test]
    fn numbers_stay_exact_and_words_stay_words() {
        let reply = Reply::Datasets(vec![Dataset {
            name: "tank".into(),
            kind: crate::DatasetKind::Filesystem,
            properties: vec![
                crate::Property::computed("guid", u64::MAX),
                crate::Property::new(
                    "compression",
                    Some("lz4".into()),
                    crate::Source::Inherited("tank".into()),
                ),
                crate::Property::new("origin", None, crate::Source::None),
            ],
        }]);
        let line = serde_json::to_string(&reply).unwrap();
        assert!(line.contains("18446744073709551615"), "{line}");
        assert_eq!(serde_json::from_str::<Reply>(&line).unwrap(), reply);
    }
}
