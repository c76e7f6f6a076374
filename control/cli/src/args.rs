//! The command line, defined once: parsing, help, completions and manual pages all come from here.
//!
//! ```text
//!   cenote ─┬─ zpool ...   zfs ...      OpenZFS's arguments; also when called by the name `zpool` or `zfs`
//!           ├─ tunable ...              what may be changed while it runs
//!           ├─ up   serve   nbd         what runs until it is told to end
//!           ├─ status   down   password what is asked of it
//!           ├─ ls  stat  find  cat
//!           │  cp  tar                  files, without mounting anything
//!           ├─ shell                    the contexts of an appliance
//!           ├─ top    calc   doctor     performance: what goes on, its arithmetic, what to change
//!           ├─ inspect   work   bench   lab    tools
//!           ├─ trace   rehearse         what clients ask, recorded, and made again
//!           └─ completions   man   help
//! ```
//!
//! Not here: what the words mean for a pool; the appliance says whether a value will do.

pub mod calc;
pub mod changes;
pub mod doctor;
mod examples;
pub mod lab;
pub mod rescue;
pub mod shell;
mod sort;
pub mod tail;
pub mod tools;
pub mod trace;
pub mod tunable;
pub mod vdevs;
pub mod work;
pub mod zfs;
pub mod zpool;

pub use sort::{SortKey, SortKeys};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueHint};
use std::path::{Path, PathBuf};

/// OpenZFS pools from an ordinary process, served as volumes.
#[derive(Debug, Parser)]
#[command(name = "cenote", version, max_term_width = 100, disable_help_subcommand = true)]
pub struct Cenote {
    /// Where the daemon's socket, its list of pools and its settings are [default: /var/lib/cenote for root, else
    /// $XDG_STATE_HOME/cenote]
    #[arg(long, global = true, value_name = "DIR", env = "CENOTE_HOME", hide_env_values = true, value_hint = ValueHint::DirPath)]
    pub home: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start an appliance that has everything: a pool, a volume, and a server for it
    Up(Up),
    /// Serve the pools of the home until told to end
    Serve(Serve),
    /// Show the daemon: its pools, what it serves to whom, and its memory
    Status(Status),
    /// End the daemon, and wait until it has closed its pools: 60 seconds at most, as after SIGTERM
    ///
    /// Requests of clients that wait for a suspended pool fail, so that the clients can be answered; such a pool is left as
    /// it is on its devices, with its logs. A device that does not even answer then is left behind: the daemon ends with an
    /// error that says so.
    Down,
    /// Configure projects, shares, LUNs, and who sees them
    Shell(shell::Shell),
    /// Configure pools, with OpenZFS's arguments
    Zpool(Zpool),
    /// Configure datasets, with OpenZFS's arguments
    Zfs(Zfs),
    /// Show and change what governs the engine while it runs
    Tunable(Tunable),
    /// Set a password for the API
    Password(Password),
    /// Print where the web page is, and a code to type there to get in
    Page,
    /// Serve one volume over NBD until told to end
    Nbd(Nbd),
    /// List files of a pool that is imported, or on devices that are only read
    Ls(rescue::Ls),
    /// Show all that a file says of itself
    Stat(rescue::Stat),
    /// Find files by name, kind and size
    Find(rescue::Find),
    /// Print files
    Cat(rescue::Cat),
    /// Copy files to this machine, as far as they can be read
    Cp(rescue::Cp),
    /// Make an archive of files, as far as they can be read
    Tar(rescue::Tar),
    /// Show what goes on now, by layer: operations, bandwidth, response time, and what is under way at once
    ///
    /// On a terminal it is a page: Enter drills down from a layer to its clients, sizes, latencies and so on, and from one
    /// of those to what only it does; the keys are shown. With a count, with -j and elsewhere it prints lines, second by
    /// second.
    Top(calc::Top),
    /// Show where the time of operations goes: what they wait in, from the client down to the devices
    ///
    /// A moment counts for the deepest thing that an operation waits for, so that all together are its response time. With
    /// an interval in seconds it goes on until it is ended, or for as many as the count says.
    Waterfall(calc::Waterfall),
    /// Explain the cache of blocks: what is in it, what it was asked for, and what cache devices add
    ///
    /// With an interval in seconds, a line for what happened in each; after so many as the count, it ends.
    Arc(Arc),
    /// Show what was set, what the statistics say came of it, and the way back
    ///
    /// Thirty seconds before a change and after it are compared by every statistic that is open, and judged by how much
    /// the same load differs by itself: of a hundred changes of nothing about one claims an effect.
    Changes(changes::Changes),
    /// Reckon with bandwidth, transfer size, operations, response time and concurrency
    ///
    /// Bandwidth is operations per second times transfer size; what is outstanding is operations per second times response
    /// time (Little's law). Give two of either three, and the others follow.
    Calc(calc::Calc),
    /// Find what is set wrong here and on clients, and say what to change
    ///
    /// Each advice has what was seen, what it costs, the fix for each system and the way back. Nothing is changed.
    Doctor(doctor::Doctor),
    /// Look into pools without importing or changing them
    Inspect(tools::Inspect),
    /// Put a load on a file, a device or a server, and measure it
    ///
    /// The load is a parameter file of vdbench, a job file of fio, or built in: '--list' names those. Operations, bandwidth
    /// and response time are told at every interval and at the end; Ctrl-C ends the run and prints its summary. What is
    /// written to is overwritten.
    Work(Box<work::Work>),
    /// Measure the engine beside what it is compared with
    Bench(tools::Bench),
    /// Show what a change would bring: the engine on modelled hardware, in virtual time
    Lab(lab::Lab),
    /// Record what clients ask, and show what was recorded; 'lab replay' and 'rehearse' make it again
    Trace(trace::Trace),
    /// Replay a trace on a clone of its volume with other settings, and on one without: what the change would do, here
    ///
    /// A snapshot and two clones are made, and destroyed at the end, also after Ctrl-C; what could not be destroyed is
    /// named. A clone with another block size is copied first, which takes the time and space of a copy. What the devices
    /// do for other clients meanwhile is in the figures.
    Rehearse(trace::Rehearse),
    /// Print completions for a shell
    Completions {
        /// For which
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write all of them into a directory
    Man {
        /// Where the pages are written
        #[arg(value_hint = ValueHint::DirPath)]
        dir: Option<PathBuf>,
    },
    /// Print the help of a command
    Help {
        /// Its words, such as: zpool create
        command: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub struct Zpool {
    #[command(subcommand)]
    pub command: zpool::Command,
}

#[derive(Debug, Args)]
pub struct Zfs {
    #[command(subcommand)]
    pub command: zfs::Command,
}

#[derive(Debug, Args)]
pub struct Tunable {
    #[command(subcommand)]
    pub command: tunable::Command,
}

/// What holds until the program ends.
#[derive(Clone, Debug, Args)]
pub struct System {
    /// Set tunables from a file in the manner of /etc/system, such as "set zfs:zfs_txg_timeout = 10"; they win over those
    /// that are kept, and are not kept themselves
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub system: Option<PathBuf>,
    /// Start with the default of every tunable: what was set before stays kept, but does not hold until the next start
    /// without this
    #[arg(long)]
    pub safe: bool,
    /// What the cache of blocks may take, OpenZFS's zfs_arc_max [default: half of what the machine or control group has
    /// beyond 192M]
    #[arg(long, value_name = "SIZE", value_parser = arc_size)]
    pub arc_max: Option<u64>,
}

/// File systems in the machine's own tree.
#[derive(Clone, Debug, Args)]
pub struct Files {
    /// Mount file systems by itself, as OpenZFS does: at the start, and when they are imported or created [default: those
    /// that 'zfs mount' asks for]
    #[arg(long)]
    pub mount: bool,
}

/// Where NBD clients may come in.
#[derive(Clone, Debug, Args)]
pub struct Listen {
    /// Address for NBD clients over TCP [default: none for 'serve'; for 'up', whose first volume alone is there, and for
    /// 'nbd' 127.0.0.1:10809, or another port when that is taken]
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<std::net::SocketAddr>,
    /// Unix socket for NBD clients [default: for 'serve' and 'up' nbd.sock in the home]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub socket: Option<PathBuf>,
    /// Require TLS of NBD clients over TCP (nbds://), with server-cert.pem and server-key.pem of this directory; when it has
    /// ca-cert.pem too, clients must show a certificate that it has signed, and that ca-crl.pem, if there, does not revoke
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub nbd_tls: Option<PathBuf>,
}

/// What NBD clients find.
#[derive(Clone, Debug, Args)]
pub struct Offered {
    /// Offer this volume over NBD, or those below this dataset, and nothing else; may be given several times [default:
    /// volumes that are not masked, and those with cenote:nbd=on]
    #[arg(long, value_name = "DATASET")]
    pub export: Vec<String>,
}

/// Where iSCSI clients may come in.
#[derive(Clone, Debug, Args)]
pub struct Portals {
    /// Address for iSCSI clients; may be given several times [default: 127.0.0.1:3260, or another port when that is taken]
    #[arg(long, value_name = "HOST:PORT")]
    pub iscsi: Vec<std::net::SocketAddr>,
}

/// Where the API over HTTPS is, and what is logged.
#[derive(Clone, Debug, Args)]
pub struct Web {
    /// Address for the API; may be given more than once [default: what was set over the API, else port 215 or 8215 of
    /// this machine alone]
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "no_https")]
    pub https: Vec<std::net::SocketAddr>,
    /// Serve the API on the Unix socket in the home alone
    #[arg(long)]
    pub no_https: bool,
    /// Address of this machine alone for the web page without TLS [default: none for 'serve', 127.0.0.1:8216 or another
    /// port for 'up', unless --https or --no-https is given]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub http: Option<std::net::SocketAddr>,
    /// What is logged on the standard error: this and what is worse
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log: LogLevel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

#[derive(Debug, Args)]
pub struct Password {
    /// Whose
    #[arg(default_value = "root")]
    pub user: String,
    /// Make one, and print it; without this it is read from the standard input
    #[arg(short, long)]
    pub generate: bool,
}

#[derive(Debug, Args)]
pub struct Status {
    /// As JSON
    #[arg(short, long)]
    pub json: bool,
}

/// The cache.
#[derive(Clone, Debug, Args)]
pub struct Arc {
    /// Drive writes per day that cache and log devices are made for: how much of that is used is told
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = drive_writes)]
    pub dwpd: f64,
    /// As JSON
    #[arg(short, long)]
    pub json: bool,
    /// Seconds, and how many lines
    #[arg(value_name = "INTERVAL [COUNT]")]
    pub words: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Up {
    #[command(flatten)]
    pub listen: Listen,
    #[command(flatten)]
    pub offered: Offered,
    #[command(flatten)]
    pub portals: Portals,
    #[command(flatten)]
    pub system: System,
    #[command(flatten)]
    pub web: Web,
    #[command(flatten)]
    pub files: Files,
    /// Size of the file that the first pool is made on
    #[arg(long, value_name = "SIZE", default_value = "10G", value_parser = size)]
    pub size: u64,
    /// Size of the first volume
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub volume: u64,
}

#[derive(Debug, Args)]
pub struct Serve {
    #[command(flatten)]
    pub listen: Listen,
    #[command(flatten)]
    pub offered: Offered,
    #[command(flatten)]
    pub portals: Portals,
    #[command(flatten)]
    pub system: System,
    #[command(flatten)]
    pub web: Web,
    #[command(flatten)]
    pub files: Files,
}

#[derive(Debug, Args)]
pub struct Nbd {
    /// The volume, by its dataset's name
    pub dataset: String,
    #[command(flatten)]
    pub listen: Listen,
    #[command(flatten)]
    pub system: System,
    /// Refuse writes
    #[arg(long, short = 'r')]
    pub read_only: bool,
}

/// The whole definition.
pub fn command() -> clap::Command {
    examples::add(Cenote::command())
}

/// Reads a command line.
pub fn parse(words: &[String]) -> Result<Cenote, clap::Error> {
    Cenote::from_arg_matches(&command().try_get_matches_from(words)?)
}

/// The help of the command that `words` name.
pub fn help(words: &[String]) -> Result<String, String> {
    let mut command = command();
    command.build();
    let mut at = &mut command;
    for word in words {
        let known = at.get_name().to_string();
        at = at.find_subcommand_mut(word).ok_or_else(|| format!("'{known}' has no command '{word}'"))?;
    }
    Ok(at.render_long_help().to_string())
}

/// The arguments as if they had been given to `cenote`, and the command line as a pool's history records it.
///
/// Called by the name `zpool` or `zfs`, the program is that command.
pub fn normalize(given: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut words: Vec<String> = given.into_iter().collect();
    let name =
        words.first().map(|w| Path::new(w).file_name().unwrap_or_default().to_string_lossy().into_owned());
    match name {
        Some(name) if name == "zpool" || name == "zfs" => {
            words[0] = "cenote".into();
            words.insert(1, name);
        }
        Some(_) => words[0] = "cenote".into(),
        None => words.push("cenote".into()),
    }
    // 'zpool help list' is 'help zpool list', as it is for OpenZFS.
    let command = words.iter().skip(1).position(|w| matches!(w.as_str(), "zpool" | "zfs" | "help"));
    if let Some(at) = command.map(|at| at + 1)
        && words.get(at + 1).is_some_and(|word| word == "help")
        && (at == 1 || words[1].starts_with("--home"))
    {
        words.swap(at, at + 1);
    }
    words
}

/// What a pool's history records: `zpool create tank /dev/sda`.
pub fn command_line(normalized: &[String]) -> String {
    let start = normalized.iter().position(|w| w == "zpool" || w == "zfs").unwrap_or(0);
    normalized[start..].join(" ")
}

/// Commands of OpenZFS that this program does not have yet, so that they are not taken for typing errors.
const NOT_YET: &[(&str, &[&str])] = &[
    ("zpool", &["checkpoint", "ddtprune"]),
    (
        "zfs",
        &[
            "allow",
            "bookmark",
            "change-key",
            "diff",
            "jail",
            "load-key",
            "program",
            "receive",
            "recv",
            "redact",
            "rewrite",
            "send",
            "share",
            "unallow",
            "unjail",
            "unload-key",
            "unshare",
            "unzone",
            "upgrade",
            "wait",
            "zone",
        ],
    ),
];

/// Says so when a command of OpenZFS is asked for that is not here yet.
pub fn not_yet(normalized: &[String]) -> Option<String> {
    let at = normalized.iter().position(|w| w == "zpool" || w == "zfs")?;
    let word = normalized[at + 1..].iter().find(|w| !w.starts_with('-'))?;
    let (program, commands) = NOT_YET.iter().find(|(program, _)| *program == normalized[at])?;
    commands
        .contains(&word.as_str())
        .then(|| format!("'{program} {word}' is not part of this version of Cenote yet"))
}

/// The commands in a text for people, in single quotes, that are not ones of this program.
#[cfg(test)]
pub(crate) fn refused_in(text: &str) -> Vec<String> {
    let mut root = command();
    root.build();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let quoted = text.split('\'').skip(1).step_by(2);
    let is_known = |words: &[&str]| {
        let mut at = &root;
        words.iter().all(|word| match at.find_subcommand(word) {
            Some(found) => {
                at = found;
                true
            }
            None => at.get_subcommands().next().is_none(),
        })
    };
    let refused = quoted.filter(|quoted| {
        let words = quoted.strip_prefix("cenote ").unwrap_or(quoted);
        let words: Vec<&str> = words.split(' ').take_while(|word| !word.starts_with(['-', '<'])).collect();
        matches!(words.first(), Some(&"zpool" | &"zfs")) && !is_known(&words)
            || quoted.starts_with("cenote ") && !is_known(&words)
    });
    refused.map(String::from).collect()
}

/// Reads `name=value`.
pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("missing '='; a property is set by 'name=value'".into()),
    }
}

pub(crate) fn size(text: &str) -> Result<u64, String> {
    units::parse_size(text)
}

/// What a cache needs to be one, as OpenZFS has it.
const ARC_MIN: u64 = 64 << 20;

fn arc_size(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    if bytes < ARC_MIN { Err("the cache needs at least 64M".into()) } else { Ok(bytes) }
}

fn drive_writes(text: &str) -> Result<f64, String> {
    let wrong = || format!("'{text}' is not a number of drive writes per day, such as 0.3, 1 or 10");
    text.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0).ok_or_else(wrong)
}

/// Writes completions for a shell.
pub fn completions(shell: clap_complete::Shell, out: &mut dyn std::io::Write) -> std::io::Result<()> {
    // Written to memory first: the generator panics when a pipe has no reader any more.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command(), "cenote", &mut text);
    out.write_all(&text)
}

/// Writes the manual page of the whole program, or, given a directory, one for each command.
pub fn manual(dir: Option<&Path>, out: &mut dyn std::io::Write) -> std::io::Result<()> {
    match dir {
        Some(dir) => clap_mangen::generate_to(command(), dir),
        None => clap_mangen::Man::new(command()).render(out),
    }
}

#[cfg(test)]
mod tests;
