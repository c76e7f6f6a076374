//! The tools: `inspect` looks into pools, `bench` measures the engine.

use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(arg_required_else_help = true, subcommand_negates_reqs = true)]
pub struct Inspect {
    #[command(flatten)]
    pub view: View,
    /// Read and check every block of every object of POOL, snapshots included
    #[arg(long, requires = "pool")]
    pub verify: bool,
    /// With --verify: name or guid of a pool
    #[arg(requires = "verify")]
    pub pool: Option<String>,
    #[command(subcommand)]
    pub what: Option<InspectWhat>,
}

/// Where it is looked, and how it is shown.
#[derive(Clone, Debug, Default, Args)]
pub struct View {
    /// Look for the pool's devices in this directory; may be given several times [default: the current directory]
    #[arg(short = 'd', global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dirs: Vec<PathBuf>,
    /// As JSON
    #[arg(short, long, global = true)]
    pub json: bool,
    /// Exact numbers
    #[arg(short = 'p', global = true)]
    pub exact: bool,
}

#[derive(Debug, Subcommand)]
pub enum InspectWhat {
    /// The four labels of a device, and the configuration in them
    Labels {
        /// A device or file
        #[arg(value_hint = ValueHint::FilePath)]
        device: PathBuf,
    },
    /// The ring of uberblocks of a device, the newest first
    Uberblocks {
        /// A device or file
        #[arg(value_hint = ValueHint::FilePath)]
        device: PathBuf,
    },
    /// What a cache device holds: its header, the logs, and the blocks that they tell of
    Cache {
        /// A device or file
        #[arg(value_hint = ValueHint::FilePath)]
        device: PathBuf,
    },
    /// The object directory and the objects of the pool's own set, the MOS
    Mos {
        /// Name or guid of a pool
        pool: String,
    },
    /// The objects of a file system, volume or snapshot
    Objects {
        /// A dataset, or 'mos:POOL' for the pool's own objects
        dataset: String,
    },
    /// The blocks of one object, or one of them followed from the root to the bytes on each device
    Block {
        /// A dataset, or 'mos:POOL' for the pool's own objects
        dataset: String,
        /// Number of the object; hexadecimal with 0x
        #[arg(value_parser = number)]
        object: u64,
        /// One block of it, by its number on its level
        #[arg(value_name = "[LEVEL:]BLOCK", value_parser = block)]
        block: Option<(u8, u64)>,
    },
    /// The intent log of a file system or volume: its blocks, and what every record says
    Log {
        /// A dataset
        dataset: String,
    },
    /// Read and check every block of every object of a pool, snapshots included; the same as --verify
    Verify {
        /// Name or guid of a pool
        pool: String,
    },
}

fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("'{text}' is not a number"))
}

fn block(text: &str) -> Result<(u8, u64), String> {
    let (level, block) = text.split_once(':').unwrap_or(("0", text));
    let level = u8::try_from(number(level)?).map_err(|_| "a level is less than 256".to_string())?;
    Ok((level, number(block)?))
}

#[derive(Debug, Args)]
pub struct Bench {
    #[command(subcommand)]
    pub what: BenchWhat,
}

#[derive(Debug, Subcommand)]
pub enum BenchWhat {
    /// Throughput, operations and CPU time of the engine beside the bare file, and of NBD beside other servers
    Engine {
        /// Where the files are made that it works on, each place by itself [default: memory, and this directory]
        #[arg(long = "dir", value_hint = ValueHint::DirPath)]
        dirs: Vec<PathBuf>,
        /// How much each sequential row writes and reads [default: 512M]
        #[arg(long, value_parser = super::size)]
        size: Option<u64>,
        /// How long each random row takes [default: 1]
        #[arg(long)]
        seconds: Option<u64>,
        /// How often each row is measured; the median counts [default: 3]
        #[arg(long)]
        rounds: Option<usize>,
        /// Rows of random writes over NBD besides, which go on for so many seconds, through many txgs [default: none]
        #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
        sustained: Option<u64>,
        /// The tables of the engine, or that of NBD [default: all]
        #[arg(long, value_parser = ["engine", "nbd"])]
        only: Option<String>,
    },
    /// Create, write with O_DSYNC and unlink small files: on a mounted path, a volume, or the model of an array
    Filesync {
        /// A mounted path and how many files; with --pool or --array only how many
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        words: Vec<String>,
    },
    /// Synchronous writes with and without a slog, beside the same on the bare file
    Sync {
        /// A directory, and --blocks LIST, --depths LIST, --seconds S, --rounds R, --files N
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        words: Vec<String>,
    },
    /// Create, set, get and unlink files with an extended attribute: on a mounted path, or straight on the engine
    Xattrtest {
        /// A mounted path or --pool sim|DIR, and --files N, --streams N, --size BYTES, --xattr dir|sa, --dnodesize SIZE
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        words: Vec<String>,
    },
    /// Creates, lookups, getattrs, setattrs and destroys per second by threads and directories
    MdsSurvey {
        /// A mounted path or --pool sim|DIR, and --files N, --threads LIST, --dirs LIST, --xattr dir|sa, --dnodesize SIZE
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        words: Vec<String>,
    },
    /// How long requests take at a given rate, at their worst and over time: by NBD beside nbdkit, on a file, on a model
    Latency {
        /// A directory, --path FILE or --model, and --seconds S, --size BYTES, --svg FILE
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        words: Vec<String>,
    },
    /// CPU time of creating, setting, listing and destroying one of many datasets and snapshots, against how many there are
    Growth {
        /// --sizes N,N,… [default: 100,1000,3000]
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        words: Vec<String>,
    },
    /// How often a block is in memory: the engine's cache beside LRU, 2Q, ARC, CAR, S3-FIFO, W-TinyLFU and Belady
    Hits {
        /// -j, --shapes A,B, --percent 1,5,20, --requests N, --blocks N, --seed N
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        words: Vec<String>,
    },
    /// What the caches cost: warm reads by one core and by two, hits on a cache device beside reads of the pool
    Caches {
        /// A directory, and --size BYTES, --seconds S, --rounds R
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        words: Vec<String>,
    },
    /// What iSCSI costs, beside tgtd with the same client
    Iscsi {
        /// A directory, and --seconds S, --rounds R, --size BYTES
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        words: Vec<String>,
    },
    /// Source trees, large files and object storage: what files cost, beside ext4, XFS, btrfs and zfs-fuse
    Files {
        /// A directory, and --minutes M, --rounds N, --only LIST, --peers LIST and more: see docs/files.md
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        words: Vec<String>,
    },
    /// Serves a volume of a new pool over NBD until it is told to end: one of the servers that `engine` measures
    Serve {
        /// Where it listens
        socket: PathBuf,
        /// Where the pool's file is made
        #[arg(value_hint = ValueHint::DirPath)]
        dir: PathBuf,
        /// Of the volume
        #[arg(value_parser = super::size)]
        size: u64,
        /// The volume's block size
        #[arg(value_parser = super::size)]
        block: u64,
    },
}
