//! File systems and LUNs: how they are set, and what clients ask of them.
//!
//! ```text
//!   lun NAME       block= sync= checksum= logbias= compression= dedup=
//!                  write_size= read_size= latency_us=      of requests, on average
//!                  in_row= miss_percent=                   writes that begin where the last one ended; reads that
//!                                                          miss the cache
//!                  cut=                                    no write is larger, though blocks are
//!                  astray= astray_by=                      writes of whole blocks that begin in the midst of one:
//!                                                          percent, and how far in
//!                  sync_writes=                            per second, in the busiest ten of the last hour
//!   filesystem …   the same, as far as it is known; atime= relatime=. Requests are those to files with blocks of the
//!                  present recordsize
//! ```

use super::pool::{all, normal_vdevs, pool_of};
use crate::advice::System::{Cenote, Esxi, Linux, Solaris, Windows};
use crate::settings::shown;
use crate::{Advice, Facts, generate, raidz};

/// What small blocks may take more than large ones.
const EXCESS: f64 = 1.25;
/// Records up to this are made for pages of a database.
const PAGES_MAX: u64 = 64 << 10;

fn datasets(facts: &Facts) -> Vec<(String, &str)> {
    [all(facts, "lun "), all(facts, "filesystem ")].concat()
}

fn has_log(facts: &Facts, pool: &str) -> bool {
    let vdevs = all(facts, "vdev ");
    vdevs.iter().any(|(key, name)| pool_of(name) == pool && facts.field(key, "class") == Some("log"))
}

/// Disks, parity and ashift of the pool's first raidz.
fn raidz_of(facts: &Facts, pool: &str) -> Option<(u64, u64, u32)> {
    normal_vdevs(facts, pool).into_iter().find_map(|(vdev, _)| {
        let field = |name| facts.field_number(&vdev, name);
        (facts.field(&vdev, "kind") == Some("raidz")).then_some(())?;
        Some((field("disks")?, field("parity")?, u32::try_from(field("ashift")?).ok()?))
    })
}

/// The smallest blocks that such a raidz takes nearly no more for than for large ones.
fn whole_on(disks: u64, parity: u64, ashift: u32) -> Option<u64> {
    let sizes = (12..=20).map(|shift| 1u64 << shift);
    sizes.into_iter().find(|b| raidz::excess(*b, disks, parity, ashift).is_some_and(|e| e < 1.1))
}

/// Blocks for requests of `size` bytes that another rule does not take back: where the pool is raidz, no smaller than it
/// takes well. None, if those are no smaller than the present ones.
fn blocks_for(facts: &Facts, pool: &str, size: u64, present: u64) -> Option<u64> {
    let least = raidz_of(facts, pool).and_then(|(disks, parity, ashift)| whole_on(disks, parity, ashift));
    let best = size.checked_next_power_of_two()?.clamp(4096, 1 << 20).max(least.unwrap_or(0));
    (best < present).then_some(best)
}

/// The command that gives a dataset, by the key of its fact, blocks of that size.
fn set_block(key: &str, name: &str, block: u64) -> String {
    let (property, what) = match key.starts_with("lun ") {
        true => ("volblocksize", "the LUN moves while it is in use"),
        false => ("recordsize", "for files written from now on"),
    };
    format!("cenote zfs set {property}={} {name} ({what})", shown(block))
}

pub fn padding(facts: &Facts) -> Vec<Advice> {
    let of_dataset = |(key, name): (String, &str)| {
        let block = facts.field_number(&key, "block")?;
        let (disks, parity, ashift) = raidz_of(facts, pool_of(name))?;
        let excess = raidz::excess(block, disks, parity, ashift).filter(|excess| *excess >= EXCESS)?;
        let better = whole_on(disks, parity, ashift)?;
        let (data, parities, padding) = raidz::sectors(block, disks, parity, ashift)?;
        Some(
            Advice::new(
                "raidz-padding",
                name,
                format!("a block of {} takes {data} sectors of data, {parities} of parity and {padding} of padding", shown(block)),
                format!("on {disks} disks with parity {parity} that is {excess:.2} times what large blocks take, in space and in writes"),
            )
            .fix(Cenote, format!("{}, or mirrors for small blocks", set_block(&key, name, better)))
            .undo(set_block(&key, name, block)),
        )
    };
    datasets(facts).into_iter().filter_map(of_dataset).collect()
}

pub fn sync_disabled(facts: &Facts) -> Vec<Advice> {
    let off = datasets(facts).into_iter().filter(|(key, _)| facts.field(key, "sync") == Some("disabled"));
    off.map(|(_, name)| {
        let cost = "a flush is answered before anything is on disk: a crash takes the last seconds that a database was promised";
        let pool = pool_of(name);
        let log = match has_log(facts, pool) {
            true => String::new(),
            false => format!("; what makes that fast is a log device: cenote zpool add {pool} log mirror DEVICE DEVICE"),
        };
        Advice::new("sync-disabled", name, "sync=disabled", cost)
            .fix(Cenote, format!("cenote zfs set sync=standard {name}{log}"))
            .undo(format!("cenote zfs set sync=disabled {name}"))
            .setting(name, "sync", "standard")
    })
    .collect()
}

/// Synchronous writes, many of them, and no log device.
pub fn no_log(facts: &Facts) -> Vec<Advice> {
    let is_throughput = |key: &str| facts.field(key, "logbias") == Some("throughput");
    let of_dataset = |(key, name): (String, &str)| {
        let asked = facts.field_number(&key, "sync_writes").filter(|per_second| *per_second >= 100);
        let is_always = facts.field(&key, "sync") == Some("always");
        let seen = match asked {
            Some(per_second) => {
                format!("{per_second} synchronous writes per second, and {} has no log device", pool_of(name))
            }
            None if is_always => format!("sync=always, and {} has no log device", pool_of(name)),
            None => return None,
        };
        (!has_log(facts, pool_of(name)) && !is_throughput(&key)).then(|| {
            Advice::new(
                "no-log-device",
                name,
                seen,
                "each waits for the pool's disks, between all that they do otherwise",
            )
            .fix(Cenote, format!("cenote zpool add {} log mirror DEVICE DEVICE", pool_of(name)))
            .undo(format!("cenote zpool remove {} MIRROR", pool_of(name)))
        })
    };
    datasets(facts).into_iter().filter_map(of_dataset).collect()
}

pub fn checksum_off(facts: &Facts) -> Vec<Advice> {
    let off = datasets(facts).into_iter().filter(|(key, _)| facts.field(key, "checksum") == Some("off"));
    off.map(|(_, name)| {
        let cost =
            "damage is neither found nor repaired, and fletcher4 costs less than 0.1 s of CPU time for a GiB";
        Advice::new("checksum-off", name, "checksum=off", cost)
            .fix(Cenote, format!("cenote zfs set checksum=on {name} (for what is written from now on)"))
            .undo(format!("cenote zfs set checksum=off {name}"))
            .setting(name, "checksum", "on")
    })
    .collect()
}

pub fn partial_writes(facts: &Facts) -> Vec<Advice> {
    let of_dataset = |(key, name): (String, &str)| {
        let (block, size) = (facts.field_number(&key, "block")?, facts.field_number(&key, "write_size")?);
        // Neighbours that come in a row fill their block before it is written; what is cut has advice of its own.
        let in_row = facts.field_number(&key, "in_row").is_some_and(|percent| percent >= 50);
        let is_cut = facts.field(&key, "cut").is_some();
        let best = blocks_for(facts, pool_of(name), size, block)?;
        (size > 0 && size.checked_mul(2)? <= block && block <= 16 << 20 && !in_row && !is_cut).then(|| {
            let cost = format!("a block is read, changed and written for each: {} times the bytes, unless neighbours come before the txg closes", block / size);
            Advice::new("partial-writes", name, format!("writes have {} on average, blocks {}", shown(size), shown(block)), cost)
                .fix(Cenote, set_block(&key, name, best))
                .undo(set_block(&key, name, block))
        })
    };
    datasets(facts).into_iter().filter_map(of_dataset).collect()
}

pub fn whole_record_reads(facts: &Facts) -> Vec<Advice> {
    let of_dataset = |(key, name): (String, &str)| {
        let (block, size) = (facts.field_number(&key, "block")?, facts.field_number(&key, "read_size")?);
        let misses =
            facts.field_number(&key, "miss_percent").filter(|percent| *percent >= 20 && *percent <= 100)?;
        let best = blocks_for(facts, pool_of(name), size, block)?;
        (size > 0 && size.checked_mul(4)? <= block).then(|| {
            let cost = format!("each fetches a whole block, from disks and from a cache device alike: {} times what is asked for", block / size);
            Advice::new("whole-record-reads", name, format!("reads have {}, blocks {}, and {misses} % miss the cache", shown(size), shown(block)), cost)
                .fix(Cenote, set_block(&key, name, best))
                .undo(set_block(&key, name, block))
        })
    };
    datasets(facts).into_iter().filter_map(of_dataset).collect()
}

/// A log device that the setting keeps from being used.
pub fn log_passed_by(facts: &Facts) -> Vec<Advice> {
    let of_dataset = |(key, name): (String, &str)| {
        let pool = pool_of(name);
        let is_passed_by = facts.field(&key, "logbias") == Some("throughput") && has_log(facts, pool);
        is_passed_by.then(|| {
            let seen = format!("logbias=throughput, and {pool} has a log device");
            let cost = "synchronous writes go to the pool's disks at once: each waits for them, and the log device is not used";
            Advice::new("log-passed-by", name, seen, cost)
                .fix(Cenote, format!("cenote zfs set logbias=latency {name}"))
                .undo(format!("cenote zfs set logbias=throughput {name}"))
                .setting(name, "logbias", "latency")
        })
    };
    datasets(facts).into_iter().filter_map(of_dataset).collect()
}

pub fn compression_off(facts: &Facts) -> Vec<Advice> {
    let off = datasets(facts).into_iter().filter(|(key, _)| facts.field(key, "compression") == Some("off"));
    off.map(|(_, name)| {
        let cost = "blocks take their whole size on disk and in the cache, the unused end of a last block included; lz4 gives up early \
                    on what does not become smaller";
        Advice::new("compression-off", name, "compression=off", cost)
            .fix(Cenote, format!("cenote zfs set compression=on {name} (for what is written from now on)"))
            .undo(format!("cenote zfs set compression=off {name}"))
            .setting(name, "compression", "on")
    })
    .collect()
}

/// What the table takes for each block: the entry, and its place in the table.
const ENTRY: u64 = 320;

pub fn dedup_table(facts: &Facts) -> Vec<Advice> {
    let of_dataset = |(key, name): (String, &str)| {
        let set = facts.field(&key, "dedup").filter(|set| *set != "off")?;
        let block = facts.field_number(&key, "block").filter(|block| (512..=16 << 20).contains(block))?;
        let table = ((1u64 << 40) / block).saturating_mul(ENTRY);
        let cost = format!(
            "each block written is looked up in a table, which takes {:.1} GiB for a TiB of blocks of {}: while it is not in memory \
             every write reads it from the disks",
            table as f64 / f64::from(1 << 30),
            shown(block)
        );
        Some(
            Advice::new("dedup-table", name, format!("dedup={set}"), cost)
                .fix(
                    Cenote,
                    format!("cenote zfs set dedup=off {name} (for what is written from now on); what is the same by origin: clones"),
                )
                .undo(format!("cenote zfs set dedup={set} {name}"))
                .setting(name, "dedup", "off"),
        )
    };
    datasets(facts).into_iter().filter_map(of_dataset).collect()
}

/// A file system with the records of a database, each read of which writes.
pub fn access_times(facts: &Facts) -> Vec<Advice> {
    let of_dataset = |(key, name): (String, &str)| {
        let is_on = |property: &str| facts.field(&key, property).map(|set| set == "on");
        let block = facts.field_number(&key, "block").filter(|block| *block <= PAGES_MAX)?;
        (is_on("atime")? && !is_on("relatime")?).then(|| {
            let seen = format!("atime=on and relatime=off, with records of {}", shown(block));
            Advice::new(
                "file-access-times",
                name,
                seen,
                "each read of a file of the database writes its dnode anew",
            )
            .fix(Cenote, format!("cenote zfs set atime=off {name}"))
            .undo(format!("cenote zfs set atime=on {name}"))
            .setting(name, "atime", "off")
        })
    };
    all(facts, "filesystem ").into_iter().filter_map(of_dataset).collect()
}

/// No client's write is as large as a block, and most are as large as the largest: something cuts them.
pub fn requests_cut(facts: &Facts) -> Vec<Advice> {
    let of_lun = |(key, name): (String, &str)| {
        let block = facts.field_number(&key, "block").filter(|block| *block <= 16 << 20)?;
        let cut = facts.field_number(&key, "cut").filter(|cut| (128 << 10..block).contains(cut))?;
        // Blocks can be as small as what is cut only if that is a size of blocks.
        let smaller = match cut.is_power_of_two() {
            true => format!("or blocks of {}: {}", shown(cut), set_block(&key, name, cut)),
            false => format!("'cenote doctor host' judges the settings of {name}'s clients one by one"),
        };
        let cost = format!(
            "each block is written in {} requests: it is read, changed and written again, and goes into the log in pieces",
            block.div_ceil(cut)
        );
        Some(
            Advice::new(
                "requests-cut",
                name,
                format!("writes of clients stop at {}, blocks have {}", shown(cut), shown(block)),
                cost,
            )
            .fix(
                Linux,
                format!(
                    "/etc/udev/rules.d/99-cenote.rules:\n{}",
                    generate::udev_rule(generate::VENDOR, block)
                ),
            )
            .fix(
                Solaris,
                format!("echo 'set maxphys={block}' >> /etc/system     (>> adds; > would empty the file)"),
            )
            .fix(
                Windows,
                format!(
                    "QLogic: qlfcx64.exe -tsize /fc /set {}\nEmulex HBAnyware: set ExtTransferSize = 1",
                    block >> 10
                ),
            )
            .fix(
                Esxi,
                format!("esxcli system settings advanced set -o /Disk/DiskMaxIOSize -i {}", block >> 10),
            )
            .fix(Cenote, smaller)
            .undo("remove the rule; 'cenote doctor host' says which setting of the client it is"),
        )
    };
    all(facts, "lun ").into_iter().filter_map(of_lun).collect()
}

/// Writes of whole blocks that begin in the midst of one, all at the same distance: a partition that begins there.
pub fn alignment(facts: &Facts) -> Vec<Advice> {
    let of_lun = |(key, name): (String, &str)| {
        let field = |field| facts.field_number(&key, field);
        let (block, by) = (field("block")?, field("astray_by")?);
        let percent = field("astray").filter(|percent| (80..=100).contains(percent))?;
        (by > 0 && by < block && block >= 4096).then(|| {
            let seen = format!("{percent} % of the writes of whole blocks begin {by} bytes behind the beginning of one");
            let cost = format!("each of them changes two blocks of {} in part: both are read, changed and written", shown(block));
            Advice::new("lun-alignment", name, seen, cost)
                .fix(Linux, format!("partitions that begin at a multiple of {} sectors: parted -a optimal, or none at all", block.div_ceil(512)))
                .fix(Windows, format!("diskpart: create partition primary align={}", block >> 10))
                .undo("none is needed: data has to be copied into the new partition")
        })
    };
    all(facts, "lun ").into_iter().filter_map(of_lun).collect()
}
