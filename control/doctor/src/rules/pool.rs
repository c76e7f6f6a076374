//! Pools and their devices.
//!
//! ```text
//!   pool tank      capacity= fragmentation=          percent
//!                  flush_us= write_us= cache=        of its devices: the median of each; protected or volatile
//!   vdev tank/0    kind=mirror class=normal disks=2 parity=0 ashift=12
//!                  device=                           what zpool calls it: mirror-0, a path
//!   leaf tank/0/…  ashift= physical= latency_us=     one device of a vdev
//!                  path=
//!   log tank/1     flush_us=                         what a flush of it takes; main: flush_us of the pool
//!   cache tank/2   size= dwpd= fill= hits= lookups=  bytes, drive writes per day, bytes per second
//!                  write_max= pass_ms=               what may be written in one pass, and how soon one follows another
//!                  passes= cut_short=                how many there were, and how many ended for that limit
//! ```

use crate::advice::System::{Cenote, Solaris};
use crate::settings::shown;
use crate::{Advice, Facts};

const FULL: u64 = 90;
const FRAGMENTED: u64 = 50;
const DAY: f64 = 86_400.0;
/// Of commands that are the same for each device.
const LINES_MAX: usize = 16;
/// What `l2arc_write_max` may be, and is unless set.
const WRITE_MAX: (u64, u64, u64) = (1 << 16, 32 << 20, 1 << 40);

/// Facts of a kind: the key, and the name in it.
pub fn all<'a>(facts: &'a Facts, kind: &'static str) -> Vec<(String, &'a str)> {
    facts.under(kind).map(|(name, _)| (format!("{kind}{name}"), name)).collect()
}

pub fn pool_of(name: &str) -> &str {
    name.split('/').next().unwrap_or_default()
}

/// The vdevs of a pool that hold its data.
pub fn normal_vdevs<'a>(facts: &'a Facts, pool: &str) -> Vec<(String, &'a str)> {
    let is_normal = |key: &str| facts.field(key, "class").is_none_or(|class| class == "normal");
    let all = all(facts, "vdev ").into_iter();
    all.filter(|(key, name)| pool_of(name) == pool && is_normal(key)).collect()
}

/// What zpool calls the vdev of the fact `name`; `otherwise`, where that is not known.
fn device<'a>(facts: &'a Facts, name: &str, otherwise: &'a str) -> &'a str {
    facts.field(&format!("vdev {name}"), "device").unwrap_or(otherwise)
}

/// How the vdev or leaf of the fact `key` is told of: as zpool takes it, behind its pool.
fn titled(facts: &Facts, key: &str, name: &str) -> String {
    let called = facts.field(&format!("vdev {name}"), "device").or_else(|| facts.field(key, "path"));
    called.map_or_else(|| name.into(), |called| format!("{} {called}", pool_of(name)))
}

/// The devices of a pool that hold its data.
fn devices<'a>(facts: &'a Facts, pool: &str) -> Vec<&'a str> {
    let vdevs = normal_vdevs(facts, pool);
    let is_of_data =
        |leaf: &str| vdevs.iter().any(|(_, vdev)| leaf.rsplit_once('/').is_some_and(|(top, _)| top == *vdev));
    let leaves = all(facts, "leaf ").into_iter().filter(|(_, name)| is_of_data(name));
    leaves.filter_map(|(key, _)| facts.field(&key, "path")).collect()
}

/// Devices that make a vdev of the shape that the pool has, as zpool takes them: others are refused beside it.
fn alike(facts: &Facts, pool: &str) -> String {
    let Some((key, _)) = normal_vdevs(facts, pool).into_iter().next() else { return "DEVICE".into() };
    let disks = facts.field_number(&key, "disks").filter(|disks| (2..=64).contains(disks)).unwrap_or(2);
    let parity = facts.field_number(&key, "parity").filter(|parity| (1..=3).contains(parity)).unwrap_or(1);
    let kind = match facts.field(&key, "kind") {
        Some("mirror") => "mirror".to_string(),
        Some("raidz") => format!("raidz{parity}"),
        Some("draid") => format!("draid{parity}"),
        _ => return "DEVICE".into(),
    };
    kind + &" DEVICE".repeat(usize::try_from(disks).unwrap_or(2))
}

const UNDO_ADD: &str =
    "cenote zpool remove POOL VDEV (as long as nothing but mirrors and single disks are there)";

pub fn full(facts: &Facts) -> Vec<Advice> {
    let full = |(key, name): (String, &str)| {
        let capacity =
            facts.field_number(&key, "capacity").filter(|percent| (FULL..=100).contains(percent))?;
        let cost =
            "free space is in small pieces: allocation takes longer, large blocks become gangs of small ones";
        Some(
            Advice::new("pool-full", name, format!("{capacity} % of the pool are taken"), cost)
                .fix(Cenote, format!("cenote zpool add {name} {}, or destroy what is not needed: cenote zfs list -o space -s used", alike(facts, name)))
                .undo(UNDO_ADD.replace("POOL", name)),
        )
    };
    all(facts, "pool ").into_iter().filter_map(full).collect()
}

pub fn fragmented(facts: &Facts) -> Vec<Advice> {
    let bad = |(key, name): (String, &str)| {
        let percent = facts
            .field_number(&key, "fragmentation")
            .filter(|percent| (FRAGMENTED..=100).contains(percent))?;
        let cost = "the free space is in pieces: what is written in a row is no row on the disks";
        Some(
            Advice::new("pool-fragmented", name, format!("fragmentation is {percent} %"), cost)
                .fix(
                    Cenote,
                    format!(
                        "space, for pieces grow together as data is freed: cenote zpool add {name} {}, or destroy what is not needed: \
                         cenote zfs list -o space -s used; larger blocks for what is written at random, a log device for synchronous writes",
                        alike(facts, name)
                    ),
                )
                .undo(UNDO_ADD.replace("POOL", name)),
        )
    };
    all(facts, "pool ").into_iter().filter_map(bad).collect()
}

/// Redundancy is left to the array, or missing. With a special or dedup device the whole pool is lost as well.
pub fn no_redundancy(facts: &Facts) -> Vec<Advice> {
    let single = |(key, name): (String, &str)| {
        let is_needed =
            facts.field(&key, "class").is_none_or(|class| ["normal", "special", "dedup"].contains(&class));
        let kind = facts.field(&key, "kind").filter(|kind| is_needed && ["disk", "file"].contains(kind))?;
        let cost = "damage is found by checksums and cannot be repaired, though an array below may hold an intact copy: only the pool \
                    knows which one is right";
        Some(
            Advice::new("no-redundancy", &titled(facts, &key, name), format!("the vdev is one {kind}"), cost)
                .fix(
                    Cenote,
                    format!(
                        "cenote zpool attach {} {} NEW-DEVICE; on an array: two LUNs of it, or single disks",
                        pool_of(name),
                        device(facts, name, "DEVICE")
                    ),
                )
                .undo(format!("cenote zpool detach {} NEW-DEVICE", pool_of(name))),
        )
    };
    all(facts, "vdev ").into_iter().filter_map(single).collect()
}

/// Commands that give single disks and mirrors of a pool the width of its widest; none where another kind is among them.
fn widen(facts: &Facts, pool: &str) -> Option<String> {
    let vdevs = normal_vdevs(facts, pool);
    let is_mirror =
        |key: &str| facts.field(key, "kind").is_some_and(|kind| ["disk", "file", "mirror"].contains(&kind));
    let width = |key: &str| facts.field_number(key, "disks").filter(|disks| (1..=64).contains(disks));
    let widths = vdevs.iter().map(|(key, _)| width(key).filter(|_| is_mirror(key)));
    let widths = widths.collect::<Option<Vec<u64>>>()?;
    let widest = widths.iter().copied().max()?;
    let narrow = vdevs.iter().zip(widths);
    let attach = narrow.flat_map(|((_, name), width)| {
        let leaf = facts.field(&format!("leaf {name}/0"), "path");
        let beside =
            leaf.unwrap_or_else(|| if width == 1 { device(facts, name, "DEVICE") } else { "DEVICE" });
        let line = format!("cenote zpool attach {pool} {beside} NEW-DEVICE");
        (width..widest).map(move |_| line.clone())
    });
    let mut lines: Vec<String> = attach.take(LINES_MAX + 1).collect();
    if lines.len() > LINES_MAX {
        lines.truncate(LINES_MAX);
        lines.push("and so on".into());
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

pub fn mixed(facts: &Facts) -> Vec<Advice> {
    let shape = |key: &str| ["kind", "disks", "parity"].map(|name| facts.field(key, name).unwrap_or("-"));
    let pools = all(facts, "pool ").into_iter();
    pools
        .filter_map(|(_, pool)| {
            let vdevs = normal_vdevs(facts, pool);
            let (first, _) = vdevs.first()?;
            let other = vdevs.iter().find(|(key, _)| shape(key) != shape(first))?;
            let (a, b) = (shape(first), shape(&other.0));
            let cost = "blocks go to all vdevs alike: the pool is as slow as its slowest vdev, and as safe as its least safe one";
            let advice = Advice::new(
                "mixed-vdevs",
                pool,
                format!("{} of {} beside {} of {}", a[0], a[1], b[0], b[1]),
                cost,
            );
            Some(match widen(facts, pool) {
                Some(lines) => advice.fix(Cenote, lines).undo(format!("cenote zpool detach {pool} NEW-DEVICE")),
                None => advice
                    .fix(Cenote, "vdevs of one shape: a new pool, and a copy of the data")
                    .undo("none is needed"),
            })
        })
        .collect()
}

pub fn sector_size(facts: &Facts) -> Vec<Advice> {
    let small = |(key, name): (String, &str)| {
        let (ashift, physical) = (facts.field_number(&key, "ashift")?, facts.field_number(&key, "physical")?);
        (ashift < 16 && 1 << ashift < physical && physical <= 1 << 16).then(|| {
            let cost = "each small write makes the device read, change and write a whole sector of its own";
            Advice::new("sector-size", &titled(facts, &key, name),
                format!("ashift is {ashift}, the device has sectors of {physical}"),
                cost,
            )
            .fix(
                Cenote,
                format!(
                    "a new pool, and a copy of the data, since a vdev keeps its ashift: cenote zpool create -o ashift={} POOL DEVICE",
                    physical.ilog2()
                ),
            )
            .undo("none is needed")
        })
    };
    all(facts, "leaf ").into_iter().filter_map(small).collect()
}

/// A flush that costs far more than a write, on a device with a battery: it destages what is safe where it is.
pub fn flush_cost(facts: &Facts) -> Vec<Advice> {
    let of_pool = |(key, name): (String, &str)| {
        let (flush, write) = (facts.field_number(&key, "flush_us")?, facts.field_number(&key, "write_us")?);
        let is_protected = facts.field(&key, "cache") == Some("protected");
        let of_each = |value: &str| {
            let set = |device: &str| format!("cenote zpool set cenote:nocacheflush={value} {name} {device}");
            let devices = devices(facts, name);
            let lines: Vec<String> = devices.iter().take(LINES_MAX).map(|device| set(device)).collect();
            let more = if devices.len() > LINES_MAX { "\nand so on" } else { "" };
            if lines.is_empty() { set("DEVICE") } else { lines.join("\n") + more }
        };
        (is_protected && flush >= 1000 && flush / 4 >= write).then(|| {
            let cost = "the array empties a cache that its battery protects, at each commit: 10,000 small files in 59 s instead of 7 s";
            Advice::new("flush-cost", name, format!("a flush takes {} us, a write {write} us", flush), cost)
                .fix(
                    Cenote,
                    format!(
                        "at the array: let it ignore flushes while the battery is good; else for each of its devices:\n{}\nwhere no \
                         device of any pool has a volatile cache: cenote tunable set zfs_nocacheflush=1",
                        of_each("on")
                    ),
                )
                .fix(Solaris, "echo 'set zfs:zfs_nocacheflush = 1' >> /etc/system, under the same condition")
                .undo(format!("{}; or cenote tunable set zfs_nocacheflush=0", of_each("off").replace('\n', "; ")))
        })
    };
    all(facts, "pool ").into_iter().filter_map(of_pool).collect()
}

/// One device takes much longer than its brothers: the whole vdev waits for it.
pub fn slow_disk(facts: &Facts) -> Vec<Advice> {
    let leaves = all(facts, "leaf ");
    let parent = |name: &str| name.splitn(3, '/').take(2).collect::<Vec<_>>().join("/");
    let latency = |key: &str| facts.field_number(key, "latency_us");
    let slow = |(key, name): &(String, &str)| {
        let own = latency(key)?;
        let mut others: Vec<u64> = leaves
            .iter()
            .filter(|(k, n)| k != key && parent(n) == parent(name))
            .filter_map(|(k, _)| latency(k))
            .collect();
        others.sort_unstable();
        let median = *others.get(others.len() / 2)?;
        (median > 0 && own / 3 >= median && own >= 1000).then(|| {
            let cost = "reads of a raidz and all writes wait for the slowest device of the vdev";
            Advice::new(
                "slow-disk",
                &titled(facts, key, name),
                format!("{own} us for an operation, {median} us for its neighbours"),
                cost,
            )
            .fix(
                Cenote,
                format!(
                    "look at its SMART values and its cable, then cenote zpool replace {} {} NEW-DEVICE",
                    pool_of(name),
                    facts.field(key, "path").unwrap_or("DEVICE")
                ),
            )
            .undo("none is needed")
        })
    };
    leaves.iter().filter_map(slow).collect()
}

pub fn slow_log(facts: &Facts) -> Vec<Advice> {
    let slow = |(key, name): (String, &str)| {
        let own = facts.field_number(&key, "flush_us")?;
        let main = facts.field_number(&format!("pool {}", pool_of(name)), "flush_us")?;
        (own >= main && own >= 1000).then(|| {
            let cost = "synchronous writes wait for it, though the pool's own disks would be done as soon";
            Advice::new(
                "slow-log",
                &titled(facts, &key, name),
                format!("a flush of the log device takes {own} us, of the pool's disks {main} us"),
                cost,
            )
            .fix(
                Cenote,
                format!(
                    "a device that keeps its cache through a power cut, or none: cenote zpool remove {} {}",
                    pool_of(name),
                    device(facts, name, "DEVICE")
                ),
            )
            .undo(format!("cenote zpool add {} log DEVICE", pool_of(name)))
        })
    };
    all(facts, "log ").into_iter().filter_map(slow).collect()
}

/// The endurance budget, in bytes per second: capacity × drive writes per day, over a day. 700 GB × 10 are 81 MB/s; 83
/// come out where GB are taken as binary.
fn budget(facts: &Facts, cache: &str) -> Option<f64> {
    let dwpd = facts.field(cache, "dwpd")?.parse::<f64>().ok()?;
    let budget = facts.field_number(cache, "size")? as f64 * dwpd / DAY;
    (budget.is_finite() && budget > 0.0).then_some(budget)
}

/// `l2arc_write_max` for so many bytes per second at most: it is what one pass writes, and a pass that found much is
/// followed by the next one soon.
fn write_max(facts: &Facts, cache: &str, per_second: f64) -> u64 {
    let pass_ms =
        facts.field_number(cache, "pass_ms").filter(|ms| (1..=86_400_000).contains(ms)).unwrap_or(1000);
    ((per_second * pass_ms as f64 / 1000.0) as u64).clamp(WRITE_MAX.0, WRITE_MAX.2)
}

const CAVEAT: &str =
    "(these settings should not be made on most installations: by default a cache device never hurts)";

pub fn cache_wear(facts: &Facts) -> Vec<Advice> {
    let worn = |(key, name): (String, &str)| {
        let budget = budget(facts, &key)?;
        let fill = facts.field_number(&key, "fill")? as f64;
        (fill > 2.0 * budget).then(|| {
            let binary = budget * (1u64 << 30) as f64 / 1e9 / (1u64 << 20) as f64;
            let cost = format!("the device is made for {:.0} MB/s ({binary:.0} reckoned in binary units) over its life: it wears out before its time", budget / 1e6);
            let now = facts.field_number(&key, "write_max").unwrap_or(WRITE_MAX.1);
            Advice::new("cache-wear", &titled(facts, &key, name), format!("the cache device is filled with {:.0} MB/s", fill / 1e6), cost)
                .fix(
                    Cenote,
                    format!(
                        "cenote tunable set l2arc_write_max={}\nthat is twice the budget at most, since it is not always filled\n{CAVEAT}",
                        write_max(facts, &key, 2.0 * budget)
                    ),
                )
                .undo(format!("cenote tunable set l2arc_write_max={now}"))
        })
    };
    all(facts, "cache ").into_iter().filter_map(worn).collect()
}

/// Passes that end at the limit, though more was there that leaves memory: the cache device fills slower than it could.
/// Advised is what the device is made for, or the default where that is not known, and never more than twice that.
pub fn cache_slow_fill(facts: &Facts) -> Vec<Advice> {
    let slow = |(key, name): (String, &str)| {
        let field = |field| facts.field_number(&key, field);
        let (passes, cut) = (field("passes").filter(|passes| *passes >= 100)?, field("cut_short")?);
        let now = field("write_max")?;
        let better = match budget(facts, &key) {
            Some(budget) => write_max(facts, &key, 2.0 * budget),
            None => WRITE_MAX.1,
        };
        (cut <= passes && cut / 4 * 5 >= passes && better >= now.checked_mul(2)?).then(|| {
            let per_second = |bytes: u64| {
                bytes as f64 * 1000.0 / field("pass_ms").filter(|ms| *ms > 0).unwrap_or(1000) as f64 / 1e6
            };
            let seen = format!("{cut} of {passes} passes ended at l2arc_write_max, which is {}", shown(now));
            let cost = format!(
                "what leaves memory is not all written to the cache device, {:.1} MB/s at most: it takes long to be of use after each start \
                 and each change of the load",
                per_second(now)
            );
            Advice::new("cache-slow-fill", &titled(facts, &key, name), seen, cost)
                .fix(Cenote, format!("cenote tunable set l2arc_write_max={better}\n{CAVEAT}"))
                .undo(format!("cenote tunable set l2arc_write_max={now}"))
        })
    };
    all(facts, "cache ").into_iter().filter_map(slow).collect()
}

pub fn cache_unused(facts: &Facts) -> Vec<Advice> {
    let unused = |(key, name): (String, &str)| {
        let lookups = facts.field_number(&key, "lookups").filter(|lookups| *lookups >= 10_000)?;
        let hits = facts.field_number(&key, "hits").filter(|hits| *hits <= lookups)?;
        (hits as f64 / (lookups as f64) < 0.02).then(|| {
            let cost = "each block in it takes memory for its header, which the cache in memory could use";
            Advice::new(
                "cache-unused",
                &titled(facts, &key, name),
                format!("{hits} hits in {lookups} look-ups of the cache device"),
                cost,
            )
            .fix(
                Cenote,
                format!(
                    "cenote zpool remove {} {}; reads in a row are left out by design (l2arc_noprefetch)",
                    pool_of(name),
                    device(facts, name, "DEVICE")
                ),
            )
            .undo(format!("cenote zpool add {} cache DEVICE", pool_of(name)))
        })
    };
    all(facts, "cache ").into_iter().filter_map(unused).collect()
}
