//! What a host's own counters say: where requests wait, and how large they are. Two samples of `/proc/diskstats`,
//! apart by as many
//! seconds as the script says.

use super::transfer::each;
use crate::advice::System::{Cenote, Linux};
use crate::settings::shown;
use crate::{Advice, Disk, Facts, generate};

/// Fewer requests say nothing.
const REQUESTS_MIN: u64 = 100;

/// What one disk did between the samples.
struct Activity {
    requests: u64,
    writes: u64,
    written: u64,
    /// Milliseconds that all requests together took, waiting in the host included.
    waited_ms: u64,
    /// How many were under way, on average.
    outstanding: f64,
}

fn activity(facts: &Facts, disk: &Disk) -> Option<Activity> {
    let before = counters(facts, "diskstats.before", &disk.name)?;
    let after = counters(facts, "diskstats.after", &disk.name)?;
    let seconds = facts.number("diskstats.seconds").filter(|s| (1..=3600).contains(s))?;
    // Columns after the name: reads, merged, sectors, ms, writes, merged, sectors, ms, under way, busy ms, weighted ms.
    let more = |column: usize| after.get(column)?.checked_sub(*before.get(column)?);
    let writes = more(4)?;
    Some(Activity {
        requests: more(0)?.checked_add(writes)?,
        writes,
        written: more(6)?.checked_mul(512)?,
        waited_ms: more(3)?.checked_add(more(7)?)?,
        outstanding: more(10)? as f64 / (seconds as f64 * 1000.0),
    })
    .filter(|activity| activity.requests >= REQUESTS_MIN)
}

fn counters(facts: &Facts, key: &str, name: &str) -> Option<Vec<u64>> {
    let of_disk = facts.lines(key).iter().find(|line| line.split_whitespace().nth(2) == Some(name))?;
    of_disk.split_whitespace().skip(3).map(|word| word.parse().ok()).collect()
}

/// Long there and short here is a queue or an elevator in the host, whatever its settings say.
pub fn host_waits(facts: &Facts) -> Vec<Advice> {
    each(facts, |disk| {
        let activity = activity(facts, disk)?;
        let lun = disk.lun.as_ref()?;
        let ours_us = facts.field_number(&format!("lun {lun}"), "latency_us").filter(|us| *us > 0)?;
        let there_us = activity.waited_ms.checked_mul(1000)? / activity.requests;
        (there_us >= 1000 && there_us / 3 >= ours_us).then(|| {
            Advice::new(
                "host-waits",
                &disk.shown(),
                format!(
                    "a request takes {:.1} ms at the host and {:.1} ms here",
                    there_us as f64 / 1000.0,
                    ours_us as f64 / 1000.0
                ),
                "the difference is spent in the host: in its elevator, in a queue that is full, or on the way",
            )
            .fix(
                Linux,
                format!("echo none > {}\nthen measure again; else raise queue_depth, and look at the network", disk.key("queue/scheduler")),
            )
            .undo(format!("echo the former scheduler into {}", disk.key("queue/scheduler")))
        })
    })
}

/// As many requests are outstanding as may be: more would be done if more were let out.
pub fn queue_full(facts: &Facts) -> Vec<Advice> {
    each(facts, |disk| {
        let depth = facts.number(&disk.key("device/queue_depth")).filter(|depth| *depth > 0)?;
        let activity = activity(facts, disk)?;
        (activity.outstanding >= 0.9 * depth as f64).then(|| {
            Advice::new(
                "queue-full",
                &disk.shown(),
                format!("{:.0} requests are outstanding on average, of {depth} that may be", activity.outstanding),
                "requests wait in the host for a place in the queue: Little's law, operations = outstanding / response time",
            )
            .fix(Linux, format!("echo {} > {}", (depth * 2).clamp(64, 256), disk.key("device/queue_depth")))
            .undo(format!("echo {depth} > {}", disk.key("device/queue_depth")))
        })
    })
}

/// Writes stop just below half a block: cut in the host, or before it. A mean of 501K is such a limit of 512K.
pub fn request_size(facts: &Facts) -> Vec<Advice> {
    each(facts, |disk| {
        let is_open = |name: &str| {
            facts
                .number(&disk.key(name))
                .and_then(|kib| kib.checked_mul(1024))
                .is_some_and(|bytes| bytes >= disk.block)
        };
        let activity = activity(facts, disk).filter(|a| a.writes >= REQUESTS_MIN)?;
        let mean = activity.written / activity.writes;
        let limit = (1..=3)
            .map(|halved| disk.block >> halved)
            .find(|limit| mean * 100 <= limit * 101 && mean * 100 >= limit * 95)?;
        (limit >= 128 << 10 && is_open("queue/max_sectors_kb")).then(|| {
            Advice::new(
                "request-size",
                &disk.shown(),
                format!("writes have {} KiB on average, just below {}: blocks of the LUN have {}", mean >> 10, shown(limit), shown(disk.block)),
                "something above this disk cuts requests: each block is written in parts",
            )
            .fix(
                Linux,
                format!(
                    "the limit of the device above (multipath, LVM) or of the program: for multipath\n/etc/udev/rules.d/99-cenote.rules:\n{}",
                    generate::udev_rule(disk.vendor, disk.block)
                ),
            )
            .fix(Cenote, format!("or a LUN with blocks of {}", shown(limit)))
            .undo("remove the rule")
        })
    })
}
