//! `cenote doctor`: facts of this appliance and of clients, judged by the rules of `doctor`.
//!
//! ```text
//!   Request::Doctor ─ Advice, Dataset ──────────────▶ text, JSON; one line where a setting is made
//!         │              └─ --apply: settings of ours, one by one, each asked for
//!         └ Facts: LUNs of ours ──┐
//!   --facts FILE, --ssh HOST ─────┴─▶ doctor::examine ──▶ text, JSON
//! ```
//!
//! Whether a client's disk is a LUN of ours, and how large its blocks are, comes from the appliance when one
//! answers; the facts of the
//! client alone do otherwise.

use crate::args::doctor::File;
use crate::expect_reply;
use crate::session::{Failure, Outcome, Session};
use ::doctor::{Advice, Facts, Setting, examine, is_judged, line, paragraph, raidz, render};
use api::{Class, DatasetKind, DatasetQuery, Doctor, Pool, Reply, Request, Source, Value, Vdev};
use serde_json::json;
use units::pretty_size;

/// What a block pointer takes in the block above.
const POINTER: u64 = 128;

/// `cenote doctor`: the pools, datasets and LUNs here.
pub fn here(session: &mut Session<'_>, as_json: bool) -> Outcome {
    let all = advice(session)?;
    if as_json { session.print(&shown(&all, true)) } else { session.show(&shown(&all, false)) }
}

/// `cenote doctor host --facts`: what `bytes` say of a client, beside what is known here.
pub fn host(session: Option<&mut Session<'_>>, bytes: &[u8], as_json: bool) -> Outcome<String> {
    let mut facts = Facts::parse(bytes).map_err(Failure::Failed)?;
    if let Some(session) = session {
        let own = expect_reply!(session.ask(Request::Doctor(Doctor::Facts))?, Reply::Facts { text } => text);
        let own = Facts::parse(own.as_bytes()).map_err(Failure::Failed)?;
        // Of the client is spoken here, not of all else.
        own.under("lun ")
            .for_each(|(name, lines)| lines.iter().for_each(|line| facts.add(&format!("lun {name}"), line)));
    }
    Ok(shown(&examine(&facts), as_json))
}

/// `cenote doctor --apply`: each advice that is one setting of ours is shown, asked for, and carried out; what was done and
/// how it is taken back is printed. After each change all is judged again: one that is inherited cures what is below.
pub fn apply(session: &mut Session<'_>, mut confirms: impl FnMut(&str) -> Outcome<bool>) -> Outcome {
    let (mut declined, mut done) = (Vec::<Setting>::new(), 0);
    loop {
        let all = advice(session)?;
        let next = all.into_iter().find_map(|advice| {
            let setting = advice.setting.clone().filter(|setting| !declined.contains(setting))?;
            Some((advice, setting))
        });
        let Some((advice, setting)) = next else { break };
        session.show(&paragraph(done + declined.len() + 1, &advice))?;
        let Setting { dataset, property, value } = &setting;
        if !confirms(&format!("set {property}={value} on {dataset}?"))? {
            declined.push(setting);
            continue;
        }
        let undo = way_back(session, dataset, property)?;
        session.order(Request::DatasetSet {
            name: dataset.clone(),
            properties: vec![(property.clone(), value.clone())],
        })?;
        session.show(&format!("done: cenote zfs set {property}={value} {dataset}\nback: {undo}\n\n"))?;
        // It is not to be done twice, should a rule still see it.
        declined.push(setting);
        done += 1;
    }
    let left = advice(session)?;
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
    format!("{:#}\n", json!(all))
}

/// `cenote doctor generate`.
pub fn generate(file: &File) -> Outcome<String> {
    use ::doctor::generate;
    let text = match file {
        File::Udev { block } if block.is_power_of_two() && (512..=16 << 20).contains(block) => {
            Ok(generate::udev_rule(generate::VENDOR, *block))
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

fn advice(session: &mut Session<'_>) -> Outcome<Vec<Advice>> {
    Ok(expect_reply!(session.ask(Request::Doctor(Doctor::Advice))?, Reply::Advice(all) => all))
}

/// What is to be said of settings that were just made, one line for each, to those who look: the settings hold all the same.
pub(crate) fn on_settings(session: &mut Session<'_>, dataset: &str, settings: &[(String, String)]) {
    let names = || settings.iter().map(|(name, _)| name.as_str());
    if !names().any(is_judged) {
        return;
    }
    // No advice is no reason to fail.
    let Ok(Reply::Advice(all)) = session.ask(Request::Doctor(Doctor::Dataset { name: dataset.into() }))
    else {
        return;
    };
    for advice in all.iter().filter(|advice| advice.judges(names())) {
        session.complain(line(advice).trim_end());
    }
}

fn pools(session: &mut Session<'_>) -> Outcome<Vec<Pool>> {
    Ok(expect_reply!(session.ask(Request::Pools { names: Vec::new() })?, Reply::Pools(pools) => pools))
}

fn class(vdev: &Vdev) -> Class {
    vdev.class.unwrap_or(Class::Normal)
}

/// `cenote doctor blocksize`: what follows from the layout for each block size.
pub fn blocksize(session: &mut Session<'_>, share: &str) -> Outcome {
    let query = DatasetQuery {
        names: vec![share.into()],
        depth: Some(0),
        kinds: vec![DatasetKind::Filesystem, DatasetKind::Volume],
        properties: ["recordsize", "volblocksize"].map(String::from).into(),
    };
    let found = expect_reply!(session.ask(Request::Datasets(query))?, Reply::Datasets(all) => all);
    let Some(dataset) = found.first() else {
        return Err(Failure::Failed(format!("cannot reckon for '{share}': there is no such share")));
    };
    let name = if dataset.kind == DatasetKind::Volume { "volblocksize" } else { "recordsize" };
    let now = dataset.property(name).and_then(|p| p.value.as_ref()?.number());
    let pool = pools(session)?.into_iter().find(|pool| Some(pool.name.as_str()) == share.split('/').next());
    let normal =
        |vdev: &&Vdev| class(vdev) == Class::Normal && vdev.kind != "hole" && vdev.kind != "indirect";
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
}
