//! The table of statistics: every number that can be asked for, said once.
//!
//! A row says by what name it is asked for, in what unit it is, by what it can be broken down and filtered, what it costs
//! while it is open, and how it comes about:
//!
//! ```text
//!   Told(family, measure)   each event of the family adds 1, its bytes or its time    a sample: those since the last
//!   Gauge                   a source says what it is now                              a sample: as it is
//!   Counter                 a source says what it has come to since it began          a sample: the difference
//!   Busy                    a source says how long each of its things has had work    a sample: how many
//! ```
//!
//! To add one: a row here, and where it happens one line that tells the event, or one that registers a source. Queries,
//! help, REST, the page and `cenote top` are made from the rows.

use crate::breakdown::Breakdown::{self, *};
use crate::names::table;
use std::fmt;

/// What the value of a statistic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatUnit {
    OperationsPerSecond,
    BytesPerSecond,
    Bytes,
    Percent,
    Nanoseconds,
    Count,
}

impl StatUnit {
    pub fn name(self) -> &'static str {
        match self {
            StatUnit::OperationsPerSecond => "operations per second",
            StatUnit::BytesPerSecond => "bytes per second",
            StatUnit::Bytes => "bytes",
            StatUnit::Percent => "percent",
            StatUnit::Nanoseconds => "nanoseconds",
            StatUnit::Count => "count",
        }
    }
}

/// What a statistic costs while it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cost {
    /// Asked once a sample, or an addition for each of few events.
    Low,
    /// An addition for each of many events.
    Medium,
    /// A lookup for each of many events, or text that is made for each.
    High,
}

impl Cost {
    pub fn name(self) -> &'static str {
        match self {
            Cost::Low => "low",
            Cost::Medium => "medium",
            Cost::High => "high",
        }
    }
}

table! {
    /// Where events are told: those of a family have the same breakdowns.
    Family {
        Iscsi "iscsi": "commands of iSCSI initiators, until the answer is handed to the socket",
        Nbd "nbd": "requests of NBD clients, until the reply is handed to the socket",
        Fs "fs": "requests to mounted file systems, until they are answered",
        FsDirect "fs direct": "reads and writes of files that went past the cache",
        IscsiStages "iscsi stages": "stages of commands of iSCSI initiators",
        NbdStages "nbd stages": "stages of requests of NBD clients",
        FsStages "fs stages": "stages of requests to mounted file systems",
        Disk "disk": "I/O at a device, after aggregation",
        Queue "queue": "the wait of an I/O in the queue of its device",
        Zfs "zfs": "logical blocks read, written and freed",
        Arc "arc": "lookups of blocks in the cache",
        Evict "evict": "blocks that left the cache",
        Zil "zil": "commits of intent logs",
        Txg "txg": "phases of transaction groups that ended",
        Throttle "throttle": "writers that were held back",
    }
}

/// What an event adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// One.
    Events,
    Bytes,
    /// Its latency in nanoseconds.
    Time,
    /// What its stage took of it, in nanoseconds.
    Spent,
}

/// How the value comes about; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    Told(Family, Measure),
    Gauge,
    /// In percent, the sources count nanoseconds, and a sample is their part of the time that passed.
    Counter,
    /// In nanoseconds of each thing.
    Busy,
}

/// One row of the table.
#[derive(Debug)]
pub struct Statistic {
    /// As it is asked for: `iscsi.ops`.
    pub name: &'static str,
    pub grouping: &'static str,
    pub title: &'static str,
    pub explanation: &'static str,
    pub unit: StatUnit,
    pub breakdowns: &'static [Breakdown],
    pub cost: Cost,
    pub taken: Taken,
}

impl Statistic {
    pub fn named(name: &str) -> Option<&'static Statistic> {
        statistics().iter().find(|s| s.name == name)
    }
}

/// All statistics, in the order in which they are shown.
pub fn statistics() -> &'static [Statistic] {
    STATISTICS
}

const OPS: (StatUnit, Measure) = (StatUnit::OperationsPerSecond, Measure::Events);
const BYTES: (StatUnit, Measure) = (StatUnit::BytesPerSecond, Measure::Bytes);
const TIME: (StatUnit, Measure) = (StatUnit::Nanoseconds, Measure::Time);
const SPENT: (StatUnit, Measure) = (StatUnit::Nanoseconds, Measure::Spent);

type Names = (&'static str, &'static str, &'static str);

const fn told(
    (name, grouping, title): Names,
    family: Family,
    (unit, measure): (StatUnit, Measure),
    cost: Cost,
    breakdowns: &'static [Breakdown],
    explanation: &'static str,
) -> Statistic {
    let taken = Taken::Told(family, measure);
    Statistic { name, grouping, title, explanation, unit, breakdowns, cost, taken }
}

const fn asked(
    (name, grouping, title): Names,
    taken: Taken,
    unit: StatUnit,
    breakdowns: &'static [Breakdown],
    explanation: &'static str,
) -> Statistic {
    Statistic { name, grouping, title, explanation, unit, breakdowns, cost: Cost::Low, taken }
}

const ISCSI: &[Breakdown] =
    &[Op, Command, Client, Target, Lun, Project, Dataset, Pool, Size, Latency, Offset];
const NBD: &[Breakdown] = &[Op, Client, Share, Project, Dataset, Pool, Size, Latency, Offset];
const ISCSI_STAGES: &[Breakdown] =
    &[Stage, Op, Client, Target, Lun, Project, Dataset, Pool, Size, Latency, Offset];
const NBD_STAGES: &[Breakdown] = &[Stage, Op, Client, Share, Project, Dataset, Pool, Size, Latency, Offset];
const FS_STAGES: &[Breakdown] = &[Stage, Op, Share, Project, Dataset, Pool, File, Size, Latency, Offset];
const FS: &[Breakdown] = &[Op, Share, Project, Dataset, Pool, File, Size, Latency, Offset];
const FS_DIRECT: &[Breakdown] = &[Op, Share, Project, Dataset, Pool, File, Size, Offset];
const DISK: &[Breakdown] = &[Op, Class, Disk, Pool, Size, Latency, Offset];
const ZFS: &[Breakdown] = &[Op, Class, Pool, Size, Latency, Offset];

/// Names that statistics will have, and why they are none yet: to ask for one says so.
pub const RESERVED: &[(&str, &str)] =
    &[("fc.ops", "no fibre-channel port exists, so there is nothing to count")];

static STATISTICS: &[Statistic] = &[
    told(
        ("iscsi.ops", "Protocol", "iSCSI operations"),
        Family::Iscsi,
        OPS,
        Cost::Medium,
        ISCSI,
        "Commands of iSCSI initiators that were answered: reads, writes, flushes and trims.",
    ),
    told(
        ("iscsi.bytes", "Protocol", "iSCSI bytes"),
        Family::Iscsi,
        BYTES,
        Cost::Medium,
        ISCSI,
        "Data of iSCSI initiators' commands, as it crossed the wire.",
    ),
    told(
        ("nbd.ops", "Protocol", "NBD operations"),
        Family::Nbd,
        OPS,
        Cost::Medium,
        NBD,
        "Requests of NBD clients that were answered.",
    ),
    told(
        ("nbd.bytes", "Protocol", "NBD bytes"),
        Family::Nbd,
        BYTES,
        Cost::Medium,
        NBD,
        "Bytes that NBD clients read, wrote, zeroed and trimmed; the share is the export.",
    ),
    told(
        ("fs.ops", "Protocol", "File system operations"),
        Family::Fs,
        OPS,
        Cost::Medium,
        FS,
        "Requests to mounted file systems that were answered; one about a name counts for the directory that it is in.",
    ),
    told(
        ("fs.bytes", "Protocol", "File system bytes"),
        Family::Fs,
        BYTES,
        Cost::Medium,
        FS,
        "Bytes read from and written to files of mounted file systems.",
    ),
    told(
        ("fs.direct_ops", "Protocol", "File system operations past the cache"),
        Family::FsDirect,
        OPS,
        Cost::Medium,
        FS_DIRECT,
        "Reads and writes of mounted file systems that had to ask devices themselves, as the property direct has it.",
    ),
    told(
        ("fs.direct_bytes", "Protocol", "File system bytes past the cache"),
        Family::FsDirect,
        BYTES,
        Cost::Medium,
        FS_DIRECT,
        "Their bytes: read from devices past the cache, or on devices when the write was answered.",
    ),
    told(
        ("iscsi.time", "Protocol", "iSCSI time"),
        Family::IscsiStages,
        SPENT,
        Cost::High,
        ISCSI_STAGES,
        "Time of iSCSI commands that were answered, all together, by the stage that they were in.",
    ),
    told(
        ("nbd.time", "Protocol", "NBD time"),
        Family::NbdStages,
        SPENT,
        Cost::High,
        NBD_STAGES,
        "Time of NBD requests that were answered, all together, by the stage that they were in.",
    ),
    told(
        ("fs.time", "Protocol", "File system time"),
        Family::FsStages,
        SPENT,
        Cost::High,
        FS_STAGES,
        "Time of requests to mounted file systems that were answered, all together, by the stage that they were in.",
    ),
    told(
        ("io.ops", "Disk", "I/O operations"),
        Family::Disk,
        OPS,
        Cost::Medium,
        DISK,
        "What the devices were asked to do, after neighbours were merged.",
    ),
    told(
        ("io.bytes", "Disk", "I/O bytes"),
        Family::Disk,
        BYTES,
        Cost::Medium,
        DISK,
        "Bytes read from, written to and discarded on the devices.",
    ),
    asked(
        ("io.disks", "Disk", "Disks"),
        Taken::Busy,
        StatUnit::Count,
        &[Utilization, Disk, Pool],
        "Disks by the part of the time in which they had work; [utilization=95] are those that had it 95 % of the time or more.",
    ),
    told(
        ("io.waits", "Disk", "Waits in queues of disks"),
        Family::Queue,
        OPS,
        Cost::Medium,
        DISK,
        "I/O operations before aggregation, and how long each waited until it went to its device.",
    ),
    told(
        ("zfs.ops", "Disk", "ZFS logical I/O operations"),
        Family::Zfs,
        OPS,
        Cost::Medium,
        ZFS,
        "Logical blocks read from and written to the vdevs, before parity and copies.",
    ),
    told(
        ("zfs.bytes", "Disk", "ZFS logical I/O bytes"),
        Family::Zfs,
        BYTES,
        Cost::Medium,
        ZFS,
        "Their bytes, as stored: compressed.",
    ),
    told(
        ("arc.accesses", "Cache", "ARC accesses"),
        Family::Arc,
        OPS,
        Cost::Medium,
        &[HitMiss],
        "Lookups of blocks in the cache, and whether they were there.",
    ),
    asked(
        ("arc.size", "Cache", "ARC size"),
        Taken::Gauge,
        StatUnit::Bytes,
        &[Component],
        "What the cache of blocks has.",
    ),
    asked(
        ("arc.target", "Cache", "ARC target size"),
        Taken::Gauge,
        StatUnit::Bytes,
        &[Component],
        "What the cache may have, and how it is divided between data and metadata while both want it.",
    ),
    asked(
        ("arc.adaptive", "Cache", "ARC adaptive parameter"),
        Taken::Gauge,
        StatUnit::Bytes,
        &[Component],
        "What blocks that came lately may have; misses on ghosts and late hits move it.",
    ),
    asked(
        ("arc.ghosts", "Cache", "ARC ghost hits"),
        Taken::Counter,
        StatUnit::OperationsPerSecond,
        &[Component],
        "Misses of blocks that the cache remembers: with a larger list they would have been hits.",
    ),
    asked(
        ("arc.ahead", "Cache", "ARC blocks read ahead"),
        Taken::Counter,
        StatUnit::OperationsPerSecond,
        &[Component],
        "Blocks that were read ahead, by what became of them: there in time, wanted before they were there, or never used.",
    ),
    asked(
        ("arc.l2_accesses", "Cache", "L2ARC accesses"),
        Taken::Counter,
        StatUnit::OperationsPerSecond,
        &[Component, Pool],
        "Misses of the cache in memory that were looked for on cache devices, and what came of it.",
    ),
    asked(
        ("arc.l2_bytes", "Cache", "L2ARC I/O bytes"),
        Taken::Counter,
        StatUnit::BytesPerSecond,
        &[Component, Pool],
        "Bytes of blocks that were served from cache devices, and bytes that were written to them.",
    ),
    asked(
        ("arc.l2_size", "Cache", "L2ARC size"),
        Taken::Gauge,
        StatUnit::Bytes,
        &[Component, Pool],
        "Bytes of blocks on cache devices, and the memory that it takes to know where they are.",
    ),
    asked(
        ("arc.l2_errors", "Cache", "L2ARC errors"),
        Taken::Counter,
        StatUnit::OperationsPerSecond,
        &[Component, Pool],
        "What cache devices failed at: the pool was read instead.",
    ),
    told(
        ("arc.evicted", "Cache", "ARC evicted bytes"),
        Family::Evict,
        BYTES,
        Cost::Low,
        &[Component],
        "Bytes that left the cache to make room.",
    ),
    told(
        ("zil.commits", "Log", "Intent log commits"),
        Family::Zil,
        OPS,
        Cost::Low,
        &[Pool, Writers, Size, Latency],
        "Commits of intent logs: how many writers share one, how much is written, how long it takes until it is flushed.",
    ),
    told(
        ("zil.bytes", "Log", "Intent log bytes"),
        Family::Zil,
        BYTES,
        Cost::Low,
        &[Pool, Writers, Latency],
        "Bytes of log records that were committed.",
    ),
    told(
        ("txg.ops", "Transaction groups", "Phases of transaction groups"),
        Family::Txg,
        OPS,
        Cost::Low,
        &[Component, Pool, Size, Latency],
        "Phases that ended: a transaction group was open, quiesced, and was synced; the size is what was dirty.",
    ),
    told(
        ("txg.time", "Transaction groups", "Time in phases of transaction groups"),
        Family::Txg,
        TIME,
        Cost::Low,
        &[Component, Pool],
        "How long the phases that ended had taken.",
    ),
    asked(
        ("txg.dirty", "Transaction groups", "Dirty bytes"),
        Taken::Gauge,
        StatUnit::Bytes,
        &[Pool],
        "What was written and is not on disk.",
    ),
    told(
        ("txg.throttled", "Transaction groups", "Throttled writers"),
        Family::Throttle,
        OPS,
        Cost::Low,
        &[Pool, Latency],
        "Writers that were held back since too much is dirty, and for how long.",
    ),
    told(
        ("txg.delay", "Transaction groups", "Throttle delay"),
        Family::Throttle,
        TIME,
        Cost::Low,
        &[Pool],
        "How long writers were held back, all together.",
    ),
    asked(
        ("metacap.bytesused", "Capacity", "Capacity bytes used"),
        Taken::Gauge,
        StatUnit::Bytes,
        &[Pool, Project, Share],
        "Bytes that are taken.",
    ),
    asked(
        ("metacap.percentused", "Capacity", "Capacity percent used"),
        Taken::Gauge,
        StatUnit::Percent,
        &[Pool, Project, Share],
        "What is taken of what there is.",
    ),
    asked(
        ("cpu.utilization", "CPU", "CPU utilization"),
        Taken::Counter,
        StatUnit::Percent,
        &[Mode, Cpu, Application],
        "The part of the time in which the processors had work.",
    ),
    asked(
        ("mem.used", "Memory", "Memory used"),
        Taken::Gauge,
        StatUnit::Bytes,
        &[Component],
        "Memory of the daemon.",
    ),
    asked(
        ("nic.kilobytes", "Network", "Network device bytes"),
        Taken::Counter,
        StatUnit::BytesPerSecond,
        &[Device, Direction],
        "Bytes received and sent by the network devices. The name is the appliance's; the unit is bytes.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breakdown::Field;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_rows_are_whole() {
        let names: BTreeSet<&str> = statistics().iter().map(|s| s.name).collect();
        assert_eq!(names.len(), statistics().len());
        for row in statistics() {
            assert!(row.name.contains('.') && !row.explanation.is_empty(), "{}", row.name);
            let distinct: BTreeSet<_> = row.breakdowns.iter().collect();
            assert_eq!(distinct.len(), row.breakdowns.len(), "{}", row.name);
            let fields = row.breakdowns.iter().map(|b| b.field());
            // An event has one word beside its operation.
            assert!(fields.clone().filter(|f| *f == Field::Kind).count() <= 1, "{}", row.name);
            let is_told = matches!(row.taken, Taken::Told(..));
            assert!(!is_told || fields.clone().all(|f| f != Field::Asked), "{}", row.name);
        }
    }

    #[test]
    fn each_family_has_a_statistic() {
        for family in Family::ALL {
            let used = statistics().iter().any(|s| matches!(s.taken, Taken::Told(f, _) if f == *family));
            assert!(used, "{family}");
        }
    }
}
