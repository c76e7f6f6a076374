//! `calc`: what bandwidth, transfer size, operations, response time and concurrency say of one another.

use clap::Args;

/// Two of the first three give the third, and so do two of the last three: operations per second times transfer size is
/// bandwidth; operations per second times response time is what is outstanding (Little's law).
#[derive(Clone, Debug, Default, Args)]
pub struct Calc {
    /// Bytes per second: 100MB is 100,000,000, 100MiB and 100M are 104,857,600
    #[arg(long, value_name = "BYTES")]
    pub bandwidth: Option<String>,
    /// Bytes of one operation: 64K is 65,536
    #[arg(long, value_name = "BYTES")]
    pub size: Option<String>,
    /// Operations per second
    #[arg(long, value_name = "N")]
    pub iops: Option<f64>,
    /// Response time of an operation: 850us, 4ms, 1.5s
    #[arg(long, value_name = "TIME")]
    pub latency: Option<String>,
    /// Operations that are under way at once: threads, or the depth of a queue
    #[arg(long, value_name = "N")]
    pub outstanding: Option<f64>,
}

/// Statistics, live.
#[derive(Clone, Debug, Default, Args)]
pub struct Top {
    /// What to show, rather than the layers.
    #[arg(
        value_name = "STATISTIC",
        help = "What to show, rather than the layers: iscsi.ops[client], io.ops[disk], nbd.ops[op=read][size]"
    )]
    pub statistics: Vec<String>,
    /// Print lines rather than show a page, and end after so many seconds
    #[arg(short = 'n', long, value_name = "SECONDS")]
    pub count: Option<u64>,
    /// Print JSON, a document for each second
    #[arg(short, long)]
    pub json: bool,
}

/// What operations wait in.
#[derive(Clone, Debug, Default, Args)]
pub struct Waterfall {
    /// A front, and which of its operations: iscsi, nbd or fs
    #[arg(
        value_name = "FRONT",
        help = "A front, and which of its operations: iscsi, 'nbd[op=read]', 'fs[dataset=tank/home][latency>=10ms]'; all fronts by \
                default"
    )]
    pub of: Option<String>,
    /// Seconds that are shown together; 1 by default
    #[arg(value_name = "INTERVAL", value_parser = clap::value_parser!(u64).range(1..=600))]
    pub interval: Option<u64>,
    /// How often
    #[arg(value_name = "COUNT")]
    pub count: Option<u64>,
    /// As JSON
    #[arg(short, long)]
    pub json: bool,
}
