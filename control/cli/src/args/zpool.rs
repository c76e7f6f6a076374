//! `zpool`: the arguments of OpenZFS 2.3.

use clap::{Args, Subcommand, ValueHint};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a pool on devices or files
    Create(Create),
    /// Add vdevs to a pool: data, log, special, dedup, cache or spare devices
    Add(Add),
    /// Remove log, cache and spare devices from a pool
    Remove(Remove),
    /// Destroy a pool
    Destroy(Destroy),
    /// List pools that can be imported, or import some
    Import(Import),
    /// Close pools, so that they can be imported elsewhere
    Export(Export),
    /// List pools with their space and health
    List(List),
    /// Show the health of pools and of their devices
    Status(Status),
    /// Show what the devices of pools are doing
    Iostat(Iostat),
    /// Show properties of pools
    Get(Get),
    /// Set a property of a pool
    Set(Set),
    /// Show what was done to pools
    History(History),
    /// Show what happened to pools
    Events(Events),
    /// Wait until everything changed so far is on disk
    Sync {
        /// Which [default: all]
        pools: Vec<String>,
    },
    /// Forget the errors of a pool's devices, and let a pool go on that was suspended because of them
    Clear(Clear),
    /// Take devices of a pool out of use
    Offline(Offline),
    /// Bring devices of a pool back into use
    Online(Online),
    /// Let a device join another one in a mirror
    Attach(Attach),
    /// Take a device out of a mirror, or call off its replacement
    Detach {
        /// Which
        pool: String,
        /// By path, name or guid
        #[arg(value_hint = ValueHint::FilePath)]
        device: String,
    },
    /// Let a device take the place of another one
    Replace(Replace),
    /// Verify every block of a pool, and repair what is bad
    Scrub(Scrub),
    /// Begin a resilver, or the one under way from its start
    Resilver {
        /// Which
        #[arg(required = true)]
        pools: Vec<String>,
    },
    /// Look at all devices of a pool again, as after work on the cables
    Reopen {
        /// Leave a scrub under way alone: it always is, a resilver that is wanted excepted
        #[arg(short = 'n')]
        no_restart: bool,
        /// Which [default: all]
        pools: Vec<String>,
    },
    /// Read tables of a pool into the cache, before they are needed
    Prefetch {
        /// Which tables
        #[arg(short = 't', value_name = "TYPE", default_value = "ddt")]
        tables: Tables,
        /// Which
        pool: String,
    },
    /// Give a pool another guid, so that it can be told from a copy of its devices
    Reguid {
        /// This one [default: one at random]
        #[arg(short, value_name = "GUID")]
        guid: Option<u64>,
        /// Which
        pool: String,
    },
    /// Make a pool of one side of every mirror of another
    Split(Split),
    /// Tell devices of a pool what is free on them
    Trim(Trim),
    /// Write to all that is free on devices of a pool, so that thin ones have room for it
    Initialize(Initialize),
    /// Enable all features on pools that this program knows and their compatibility allows, or list what could be enabled
    Upgrade(Upgrade),
    /// Wait until something under way in a pool is done
    Wait(Wait),
    /// Remove the labels of a device that is no longer part of a pool
    Labelclear {
        /// Even if a pool that is not destroyed may want it: one that was exported too
        #[arg(short)]
        force: bool,
        /// The device or file
        #[arg(value_hint = ValueHint::FilePath)]
        device: String,
    },
    /// Print the version
    Version {
        /// As JSON
        #[arg(short)]
        json: bool,
    },
}

/// What can be read into the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Tables {
    /// Those of deduplicated blocks
    Ddt,
}

#[derive(Debug, Args)]
pub struct Create {
    /// Take devices that seem to be in use, and layouts that do not match
    #[arg(short)]
    pub force: bool,
    /// Show what would be created, and create nothing
    #[arg(short = 'n')]
    pub dry_run: bool,
    /// Enable no features but those named with -o feature@...
    #[arg(short = 'd')]
    pub no_features: bool,
    /// Set a property of the pool
    #[arg(short = 'o', value_name = "PROPERTY=VALUE", value_parser = super::setting)]
    pub properties: Vec<(String, String)>,
    /// Set a property of the pool's file system
    #[arg(short = 'O', value_name = "PROPERTY=VALUE", value_parser = super::setting)]
    pub fs_properties: Vec<(String, String)>,
    /// Where the pool's file system is to be mounted: -O mountpoint=...
    #[arg(short, value_name = "MOUNTPOINT")]
    pub mountpoint: Option<String>,
    /// Alternate root of all mount points, not kept in the pool: -o cachefile=none -o altroot=...
    #[arg(short = 'R', value_name = "ROOT")]
    pub root: Option<String>,
    /// The name it is imported under here; another than it has on disk
    #[arg(short, value_name = "NAME")]
    pub temporary_name: Option<String>,
    /// What it is called
    pub pool: String,
    /// Devices and files, with the words mirror, raidz, raidz2, raidz3, log, special, dedup, cache and spare
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub vdev: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Add {
    /// Take devices that seem to be in use, and layouts and sector sizes that do not match the pool's
    #[arg(short, conflicts_with_all = ["allow_in_use", "allow_replication_mismatch", "allow_ashift_mismatch"])]
    pub force: bool,
    /// Show what the pool would be, and add nothing
    #[arg(short = 'n')]
    pub dry_run: bool,
    #[command(flatten)]
    pub names: Names,
    /// Of the new vdevs: ashift=9 to ashift=16
    #[arg(short = 'o', value_name = "PROPERTY=VALUE", value_parser = super::setting)]
    pub properties: Vec<(String, String)>,
    /// Take devices that seem to be in use
    #[arg(long)]
    pub allow_in_use: bool,
    /// Take a layout that does not match the pool's
    #[arg(long)]
    pub allow_replication_mismatch: bool,
    /// Take devices with sectors of another size than the pool's
    #[arg(long)]
    pub allow_ashift_mismatch: bool,
    /// Which
    pub pool: String,
    /// Devices and files, with the words mirror, raidz, raidz2, raidz3, log, special, dedup, cache and spare
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub vdev: Vec<String>,
}

/// How vdevs are named.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Names {
    /// Name vdevs by their guids
    #[arg(short)]
    pub guids: bool,
    /// Resolve links in the paths of devices
    #[arg(short = 'L')]
    pub links: bool,
    /// Whole paths of devices
    #[arg(short = 'P')]
    pub paths: bool,
}

#[derive(Debug, Args)]
pub struct Remove {
    /// Show the memory that it would take to find what was moved elsewhere, and remove nothing
    #[arg(short = 'n')]
    pub dry_run: bool,
    /// Exact numbers
    #[arg(short = 'p')]
    pub exact: bool,
    /// Stop a removal under way
    #[arg(short, conflicts_with_all = ["dry_run", "wait", "devices"])]
    pub stop: bool,
    /// Wait until it is done
    #[arg(short)]
    pub wait: bool,
    /// Which
    pub pool: String,
    /// Devices by path or guid; a mirror by its name, as 'zpool status' shows it
    #[arg(value_name = "DEVICE", required_unless_present = "stop", value_hint = ValueHint::FilePath)]
    pub devices: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Destroy {
    /// Even if it is in use
    #[arg(short)]
    pub force: bool,
    /// Which
    pub pool: String,
}

#[derive(Debug, Args)]
pub struct Import {
    /// Import every pool that is found
    #[arg(short, conflicts_with = "pool")]
    pub all: bool,
    /// Look at this directory or device; may be given several times
    #[arg(short = 'd', value_name = "DIR|DEVICE", value_hint = ValueHint::AnyPath)]
    pub search: Vec<String>,
    /// Look where the pools of this cache file of OpenZFS had their devices, and for these pools only
    #[arg(short = 'c', value_name = "FILE", conflicts_with_all = ["search", "scan"], value_hint = ValueHint::FilePath)]
    pub cache_file: Option<String>,
    /// Look at the devices themselves, in the usual places: without -d and -c that is always so
    #[arg(short = 's', conflicts_with = "search")]
    pub scan: bool,
    /// Destroyed pools only
    #[arg(short = 'D')]
    pub destroyed: bool,
    /// Even if another machine had it last and did not export it
    #[arg(short)]
    pub force: bool,
    /// Mount nothing, though the daemon mounts by itself
    #[arg(short = 'N')]
    pub no_mount: bool,
    /// Import though a log device is missing
    #[arg(short = 'm')]
    pub missing_log: bool,
    /// Set a property, or a mount option
    #[arg(short = 'o', value_name = "PROPERTY=VALUE|OPTION")]
    pub options: Vec<String>,
    /// Alternate root of all mount points
    #[arg(short = 'R', value_name = "ROOT")]
    pub root: Option<String>,
    /// The new name is not written to the pool
    #[arg(short, requires = "new_name")]
    pub temporary: bool,
    /// Go back to the newest txg that can be read, if the last one cannot: only with -o readonly=on
    #[arg(short = 'F')]
    pub rewind: bool,
    /// With -F: only say how far it would go back
    #[arg(short = 'n', requires = "rewind")]
    pub dry_run: bool,
    /// With -F: as far back as there are uberblocks, though what is read may be damaged
    #[arg(short = 'X', requires = "rewind")]
    pub extreme: bool,
    /// As it was in this txg: only with -o readonly=on
    #[arg(short = 'T', value_name = "TXG", conflicts_with = "dry_run", requires = "pool")]
    pub txg: Option<u64>,
    /// Load the keys of encrypted datasets: not supported
    #[arg(short = 'l')]
    pub load_keys: bool,
    /// Name or number of a pool; without it, what can be imported is listed
    pub pool: Option<String>,
    /// The name it shall have from now on
    pub new_name: Option<String>,
}

#[derive(Debug, Args)]
pub struct Export {
    /// All pools
    #[arg(short, conflicts_with = "pools")]
    pub all: bool,
    /// Even if clients are connected to its volumes, or it is suspended: then what is not on its devices is lost
    #[arg(short)]
    pub force: bool,
    /// Which
    #[arg(required_unless_present = "all")]
    pub pools: Vec<String>,
}

/// How vdevs are named, and numbers written.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Style {
    /// Name vdevs by their guids
    #[arg(short)]
    pub guids: bool,
    /// Resolve links in the paths of devices
    #[arg(short = 'L')]
    pub links: bool,
    /// Exact numbers
    #[arg(short = 'p')]
    pub exact: bool,
    /// Whole paths of devices
    #[arg(short = 'P')]
    pub paths: bool,
}

#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Json {
    /// As JSON
    #[arg(short, long)]
    pub json: bool,
    /// In JSON, numbers as numbers
    #[arg(long)]
    pub json_int: bool,
    /// In JSON, pools by their guids
    #[arg(long)]
    pub json_pool_key_guid: bool,
}

/// A time in front of each repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Stamp {
    /// As date(1) writes it
    #[value(name = "d")]
    Date,
    /// Seconds since 1970
    #[value(name = "u")]
    Unix,
}

#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    pub style: Style,
    #[command(flatten)]
    pub json: Json,
    /// No header, and tabs between columns
    #[arg(short = 'H')]
    pub scripted: bool,
    /// Vdevs too
    #[arg(short)]
    pub verbose: bool,
    /// The columns
    #[arg(short = 'o', value_name = "PROPERTY", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// The time in front of each round: as date(1) writes it, or seconds since 1970
    #[arg(short = 'T', value_name = "d|u", hide_possible_values = true)]
    pub stamp: Option<Stamp>,
    /// Which pools [default: all]; a number repeats it every so many seconds, a second one so often
    #[arg(value_name = "POOL|INTERVAL|COUNT")]
    pub words: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Status {
    #[command(flatten)]
    pub style: Style,
    #[command(flatten)]
    pub json: Json,
    /// In JSON, vdevs without nesting
    #[arg(long)]
    pub json_flat_vdevs: bool,
    /// Where data was lost
    #[arg(short)]
    pub verbose: bool,
    /// Only pools with problems
    #[arg(short = 'x')]
    pub problems: bool,
    /// Only vdevs that are not well
    #[arg(short = 'e')]
    pub unhealthy: bool,
    /// How far devices were initialized
    #[arg(short = 'i')]
    pub initialized: bool,
    /// How many operations of each device took longer than zio_slow_io_ms
    #[arg(short)]
    pub slow: bool,
    /// How far devices were trimmed
    #[arg(short = 't')]
    pub trimmed: bool,
    /// What is in the tables of deduplicated blocks
    #[arg(short = 'D')]
    pub dedup: bool,
    /// Columns made by programs: not part of Cenote
    #[arg(short = 'c', value_name = "SCRIPT", hide = true)]
    pub scripts: Option<String>,
    /// The time in front of each round: as date(1) writes it, or seconds since 1970
    #[arg(short = 'T', value_name = "d|u", hide_possible_values = true)]
    pub stamp: Option<Stamp>,
    /// Which pools [default: all]; a number repeats it every so many seconds, a second one so often
    #[arg(value_name = "POOL|INTERVAL|COUNT")]
    pub words: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Iostat {
    #[command(flatten)]
    pub style: Style,
    /// No header, and tabs between columns
    #[arg(short = 'H')]
    pub scripted: bool,
    /// Vdevs too
    #[arg(short)]
    pub verbose: bool,
    /// Average latencies
    #[arg(short, conflicts_with_all = ["sizes", "latencies"])]
    pub latency: bool,
    /// What is in the queues
    #[arg(short, conflicts_with_all = ["sizes", "latencies"])]
    pub queues: bool,
    /// How often writes had to be durable, how often the device was asked for that (a flush serves many and is left out
    /// where nothing was written), and what one took; with -w a column of their own
    #[arg(short, long, conflicts_with = "sizes")]
    pub flush: bool,
    /// Histograms of request sizes
    #[arg(short = 'r', conflicts_with = "latencies")]
    pub sizes: bool,
    /// Histograms of latencies
    #[arg(short = 'w')]
    pub latencies: bool,
    /// As JSON: all counters since the pool was opened, exact
    #[arg(short, long, conflicts_with_all = ["latency", "queues", "flush", "sizes", "latencies", "scripted"])]
    pub json: bool,
    /// Not the numbers since the pool was opened
    #[arg(short = 'y')]
    pub omit_first: bool,
    /// The header once only
    #[arg(short = 'n')]
    pub header_once: bool,
    /// The time in front of each round: as date(1) writes it, or seconds since 1970
    #[arg(short = 'T', value_name = "d|u", hide_possible_values = true)]
    pub stamp: Option<Stamp>,
    /// Which pools, or a pool and vdevs of it [default: all pools]; a number repeats it every so many seconds, a second one
    /// so often
    #[arg(value_name = "POOL|VDEV|INTERVAL|COUNT")]
    pub words: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Get {
    /// No header, and tabs between columns
    #[arg(short = 'H')]
    pub scripted: bool,
    /// Exact numbers
    #[arg(short = 'p')]
    pub exact: bool,
    #[command(flatten)]
    pub json: Json,
    /// The columns: name, property, value, source, or all
    #[arg(short = 'o', value_name = "FIELD", value_delimiter = ',')]
    pub fields: Vec<String>,
    /// Properties, with commas between them, or all
    pub properties: String,
    /// Pools [default: all]; or one pool and vdevs of it, or all-vdevs
    #[arg(value_name = "POOL|VDEV")]
    pub pools: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Set {
    /// What to set
    #[arg(value_name = "PROPERTY=VALUE", value_parser = super::setting)]
    pub setting: (String, String),
    /// On which pool
    pub pool: String,
    /// Of this device or group of the pool: io_n and io_t, checksum_n and checksum_t, slow_io_n and slow_io_t say how many
    /// errors within how many seconds are too many; cenote:nocacheflush=on that its write cache survives a power failure
    pub vdev: Option<String>,
}

/// Scrubs, errors of devices, data errors, devices that change their state, pools that come and go: the newest 4,096
/// since the daemon was started, by OpenZFS's names. What is lost is also in 'zpool status -v', and stays there.
#[derive(Debug, Default, Args)]
pub struct Events {
    /// Forget them all
    #[arg(short, conflicts_with_all = ["follow", "verbose", "scripted", "pool"])]
    pub clear: bool,
    /// Go on with what happens next, until interrupted
    #[arg(short)]
    pub follow: bool,
    /// No heading, and a tab between the columns
    #[arg(short = 'H')]
    pub scripted: bool,
    /// With everything that is known of each
    #[arg(short)]
    pub verbose: bool,
    /// Of this one [default: all]
    pub pool: Option<String>,
}

#[derive(Debug, Args)]
pub struct History {
    /// What the pool did by itself too
    #[arg(short)]
    pub internal: bool,
    /// Who and where too
    #[arg(short)]
    pub long: bool,
    /// Which [default: all]
    pub pools: Vec<String>,
}

/// A pool is suspended when its devices do not take what it must write: they are gone, fail, or the host has no room for
/// them. What was written to it stays in memory; with failmode=wait, writes and flushes wait, else they fail.
/// Once the cause is removed (the device attached again, room made), this opens what must be opened again, writes once more
/// what devices may have lost, and goes on where the pool was.
#[derive(Debug, Args)]
pub struct Clear {
    /// Which
    pub pool: String,
    /// Only this device, or this group: by path, name or guid
    #[arg(value_hint = ValueHint::FilePath)]
    pub device: Option<String>,
}

/// A device that others can do without. What it misses meanwhile is noted, and it gets that when it is online again.
#[derive(Debug, Args)]
pub struct Offline {
    /// Only until the pool is imported again
    #[arg(short)]
    pub temporary: bool,
    /// Mark it as faulted, until its errors are cleared
    #[arg(short)]
    pub fault: bool,
    /// Which
    pub pool: String,
    /// By path, name or guid
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub devices: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Online {
    /// With all that it has room for, when it and every other device of its group have grown
    #[arg(short)]
    pub expand: bool,
    /// Which
    pub pool: String,
    /// By path, name or guid
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub devices: Vec<String>,
}

/// How a device joins.
#[derive(Debug, Args)]
pub struct Join {
    /// Take it even if it seems to be in use
    #[arg(short)]
    pub force: bool,
    /// Wait until it has everything
    #[arg(short)]
    pub wait: bool,
    /// Copy in the order of the disk; a scrub verifies the checksums afterwards. Of mirrors only
    #[arg(short)]
    pub sequential: bool,
    /// Only ashift can be set
    #[arg(short = 'o', value_name = "PROPERTY=VALUE", value_parser = super::setting)]
    pub properties: Vec<(String, String)>,
}

/// A disk becomes a mirror, or a mirror gets one more side. The new device gets what is allocated while the pool is used.
#[derive(Debug, Args)]
pub struct Attach {
    #[command(flatten)]
    pub join: Join,
    /// Which
    pub pool: String,
    /// The device that is there: by path, name or guid
    #[arg(value_hint = ValueHint::FilePath)]
    pub device: String,
    /// The device that joins it
    #[arg(value_hint = ValueHint::FilePath)]
    pub new_device: String,
}

/// The new pool has everything that was written so far; log, cache and spare devices stay with the old one. It is exported,
/// unless an alternate root says where its file systems are to be.
#[derive(Debug, Args)]
pub struct Split {
    /// Show what the new pool would be, and change nothing
    #[arg(short = 'n')]
    pub dry_run: bool,
    #[command(flatten)]
    pub names: Names,
    /// Load the keys of encrypted datasets: not supported
    #[arg(short = 'l')]
    pub load_keys: bool,
    /// Set a property of the new pool
    #[arg(short = 'o', value_name = "PROPERTY=VALUE", value_parser = super::setting)]
    pub properties: Vec<(String, String)>,
    /// Import it, with this alternate root of all mount points
    #[arg(short = 'R', value_name = "ROOT")]
    pub root: Option<String>,
    /// The pool of mirrors
    pub pool: String,
    /// What the other one is called
    pub new_pool: String,
    /// At most one device of each mirror, by path, name or guid [default: the last of each]
    #[arg(value_hint = ValueHint::FilePath)]
    pub devices: Vec<String>,
}

/// What is allocated is copied to the new device while the pool is used; then the old one leaves.
#[derive(Debug, Args)]
pub struct Replace {
    #[command(flatten)]
    pub join: Join,
    /// Which
    pub pool: String,
    /// The device that goes: by path, name or guid
    #[arg(value_hint = ValueHint::FilePath)]
    pub device: String,
    /// The device that comes [default: another one in the same place]
    #[arg(value_hint = ValueHint::FilePath)]
    pub new_device: Option<String>,
}

/// Goes on with one that is suspended. What is being trimmed is not given out, and the pool is used meanwhile. What is
/// freed from now on is trimmed with autotrim=on.
#[derive(Debug, Args)]
pub struct Trim {
    /// So that what was there cannot be read again: not supported
    #[arg(short = 'd', long)]
    pub secure: bool,
    /// At most so many bytes a second, of each device
    #[arg(short, long, value_name = "RATE", value_parser = rate, conflicts_with_all = ["cancel", "suspend"])]
    pub rate: Option<u64>,
    /// Give it up
    #[arg(short, long, conflicts_with_all = ["suspend", "wait"])]
    pub cancel: bool,
    /// Stop it; trim again to go on
    #[arg(short, long, conflicts_with = "wait")]
    pub suspend: bool,
    /// Wait until it is done
    #[arg(short, long)]
    pub wait: bool,
    /// Which
    pub pool: String,
    /// By path, name or guid [default: all]
    #[arg(value_hint = ValueHint::FilePath)]
    pub devices: Vec<String>,
}

/// Goes on with one that is suspended. The pool is used meanwhile.
#[derive(Debug, Args)]
pub struct Initialize {
    /// Give it up
    #[arg(short, long, conflicts_with_all = ["suspend", "uninit", "wait"])]
    pub cancel: bool,
    /// Stop it; initialize again to go on
    #[arg(short, long, conflicts_with_all = ["uninit", "wait"])]
    pub suspend: bool,
    /// Forget that it was done, so that it can be done again
    #[arg(short, long, conflicts_with = "wait")]
    pub uninit: bool,
    /// Wait until it is done
    #[arg(short, long)]
    pub wait: bool,
    /// Which
    pub pool: String,
    /// By path, name or guid [default: all]
    #[arg(value_hint = ValueHint::FilePath)]
    pub devices: Vec<String>,
}

fn rate(text: &str) -> Result<u64, String> {
    units::parse_size(text)
        .ok()
        .filter(|rate| *rate > 0)
        .ok_or_else(|| format!("'{text}' is no rate: '100M' is one"))
}

/// A feature that is enabled cannot be taken back, and a program that does not know it may refuse the pool.
#[derive(Debug, Args)]
pub struct Upgrade {
    /// All pools
    #[arg(short, conflicts_with = "pools")]
    pub all: bool,
    /// Which [default: only list]
    pub pools: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Scrub {
    /// Only the blocks in the error log, as after a device has come back: what can be had leaves it
    #[arg(short)]
    pub errors: bool,
    /// Stop it
    #[arg(short, conflicts_with = "pause")]
    pub stop: bool,
    /// Pause it; scrub again to go on
    #[arg(short)]
    pub pause: bool,
    /// Wait until it is done
    #[arg(short, conflicts_with_all = ["stop", "pause"])]
    pub wait: bool,
    /// All pools
    #[arg(short, conflicts_with = "pools")]
    pub all: bool,
    /// Which
    #[arg(required_unless_present = "all")]
    pub pools: Vec<String>,
}

/// What can be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Activity {
    /// A checkpoint that is discarded
    Discard,
    /// Space of destroyed datasets that is freed
    Free,
    /// Devices that are initialized
    Initialize,
    /// Devices that take the place of others
    Replace,
    /// Devices that are removed
    Remove,
    Resilver,
    Scrub,
    /// Devices that are trimmed
    Trim,
    /// A raidz group that gets one more device
    #[value(name = "raidz_expand")]
    RaidzExpand,
}

/// Ends when none of the activities is under way. A scrub that pauses is not.
#[derive(Debug, Args)]
pub struct Wait {
    /// Only for these, with commas between them [default: all]
    #[arg(short = 't', value_name = "ACTIVITY", value_delimiter = ',')]
    pub activities: Vec<Activity>,
    /// No header, and tabs between columns
    #[arg(short = 'H')]
    pub scripted: bool,
    /// Exact numbers
    #[arg(short = 'p')]
    pub exact: bool,
    /// The time in front of each round: as date(1) writes it, or seconds since 1970
    #[arg(short = 'T', value_name = "d|u", hide_possible_values = true)]
    pub stamp: Option<Stamp>,
    /// Which
    pub pool: String,
    /// Show every so many seconds what is left: bytes, or so many devices
    #[arg(value_parser = interval)]
    pub interval: Option<std::time::Duration>,
}

fn interval(text: &str) -> Result<std::time::Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|s| s.is_finite() && *s > 0.0 && *s <= 1e9);
    seconds.map(std::time::Duration::from_secs_f64).ok_or_else(|| format!("'{text}' is no number of seconds"))
}
