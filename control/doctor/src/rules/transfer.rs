//! How a host cuts requests, and how many it lets out at once.

use crate::advice::System::{self, Esxi, Linux, Solaris, Windows};
use crate::disks::disks;
use crate::settings::shown;
use crate::{Advice, Disk, Facts, generate};

/// Fewer outstanding requests than this keep a LUN behind many disks idle.
const DEPTH_MIN: u64 = 16;
const SECTOR: u64 = 512;

/// Advice for each of our disks.
pub fn each(facts: &Facts, judge: impl Fn(&Disk) -> Option<Advice>) -> Vec<Advice> {
    disks(facts).iter().filter_map(judge).collect()
}

fn kib(facts: &Facts, disk: &Disk, name: &str) -> Option<u64> {
    facts.number(&disk.key(&format!("queue/{name}"))).filter(|kib| (1..=1 << 22).contains(kib))
}

/// Requests are cut below the block of the LUN, though the hardware would take them whole.
pub fn size(facts: &Facts) -> Vec<Advice> {
    each(facts, |disk| {
        let (set, most) = (kib(facts, disk, "max_sectors_kb")?, kib(facts, disk, "max_hw_sectors_kb")?);
        (set * 1024 < disk.block && most * 1024 >= disk.block).then(|| {
            let block = shown(disk.block);
            Advice::new(
                "transfer-size",
                &disk.shown(),
                format!("max_sectors_kb is {set}, blocks of the LUN have {block}"),
                format!(
                    "each write of {block} arrives as {} requests, none of which covers a block: a block is read, changed and written \
                     again, and synchronous ones go into the log in pieces",
                    disk.block.div_ceil(set * 1024)
                ),
            )
            .fix(Linux, format!("/etc/udev/rules.d/99-cenote.rules:\n{}", generate::udev_rule(disk.vendor, disk.block)))
            .fix(Solaris, format!("echo 'set maxphys={}' >> /etc/system     (>> adds; > would empty the file)", disk.block))
            .fix(Windows, format!("QLogic: qlfcx64.exe -tsize /fc /set {}\nEmulex HBAnyware: set ExtTransferSize = 1", disk.block >> 10))
            .fix(Esxi, format!("esxcli system settings advanced set -o /Disk/DiskMaxIOSize -i {}", disk.block >> 10))
            .undo(format!("remove the rule, and echo {set} > {}", disk.key("queue/max_sectors_kb")))
        })
    })
}

/// The driver takes nothing as large as a block.
pub fn ceiling(facts: &Facts) -> Vec<Advice> {
    each(facts, |disk| {
        let most = kib(facts, disk, "max_hw_sectors_kb")?;
        (most * 1024 < disk.block).then(|| {
            Advice::new(
                "transfer-ceiling",
                &disk.shown(),
                format!("max_hw_sectors_kb is {most}, blocks of the LUN have {}", shown(disk.block)),
                "no setting of the host makes requests as large as a block: its driver or adapter cuts them",
            )
            .fix(
                Linux,
                "iSCSI: a current open-iscsi and kernel take 32767; a Fibre Channel adapter: raise its number of segments \
                 (lpfc: options lpfc lpfc_sg_seg_cnt=256 in /etc/modprobe.d/lpfc.conf)",
            )
            .fix(System::Cenote, format!("a LUN with blocks of {} or less fits this host", shown(floor_power(most * 1024))))
            .undo("remove the line from /etc/modprobe.d, and boot again")
        })
    })
}

fn floor_power(bytes: u64) -> u64 {
    1 << bytes.max(1).ilog2()
}

/// An elevator that waits for the next request of the same process, in front of an array that has none to seek.
pub fn elevator(facts: &Facts) -> Vec<Advice> {
    each(facts, |disk| {
        let line = facts.text(&disk.key("queue/scheduler"))?;
        let chosen = line.split('[').nth(1)?.split(']').next()?;
        let none = if line.split_whitespace().any(|word| word == "noop") { "noop" } else { "none" };
        ["cfq", "anticipatory", "bfq"].contains(&chosen).then(|| {
            Advice::new(
                "elevator",
                &disk.shown(),
                format!("the scheduler is {chosen}: {line}"),
                "it holds requests back to wait for neighbours, for up to 8 ms: a good trade on one disk, a loss on a LUN, which a cache \
                 and many disks answer in any order",
            )
            .fix(
                Linux,
                format!(
                    "now: echo {none} > {}\n/etc/udev/rules.d/99-cenote.rules:\n{}\n(the kernel parameter elevator= has no effect since \
                     Linux 5.0)",
                    disk.key("queue/scheduler"),
                    generate::scheduler_rule(disk.vendor, none)
                ),
            )
            .undo(format!("echo {chosen} > {}", disk.key("queue/scheduler")))
        })
    })
}

/// The kernel is told not to put neighbours together.
pub fn merges(facts: &Facts) -> Vec<Advice> {
    each(facts, |disk| {
        let set = facts.number(&disk.key("queue/nomerges")).filter(|set| *set > 0)?;
        Some(
            Advice::new(
                "merges",
                &disk.shown(),
                format!("nomerges is {set}"),
                "neighbouring requests are sent one by one: more operations for the same bytes, and writes of parts of a block",
            )
            .fix(Linux, format!("echo 0 > {}", disk.key("queue/nomerges")))
            .undo(format!("echo {set} > {}", disk.key("queue/nomerges"))),
        )
    })
}

pub fn queue_depth(facts: &Facts) -> Vec<Advice> {
    each(facts, |disk| {
        let depth =
            facts.number(&disk.key("device/queue_depth")).filter(|depth| (1..DEPTH_MIN).contains(depth))?;
        Some(
            Advice::new(
                "queue-depth",
                &disk.shown(),
                format!("queue_depth is {depth}"),
                format!(
                    "Little's law: {depth} outstanding at 1 ms are {} operations per second, whatever the disks could do",
                    depth * 1000
                ),
            )
            .fix(
                Linux,
                format!(
                    "now: echo 64 > {}\niSCSI: node.session.queue_depth = 64 and node.session.cmds_max = 256 in /etc/iscsi/iscsid.conf\n\
                     QLogic: options qla2xxx ql2xmaxqdepth=64; Emulex: options lpfc lpfc_lun_queue_depth=64",
                    disk.key("device/queue_depth")
                ),
            )
            .fix(Windows, "QLogic: the adapter's execution throttle; Emulex: QueueDepth = 64")
            .fix(Esxi, "esxcli storage core device set -d naa.… -O 64")
            .undo(format!("echo {depth} > {}", disk.key("device/queue_depth"))),
        )
    })
}

/// Requests wait for a slot in the block layer before the device's own queue is full.
pub fn request_queue(facts: &Facts) -> Vec<Advice> {
    each(facts, |disk| {
        let requests = facts.number(&disk.key("queue/nr_requests"))?;
        let depth = facts.number(&disk.key("device/queue_depth"))?;
        (requests < depth).then(|| {
            Advice::new(
                "request-queue",
                &disk.shown(),
                format!("nr_requests is {requests}, queue_depth {depth}"),
                "the device is never given as many requests as it would take",
            )
            .fix(Linux, format!("echo {} > {}", depth.max(128), disk.key("queue/nr_requests")))
            .undo(format!("echo {requests} > {}", disk.key("queue/nr_requests")))
        })
    })
}

pub fn read_ahead(facts: &Facts) -> Vec<Advice> {
    each(facts, |disk| {
        let ahead = facts.number(&disk.key("queue/read_ahead_kb")).filter(|kib| *kib <= 1 << 22)?;
        (ahead * 1024 < disk.block).then(|| {
            Advice::new(
                "read-ahead",
                &disk.shown(),
                format!("read_ahead_kb is {ahead}, blocks of the LUN have {}", shown(disk.block)),
                "files that are read from their beginning ask for less than a block at a time, though the whole block is fetched",
            )
            .fix(Linux, format!("blockdev --setra {} /dev/{}", 2 * disk.block / SECTOR, disk.name))
            .undo(format!("blockdev --setra {} /dev/{}", ahead * 2, disk.name))
        })
    })
}

/// A partition begins inside a block. The document's own words for it are "32" and "multiples of 256": sectors, 16
/// KiB and 128 KiB.
pub fn alignment(facts: &Facts) -> Vec<Advice> {
    let of_disk = |disk: &Disk| -> Vec<Advice> {
        let prefix = format!("/sys/block/{}/", disk.name);
        let starts = facts.under(&prefix).filter_map(|(rest, lines)| {
            let part = rest.strip_suffix("/start")?;
            Some((part.to_string(), lines.first()?.trim().parse::<u64>().ok()?))
        });
        let off = starts.filter_map(|(part, start)| {
            let into = start.checked_mul(SECTOR)? % disk.block;
            (into != 0).then_some((part, start, into))
        });
        off.map(|(part, start, into)| {
            let every = disk.block / SECTOR;
            Advice::new(
                "alignment",
                &format!("/dev/{part}"),
                format!("it begins at sector {start}, {into} bytes into a block of {}", shown(disk.block)),
                "each request as large as a block touches two: twice the reads, and writes that change parts of both",
            )
            .fix(
                Linux,
                format!(
                    "a new partition at a multiple of {every} sectors: parted -a none /dev/{} mkpart data {}s 100%\n(data has to be \
                     copied; or no partition at all: file systems and volume managers take the whole disk)",
                    disk.name,
                    every.max(2048).next_multiple_of(every)
                ),
            )
            .undo("none is needed: the former partition stays until it is removed")
        })
        .collect()
    };
    disks(facts).iter().filter(|disk| !disk.is_multipath).flat_map(of_disk).collect()
}

/// Solaris cuts by one number of the whole system.
pub fn maxphys(facts: &Facts) -> Vec<Advice> {
    let is_set = |line: &&String| line.trim_start().starts_with("set maxphys");
    let set = facts.lines("/etc/system").iter().rfind(is_set);
    let value = set.and_then(|line| line.split('=').nth(1)).and_then(|v| v.trim().parse::<u64>().ok());
    let largest =
        facts.under("lun ").filter_map(|(name, _)| facts.field_number(&format!("lun {name}"), "block")).max();
    let (Some(value), Some(largest)) = (value, largest) else { return Vec::new() };
    if value >= largest {
        return Vec::new();
    }
    let advice = Advice::new(
        "solaris-maxphys",
        "/etc/system",
        format!("maxphys is {value}, a LUN has blocks of {}", shown(largest)),
        "no request is larger than maxphys, so that blocks are written in parts",
    );
    let fix = format!(
        "echo 'set maxphys={largest}' >> /etc/system     (>> adds; > would empty the file), then boot"
    );
    vec![advice.fix(Solaris, fix).undo(format!("set maxphys={value}"))]
}
