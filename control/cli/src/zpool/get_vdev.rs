//! Properties of vdevs: `zpool get PROPERTY POOL VDEV ...`, and what setting one deserves to be told.
//!
//! Most are read from the vdev as it is; [`SETTABLE`] and those with a colon are set on it.

use super::list_vdevs::state;
use super::pools;
use crate::args::zpool::{Get, Set};
use crate::session::{Failure, Outcome, Session};
use crate::text::json;
use crate::text::number;
use crate::text::vdev_name::vdev_name;
use crate::zfs::fields::{Field, Line, render};
use api::{Pool, Property, Source, Value, Vdev};
use serde_json::{Map, Value as Json, json};

const ALL: &str = "all-vdevs";
/// What the root is called among vdevs.
const ROOT: &str = "root-0";

/// All of a vdev in the order of OpenZFS; of its list those that mean something here.
const NAMES: [&str; 34] = [
    "capacity",
    "state",
    "guid",
    "psize",
    "ashift",
    "size",
    "free",
    "allocated",
    "comment",
    "expandsize",
    "fragmentation",
    "parity",
    "path",
    "parent",
    "children",
    "numchildren",
    "read_errors",
    "write_errors",
    "checksum_errors",
    "read_ops",
    "write_ops",
    "trim_ops",
    "read_bytes",
    "write_bytes",
    "trim_bytes",
    "removing",
    "allocating",
    "failfast",
    "checksum_n",
    "checksum_t",
    "io_n",
    "io_t",
    "slow_io_n",
    "slow_io_t",
];
/// Told last of all, and only when asked for.
const LAST: &str = "slow_ios";
const NAME: &str = "name";
/// These can be set: words, and how many errors within how many seconds are too many.
const SETTABLE: [&str; 7] = ["comment", "checksum_n", "checksum_t", "io_n", "io_t", "slow_io_n", "slow_io_t"];

/// A pool, and those of its vdevs that were named.
pub(super) struct Asked {
    pool: Pool,
    guids: Vec<u64>,
}

/// Whether the words name a pool and vdevs of it, rather than pools.
pub(super) fn asked(session: &mut Session<'_>, args: &Get) -> Outcome<Option<Asked>> {
    let [name, vdevs @ ..] = &args.pools[..] else { return Ok(None) };
    if vdevs.is_empty() {
        return Ok(None);
    }
    let Some(pool) = pools(session, std::slice::from_ref(name))?.pop() else { return Ok(None) };
    Ok(choose(&pool, vdevs).map(|guids| Asked { pool, guids }))
}

/// The vdevs that are called so, if all of them are.
fn choose(pool: &Pool, names: &[String]) -> Option<Vec<u64>> {
    if names == [ALL] {
        return Some(pool.vdevs.as_ref()?.walk().into_iter().skip(1).map(|v| v.guid).collect());
    }
    names.iter().map(|name| find(pool, name)).collect()
}

/// The guid of the vdev of a pool that is called so, by its name, its path, the name of its file, or its guid.
pub(super) fn find(pool: &Pool, name: &str) -> Option<u64> {
    let root = pool.vdevs.as_ref()?;
    let is_called = |vdev: &Vdev| {
        let file = vdev.path.as_ref().and_then(|p| std::path::Path::new(p).file_name());
        vdev.guid.to_string() == name
            || vdev.path.as_deref() == Some(name)
            || file.is_some_and(|file| file == name)
            || vdev_name(vdev, &pool.name, Default::default()) == name
    };
    if name == ROOT {
        return Some(root.guid);
    }
    root.walk().into_iter().skip(1).find(|vdev| is_called(vdev)).map(|vdev| vdev.guid)
}

pub(super) fn show(session: &mut Session<'_>, asked: &Asked, args: &Get) -> Outcome {
    let names: Vec<&str> = args.properties.split(',').collect();
    let is_known =
        |name: &&str| ["all", NAME, LAST].contains(name) || name.contains(':') || NAMES.contains(name);
    if let Some(bad) = names.iter().find(|name| !is_known(name)) {
        return Err(Failure::Usage(format!("bad property list: invalid property '{bad}'")));
    }
    let fields = Field::parse(&args.fields, &[Field::Name, Field::Property, Field::Value, Field::Source])?;
    let text = if args.json.json {
        document(asked, &names, args)
    } else {
        let width = "VALUE".len();
        render(&lines(asked, &names, args.exact), &fields, width, args.scripted)
    };
    session.print(&text)
}

fn vdevs(asked: &Asked) -> impl Iterator<Item = &Vdev> {
    let all = asked.pool.vdevs.as_ref().map(Vdev::walk).unwrap_or_default();
    asked.guids.iter().filter_map(move |guid| all.iter().find(|v| v.guid == *guid).copied())
}

/// Those that were asked for, whether set or not; of all, those with a colon that were set.
fn properties(asked: &Asked, vdev: &Vdev, names: &[&str], exact: bool) -> Vec<Property> {
    let own = |name: &str| vdev.properties.iter().find(|p| p.name == name).cloned();
    let of = |name: &str| match SETTABLE.contains(&name) || name.contains(':') {
        true => own(name).unwrap_or_else(|| Property::new(name, None, Source::Default)),
        false => {
            let value = native(asked, vdev, name, exact);
            let is_default = match name {
                "failfast" => true,
                "path" | "parent" | "children" => value.is_none(),
                "allocating" => value.is_some(),
                _ => false,
            };
            let source = if is_default { Source::Default } else { Source::None };
            Property::new(name, value.map(Value::Text), source)
        }
    };
    if !names.contains(&"all") {
        return names.iter().map(|name| of(name)).collect();
    }
    let users = vdev.properties.iter().filter(|p| p.name.contains(':')).cloned();
    NAMES.iter().chain([&LAST]).map(|name| of(name)).chain(users).collect()
}

/// The vdev that it is part of, or the pool.
fn parent(asked: &Asked, vdev: &Vdev) -> Option<String> {
    let all = asked.pool.vdevs.as_ref()?.walk();
    let above = all.into_iter().find(|above| above.children.iter().any(|child| child.guid == vdev.guid))?;
    Some(vdev_name(above, &asked.pool.name, Default::default()))
}

fn native(asked: &Asked, vdev: &Vdev, name: &str, exact: bool) -> Option<String> {
    let count = |n: u64| Some(number::count(n, exact));
    let percent = |n: u64| Some(if exact { n.to_string() } else { format!("{n}%") });
    let (space, allocated) = vdev.space.unzip();
    match name {
        "name" => Some(vdev_name(vdev, "", Default::default())),
        "capacity" => {
            let (space, used) = vdev.space?;
            percent((u128::from(used) * 100).checked_div(space.into()).unwrap_or(0) as u64)
        }
        "psize" => Some(vdev.size).filter(|_| vdev.is_leaf()).and_then(count),
        "parent" => parent(asked, vdev),
        "read_ops" => count(vdev.stats.read.ops),
        "write_ops" => count(vdev.stats.write.ops),
        "trim_ops" => count(vdev.stats.trim.ops),
        "read_bytes" => count(vdev.stats.read.bytes),
        "write_bytes" => count(vdev.stats.write.bytes),
        "trim_bytes" => count(vdev.stats.trim.bytes),
        "state" => Some(state(vdev).to_string()),
        "guid" => Some(vdev.guid.to_string()),
        "ashift" => vdev.ashift.map(|ashift| ashift.to_string()),
        "size" => space.or(Some(vdev.size).filter(|size| *size > 0)).and_then(count),
        "free" => vdev.space.and_then(|(space, used)| count(space.saturating_sub(used))),
        "allocated" => allocated.and_then(count),
        "expandsize" => Some(vdev.expandable).filter(|n| *n > 0).and_then(count),
        "fragmentation" => vdev.fragmentation.and_then(percent),
        "parity" => Some(vdev.parity.to_string()),
        "path" => vdev.path.clone(),
        "children" => {
            let names: Vec<String> =
                vdev.children.iter().map(|c| vdev_name(c, "", Default::default())).collect();
            Some(names.join(",")).filter(|names| !names.is_empty())
        }
        "numchildren" => Some(vdev.children.len().to_string()),
        "read_errors" => count(vdev.read_errors),
        "write_errors" => count(vdev.write_errors),
        "checksum_errors" => count(vdev.checksum_errors),
        "slow_ios" => count(vdev.slow_ios),
        // No vdev is evacuated or passed over here, and nothing is given up sooner for having another copy.
        "removing" => Some("off".into()),
        "allocating" => vdev.class.map(|_| "on".into()),
        "failfast" => Some("on".into()),
        _ => None,
    }
}

fn name_of(asked: &Asked, vdev: &Vdev) -> String {
    if vdev.kind == "root" { ROOT.into() } else { vdev_name(vdev, &asked.pool.name, Default::default()) }
}

fn word(property: &Property) -> String {
    match &property.value {
        Some(Value::Text(text)) => text.clone(),
        Some(Value::Number(n)) => n.to_string(),
        None => "-".into(),
    }
}

fn lines(asked: &Asked, names: &[&str], exact: bool) -> Vec<Line> {
    let of_vdev = |vdev: &Vdev| -> Vec<Line> {
        let name = name_of(asked, vdev);
        let line = |p: Property| Line {
            name: name.clone(),
            value: word(&p),
            property: p.name,
            received: None,
            source: p.source,
        };
        properties(asked, vdev, names, exact).into_iter().map(line).collect()
    };
    vdevs(asked).flat_map(of_vdev).collect()
}

fn document(asked: &Asked, names: &[&str], args: &Get) -> String {
    let describe = |vdev: &Vdev| {
        let name = name_of(asked, vdev);
        let properties = properties(asked, vdev, names, args.exact || args.json.json_int);
        let properties: Map<String, Json> = properties
            .iter()
            .map(|p| (p.name.clone(), json::property(&word(p), &p.source, args.json.json_int)))
            .collect();
        (name.clone(), json!({ "name": name, "guid": vdev.guid.to_string(), "properties": properties }))
    };
    let vdevs: Map<String, Json> = vdevs(asked).map(describe).collect();
    let pool = json!({ "name": asked.pool.name, "vdevs": vdevs });
    json::document("zpool get", "pools", Map::from_iter([(asked.pool.name.clone(), pool)]))
}

/// What is at stake with this setting.
pub(super) fn warning(args: &Set) -> Option<String> {
    let (name, value) = &args.setting;
    let vdev = args.vdev.as_ref().filter(|_| name == "cenote:nocacheflush" && value == "on")?;
    Some(format!(
        "WARNING: the write cache of '{vdev}' is not flushed any more. A power failure loses acknowledged writes and can \
         destroy the pool, unless that cache is protected by a battery or capacitors."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vdevs_are_found_by_any_of_their_names() {
        let leaf = |guid, path: &str| Vdev {
            guid,
            kind: "disk".into(),
            path: Some(path.into()),
            properties: (guid == 2)
                .then(|| Property::new("cenote:nocacheflush", Some("on".into()), Source::Local))
                .into_iter()
                .collect(),
            ..Vdev::default()
        };
        let children = vec![leaf(2, "/dev/sda"), leaf(3, "/dev/sdb")];
        let mirror = Vdev { guid: 1, kind: "mirror".into(), children, ..Vdev::default() };
        let root = Vdev { kind: "root".into(), children: vec![mirror], ..Vdev::default() };
        let pool = Pool {
            name: "tank".into(),
            guid: 9,
            txg: 4,
            health: "ONLINE".into(),
            properties: Vec::new(),
            vdevs: Some(root),
            scan: None,
            error_scrub: None,
            errors: api::DataErrors::default(),
            unusable: Vec::new(),
            suspended: None,
            problem: None,
            logs: Vec::new(),
            clock_ns: 0,
        };
        let find = |names: &[&str]| choose(&pool, &names.iter().map(|n| n.to_string()).collect::<Vec<_>>());
        assert_eq!(find(&["mirror-0", "sda", "/dev/sdb", "3"]), Some(vec![1, 2, 3, 3]));
        assert_eq!(find(&[ALL]), Some(vec![1, 2, 3]));
        assert_eq!(find(&["sda", "otherpool"]), None);
        let asked = Asked { pool: pool.clone(), guids: vec![2, 3] };
        let names = ["cenote:nocacheflush"];
        let words: Vec<String> =
            lines(&asked, &names, false).into_iter().map(|l| format!("{}={}", l.name, l.value)).collect();
        assert_eq!(words, ["sda=on", "sdb=-"]);
        let all = lines(&asked, &["all"], false);
        assert_eq!(all.len(), 2 * (NAMES.len() + 1) + 1, "and the one that is set");
        let of_sda =
            |name: &str| all.iter().find(|l| l.name == "sda" && l.property == name).unwrap().value.clone();
        assert_eq!(["path", "parent", "numchildren", "io_n"].map(of_sda), ["/dev/sda", "mirror-0", "0", "-"]);
    }
}
