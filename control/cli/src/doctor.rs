//! `cenote doctor`: facts of this appliance and of clients, judged by the rules of `doctor`.
//!
//! ```text
//!   Pools, Datasets ──▶ facts of ours ──────────┐
//!   --facts FILE, --ssh HOST ──▶ Facts::parse ──┴──▶ doctor::examine ──▶ text, JSON
//!                                                          └─ --apply: settings of ours, one by one, each asked for
//! ```
//!
//! Whether a client's disk is a LUN of ours, and how large its blocks are, comes from the appliance when one
//! answers; the facts of the
//! client alone do otherwise.

use crate::args::doctor::File;
use crate::expect_reply;
use crate::session::{Failure, Outcome, Session};
use ::doctor::{Advice, Facts, Setting, examine, paragraph, raidz, render};
use api::shares::Shares;
use api::{Class, Dataset, DatasetKind, DatasetQuery, Pool, Reply, Request, Source, Value, Vdev};
use serde_json::json;
use units::pretty_size;

/// Fewer operations of a device say nothing of its speed.
const OPERATIONS_MIN: u64 = 1000;
/// What a block pointer takes in the block above.
const POINTER: u64 = 128;

/// `cenote doctor`: the pools, datasets and LUNs here.
pub fn here(session: &mut Session<'_>, as_json: bool) -> Outcome {
    let facts = own(session)?;
    session.print(&shown(&examine(&facts), as_json))
}

/// `cenote doctor host --facts`: what `bytes` say of a client, beside what is known here.
pub fn host(session: Option<&mut Session<'_>>, bytes: &[u8], as_json: bool) -> Outcome<String> {
    let mut facts = Facts::parse(bytes).map_err(Failure::Failed)?;
    if let Some(session) = session {
        facts.extend(luns(session)?);
    }
    Ok(shown(&examine(&facts), as_json))
}

/// `cenote doctor --apply`: each advice that is one setting of ours is shown, asked for, and carried out; what was done and
/// how it is taken back is printed. After each change all is judged again: one that is inherited cures what is below.
pub fn apply(session: &mut Session<'_>, mut confirms: impl FnMut(&str) -> Outcome<bool>) -> Outcome {
    let (mut declined, mut done) = (Vec::<Setting>::new(), 0);
    loop {
        let all = examine(&own(session)?);
        let next = all.into_iter().find_map(|advice| {
            let setting = advice.setting.clone().filter(|setting| !declined.contains(setting))?;
            Some((advice, setting))
        });
        let Some((advice, setting)) = next else { break };
        session.print(&paragraph(done + declined.len() + 1, &advice))?;
        let Setting { dataset, property, value } = &setting;
        if !confirms(&format!("set {property}={value} on {dataset}?"))? {
            declined.push(setting);
            continue;
        }
        let undo = way_back(session, dataset, property)?;
        session.order(Request::DatasetSet {
            name: dataset.clone(),
            properties: vec![((*property).into(), (*value).into())],
        })?;
        session.print(&format!("done: cenote zfs set {property}={value} {dataset}\nback: {undo}\n\n"))?;
        // It is not to be done twice, should a rule still see it.
        declined.push(setting);
        done += 1;
    }
    let left = examine(&own(session)?);
    let by_hand = left.iter().filter(|advice| advice.setting.is_none()).count();
    session.print(&format!(
        "{done} settings changed, {} left as they are; {by_hand} more things to change are not settings: 'cenote doctor' has them\n",
        declined.len() - done
    ))
}

/// What brings back what the property is now.
fn way_back(session: &mut Session<'_>, dataset: &str, property: &str) -> Outcome<String> {
    let query = DatasetQuery {
        names: vec![dataset.into()],
        depth: Some(0),
        properties: vec![property.into()],
        ..DatasetQuery::default()
    };
    let found = expect_reply!(session.ask(Request::Datasets(query))?, Reply::Datasets(all) => all);
    let now = found.first().and_then(|found| found.property(property));
    Ok(match now.map(|now| (&now.source, &now.value)) {
        Some((Source::Local, Some(Value::Text(value)))) => {
            format!("cenote zfs set {property}={value} {dataset}")
        }
        _ => format!("cenote zfs inherit {property} {dataset}"),
    })
}

fn shown(all: &[Advice], as_json: bool) -> String {
    if !as_json {
        return render(all);
    }
    let one = |advice: &Advice| {
        let fixes = advice.fixes.iter().map(|fix| json!({ "system": fix.system.word(), "text": fix.text }));
        let setting = advice.setting.as_ref().map(|setting| {
            json!({ "dataset": setting.dataset, "property": setting.property, "value": setting.value })
        });
        json!({
            "rule": advice.rule, "about": advice.about, "seen": advice.seen, "costs": advice.cost,
            "fixes": fixes.collect::<Vec<_>>(), "undo": advice.undo, "setting": setting,
        })
    };
    format!("{:#}\n", serde_json::Value::Array(all.iter().map(one).collect()))
}

/// `cenote doctor generate`.
pub fn generate(file: &File) -> Outcome<String> {
    use ::doctor::generate;
    let text = match file {
        File::Udev { block } if block.is_power_of_two() && (512..=16 << 20).contains(block) => {
            Ok(generate::udev_rule(*block))
        }
        File::Udev { block } => {
            Err(format!("{block} bytes are no block size: a power of two from 512 to 16M"))
        }
        File::Multipath { vendor, product } => generate::multipath_conf(vendor, product),
        File::Fstab { device, at } => generate::fstab_line(device, at),
        File::Mysql { block, data, log } => generate::my_cnf(*block, data, log),
    };
    text.map_err(Failure::Usage)
}

fn own(session: &mut Session<'_>) -> Outcome<Facts> {
    let pools = pools(session)?;
    let mut facts = luns(session)?;
    pools.iter().for_each(|pool| of_pool(&mut facts, pool));
    let kinds = vec![DatasetKind::Filesystem, DatasetKind::Volume];
    for dataset in datasets(session, Vec::new(), None, kinds)? {
        of_dataset(&mut facts, &dataset);
    }
    Ok(facts)
}

fn pools(session: &mut Session<'_>) -> Outcome<Vec<Pool>> {
    Ok(expect_reply!(session.ask(Request::Pools { names: Vec::new() })?, Reply::Pools(pools) => pools))
}

fn datasets(
    session: &mut Session<'_>,
    names: Vec<String>,
    depth: Option<u32>,
    kinds: Vec<DatasetKind>,
) -> Outcome<Vec<Dataset>> {
    let properties = ["recordsize", "volblocksize", "sync", "checksum", "logbias"].map(String::from).into();
    let query = DatasetQuery { names, depth, kinds, properties };
    Ok(expect_reply!(session.ask(Request::Datasets(query))?, Reply::Datasets(all) => all))
}

/// The world-wide names of LUNs, by which clients know them.
fn luns(session: &mut Session<'_>) -> Outcome<Facts> {
    let request = Request::Shares(Shares::Shares { pool: None, project: None, kind: None });
    let items = expect_reply!(session.ask(request)?, Reply::Items(items) => items);
    let mut facts = Facts::default();
    for item in items {
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
    Ok(facts)
}

fn number(pool: &Pool, name: &str) -> Option<u64> {
    pool.property(name)?.value.as_ref().and_then(Value::number)
}

fn of_pool(facts: &mut Facts, pool: &Pool) {
    let percent = |name: &str| number(pool, name).map(|n| format!("{name}={n} ")).unwrap_or_default();
    facts.add(&format!("pool {}", pool.name), &(percent("capacity") + &percent("fragmentation")));
    let tops = pool.vdevs.iter().flat_map(|root| &root.children);
    for top in tops.filter(|top| top.kind != "hole" && top.kind != "indirect") {
        let name = format!("{}/{}", pool.name, top.id);
        let ashift = top.ashift.map(|ashift| format!(" ashift={ashift}")).unwrap_or_default();
        let (class, disks) = (class(top), top.children.len().max(1));
        facts.add(
            &format!("vdev {name}"),
            &format!("kind={} class={class} disks={disks} parity={}{ashift}", top.kind, top.parity),
        );
        let leaves = top.children.iter().filter(|child| child.is_leaf());
        for (leaf, micros) in leaves.filter_map(|leaf| Some((leaf, latency_us(leaf)?))) {
            facts.add(&format!("leaf {name}/{}", leaf.id), &format!("latency_us={micros}"));
        }
    }
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

/// The median of what the device took for reads and writes, if it did enough of them.
fn latency_us(leaf: &Vdev) -> Option<u64> {
    let (read, write) = (&leaf.stats.read.disk_wait, &leaf.stats.write.disk_wait);
    let count = |all: &[u64], bucket: usize| all.get(bucket).copied().unwrap_or_default();
    let both = (0..read.len().max(write.len())).map(|bucket| count(read, bucket) + count(write, bucket));
    let both: Vec<u64> = both.collect();
    let all: u64 = both.iter().sum();
    let mut below = 0;
    let bucket = both.iter().position(|count| {
        below += count;
        below * 2 >= all
    })?;
    // Bucket n begins at 2^n nanoseconds.
    (all >= OPERATIONS_MIN).then(|| (1u64 << bucket.min(63)) / 1000)
}

/// LUNs that clients see have their facts already; the same dataset is added to them.
fn of_dataset(facts: &mut Facts, dataset: &Dataset) {
    let text = |name: &str| match dataset.property(name).and_then(|p| p.value.clone()) {
        Some(Value::Text(text)) => format!("{name}={text} "),
        _ => String::new(),
    };
    let (kind, size) = match dataset.kind {
        DatasetKind::Volume => ("lun", "volblocksize"),
        _ => ("filesystem", "recordsize"),
    };
    let block = dataset.property(size).and_then(|p| p.value.as_ref()?.number());
    let block = block.map(|block| format!("block={block}")).unwrap_or_default();
    facts.add(
        &format!("{kind} {}", dataset.name),
        &(text("sync") + &text("checksum") + &text("logbias") + &block),
    );
}

/// `cenote doctor blocksize`: what follows from the layout for each block size.
pub fn blocksize(session: &mut Session<'_>, share: &str) -> Outcome {
    let found =
        datasets(session, vec![share.into()], Some(0), vec![DatasetKind::Filesystem, DatasetKind::Volume])?;
    let Some(dataset) = found.first() else {
        return Err(Failure::Failed(format!("cannot reckon for '{share}': there is no such share")));
    };
    let name = if dataset.kind == DatasetKind::Volume { "volblocksize" } else { "recordsize" };
    let now = dataset.property(name).and_then(|p| p.value.as_ref()?.number());
    let pool = pools(session)?.into_iter().find(|pool| Some(pool.name.as_str()) == share.split('/').next());
    let normal = |vdev: &&Vdev| class(vdev) == "normal" && vdev.kind != "hole" && vdev.kind != "indirect";
    let top = pool.as_ref().and_then(|pool| pool.vdevs.as_ref()?.children.iter().find(normal));
    session.print(&table(share, name, now, top))
}

fn table(share: &str, property: &str, now: Option<u64>, top: Option<&Vdev>) -> String {
    let layout = top.map_or("a single disk".into(), |top| match top.children.len() {
        0 => "single disks".to_string(),
        n => format!(
            "{} of {n}",
            if top.kind == "raidz" { format!("raidz{}", top.parity) } else { top.kind.clone() }
        ),
    });
    let row = |shift: u32| {
        let block = 1u64 << shift;
        let raidz = top.filter(|top| top.kind == "raidz");
        let space =
            raidz.and_then(|top| raidz::excess(block, top.children.len() as u64, top.parity, top.ashift?));
        let blocks = (1u64 << 30) / block;
        let mark = if now == Some(block) { '*' } else { ' ' };
        format!(
            "{mark}{:>6}{:>9}{:>13}{:>15}{:>15}{:>15}\n",
            pretty_size(block),
            format!("{:.2}x", space.unwrap_or(1.0)),
            blocks,
            pretty_size(blocks * POINTER),
            format!("{}x", (block >> 13).max(1)),
            format!("{}x", (block >> 17).max(1)),
        )
    };
    let rows: String = (12..=20).map(row).collect();
    format!(
        "{share}: {property} on {layout}; * is what it has\n\n{:>7}{:>9}{:>13}{:>15}{:>15}{:>15}\n{rows}\n\
         SPACE     what data takes, against large blocks: parity and padding of small blocks on raidz\n\
         BLOCKS    checksums, look-ups in the cache and allocations for a GiB\n\
         POINTERS  metadata for a GiB, in 128 bytes for each block; every snapshot keeps those of what changed\n\
         8K        bytes read and written again for an 8K write into a block that is not cached, and fetched for an 8K read\n\
         128K      the same for 128K\n\
         These follow from the layout. Compression gains with larger blocks and dedup with smaller ones: how much is in the data.\n",
        "BLOCK", "SPACE", "BLOCKS/GiB", "POINTERS/GiB", "8K REQUESTS", "128K REQUESTS"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_decides_what_small_blocks_cost() {
        let top = Vdev {
            kind: "raidz".into(),
            parity: 1,
            ashift: Some(12),
            children: vec![Vdev::default(); 5],
            ..Vdev::default()
        };
        let text = table("tank/v", "volblocksize", Some(8 << 10), Some(&top));
        let row = |block: &str| {
            text.lines()
                .find(|l| l.split_whitespace().next() == Some(block))
                .unwrap_or_else(|| panic!("{text}"))
        };
        assert_eq!(
            row("*").split_whitespace().collect::<Vec<_>>(),
            ["*", "8K", "1.60x", "131072", "16M", "1x", "1x"]
        );
        assert_eq!(
            row("1M").split_whitespace().collect::<Vec<_>>(),
            ["1M", "1.00x", "1024", "128K", "128x", "8x"]
        );
        assert!(text.starts_with("tank/v: volblocksize on raidz1 of 5;"));
    }

    /// One bucket of time for all but one device: the slow one is told of, and an idle one is not.
    #[test]
    fn a_device_that_takes_longer_than_its_neighbours_is_found() {
        let disk = |id: u64, bucket: usize, ops: u64| {
            let mut leaf = Vdev { id, kind: "disk".into(), ..Vdev::default() };
            leaf.stats.read.disk_wait = (0..=bucket).map(|b| if b == bucket { ops } else { 0 }).collect();
            leaf.stats.write.disk_wait = vec![0; 12];
            leaf
        };
        let children = [disk(0, 21, 5000), disk(1, 26, 5000), disk(2, 21, 5000), disk(3, 30, 10)];
        assert_eq!(
            children.iter().map(latency_us).collect::<Vec<_>>(),
            [Some(2097), Some(67108), Some(2097), None]
        );
    }

    #[test]
    fn pools_become_facts_that_the_rules_read() {
        let mut facts = Facts::default();
        let disk = Vdev { kind: "disk".into(), ashift: Some(12), ..Vdev::default() };
        let root = Vdev { kind: "root".into(), children: vec![disk], ..Vdev::default() };
        let pool = Pool {
            name: "tank".into(),
            guid: 1,
            txg: 1,
            health: "ONLINE".into(),
            properties: vec![
                api::Property::computed("capacity", 93),
                api::Property::computed("fragmentation", 60),
            ],
            vdevs: Some(root),
            scan: None,
            error_scrub: None,
            errors: api::DataErrors::default(),
            unusable: Vec::new(),
            suspended: None,
            logs: Vec::new(),
            problem: None,
            clock_ns: 0,
        };
        of_pool(&mut facts, &pool);
        let volume = Dataset {
            name: "tank/v".into(),
            kind: DatasetKind::Volume,
            properties: vec![
                api::Property::computed("sync", "disabled"),
                api::Property::computed("volblocksize", 16384),
            ],
        };
        of_dataset(&mut facts, &volume);
        let rules: Vec<_> = examine(&facts).iter().map(|advice| advice.rule).collect();
        assert_eq!(rules, ["pool-full", "pool-fragmented", "no-redundancy", "sync-disabled"]);
        assert_eq!(facts.field_number("lun tank/v", "block"), Some(16384));
    }
}
