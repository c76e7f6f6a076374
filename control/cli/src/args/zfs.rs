//! `zfs`: the arguments of OpenZFS 2.3.

use super::SortKeys;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a file system, or a volume with -V
    Create(Create),
    /// Destroy a dataset
    Destroy(Destroy),
    /// Rename a dataset
    Rename(Rename),
    /// Take snapshots: all of one moment
    #[command(alias = "snap")]
    Snapshot(Snapshot),
    /// Take a dataset back to a snapshot of it
    Rollback(Rollback),
    /// Make a dataset that begins as a snapshot
    Clone(Clone),
    /// Let a clone change places with what it was cloned from
    Promote {
        /// The clone
        dataset: String,
    },
    /// Keep snapshots from being destroyed
    Hold(Hold),
    /// List the holds on snapshots
    Holds(Holds),
    /// Take a hold off snapshots
    Release(Hold),
    /// List datasets and their properties
    List(List),
    /// Show properties of datasets
    Get(Get),
    /// Set properties of datasets
    Set(Set),
    /// Show what users take of a file system, and may take
    Userspace(Space),
    /// Show what groups take of a file system, and may take
    Groupspace(Space),
    /// Show what projects take of a file system, and may take
    Projectspace(Space),
    /// List, check, set or clear the projects of files and directories
    Project(Project),
    /// Take back what was set, so that the parent's value counts again
    Inherit(Inherit),
    /// List what is mounted, or mount file systems
    Mount(Mount),
    /// Unmount file systems
    #[command(alias = "umount")]
    Unmount(Unmount),
    /// Print the version
    Version {
        /// As JSON
        #[arg(short)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub struct Space {
    /// Numbers instead of names
    #[arg(short)]
    pub numeric: bool,
    /// No heading, and tabs between the columns
    #[arg(short = 'H')]
    pub scripted: bool,
    /// Exact numbers
    #[arg(short = 'p')]
    pub exact: bool,
    /// These columns, of type, name, used, quota, objused and objquota
    #[arg(short = 'o', value_name = "FIELD,...", value_delimiter = ',')]
    pub fields: Vec<String>,
    #[command(flatten)]
    pub sort: SortKeys,
    /// Of these types: all, posixuser, posixgroup, smbuser, smbgroup
    #[arg(short = 't', value_name = "TYPE,...", value_delimiter = ',')]
    pub types: Vec<String>,
    /// Show users of other systems' domains by their POSIX numbers; there are none here
    #[arg(short = 'i')]
    pub translate: bool,
    /// A file system, a snapshot of one, or a directory in one that is mounted
    pub dataset: String,
}

#[derive(Debug, Args)]
pub struct Project {
    /// Check: tell of files that do not inherit, or are of another project than the target
    #[arg(short = 'c')]
    pub check: bool,
    /// Clear: no project, and no inheriting
    #[arg(short = 'C')]
    pub clear: bool,
    /// With -C: keep the project
    #[arg(short = 'k')]
    pub keep: bool,
    /// Set, or with -c compare with, this project
    #[arg(short = 'p', value_name = "ID")]
    pub id: Option<u64>,
    /// Let what is made in the directories inherit their project
    #[arg(short = 's')]
    pub inherit: bool,
    /// And everything below
    #[arg(short = 'r', overrides_with = "directory")]
    pub recursive: bool,
    /// The directories themselves, not what is in them
    #[arg(short = 'd', overrides_with = "recursive")]
    pub directory: bool,
    /// With -c: names alone, with a zero behind each
    #[arg(short = '0')]
    pub zeros: bool,
    /// Files or directories of mounted file systems
    #[arg(required = true)]
    pub paths: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Create {
    /// Make the parents that are missing, and do not mind if it is there already
    #[arg(short)]
    pub parents: bool,
    /// Do not reserve the whole size of the volume
    #[arg(short, requires = "size")]
    pub sparse: bool,
    /// The volume's block size: -o volblocksize=...
    #[arg(short, value_name = "SIZE", requires = "size")]
    pub block_size: Option<String>,
    /// Set a property
    #[arg(short = 'o', value_name = "PROPERTY=VALUE", value_parser = super::setting)]
    pub properties: Vec<(String, String)>,
    /// Create a volume of this size
    #[arg(short = 'V', value_name = "SIZE")]
    pub size: Option<String>,
    /// Check everything, create nothing
    #[arg(short = 'n')]
    pub dry_run: bool,
    /// Say what was created
    #[arg(short)]
    pub verbose: bool,
    /// With -v, in a form for programs
    #[arg(short = 'P')]
    pub parsable: bool,
    /// Do not mount it, though the daemon mounts by itself
    #[arg(short)]
    pub unmounted: bool,
    /// What it is called: pool/name
    pub dataset: String,
}

#[derive(Debug, Args)]
pub struct Mount {
    /// All that are to be mounted by themselves
    #[arg(short, conflicts_with = "dataset")]
    pub all: bool,
    /// Over directories that are not empty too
    #[arg(short = 'O')]
    pub overlay: bool,
    /// Mount options that win over properties: ro, rw, noexec, nosuid, nodev, noatime
    #[arg(short, value_name = "OPTION", value_delimiter = ',')]
    pub options: Vec<String>,
    /// Which; without it, what is mounted is listed
    pub dataset: Option<String>,
}

#[derive(Debug, Args)]
pub struct Unmount {
    /// All
    #[arg(short, conflicts_with = "what")]
    pub all: bool,
    /// Though somebody uses it
    #[arg(short)]
    pub force: bool,
    /// A file system or where it is mounted, with all below it
    #[arg(required_unless_present = "all", value_name = "FILESYSTEM|MOUNTPOINT")]
    pub what: Option<String>,
}

#[derive(Debug, Args)]
pub struct Destroy {
    /// With all children and snapshots
    #[arg(short)]
    pub recursive: bool,
    /// With clones outside of it too
    #[arg(short = 'R')]
    pub dependents: bool,
    /// Even if it is in use
    #[arg(short)]
    pub force: bool,
    /// Snapshots that have clones or holds go when the last of them does
    #[arg(short)]
    pub defer: bool,
    /// Show what would be destroyed, and destroy nothing
    #[arg(short = 'n')]
    pub dry_run: bool,
    /// Say what was destroyed
    #[arg(short)]
    pub verbose: bool,
    /// With -v, in a form for programs
    #[arg(short)]
    pub parsable: bool,
    /// Which: a dataset, or snapshots as in pool/a@s, pool/a@s,t or pool/a@from%to
    pub dataset: String,
}

#[derive(Debug, Args)]
pub struct Snapshot {
    /// Of everything below as well
    #[arg(short)]
    pub recursive: bool,
    /// Set a property of a user's own
    #[arg(short = 'o', value_name = "PROPERTY=VALUE", value_parser = super::setting)]
    pub properties: Vec<(String, String)>,
    /// What they are called: pool/name@snapshot
    #[arg(required = true)]
    pub snapshots: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Rollback {
    /// Destroy snapshots that are newer
    #[arg(short)]
    pub recursive: bool,
    /// And clones of these
    #[arg(short = 'R')]
    pub dependents: bool,
    /// Even if clients use it: they are ended
    #[arg(short)]
    pub force: bool,
    /// To which
    pub snapshot: String,
}

#[derive(Debug, Args)]
pub struct Clone {
    /// Make the parents that are missing, and do not mind if it is there already
    #[arg(short)]
    pub parents: bool,
    /// Do not mount it, though the daemon mounts by itself
    #[arg(short)]
    pub unmounted: bool,
    /// Set a property
    #[arg(short = 'o', value_name = "PROPERTY=VALUE", value_parser = super::setting)]
    pub properties: Vec<(String, String)>,
    /// Of which
    pub snapshot: String,
    /// What it is called: pool/name
    pub dataset: String,
}

#[derive(Debug, Args)]
pub struct Hold {
    /// And the snapshots of the same name below
    #[arg(short)]
    pub recursive: bool,
    /// What it is called
    pub tag: String,
    /// Of which
    #[arg(required = true)]
    pub snapshots: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Holds {
    /// And of the snapshots of the same name below
    #[arg(short)]
    pub recursive: bool,
    /// No header, and tabs between columns
    #[arg(short = 'H')]
    pub scripted: bool,
    /// Exact times: seconds since 1970
    #[arg(short = 'p')]
    pub exact: bool,
    /// Of which
    #[arg(required = true)]
    pub snapshots: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Rename {
    /// Of a snapshot: those of the same name below as well
    #[arg(short)]
    pub recursive: bool,
    /// Make the parents that are missing
    #[arg(short)]
    pub parents: bool,
    /// Even if clients and programs use it: what they do with it ends
    #[arg(short)]
    pub force: bool,
    /// Do not remount; taken, and without effect: what was mounted is mounted again
    #[arg(short)]
    pub unmounted: bool,
    /// What it is called now
    pub from: String,
    /// And from now on
    pub to: String,
}

/// Which datasets.
#[derive(Clone, Debug, Default, Args)]
pub struct Scope {
    /// With everything below
    #[arg(short)]
    pub recursive: bool,
    /// So many levels down
    #[arg(short, value_name = "DEPTH")]
    pub depth: Option<u32>,
    /// Kinds: filesystem, volume, snapshot, bookmark, all
    #[arg(short = 't', value_name = "TYPE", value_delimiter = ',')]
    pub types: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Json {
    /// As JSON
    #[arg(short, long)]
    pub json: bool,
    /// In JSON, numbers as numbers
    #[arg(long)]
    pub json_int: bool,
}

#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    pub scope: Scope,
    #[command(flatten)]
    pub json: Json,
    #[command(flatten)]
    pub sort: SortKeys,
    /// No header, and tabs between columns
    #[arg(short = 'H')]
    pub scripted: bool,
    /// Exact numbers
    #[arg(short = 'p')]
    pub exact: bool,
    /// The columns; `space` stands for those that say where space went
    #[arg(short = 'o', value_name = "PROPERTY", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Which [default: all]
    pub datasets: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Get {
    #[command(flatten)]
    pub scope: Scope,
    #[command(flatten)]
    pub json: Json,
    /// No header, and tabs between columns
    #[arg(short = 'H')]
    pub scripted: bool,
    /// Exact numbers
    #[arg(short = 'p')]
    pub exact: bool,
    /// The columns: name, property, value, received, source, or all
    #[arg(short = 'o', value_name = "FIELD", value_delimiter = ',')]
    pub fields: Vec<String>,
    /// Only values from there: local, default, inherited, received, temporary, none
    #[arg(short = 's', value_name = "SOURCE", value_delimiter = ',')]
    pub sources: Vec<String>,
    /// Properties, with commas between them, or all
    pub properties: String,
    /// Which [default: all]
    pub datasets: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Set {
    /// Do not mount; taken, and without effect: what was mounted is mounted as the properties say then
    #[arg(short)]
    pub unmounted: bool,
    /// PROPERTY=VALUE, one or more, then datasets
    #[arg(required = true, num_args = 2.., value_name = "PROPERTY=VALUE|DATASET")]
    pub words: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Inherit {
    /// With everything below
    #[arg(short)]
    pub recursive: bool,
    /// What came with a stream counts again
    #[arg(short = 'S')]
    pub received: bool,
    /// Which property
    pub property: String,
    /// Of which datasets
    #[arg(required = true)]
    pub datasets: Vec<String>,
}
