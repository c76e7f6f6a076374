//! The columns of `zpool iostat`.
//!
//! ```text
//!                 capacity     operations     bandwidth        one heading over two columns
//!   pool        alloc   free   read  write   read  write
//!   ----------  -----  -----  -----  -----  -----  -----
//! ```

use crate::args::zpool::Iostat;
use crate::text::number;
use api::{IoClass, VdevStats};

/// A heading over so many columns.
type Heading = (&'static str, usize);

/// A set of columns that is asked for together.
struct Group {
    top: &'static [Heading],
    bottom: &'static [&'static str],
    /// The width of exact numbers.
    exact_width: usize,
}

const DEFAULT: Group = Group {
    top: &[("capacity", 2), ("operations", 2), ("bandwidth", 2)],
    bottom: &["alloc", "free", "read", "write", "read", "write"],
    exact_width: 15,
};
const LATENCY: Group = Group {
    top: &[
        ("total_wait", 2),
        ("disk_wait", 2),
        ("syncq_wait", 2),
        ("asyncq_wait", 2),
        ("scrub", 1),
        ("trim", 1),
        ("rebuild", 1),
    ],
    bottom: &["read", "write", "read", "write", "read", "write", "read", "write", "wait", "wait", "wait"],
    exact_width: 10,
};
const QUEUES: Group = Group {
    top: &[
        ("syncq_read", 2),
        ("syncq_write", 2),
        ("asyncq_read", 2),
        ("asyncq_write", 2),
        ("scrubq_read", 2),
        ("trimq_write", 2),
        ("rebuildq_write", 2),
    ],
    bottom: &[
        "pend", "activ", "pend", "activ", "pend", "activ", "pend", "activ", "pend", "activ", "pend", "activ",
        "pend", "activ",
    ],
    exact_width: 6,
};
/// Not in OpenZFS: what it costs to be sure.
const FLUSHES: Group = Group { top: &[("flush", 3)], bottom: &["asked", "sent", "wait"], exact_width: 10 };
const FLUSH_HISTOGRAM: Group = Group { top: &[], bottom: &["flush"], exact_width: 10 };
const LATENCY_HISTOGRAM: Group = Group {
    top: &[("total_wait", 2), ("disk_wait", 2), ("syncq_wait", 2), ("asyncq_wait", 2)],
    bottom: &["read", "write", "read", "write", "read", "write", "read", "write", "scrub", "trim", "rebuild"],
    exact_width: 10,
};
const SIZE_HISTOGRAM: Group = Group {
    top: &[
        ("sync_read", 2),
        ("sync_write", 2),
        ("async_read", 2),
        ("async_write", 2),
        ("scrub", 2),
        ("trim", 2),
        ("rebuild", 2),
    ],
    bottom: &[
        "ind", "agg", "ind", "agg", "ind", "agg", "ind", "agg", "ind", "agg", "ind", "agg", "ind", "agg",
    ],
    exact_width: 6,
};

/// No request is smaller.
const FIRST_SIZE: usize = 9;
const WIDTH: usize = 5;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Histogram {
    Latencies,
    Sizes,
}

/// What was asked for, as columns.
pub(super) struct Layout {
    groups: Vec<Group>,
    histogram: Option<Histogram>,
    latency: bool,
    queues: bool,
    flush: bool,
    exact: bool,
    scripted: bool,
    /// Vdevs were asked for by name.
    of_vdevs: bool,
}

/// What is to be shown of one vdev.
pub(super) struct Row<'a> {
    /// Allocatable bytes, and what is taken of them.
    pub space: Option<(u64, u64)>,
    pub stats: &'a VdevStats,
    /// Counts times this are per second.
    pub scale: f64,
}

impl Layout {
    /// `of_vdevs`: vdevs were asked for by name.
    pub fn of(args: &Iostat, of_vdevs: bool) -> Layout {
        let histogram = match (args.latencies, args.sizes) {
            (true, _) => Some(Histogram::Latencies),
            (_, true) => Some(Histogram::Sizes),
            _ => None,
        };
        let groups = match histogram {
            Some(Histogram::Latencies) if args.flush => vec![LATENCY_HISTOGRAM, FLUSH_HISTOGRAM],
            Some(Histogram::Latencies) => vec![LATENCY_HISTOGRAM],
            Some(Histogram::Sizes) => vec![SIZE_HISTOGRAM],
            None => {
                let mut groups = vec![DEFAULT];
                groups.extend(args.latency.then_some(LATENCY));
                groups.extend(args.queues.then_some(QUEUES));
                groups.extend(args.flush.then_some(FLUSHES));
                groups
            }
        };
        Layout {
            groups,
            histogram,
            latency: args.latency,
            queues: args.queues,
            flush: args.flush,
            exact: args.style.exact,
            scripted: args.scripted,
            of_vdevs,
        }
    }

    pub fn is_histogram(&self) -> bool {
        self.histogram.is_some()
    }

    fn column_width(&self, group: &Group) -> usize {
        if self.exact { group.exact_width } else { WIDTH }
    }

    fn title(&self) -> &'static str {
        match self.histogram {
            Some(Histogram::Latencies) => "latency",
            Some(Histogram::Sizes) => "req_size",
            None if self.of_vdevs => "vdev",
            None => "pool",
        }
    }

    /// Two lines of headings, and dashes. A histogram has the vdev's name above its own title.
    pub fn header(&self, width: usize, vdev: Option<&str>) -> String {
        let width = width.max(self.title().len()).max(vdev.map_or(0, str::len));
        let mut text = format!("{:<width$}", vdev.unwrap_or(""));
        for group in &self.groups {
            group
                .top
                .iter()
                .for_each(|(name, span)| text += &centered(name, *span, self.column_width(group)));
        }
        text += &format!("\n{:<width$}", self.title());
        for group in &self.groups {
            group.bottom.iter().for_each(|name| text += &centered(name, 1, self.column_width(group)));
        }
        text + "\n" + &self.dashes(width)
    }

    pub fn dashes(&self, width: usize) -> String {
        let mut text = "-".repeat(width);
        for group in &self.groups {
            group.bottom.iter().for_each(|_| text += &format!("  {}", "-".repeat(self.column_width(group))));
        }
        text + "\n"
    }

    /// The line above vdevs of a class.
    pub fn blank(&self, heading: &str, width: usize) -> String {
        let mut text = format!("{heading:<width$}");
        for group in &self.groups {
            group.bottom.iter().for_each(|_| text += &format!("  {:>w$}", "-", w = self.column_width(group)));
        }
        text + "\n"
    }

    pub fn row(&self, name: &str, depth: usize, width: usize, row: &Row<'_>) -> String {
        if let Some(histogram) = self.histogram {
            return self.histogram(histogram, name, width, row);
        }
        let mut text = match self.scripted {
            true => name.to_string(),
            false => format!("{:depth$}{name:<width$}", "", width = width.saturating_sub(depth)),
        };
        for (group, cells) in self.groups.iter().zip(self.cells(row)) {
            cells.iter().for_each(|cell| text += &self.cell(cell, self.column_width(group)));
        }
        text + "\n"
    }

    fn cell(&self, cell: &str, width: usize) -> String {
        if self.scripted { format!("\t{cell}") } else { format!("  {cell:>width$}") }
    }

    /// The cells of each group.
    fn cells(&self, row: &Row<'_>) -> Vec<Vec<String>> {
        let mut cells = vec![self.default_cells(row)];
        if self.latency {
            cells.push(latency_columns(row.stats).map(|h| number::time(average(h), self.exact)).to_vec());
        }
        if self.queues {
            let of = |c: &IoClass| [c.pending, c.active].map(|n| number::count(n, self.exact));
            cells.push(classes(row.stats).into_iter().flat_map(of).collect());
        }
        if self.flush {
            let flush = &row.stats.flush;
            let [asked, sent] = [flush.asked, flush.sent].map(|n| self.per_second(n, row.scale));
            let wait = flush.wait_ns.checked_div(flush.sent).unwrap_or(0);
            cells.push(vec![asked, sent, number::time(wait, self.exact)]);
        }
        cells
    }

    fn default_cells(&self, row: &Row<'_>) -> Vec<String> {
        let none = if self.exact { "0" } else { "-" };
        let count = |n: u64| number::count(n, self.exact);
        let space = match row.space {
            Some((space, used)) => [count(used), count(space.saturating_sub(used))],
            None => [none.into(), none.into()],
        };
        let (read, write) = (&row.stats.read, &row.stats.write);
        let rates = [read.ops, write.ops, read.bytes, write.bytes].map(|n| self.per_second(n, row.scale));
        space.into_iter().chain(rates).collect()
    }

    fn per_second(&self, n: u64, scale: f64) -> String {
        number::count((n as f64 * scale) as u64, self.exact)
    }

    fn histogram(&self, histogram: Histogram, name: &str, width: usize, row: &Row<'_>) -> String {
        let (columns, first) = match histogram {
            Histogram::Latencies => {
                let mut columns = latency_columns(row.stats).to_vec();
                columns.extend(self.flush.then_some(&row.stats.flush.wait[..]));
                (columns, 0)
            }
            Histogram::Sizes => {
                let of = |c| -> [&[u64]; 2] {
                    let c: &IoClass = c;
                    [&c.individual, &c.aggregated]
                };
                (classes(row.stats).into_iter().flat_map(of).collect(), FIRST_SIZE)
            }
        };
        let width = width.max(self.title().len());
        let mut text = match self.scripted {
            true => format!("\n{name}\n"),
            false => format!("\n{}", self.header(width, Some(name))),
        };
        let column_width = self.column_width(&self.groups[0]);
        let buckets = columns.iter().map(|c| c.len()).max().unwrap_or(0);
        for bucket in first..buckets {
            text += &self.bucket_label(histogram, bucket, width);
            for column in &columns {
                let n = column.get(bucket).copied().unwrap_or(0);
                text += &self.cell(&number::count((n as f64 * row.scale) as u64, self.exact), column_width);
            }
            text.push('\n');
        }
        if !self.scripted {
            text += &format!("{}\n", "-".repeat(width + (column_width + 2) * columns.len()));
        }
        text
    }

    /// The end of a range of latencies, or the beginning of a range of sizes.
    fn bucket_label(&self, histogram: Histogram, bucket: usize, width: usize) -> String {
        let (n, label) = match histogram {
            Histogram::Latencies => {
                let n = (1u64 << (bucket + 1)) - 1;
                (n, number::time(n, false))
            }
            Histogram::Sizes => (1 << bucket, number::count(1 << bucket, false)),
        };
        if self.scripted { n.to_string() } else { format!("{label:<width$}") }
    }
}

/// A heading over the middle of its columns. Where the middle is, OpenZFS decided once and for all.
fn centered(name: &str, span: usize, column: usize) -> String {
    let width = column * span + 2 * (span - 1);
    let start = (width / span).saturating_sub(name.len() / span);
    let end = width.saturating_sub(start + name.len());
    format!("  {:start$}{name}{:end$}", "", "")
}

fn classes(stats: &VdevStats) -> [&IoClass; 7] {
    let s = stats;
    [&s.sync_read, &s.sync_write, &s.async_read, &s.async_write, &s.scrub, &s.trim_class, &s.rebuild]
}

fn latency_columns(stats: &VdevStats) -> [&[u64]; 11] {
    [
        &stats.read.total_wait,
        &stats.write.total_wait,
        &stats.read.disk_wait,
        &stats.write.disk_wait,
        &stats.sync_read.queue_wait,
        &stats.sync_write.queue_wait,
        &stats.async_read.queue_wait,
        &stats.async_write.queue_wait,
        &stats.scrub.queue_wait,
        &stats.trim_class.queue_wait,
        &stats.rebuild.queue_wait,
    ]
}

/// The average of a histogram, each bucket counted as its middle.
fn average(histogram: &[u64]) -> u64 {
    let middle = |bucket: usize| (1u128 << bucket) + (1u128 << bucket) / 2;
    let total: u128 = histogram.iter().enumerate().map(|(i, n)| u128::from(*n) * middle(i)).sum();
    let count: u128 = histogram.iter().map(|n| u128::from(*n)).sum();
    total.checked_div(count).unwrap_or(0) as u64
}
