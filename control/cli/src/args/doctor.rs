//! `doctor`: what is set wrong, here and on clients.

use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Doctor {
    #[command(subcommand)]
    pub what: Option<What>,
    /// Carry out what is one setting of a dataset here: each is shown and asked for, and how it is taken back is printed
    #[arg(long)]
    pub apply: bool,
    /// Carry out all of them without asking
    #[arg(short, long, requires = "apply")]
    pub yes: bool,
    /// As JSON
    #[arg(short, long, conflicts_with = "apply")]
    pub json: bool,
}

#[derive(Clone, Debug, Subcommand)]
pub enum What {
    /// Print a script that gathers the facts of a client, or judge what it has printed
    ///
    /// The script needs nothing but /bin/sh, changes nothing, and leaves out lines that name a password. It watches
    /// the disks for ten
    /// seconds.
    Host {
        /// What the script printed on the client; - is the standard input
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        facts: Option<PathBuf>,
        /// Run the script on this client, and judge what it prints
        #[arg(long, value_name = "HOST", conflicts_with = "facts")]
        ssh: Option<String>,
        /// How the client is reached; the host and '/bin/sh -s' are added, and the script is its input
        #[arg(long, value_name = "COMMAND", default_value = "ssh", requires = "ssh")]
        ssh_command: String,
        /// As JSON
        #[arg(short, long)]
        json: bool,
    },
    /// Show what each block size would cost a share, on the vdevs of its pool
    Blocksize {
        /// The dataset of a LUN or file system
        share: String,
    },
    /// Write a file for clients of a deployment
    Generate {
        #[command(subcommand)]
        file: File,
    },
}

#[derive(Clone, Debug, Subcommand)]
pub enum File {
    /// A rule for /etc/udev/rules.d: requests as large as a block
    Udev {
        /// The block size of the LUN
        #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = super::size)]
        block: u64,
    },
    /// A whole /etc/multipath.conf
    Multipath {
        /// As the LUNs say in their INQUIRY
        #[arg(long, default_value = ::doctor::generate::VENDOR)]
        vendor: String,
        /// As the LUNs say in their INQUIRY
        #[arg(long, default_value = "LUN")]
        product: String,
    },
    /// A line for /etc/fstab
    Fstab {
        /// The device that the LUN is on the client
        device: String,
        /// Where it is mounted
        at: String,
    },
    /// Settings for /etc/my.cnf
    Mysql {
        /// The block size of the LUN for data
        #[arg(long, value_name = "SIZE", default_value = "16K", value_parser = super::size)]
        block: u64,
        /// Where the data is
        #[arg(long, default_value = "/mysql/san/innodb-data")]
        data: String,
        /// Where the log is
        #[arg(long, default_value = "/mysql/san/innodb-log")]
        log: String,
    },
}
