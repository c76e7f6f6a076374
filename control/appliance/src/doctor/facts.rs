//! What the rooms know, in the words of the rules: values of the API in, facts out.
//!
//! ```text
//!   Pool ─────────▶ pool, vdev, leaf, log, cache     Shares ──▶ lun: how clients call it
//!   CacheState ───▶ cache: hits                      Counted ─▶ lun: what clients asked of it lately
//!   Dataset ──────▶ lun, filesystem: how it is set        fuse::Counted ──▶ filesystem: what clients asked of its files
//! ```
//!
//! What was counted too seldom to say something is left out: no fact, no advice.

use ::doctor::Facts;
use api::shares::Item;
use api::{CacheState, Class, Dataset, DatasetKind, Pool, Value, Vdev};
use disk::Counted;
use tunables::{Tunable, Tunables};

/// What of a dataset is judged.
pub(super) const PROPERTIES: [&str; 9] = [
    "recordsize",
    "volblocksize",
    "sync",
    "checksum",
    "logbias",
    "compression",
    "dedup",
    "atime",
    "relatime",
];
/// Fewer operations of a device, and fewer requests to a LUN, say nothing of it.
const OPERATIONS_MIN: u64 = 1000;
const FLUSHES_MIN: u64 = 100;
/// No host cuts requests below this by itself.
const CUT_MIN: u64 = 128 << 10;
/// What was written to a cache device is spread over this at least: its first filling wears nothing out.
const FILL_SECONDS_MIN: u64 = 3600;
/// Properties of a vdev by which people say what no device tells of itself.
const CACHE: &str = "cenote:cache";
const NO_FLUSH: &str = "cenote:nocacheflush";
/// The same of a pool, about its cache devices: these are in no tree, and keep no properties.
const DWPD: &str = "cenote:dwpd";

/// `NAME=VALUE` for each that is there.
fn line<'a>(fields: impl IntoIterator<Item = (&'a str, Option<String>)>) -> String {
    let there = fields.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?)));
    there.collect::<Vec<_>>().join(" ")
}

fn text(number: Option<u64>) -> Option<String> {
    number.map(|number| number.to_string())
}

/// How cache devices are filled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Feed {
    pub write_max: u64,
    /// How soon a pass that found much is followed by the next one.
    pub pass_ms: u64,
}

impl Feed {
    pub(super) fn of(tunables: &Tunables) -> Feed {
        let pass_ms = match tunables.is_on(Tunable::L2FeedAgain) {
            true => tunables.get(Tunable::L2FeedMinMs),
            false => tunables.get(Tunable::L2FeedSecs).saturating_mul(1000),
        };
        Feed { write_max: tunables.get(Tunable::L2WriteMax), pass_ms }
    }
}

pub(super) fn of_pool(facts: &mut Facts, pool: &Pool, cache: &CacheState, feed: Feed) {
    let number = |name: &str| pool.property(name)?.value.as_ref().and_then(Value::number);
    let tops = pool.vdevs.iter().flat_map(|root| &root.children);
    let tops: Vec<&Vdev> = tops.filter(|top| top.kind != "hole" && top.kind != "indirect").collect();
    let of_data: Vec<Leaf<'_>> =
        tops.iter().filter(|top| class(top) == "normal").flat_map(|top| leaves(top)).collect();
    facts.add(
        &format!("pool {}", pool.name),
        &line([
            ("capacity", text(number("capacity"))),
            ("fragmentation", text(number("fragmentation"))),
            ("flush_us", text(flush_us(&of_data))),
            (
                "write_us",
                text(median_us(
                    of_data.iter().map(|leaf| &leaf.vdev.stats.write.disk_wait[..]),
                    OPERATIONS_MIN,
                )),
            ),
            (
                "cache",
                (!of_data.is_empty() && of_data.iter().all(|leaf| leaf.says(CACHE) == Some("protected")))
                    .then(|| "protected".into()),
            ),
        ]),
    );
    for (number, top) in tops.into_iter().enumerate() {
        // Cache devices and spares have numbers of their own.
        let name = match class(top) {
            class @ ("cache" | "spare") => format!("{}/{class}-{number}", pool.name),
            _ => format!("{}/{}", pool.name, top.id),
        };
        of_vdev(facts, &name, pool, top, cache, feed);
    }
}

fn of_vdev(facts: &mut Facts, name: &str, pool: &Pool, top: &Vdev, cache: &CacheState, feed: Feed) {
    let class = class(top);
    let shape = shape(top);
    let disks = shape.children.len().max(1).to_string();
    facts.add(
        &format!("vdev {name}"),
        &line([
            ("kind", Some(shape.kind.clone())),
            ("class", Some(class.into())),
            ("disks", Some(disks)),
            ("parity", Some(top.parity.to_string())),
            ("ashift", text(top.ashift.map(u64::from))),
            ("device", called(top)),
        ]),
    );
    let all = leaves(top);
    for (number, leaf) in all.iter().enumerate() {
        let both = [&leaf.vdev.stats.read.disk_wait[..], &leaf.vdev.stats.write.disk_wait[..]];
        facts.add(
            &format!("leaf {name}/{number}"),
            &line([
                ("path", called(leaf.vdev)),
                ("ashift", text(top.ashift.map(u64::from))),
                ("physical", text(leaf.vdev.physical_block.map(u64::from))),
                ("latency_us", text(median_us(both, OPERATIONS_MIN))),
            ]),
        );
    }
    match class {
        "log" => facts.add(&format!("log {name}"), &line([("flush_us", text(flush_us(&all)))])),
        "cache" => {
            let wear = top.wear.as_deref();
            let fill = wear.map(|wear| wear.written_bytes / wear.seconds.max(FILL_SECONDS_MIN));
            // They are of all cache devices of the pool: which one a block would have been on is not known of a miss.
            let devices = cache.devices.iter().find(|devices| devices.pool == pool.name);
            let dwpd = pool.property(DWPD).and_then(said).map(String::from);
            facts.add(
                &format!("cache {name}"),
                &line([
                    ("size", text(wear.map(|wear| wear.size))),
                    ("dwpd", dwpd),
                    ("fill", text(fill)),
                    ("hits", text(devices.map(|d| d.hits))),
                    ("lookups", text(devices.map(|d| d.hits + d.misses))),
                    ("write_max", text(Some(feed.write_max))),
                    ("pass_ms", text(Some(feed.pass_ms))),
                    ("passes", text(devices.map(|d| d.passes))),
                    ("cut_short", text(devices.map(|d| d.cut_short))),
                ]),
            );
        }
        _ => {}
    }
}

/// While a device is replaced, or a spare stands in for it, the vdev has the shape that it has without.
fn shape(vdev: &Vdev) -> &Vdev {
    match (vdev.kind.as_str(), vdev.children.first()) {
        ("replacing" | "spare", Some(first)) => shape(first),
        _ => vdev,
    }
}

/// What `zpool` takes for the vdev. A path that a line of facts cannot hold is left out.
fn called(vdev: &Vdev) -> Option<String> {
    let is_word =
        |path: &&String| !path.is_empty() && !path.contains(|c: char| c.is_whitespace() || c.is_control());
    match (&vdev.path, vdev.is_leaf()) {
        (path, true) => path.as_ref().filter(is_word).cloned(),
        _ if vdev.parity > 0 => Some(format!("{}{}-{}", vdev.kind, vdev.parity, vdev.id)),
        _ => Some(format!("{}-{}", vdev.kind, vdev.id)),
    }
}

/// A device, and the top-level vdev that it is of.
struct Leaf<'a> {
    vdev: &'a Vdev,
    top: &'a Vdev,
}

impl Leaf<'_> {
    /// What people said of it, or of its group.
    fn says(&self, property: &str) -> Option<&str> {
        let of = |vdev: &'_ Vdev| vdev.properties.iter().position(|p| p.name == property);
        let found = of(self.vdev).map(|at| &self.vdev.properties[at]);
        said(found.or_else(|| of(self.top).map(|at| &self.top.properties[at]))?)
    }
}

fn said(property: &api::Property) -> Option<&str> {
    match property.value.as_ref()? {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

fn leaves(top: &Vdev) -> Vec<Leaf<'_>> {
    top.walk().into_iter().filter(|vdev| vdev.is_leaf()).map(|vdev| Leaf { vdev, top }).collect()
}

/// Of devices that are flushed; the figures of one that no longer is stay until it is opened again.
fn flush_us(all: &[Leaf<'_>]) -> Option<u64> {
    let flushed = all.iter().filter(|leaf| leaf.says(NO_FLUSH) != Some("on"));
    median_us(flushed.map(|leaf| &leaf.vdev.stats.flush.wait[..]), FLUSHES_MIN)
}

fn class(vdev: &Vdev) -> &'static str {
    match vdev.class {
        None | Some(Class::Normal) => "normal",
        Some(Class::Log) => "log",
        Some(Class::Special) => "special",
        Some(Class::Dedup) => "dedup",
        Some(Class::Cache) => "cache",
        Some(Class::Spare) => "spare",
    }
}

/// The median of what operations took, if there were enough of them.
fn median_us<'a>(histograms: impl IntoIterator<Item = &'a [u64]>, least: u64) -> Option<u64> {
    let mut sum: Vec<u64> = Vec::new();
    for histogram in histograms {
        sum.resize(sum.len().max(histogram.len()), 0);
        sum.iter_mut().zip(histogram).for_each(|(sum, count)| *sum += count);
    }
    let all: u64 = sum.iter().sum();
    let mut below = 0;
    let bucket = sum.iter().position(|count| {
        below += count;
        below * 2 >= all
    })?;
    // Bucket n begins at 2^n nanoseconds.
    (all >= least).then(|| (1u64 << bucket.min(63)) / 1000)
}

/// The world-wide names of LUNs, by which clients know them.
pub(super) fn of_luns(facts: &mut Facts, items: &[Item]) {
    // What is left out may have the name of another.
    for item in items.iter().filter(|item| item.attribute("problem").is_none()) {
        let value = |name: &str| item.attribute(name).and_then(|a| a.value.clone());
        if let (Some(Value::Text(guid)), Some(Value::Number(block))) =
            (value("lunguid"), value("volblocksize"))
        {
            facts.add(
                &format!("lun {}", item.place.dataset()),
                &format!("wwid={} block={block}", guid.to_ascii_lowercase()),
            );
        }
    }
}

/// LUNs that clients see have their facts already; the same dataset is added to them.
pub(super) fn of_dataset(facts: &mut Facts, dataset: &Dataset) {
    let (kind, size) = match dataset.kind {
        DatasetKind::Volume => ("lun", "volblocksize"),
        _ => ("filesystem", "recordsize"),
    };
    let said = |name: &str| match dataset.property(name)?.value.as_ref()? {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    };
    let block = dataset.property(size).and_then(|p| p.value.as_ref()?.number());
    let words = PROPERTIES.iter().filter(|name| !name.ends_with("size")).map(|name| (*name, said(name)));
    facts.add(&format!("{kind} {}", dataset.name), &line(words.chain([("block", text(block))])));
}

/// The share of requests of a kind, if there were enough.
fn percent(part: u64, whole: u64) -> Option<String> {
    text((whole >= OPERATIONS_MIN).then(|| part * 100 / whole))
}

/// Bytes of a request on average, if there were enough.
fn mean(bytes: u64, requests: u64) -> Option<String> {
    text((requests >= OPERATIONS_MIN).then(|| bytes / requests))
}

/// What clients asked lately of files with blocks of the present `recordsize`.
pub(super) fn of_files(facts: &mut Facts, name: &str, counted: &fuse::Counted) {
    facts.add(
        &format!("filesystem {name}"),
        &line([
            ("write_size", mean(counted.written_bytes, counted.writes)),
            ("read_size", mean(counted.read_bytes, counted.reads)),
            ("in_row", percent(counted.in_row, counted.writes)),
            ("miss_percent", percent(counted.misses, counted.reads)),
        ]),
    );
}

/// What clients asked of a volume lately.
pub(super) fn of_requests(facts: &mut Facts, name: &str, counted: &Counted) {
    let is_enough = counted.writes >= OPERATIONS_MIN;
    // Smaller ones are a program's own pages rather than what a limit left of larger ones.
    let is_cut = is_enough && counted.at_largest * 2 > counted.writes && counted.largest >= CUT_MIN;
    let timed = counted.reads + counted.writes;
    facts.add(
        &format!("lun {name}"),
        &line([
            ("write_size", mean(counted.written_bytes, counted.writes)),
            ("read_size", mean(counted.read_bytes, counted.reads)),
            ("in_row", percent(counted.in_row, counted.writes)),
            ("miss_percent", percent(counted.misses, counted.reads)),
            ("latency_us", text((timed >= OPERATIONS_MIN).then(|| (counted.taken_ns / timed / 1000).max(1)))),
            ("cut", text(is_cut.then_some(counted.largest).filter(|largest| *largest < counted.block))),
            ("astray", percent(counted.astray, counted.whole)),
            ("astray_by", text(is_enough.then_some(counted.astray_by))),
            ("sync_writes", text(counted.sync_per_second)),
        ]),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::doctor::examine;

    /// One bucket of time for all but one device: the slow one is told of, and an idle one is not.
    #[test]
    fn a_device_that_takes_longer_than_its_neighbours_is_found() {
        let disk = |bucket: usize, ops: u64| {
            let histogram: Vec<u64> = (0..=bucket).map(|b| if b == bucket { ops } else { 0 }).collect();
            median_us([&histogram[..], &[0; 12][..]], OPERATIONS_MIN)
        };
        assert_eq!(
            [disk(21, 5000), disk(26, 5000), disk(21, 5000), disk(30, 10)],
            [Some(2097), Some(67108), Some(2097), None]
        );
    }

    fn pool(children: Vec<Vdev>) -> Pool {
        Pool {
            name: "tank".into(),
            guid: 1,
            txg: 1,
            health: "ONLINE".into(),
            properties: vec![
                api::Property::computed("capacity", 93),
                api::Property::computed("fragmentation", 60),
            ],
            vdevs: Some(Vdev { kind: "root".into(), children, ..Vdev::default() }),
            scan: None,
            error_scrub: None,
            errors: api::DataErrors::default(),
            unusable: Vec::new(),
            suspended: None,
            logs: Vec::new(),
            problem: None,
            clock_ns: 0,
        }
    }

    #[test]
    fn pools_become_facts_that_the_rules_read() {
        let mut facts = Facts::default();
        let disk = Vdev { kind: "disk".into(), ashift: Some(12), ..Vdev::default() };
        of_pool(&mut facts, &pool(vec![disk]), &CacheState::default(), Feed::default());
        let volume = Dataset {
            name: "tank/v".into(),
            kind: DatasetKind::Volume,
            properties: vec![
                api::Property::computed("sync", "disabled"),
                api::Property::computed("volblocksize", 16384),
            ],
        };
        of_dataset(&mut facts, &volume);
        let all = examine(&facts);
        let rules: Vec<&str> = all.iter().map(|advice| advice.rule.as_str()).collect();
        assert_eq!(rules, ["pool-full", "pool-fragmented", "no-redundancy", "sync-disabled"]);
        assert_eq!(facts.field_number("lun tank/v", "block"), Some(16384));
    }

    /// Pages of a database in records of 128K are told of; as many in a row, and the first few, are not.
    #[test]
    fn what_files_are_asked_becomes_facts_that_the_rules_read() {
        let told = |counted: fuse::Counted| {
            let mut facts = Facts::default();
            facts.add("vdev tank/0", "kind=mirror class=normal disks=2 parity=0 ashift=12");
            let records = api::Property::computed("recordsize", 128 << 10);
            let (name, kind) = ("tank/pg".to_string(), DatasetKind::Filesystem);
            of_dataset(&mut facts, &Dataset { name, kind, properties: vec![records] });
            of_files(&mut facts, "tank/pg", &counted);
            let fix = |advice: ::doctor::Advice| (advice.rule, advice.fixes[0].text.clone());
            examine(&facts).into_iter().map(fix).collect::<Vec<_>>()
        };
        let writes = |writes: u64, in_row| fuse::Counted {
            writes,
            written_bytes: writes * 8192,
            in_row,
            ..Default::default()
        };
        let reads = |reads: u64, misses| fuse::Counted {
            reads,
            read_bytes: reads * 16384,
            misses,
            ..Default::default()
        };
        let set = |rule: &str, size: &str| {
            let fix = format!("cenote zfs set recordsize={size} tank/pg (for files written from now on)");
            vec![(rule.to_string(), fix)]
        };
        assert_eq!(told(writes(5000, 100)), set("partial-writes", "8K"));
        assert_eq!(told(reads(4096, 2048)), set("whole-record-reads", "16K"));
        assert_eq!(told(writes(5000, 4900)), []);
        assert_eq!(told(writes(500, 0)), []);
        assert_eq!(told(reads(4096, 400)), []);
    }

    /// Commands name devices: those of data, and those beside, whose numbers begin anew.
    #[test]
    fn devices_have_their_names_and_the_size_of_their_sectors() {
        let disk = |path: &str, physical| Vdev {
            kind: "disk".into(),
            path: Some(path.into()),
            physical_block: Some(physical),
            ..Vdev::default()
        };
        let children = vec![disk("/dev/sda", 512), disk("/dev/sdb", 4096)];
        let mirror = Vdev { kind: "mirror".into(), ashift: Some(9), children, ..Vdev::default() };
        let cache = Vdev { class: Some(Class::Cache), ..disk("/dev/my disk", 4096) };
        let replaced = Vdev {
            kind: "replacing".into(),
            children: vec![disk("/dev/sdc", 512), disk("/dev/sdd", 512)],
            id: 1,
            ..Vdev::default()
        };
        let mut facts = Facts::default();
        of_pool(&mut facts, &pool(vec![mirror, replaced, cache]), &CacheState::default(), Feed::default());
        assert_eq!(facts.field("vdev tank/0", "device"), Some("mirror-0"));
        assert_eq!(facts.field("vdev tank/1", "kind"), Some("disk"), "it is one, and will be");
        assert_eq!(
            (facts.field("vdev tank/cache-2", "class"), facts.field("vdev tank/cache-2", "device")),
            (Some("cache"), None)
        );
        let small: Vec<_> =
            examine(&facts).into_iter().filter(|advice| advice.rule == "sector-size").collect();
        assert_eq!((small.len(), small[0].about.as_str()), (1, "tank /dev/sdb"));
    }

    /// Its first filling is spread over an hour; what comes beyond is wear, once it is said what the device is made for.
    #[test]
    fn a_cache_device_is_worn_when_it_is_filled_again_and_again() {
        let wear = |written_bytes, dwpd: &str| {
            let wear = api::DeviceWear { size: 1 << 40, seconds: 60, written_bytes, ..Default::default() };
            let said = api::Property::new(DWPD, Some(dwpd.into()), api::Source::Local);
            let device = Vdev {
                kind: "file".into(),
                class: Some(Class::Cache),
                wear: Some(Box::new(wear)),
                ..Vdev::default()
            };
            let mut pool = pool(Vec::new());
            pool.properties.extend((!dwpd.is_empty()).then_some(said));
            let mut facts = Facts::default();
            of_vdev(&mut facts, "tank/cache-0", &pool, &device, &CacheState::default(), Feed::default());
            examine(&facts).iter().any(|advice| advice.rule == "cache-wear")
        };
        assert!(wear(1 << 40, "3"));
        assert!(!wear(1 << 36, "3"), "what a day may have in two hours");
        assert!(!wear(1 << 40, ""), "what it is made for was not said");
    }
}
