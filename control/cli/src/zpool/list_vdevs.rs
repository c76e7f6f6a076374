//! The lines of `zpool list -v` below a pool.

use crate::args::zpool::List;
use crate::text::vdev_name::{shown_name, vdev_name};
use crate::text::{json, number};
use api::{Class, Source, Vdev};
use serde_json::{Map, Value as Json, json};

/// Classes that have a heading of their own, in the order of OpenZFS.
pub(super) const CLASSES: [(Class, &str); 5] = [
    (Class::Dedup, "dedup"),
    (Class::Special, "special"),
    (Class::Log, "logs"),
    (Class::Cache, "cache"),
    (Class::Spare, "spare"),
];

pub(super) fn render(root: &Vdev, names: &[String], widths: &[usize], args: &List) -> String {
    let mut text = String::new();
    let of_class = |class| root.children.iter().filter(move |t| is_of(t, class));
    of_class(Class::Normal).for_each(|top| add(&mut text, top, names, widths, args, 2));
    for (class, heading) in CLASSES {
        if of_class(class).next().is_some() {
            text += &class_line(heading, names, widths);
        }
        of_class(class).for_each(|top| add(&mut text, top, names, widths, args, 2));
    }
    text
}

pub(super) fn is_of(top: &Vdev, class: Class) -> bool {
    top.class.unwrap_or(Class::Normal) == class && top.kind != "hole" && top.kind != "indirect"
}

fn class_line(heading: &str, names: &[String], widths: &[usize]) -> String {
    let mut text = format!("{heading:<width$}", width = widths[0]);
    for (_, width) in columns(names, widths) {
        text += &format!("  {:>width$}", "-");
    }
    text + "\n"
}

/// The columns that vdevs have; `altroot` is the pool's alone.
fn columns<'a>(names: &'a [String], widths: &'a [usize]) -> impl Iterator<Item = (&'a str, usize)> {
    names.iter().zip(widths).skip(1).map(|(n, w)| (n.as_str(), *w)).filter(|(n, _)| *n != "altroot")
}

fn add(text: &mut String, vdev: &Vdev, names: &[String], widths: &[usize], args: &List, depth: usize) {
    if args.scripted {
        *text += &format!("\t{}", vdev_name(vdev, "", args.style));
    } else {
        let name = shown_name(vdev, "", args.style);
        *text += &format!("{:depth$}{name:<width$}", "", width = widths[0].saturating_sub(depth));
    }
    for (column, width) in columns(names, widths) {
        let cell = cell(vdev, column, args.style.exact);
        *text += &if args.scripted { format!("\t{cell}") } else { format!("  {cell:>width$}") };
    }
    text.push('\n');
    vdev.children.iter().for_each(|child| add(text, child, names, widths, args, depth + 2));
}

/// What stands in a column of a vdev: space is known of top-level vdevs only, the size of every device.
fn cell(vdev: &Vdev, column: &str, exact: bool) -> String {
    let none = || "-".to_string();
    let (space, allocated) = vdev.space.unzip();
    match column {
        "size" => match space.filter(|_| vdev.size == 0).or(Some(vdev.size).filter(|n| *n > 0)) {
            Some(n) => number::count(n, exact),
            None => none(),
        },
        "expandsize" if vdev.expandable > 0 => number::count(vdev.expandable, exact),
        "allocated" => allocated.map_or_else(none, |n| number::count(n, exact)),
        "free" => {
            vdev.space.map_or_else(none, |(space, used)| number::count(space.saturating_sub(used), exact))
        }
        "fragmentation" => match vdev.fragmentation {
            Some(n) if exact => n.to_string(),
            Some(n) => format!("{n}%"),
            None => none(),
        },
        "capacity" => vdev.space.map_or_else(none, |(space, used)| capacity(space, used, exact)),
        "health" => state(vdev).into(),
        _ => none(),
    }
}

/// With more digits than the pool's, since a vdev that is nearly full is worth seeing.
fn capacity(space: u64, used: u64, exact: bool) -> String {
    let share = if space == 0 { 0 } else { (u128::from(used) * 10_000 / u128::from(space)) as u64 };
    match share {
        n if exact => (n / 100).to_string(),
        n if n < 1000 => format!("{:.2}%", n as f64 / 100.0),
        n if n < 10_000 => format!("{:.1}%", n as f64 / 100.0),
        n => format!("{:.0}%", n as f64 / 100.0),
    }
}

/// Whether it is a spare's use, here or in another pool, that is said beside its name.
fn is_use(why: &str) -> bool {
    why == "currently in use" || why.starts_with("in use by pool '")
}

/// A spare that is well is at hand.
pub(super) fn state(vdev: &Vdev) -> &str {
    match (vdev.class, vdev.state.as_str(), vdev.why.as_deref()) {
        (Some(Class::Spare), _, Some(why)) if is_use(why) => "INUSE",
        (Some(Class::Spare), "ONLINE", _) => "AVAIL",
        (_, state, _) => state,
    }
}

pub(super) fn document(root: &Vdev, names: &[String], args: &List) -> Json {
    let tops = root.children.iter().filter(|t| t.kind != "hole" && t.kind != "indirect");
    Json::Object(tops.map(|top| (vdev_name(top, "", args.style), describe(top, names, args))).collect())
}

fn describe(vdev: &Vdev, names: &[String], args: &List) -> Json {
    let name = vdev_name(vdev, "", args.style);
    let mut item = json!({
        "name": name,
        "vdev_type": vdev.kind,
        "guid": json::number(vdev.guid, args.json.json_int),
        "state": state(vdev),
        "class": class_word(vdev.class),
    });
    let mut properties = Map::new();
    for column in names.iter().skip(1).filter(|n| *n != "altroot") {
        let value = cell(vdev, column, args.style.exact);
        properties.insert(column.clone(), json::property(&value, &Source::None, args.json.json_int));
    }
    item["properties"] = Json::Object(properties);
    if let Some(path) = &vdev.path {
        item["path"] = json!(path);
    }
    if !vdev.children.is_empty() {
        let children = vdev.children.iter().map(|c| (vdev_name(c, "", args.style), describe(c, names, args)));
        item["vdevs"] = Json::Object(children.collect());
    }
    item
}

pub(super) fn class_word(class: Option<Class>) -> &'static str {
    match class {
        None | Some(Class::Normal) => "normal",
        Some(Class::Log) => "log",
        Some(Class::Special) => "special",
        Some(Class::Dedup) => "dedup",
        Some(Class::Cache) => "l2cache",
        Some(Class::Spare) => "spare",
    }
}
