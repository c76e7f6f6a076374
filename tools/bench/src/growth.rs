//! What an operation costs beside many others of its kind: CPU time against size.
//!
//! ```text
//!   pool with 100 ─▶ each operation, some times ─▶ 1,000 ─▶ the same ─▶ 3,000 ─▶ …     one pool, which grows
//!   cost at the largest  ≤  cost at the smallest x what its law allows x slack          else the row fails
//! ```
//!
//! What touches its own things only may grow as the depth of a tree does; what goes over all, by that for each of them. A
//! snapshot of what has many has a list of them in the format, so there the cost of one is allowed to grow as they do. The
//! whole appliance runs in the simulator, on one thread, so the time is that thread's CPU time: devices and other programs
//! are not in it. The simulated disk is in this time, with its copies of what is written. All of it is written once before:
//! for a page of memory that is touched first the kernel takes longer than the engine for what is in it.

use crate::Progress;
use api::{Call, DatasetQuery, Layout, NewDataset, NewKind, NewPool, Request, Service, Snapshots};
use appliance::{Appliance, Config, Home};
use futures_util::future::try_join_all;
use rustix::time::{ClockId, clock_gettime};
use std::fmt::Write;
use std::time::Duration;
use units::{Error, Kind, Result};
use world::{Buf, OpenMode};

pub const USAGE: &str = "\
bench growth [--sizes N,N,…]  CPU time of creating, setting, listing and destroying one of so many datasets and snapshots,
                              in the simulator; fails when one grows faster than n log n
";

const DEVICE: &str = "/lab/disk";
/// Its simulation holds twice as much in memory.
const DEVICE_BYTES: u64 = 512 << 20;
/// Besides for each dataset of the largest size, with a snapshot of the volume: 520K of metadata, in two or three copies
/// of at least 4K, and the snapshots that are taken of all.
const DATASET_BYTES: u64 = 768 << 10;
/// Written to it at once.
const FILL: u64 = 1 << 20;
/// Writes of [`FILL`] that it holds until a flush.
const UNFLUSHED: u64 = 64;
/// So many are created side by side, on the way to a size.
const TOGETHER: usize = 50;
/// Of each operation, at each size.
const TIMES: usize = 20;
/// Of caches that are filled once, of trees that become one level deeper, and of noise.
const SLACK: f64 = 2.0;
const SEED: u64 = 1;

#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub sizes: Vec<usize>,
    /// So many times what the law allows is allowed.
    pub slack: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options { sizes: vec![100, 1000, 3000], slack: SLACK }
    }
}

/// `None` when the words make no sense: then [`USAGE`] does.
pub fn parse(words: &[&str]) -> Option<Options> {
    match words {
        [] => Some(Options::default()),
        ["--sizes", list] => {
            let sizes: Vec<usize> = list.split(',').map(|n| n.parse().ok()).collect::<Option<_>>()?;
            let rises = sizes.windows(2).all(|pair| pair[0] < pair[1]);
            (sizes.len() >= 2 && sizes[0] >= 10 && rises).then_some(Options { sizes, slack: SLACK })
        }
        _ => None,
    }
}

/// One operation, by size.
#[derive(Clone, Debug)]
struct Row {
    what: &'static str,
    law: Law,
    /// CPU time of one; of what goes over all, for each of them.
    costs: Vec<Duration>,
}

impl Row {
    /// By how much the last is dearer than the first.
    fn growth(&self) -> f64 {
        let (first, last) = (self.costs.first(), self.costs.last());
        let seconds = |cost: Option<&Duration>| cost.map_or(0.0, Duration::as_secs_f64).max(1e-9);
        seconds(last) / seconds(first)
    }
}

/// How a cost may grow with the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Law {
    /// As the depth of a tree.
    Logarithm,
    /// As the size: the format has a list of all earlier snapshots with each.
    Linear,
}

impl Law {
    /// By how much, from the smallest size to the largest.
    fn allows(self, Options { sizes, slack }: &Options) -> f64 {
        let of = |n: Option<&usize>| n.map_or(1.0, |n| *n as f64);
        let (first, last) = (of(sizes.first()), of(sizes.last()));
        match self {
            Law::Logarithm => last.ln() / first.ln() * slack,
            Law::Linear => last / first * slack,
        }
    }
}

/// Measures, and returns a table; an error names what grows too fast, with the table.
pub fn run(options: &Options, progress: Progress) -> Result<String> {
    let rows = measure(options.sizes.clone(), progress)?;
    let (text, bad) = render(options, &rows);
    if bad.is_empty() {
        return Ok(text);
    }
    let bad = bad.join(", ");
    Err(Error::new(Kind::Invalid, format!("{text}\nwhat grows faster than n log n: {bad}")))
}

fn render(options: &Options, rows: &[Row]) -> (String, Vec<&'static str>) {
    let sizes = &options.sizes;
    let heads: String = sizes.iter().map(|n| format!(" {:>12} |", format!("at {n}"))).collect();
    let rules: String = sizes.iter().map(|_| " -----------: |").collect();
    let mut text = format!(
        "| CPU time of one                    |{heads} grows |\n|:-----------------------------------|{rules} ----: |\n"
    );
    let mut bad = Vec::new();
    for row in rows {
        let costs: String = row.costs.iter().map(|cost| format!(" {:>12} |", shown(*cost))).collect();
        let _ = writeln!(text, "| {:<34} |{costs} {:>4.1}x |", row.what, row.growth());
        if row.growth() > row.law.allows(options) {
            bad.push(row.what);
        }
    }
    let [logarithm, linear] = [Law::Logarithm, Law::Linear].map(|law| law.allows(options));
    let _ = writeln!(
        text,
        "\nMay grow by {logarithm:.1}x, as the logarithm of the size does, twice; with many snapshots by {linear:.0}x."
    );
    (text, bad)
}

fn shown(cost: Duration) -> String {
    let us = cost.as_secs_f64() * 1e6;
    if us < 1000.0 { format!("{us:.1} us") } else { format!("{:.2} ms", us / 1e3) }
}

fn measure(sizes: Vec<usize>, progress: Progress) -> Result<Vec<Row>> {
    let dir = std::env::temp_dir().join(format!("cenote-growth-{}", std::process::id()));
    let disks = sim::Disks::new();
    let size =
        DEVICE_BYTES + sizes.iter().max().map_or(0, |n| *n as u64 * DATASET_BYTES).next_multiple_of(FILL);
    disks.add(DEVICE, size, sim::Model::NVME);
    let home = Home::find(Some(&dir))?;
    let rows = sim::run_with(&disks, SEED, sim::Config::default(), async move {
        fill(size).await.map_err(|e| Error::new(Kind::Io, "fill").at(DEVICE).because(e))?;
        home.prepare()?;
        let config = Config { home, is_daemon: true, mounts: false, system: Vec::new(), is_safe: false };
        let appliance = Appliance::start(config).await.map_err(told)?;
        let subject = Subject { appliance };
        let rows = subject.grow(&sizes, progress).await?;
        subject.appliance.stop().await.map_err(told)?;
        Ok(rows)
    });
    // What is left in it is the home of a pool that is gone.
    let _ = std::fs::remove_dir_all(&dir);
    rows
}

/// Writes all of the disk.
async fn fill(size: u64) -> std::io::Result<()> {
    let (disk, zeros) = (world::open(DEVICE.as_ref(), OpenMode::ReadWrite)?, Buf::zeroed(FILL as usize));
    for n in 0..size / FILL {
        disk.write(n * FILL, vec![zeros.clone()]).await?;
        if n % UNFLUSHED == 0 {
            disk.flush().await?;
        }
    }
    disk.flush().await
}

fn told(e: api::ApiError) -> Error {
    Error::new(Kind::Invalid, e.message)
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

struct Subject {
    appliance: Appliance,
}

impl Subject {
    async fn ask(&self, request: Request) -> Result<()> {
        let call = Call { command: String::new(), uid: 0, request };
        self.appliance.call(call).await.map(drop).map_err(told)
    }

    async fn create_pool(&self) -> Result<()> {
        self.ask(Request::PoolCreate(NewPool::of("tank", Layout::Stripe, &[DEVICE]))).await
    }

    /// The median of the CPU time of each request, for each of the `each` that it is about. Its txg is in it. A mean
    /// would have the calls in it that another program on the processor made dearer.
    async fn cost(&self, requests: impl Iterator<Item = Request>, each: usize) -> Result<Duration> {
        let mut costs = Vec::new();
        for request in requests {
            let begun = cpu();
            self.ask(request).await?;
            costs.push(cpu() - begun);
        }
        costs.sort_unstable();
        Ok(costs.get(costs.len() / 2).map_or(Duration::ZERO, |cost| *cost / each.max(1) as u32))
    }

    async fn grow(&self, sizes: &[usize], progress: Progress) -> Result<Vec<Row>> {
        self.create_pool().await?;
        let volume = NewKind::Volume { size: 16 << 20, sparse: true };
        self.ask(create("tank/v", volume)).await?;
        let mut rows: Vec<Row> = Vec::new();
        let mut there = 0;
        for size in sizes {
            progress(&format!("{size} datasets and snapshots"));
            // Those that share a txg write the pool's own tree once: the disk is in memory, and keeps all that is written.
            for first in (there..*size).step_by(TOGETHER) {
                let few = first..(first + TOGETHER).min(*size);
                let creating = |n| self.ask(create(&format!("tank/f{n}"), NewKind::Filesystem));
                try_join_all(few.clone().map(creating)).await?;
                try_join_all(few.map(|n| self.ask(take(&format!("tank/v@{n}"), false)))).await?;
            }
            there = *size;
            for (n, (what, law, cost)) in self.at(*size).await?.into_iter().enumerate() {
                if rows.len() == n {
                    rows.push(Row { what, law, costs: Vec::new() });
                }
                rows[n].costs.push(cost);
            }
        }
        Ok(rows)
    }

    async fn at(&self, size: usize) -> Result<Vec<(&'static str, Law, Duration)>> {
        let some = || 0..TIMES;
        let one = |n: usize| format!("tank/x{n}");
        let all =
            || DatasetQuery { names: Vec::new(), depth: None, kinds: Vec::new(), properties: Vec::new() };
        let of_volume = |n: usize| format!("tank/v@x{n}");
        let (own, linear) = (Law::Logarithm, Law::Linear);
        Ok(vec![
            ("create", own, self.cost(some().map(|n| create(&one(n), NewKind::Filesystem)), 1).await?),
            ("set", own, self.cost(some().map(|n| set(&one(n))), 1).await?),
            ("snapshot", own, self.cost(some().map(|n| take(&format!("{}@s", one(n)), false)), 1).await?),
            ("list, each", own, self.cost((0..3).map(|_| Request::Datasets(all())), 2 * size).await?),
            (
                "destroy a snapshot",
                own,
                self.cost(some().map(|n| destroy(&format!("{}@s", one(n)))), 1).await?,
            ),
            ("destroy", own, self.cost(some().map(|n| destroy(&one(n))), 1).await?),
            (
                "snapshot of what has so many",
                linear,
                self.cost(some().map(|n| take(&of_volume(n), false)), 1).await?,
            ),
            (
                "destroy one of so many snapshots",
                linear,
                self.cost(some().map(|n| destroy(&of_volume(n))), 1).await?,
            ),
            ("snapshot -r, each", own, self.cost([take("tank@r", true)].into_iter(), size).await?),
            ("destroy -r of a snapshot, each", own, self.cost([destroy("tank@r")].into_iter(), size).await?),
        ])
    }
}

fn create(name: &str, kind: NewKind) -> Request {
    let (name, properties) = (name.to_string(), Vec::new());
    Request::DatasetCreate(NewDataset {
        name,
        kind,
        properties,
        parents: false,
        dry_run: false,
        unmounted: true,
    })
}

fn set(name: &str) -> Request {
    Request::DatasetSet { name: name.into(), properties: vec![("compression".into(), "off".into())] }
}

fn take(name: &str, recursive: bool) -> Request {
    Request::Snapshots(Snapshots::Take { names: vec![name.into()], recursive, properties: Vec::new() })
}

fn destroy(name: &str) -> Request {
    let (name, recursive) = (name.to_string(), true);
    Request::DatasetDestroy { name, recursive, clones: false, defer: false, force: false, dry_run: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(sizes: Vec<usize>) -> Options {
        Options { sizes, slack: SLACK }
    }

    fn row(law: Law, costs: [u64; 2]) -> Row {
        Row { what: "x", law, costs: costs.map(Duration::from_micros).to_vec() }
    }

    #[test]
    fn what_grows_as_its_law_passes_and_what_grows_faster_does_not() {
        let bad = |law, costs| render(&options(vec![100, 1000]), &[row(law, costs)]).1.len();
        let logarithm = [[1000, 1000], [1000, 2900], [1000, 10_000]].map(|costs| bad(Law::Logarithm, costs));
        let linear = [[1000, 1000], [1000, 10_000], [1000, 30_000]].map(|costs| bad(Law::Linear, costs));
        assert_eq!((logarithm, linear), ([0, 0, 1], [0, 0, 1]));
    }

    #[test]
    fn sizes_rise() {
        assert_eq!(parse(&[]), Some(Options::default()));
        assert_eq!(parse(&["--sizes", "10,20"]), Some(options(vec![10, 20])));
        for bad in [&["--sizes", "20,10"][..], &["--sizes", "10"], &["--sizes", "a,b"], &["x"]] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }

    /// What asks all others grows by 20, as the size does; the logarithm, by 1.8. Between them is room for a machine that
    /// does other things at the same time.
    #[test]
    fn nothing_that_administrators_do_costs_more_beside_others() {
        let text = run(&Options { sizes: vec![40, 800], slack: 5.0 }, |_| ()).unwrap();
        assert!(text.contains("| snapshot -r, each"), "{text}");
        println!("{text}");
    }
}
