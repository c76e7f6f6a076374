//! The hardware of the documents, as tables. They were fixed, with their sources, before the first experiment ran.
//!
//! Lengths of time are in milliseconds for disks and arrays, and in microseconds for flash; rates in MB/s (10⁶); caches in
//! MiB. `docs/lab.md` prints every line, so that a doubt about one can be followed to the ratio that hangs on it.

use crate::parameters::{Basis::*, Parameter, fixed, within};

/// A 7200 rpm disk of 4 TB, as of 2013: the shape that was measured of one, with the rates of another's sheet.
pub const DISK_7200: &[Parameter] = &[
    fixed("disk-cylinders", 310_194.0, "", Published, "DiskSim, LBA_64bit_4T of a 10-surface 4 TB disk"),
    fixed("disk-heads", 10.0, "", Sheet, "Seagate Constellation ES.3 SAS manual 100671510, 4.1"),
    fixed("disk-revolutions", 7200.0, "1/min", Sheet, "Constellation ES.3, 4.1: 8.33 ms"),
    fixed("disk-zones", 60.0, "", Published, "DiskSim, layout of the same disk"),
    fixed("disk-sectors-outer", 3072.0, "", Published, "DiskSim, layout of the same disk"),
    fixed("disk-sectors-inner", 1536.0, "", Published, "DiskSim, layout of the same disk"),
    fixed("disk-seek-shortest", 0.0, "ms", Published, "0: the measured curve below is used"),
    fixed("disk-seek-least", 1.4, "ms", Published, "DiskSim, seeks of the same disk"),
    fixed("disk-seek-root-base", 1.365, "ms", Published, "fit of the measured seeks, rms 0.07 ms"),
    fixed("disk-seek-root", 0.01985, "ms", Published, "fit of the measured seeks"),
    fixed("disk-seek-root-until", 65_000.0, "", Published, "fit of the measured seeks"),
    fixed("disk-seek-line-base", 4.486, "ms", Published, "fit of the measured seeks"),
    fixed("disk-seek-line", 3.146e-5, "ms", Published, "fit of the measured seeks"),
    fixed(
        "disk-settle-write",
        0.25,
        "ms",
        Sheet,
        "Constellation.2 SAS manual, 5.2.1: track to track .23 read, .44 write",
    ),
    fixed(
        "disk-skew",
        0.65,
        "ms",
        Arithmetic,
        "189 raw against 175 MB/s sustained: 7.4 % of a turn of 8.33 ms",
    ),
    within(
        "disk-overhead",
        (0.1, 0.2, 0.5),
        "ms",
        Sheet,
        "Constellation.2 SAS manual, 5.2.1: controller +.2 ms",
    ),
    fixed("disk-hit", 0.16, "ms", Published, "DiskSim, specification of the same disk: read hit"),
    fixed(
        "disk-write-hit",
        0.3,
        "ms",
        Published,
        "DiskSim, specification of the same disk: write hit .28 to .46",
    ),
    fixed("disk-port", 600.0, "MB/s", Sheet, "Constellation ES.3, 4.1.2"),
    fixed("disk-segment", 1.5, "MiB", Published, "DiskSim, specification: 32 segments of 1.5 MiB"),
    within("disk-cache", (64.0, 128.0, 128.0), "MiB", Memory, "ES.3 128, Ultrastar 7K4000 64"),
    within(
        "disk-depth",
        (8.0, 32.0, 128.0),
        "",
        Assumed,
        "commands that the drive sorts; DiskSim says 8, SAS allows more",
    ),
];

/// A disk of 15000 revolutions, as of 2008.
pub const DISK_15000: &[Parameter] = &[
    within(
        "disk15-cylinders",
        (40_000.0, 60_000.0, 90_000.0),
        "",
        Assumed,
        "not in the sheets; only distances count",
    ),
    fixed("disk15-heads", 8.0, "", Assumed, "450 GB on four platters"),
    fixed(
        "disk15-revolutions",
        15_000.0,
        "1/min",
        Sheet,
        "Hitachi Ultrastar 15K450, 4.5.1; Cheetah 15K.7, 4.2.3: 4.0 ms",
    ),
    fixed("disk15-zones", 20.0, "", Assumed, "only rates depend on it"),
    fixed(
        "disk15-sectors-outer",
        1600.0,
        "",
        Arithmetic,
        "204 MB/s of the Cheetah 15K.7, 4.2.3, at 250 turns a second",
    ),
    fixed("disk15-sectors-inner", 960.0, "", Arithmetic, "122 MB/s of the same"),
    within("disk15-seek-shortest", (0.2, 0.4, 0.6), "ms", Memory, "track to track of such disks"),
    fixed("disk15-seek-mean", 3.3, "ms", Sheet, "Ultrastar 15K450, 4.5.1: read 3.3, write 3.8"),
    within("disk15-seek-longest", (6.5, 7.0, 8.0), "ms", Memory, "full stroke of such disks"),
    fixed("disk15-seek-least", 0.0, "ms", Sheet, "not used: three points of the sheet"),
    fixed("disk15-seek-root-base", 0.0, "ms", Sheet, "not used"),
    fixed("disk15-seek-root", 0.0, "ms", Sheet, "not used"),
    fixed("disk15-seek-root-until", 0.0, "", Sheet, "not used"),
    fixed("disk15-seek-line-base", 0.0, "ms", Sheet, "not used"),
    fixed("disk15-seek-line", 0.0, "ms", Sheet, "not used"),
    fixed("disk15-settle-write", 0.5, "ms", Sheet, "Ultrastar 15K450, 4.5.1: write 3.8, read 3.3"),
    fixed("disk15-skew", 0.3, "ms", Assumed, "only runs over many tracks depend on it"),
    within("disk15-overhead", (0.1, 0.2, 0.5), "ms", Assumed, "as of the 7200 rpm disk"),
    fixed("disk15-hit", 0.16, "ms", Assumed, "as of the 7200 rpm disk"),
    fixed("disk15-port", 300.0, "MB/s", Sheet, "SAS of 3 Gb/s, one lane"),
    fixed("disk15-segment", 0.5, "MiB", Assumed, "16 MB of cache in 32 segments"),
    fixed("disk15-depth", 16.0, "", Assumed, "an array's queue at one disk"),
];

/// A Sun StorageTek 2530, as of 2008.
pub const ARRAY_2530: &[Parameter] = &[
    within(
        "array-disks",
        (6.0, 12.0, 12.0),
        "",
        Sheet,
        "Sun 2500 Series hardware guide, chapter 1: 12 in a tray; how many were used is not said",
    ),
    within("array-raid", (1.0, 1.0, 5.0), "", Assumed, "the document does not say: 1 or 5"),
    fixed("array-segment", 128.0, "KiB", Memory, "the array's default"),
    fixed("array-cache", 512.0, "MiB", Memory, "per controller, mirrored"),
    within(
        "array-write-hit",
        (0.2, 0.35, 0.5),
        "ms",
        Assumed,
        "firmware and one hop to the other controller; no measurement was found",
    ),
    within(
        "array-command",
        (0.05, 0.1, 0.2),
        "ms",
        Assumed,
        "firmware alone, as for a flush that is ignored; added after the first run, which charged a hop between controllers for it",
    ),
    fixed("array-port", 1200.0, "MB/s", Sheet, "SAS of 3 Gb/s, four lanes"),
    fixed(
        "array-obeys-flush",
        1.0,
        "",
        Document,
        "the document: the array writes its whole cache when it is asked to flush",
    ),
];

/// The host of the same measurement.
pub const HOST_2008: &[Parameter] = &[
    within(
        "host-per-file",
        (0.1, 0.15, 0.2),
        "ms",
        Assumed,
        "create, open, write, close, unlink on a processor of 2008; this engine takes .075",
    ),
    within(
        "host-processors",
        (2.0, 4.0, 16.0),
        "",
        Assumed,
        "of a server of 2008; added after the first run, in which streams beyond count had a processor each",
    ),
];

/// A SATA solid-state disk of about 2012.
pub const SSD_SATA: &[Parameter] = &[
    fixed("ssd-channels", 32.0, "", Memory, "dies of a 256 GB drive"),
    fixed("ssd-page", 16.0, "KiB", Memory, "two planes of 8 KiB"),
    within("ssd-read", (50.0, 75.0, 100.0), "us", Memory, "MLC of 25 nm"),
    within("ssd-program", (900.0, 1300.0, 1600.0), "us", Memory, "MLC of 25 nm"),
    fixed("ssd-erase", 3.8, "ms", Memory, "MLC of 25 nm"),
    fixed("ssd-pages-per-block", 256.0, "", Memory, "MLC of 25 nm"),
    within("ssd-spare", (0.07, 0.28, 0.28), "", Memory, "7 % of consumers', 28 % of enterprise drives"),
    fixed("ssd-random-writes", 1.0, "", Assumed, "1: writes all over, 0: a ring, which frees whole blocks"),
    fixed("ssd-buffer", 16.0, "MiB", Assumed, "what the controller's memory hides"),
    within("ssd-overhead", (20.0, 40.0, 60.0), "us", Assumed, "SATA command, controller"),
    fixed("ssd-port", 550.0, "MB/s", Sheet, "SATA of 6 Gb/s less its coding"),
];

/// The appliance and the clients of the megabyte blocks, 2014.
pub const APPLIANCE_2014: &[Parameter] = &[
    fixed("disks", 96.0, "", Document, "4 trays of 24 disks of 4 TB and 7200 rpm"),
    fixed("luns", 16.0, "", Document, "4 servers with 4 LUNs each"),
    fixed("threads", 128.0, "", Document, "of each LUN"),
    fixed("read-percent", 70.0, "%", Document, "readpct=70"),
    fixed("lun-size", 1024.0, "MiB", Document, "size=1g"),
    within(
        "width",
        (2.0, 2.0, 12.0),
        "",
        Assumed,
        "2: mirrors; else raidz2 of so many; the document does not say",
    ),
    fixed(
        "client-ports",
        2.0,
        "",
        Assumed,
        "LPe16002, QLE2672: one port each would carry less than the document's 10.9 GB/s",
    ),
    fixed("port-rate", 1576.0, "MB/s", Published, "16 Gb FC, one port of an LPe16002, each direction"),
    fixed("split-before", 512.0, "KiB", Published, "Linux 3.x: 1024 sectors or 128 pages end a request"),
    fixed("split-after", 1024.0, "KiB", Document, "max_sectors_kb=1024"),
    fixed(
        "write-cache-off",
        1.0,
        "",
        Assumed,
        "the appliance's default: every write waits for the intent log",
    ),
    fixed(
        "whole-blocks-only",
        1.0,
        "",
        Published,
        "illumos zvol_log_write of 2013: only whole aligned blocks by pointer",
    ),
    within(
        "aggregation-2013",
        (131_072.0, 131_072.0, 1_048_576.0),
        "B",
        Published,
        "illumos of 2013: zfs_vdev_aggregation_limit = SPA_MAXBLOCKSIZE; the appliance's may have grown with its blocks; set after the first runs",
    ),
    within(
        "txg",
        (2.0, 5.0, 10.0),
        "s",
        Published,
        "illumos of 2013: zfs_txg_timeout; used since the LUNs of the model are smaller than those of the document",
    ),
    within(
        "shrunk",
        (2.5, 2.5, 5.0),
        "",
        Assumed,
        "how many times smaller LUNs and txgs are, in time and size, so that as large a part of a LUN is written again in a txg",
    ),
    within(
        "dirty-max",
        (1024.0, 4096.0, 16_384.0),
        "MiB",
        Assumed,
        "written data that may wait, of 1 TB of memory",
    ),
];

/// The server of the large blocks on a mirror and on raidz, 2015.
pub const LARGE_BLOCKS_2015: &[Parameter] = &[
    fixed("threads", 64.0, "", Document, "fio, 64 threads"),
    fixed("request", 1024.0, "KiB", Document, "1M random reads"),
    fixed("data", 256.0, "GiB", Document, "64 files of 4G"),
    within(
        "seconds",
        (30.0, 60.0, 300.0),
        "s",
        Assumed,
        "how long fio ran is not said; longer runs have more indirect blocks cached",
    ),
    within(
        "aggregation-2015",
        (131_072.0, 131_072.0, 1_048_576.0),
        "B",
        Published,
        "zfs_vdev_aggregation_limit = SPA_OLD_MAXBLOCKSIZE",
    ),
    fixed("indirect-2015", 14.0, "", Memory, "DN_MAX_INDBLKSHIFT of 0.6.4: 16 KiB"),
    fixed("aggregation-now", 1_048_576.0, "B", Published, "OpenZFS 2.4"),
    fixed("indirect-now", 17.0, "", Published, "OpenZFS 2.4: 128 KiB"),
    within("memory", (4.0, 16.0, 64.0), "GiB", Assumed, "of the cache; a cold run sees little of it"),
];

/// The database host with an elevator that anticipates, 2011.
pub const ELEVATOR_2011: &[Parameter] = &[
    fixed(
        "ssd-service",
        0.3,
        "ms",
        Document,
        "the synthetic load on the same disks, at 10,000 operations a second",
    ),
    within(
        "ssd-devices",
        (4.0, 8.0, 16.0),
        "",
        Assumed,
        "several; added after the first run, in which one device was held to the ten reads that a pool gives it at once",
    ),
    within(
        "processes",
        (4.0, 7.0, 16.0),
        "",
        Assumed,
        "processes that read; only processes × depth = 20 follows from the document",
    ),
    within("depth", (1.0, 3.0, 4.0), "", Assumed, "requests each keeps under way"),
    fixed("slice", 100.0, "ms", Published, "cfq-iosched.c of 2.6.18: slice of synchronous requests"),
    within("idle", (2.0, 2.0, 8.0), "ms", Published, "cfq-iosched.c: 8, and 2 for a seeky process"),
    fixed("shows-queueing", 4.0, "", Published, "cfq-iosched.c: hw_tag, more than 4 at the driver"),
    fixed("request", 8.0, "KiB", Assumed, "a database block"),
    fixed("disks", 48.0, "", Document, "the disks that the solid-state disks replaced"),
];

/// A pool with cache devices that warms up.
pub const WARM_UP: &[Parameter] = &[
    fixed("feed-then", 8.0, "MiB/s", Document, "l2arc_write_max defaulted to 8 MB/s"),
    fixed("feed-advised", 166.0, "MB/s", Document, "at least twice the endurance rate of 83 MB/s"),
    fixed("record", 8.0, "KiB", Published, "B. Gregg, 2009"),
    fixed("readers", 20.0, "", Published, "B. Gregg, 2009: 20 threads; the table has 2000 beside it"),
    fixed("disks", 140.0, "", Published, "B. Gregg, 2009: 140 mirrored disks"),
    fixed("headroom-then", 2.0, "", Published, "arc.c of then: L2ARC_HEADROOM 2"),
];

/// Metadata servers, 2015.
pub const METADATA_2015: &[Parameter] = &[
    fixed("disks", 16.0, "", Document, "16 disks in mirrors"),
    fixed("files", 4096.0, "", Document, "of each process"),
    fixed("processes", 64.0, "", Document, "xattrtest"),
    fixed("value", 512.0, "B", Document, "xattrtest, bytes of a value"),
    fixed(
        "legacy-create",
        59.4,
        "us",
        Published,
        "docs/performance.md: create and set, xattr=sa, dnodes of 512",
    ),
    fixed("legacy-destroy", 45.5, "us", Published, "docs/performance.md: unlink"),
    fixed("large-create", 42.4, "us", Published, "docs/performance.md: create and set, dnodes of 1K"),
    fixed("large-destroy", 30.7, "us", Published, "docs/performance.md: unlink"),
    within(
        "above",
        (0.0, 0.0, 100.0),
        "us",
        Assumed,
        "what Lustre takes for each file on top, both ways; not known",
    ),
];
