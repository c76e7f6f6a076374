//! Every name and unit that a reader can meet, said once.

use std::fmt;

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Count,
    Bytes,
    Nanoseconds,
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Unit::Count => "",
            Unit::Bytes => "bytes",
            Unit::Nanoseconds => "nanoseconds",
        }
    }
}

/// Declares an enum whose variants have a name and a description, in the order of the table.
macro_rules! table {
    ($(#[$doc:meta])* $enum:ident { $($variant:ident $name:literal: $about:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $enum {
            $(#[doc = $about] $variant,)*
        }

        impl $enum {
            pub const ALL: &'static [$enum] = &[$($enum::$variant,)*];

            pub fn name(self) -> &'static str {
                match self { $($enum::$variant => $name,)* }
            }

            pub fn about(self) -> &'static str {
                match self { $($enum::$variant => $about,)* }
            }

            /// Its place in the table.
            pub fn index(self) -> usize {
                self as usize
            }
        }

        impl fmt::Display for $enum {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

table! {
    /// Where an I/O was seen, from the client down to the device.
    Layer {
        Front "front": "a request of a client, until its reply is handed to the socket",
        Volume "volume": "a request to a volume",
        Zio "zio": "one logical block read, written, freed or claimed",
        Vdev "vdev": "one block given to a top-level vdev",
        Queue "queue": "the time an I/O waited in its leaf's queue",
        Disk "disk": "one I/O at a leaf's device, after aggregation",
    }
}

table! {
    /// What was done. The classes of reads and writes are those of the leaf queue.
    Op {
        SyncRead "sync_read": "a read that somebody waits for",
        SyncWrite "sync_write": "a write that somebody waits for",
        AsyncRead "async_read": "a read ahead of need",
        AsyncWrite "async_write": "a write of a transaction group",
        Scrub "scrub": "a read by scrub or resilver",
        Trim "trim": "a range told to be unused",
        Rebuild "rebuild": "a sequential copy to a new device",
        Flush "flush": "a wait for durability",
    }
}

/// One number of the whole pool or daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    ArcHits,
    ArcMisses,
    ArcEvictedBytes,
    ChecksumErrors,
    RepairedBlocks,
    TxgsSynced,
    ThrottledNanos,
}

struct MetricRow {
    metric: Metric,
    name: &'static str,
    unit: Unit,
    about: &'static str,
}

const fn row(metric: Metric, name: &'static str, unit: Unit, about: &'static str) -> MetricRow {
    MetricRow { metric, name, unit, about }
}

/// In the order of [`Metric`]; a test holds them together.
const METRICS: [MetricRow; 7] = [
    row(Metric::ArcHits, "arc_hits", Unit::Count, "blocks found in the cache"),
    row(Metric::ArcMisses, "arc_misses", Unit::Count, "blocks that had to be read"),
    row(Metric::ArcEvictedBytes, "arc_evicted", Unit::Bytes, "given up by the cache to make room"),
    row(Metric::ChecksumErrors, "checksum_errors", Unit::Count, "copies that failed their checksum"),
    row(Metric::RepairedBlocks, "repaired", Unit::Count, "copies rewritten from a good one"),
    row(Metric::TxgsSynced, "txgs", Unit::Count, "transaction groups made durable"),
    row(Metric::ThrottledNanos, "throttled", Unit::Nanoseconds, "writers held back by the write throttle"),
];

impl Metric {
    pub const COUNT: usize = METRICS.len();

    pub fn all() -> impl Iterator<Item = Metric> {
        METRICS.iter().map(|row| row.metric)
    }

    pub fn name(self) -> &'static str {
        METRICS[self.index()].name
    }

    pub fn unit(self) -> Unit {
        METRICS[self.index()].unit
    }

    pub fn about(self) -> &'static str {
        METRICS[self.index()].about
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_its_enum_and_names_are_unique() {
        for (i, row) in METRICS.iter().enumerate() {
            assert_eq!(row.metric.index(), i);
        }
        let mut names: Vec<&str> = Metric::all().map(Metric::name).collect();
        names.extend(Layer::ALL.iter().map(|l| l.name()));
        names.extend(Op::ALL.iter().map(|o| o.name()));
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
