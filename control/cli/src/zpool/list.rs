//! `zpool list`.

use super::{list_vdevs, pools, repeat};
use crate::args::zpool::{List, Style};
use crate::session::{Failure, Outcome, Session};
use crate::text::property::{pool_column, pool_property, show_pool};
use crate::text::table::{self, Column};
use crate::text::{json, vdev_name::name_width};
use api::{Pool, Source};
use dsl::pool_props::TABLE;
use serde_json::{Map, Value as Json, json};

const DEFAULT: [&str; 11] = [
    "name",
    "size",
    "allocated",
    "free",
    "checkpoint",
    "expandsize",
    "fragmentation",
    "capacity",
    "dedupratio",
    "health",
    "altroot",
];
/// As a column: all of them.
const ALL: &str = "all";
/// The narrowest column of names when vdevs are listed.
const NAME_MIN: usize = 9;

pub(super) fn run(session: &mut Session<'_>, args: &List) -> Outcome {
    let asked = columns(&args.columns)?;
    repeat(session, &args.words, args.stamp, |session, names, first| {
        let pools = pools(session, names)?;
        let columns = with_all(&asked, pools.first());
        if args.json.json {
            return session.print(&document(&pools, &columns, args));
        }
        if pools.is_empty() {
            // Names that lead nowhere were complained of.
            let is_said = args.scripted || !names.is_empty();
            return if is_said { Ok(()) } else { session.print("no pools available\n") };
        }
        session.print(&render(&pools, &columns, args, first))
    })
}

fn columns(asked: &[String]) -> Outcome<Vec<String>> {
    if asked.is_empty() {
        return Ok(DEFAULT.map(String::from).to_vec());
    }
    let known = |name: &String| {
        let all = (name == ALL).then(|| ALL.to_string());
        all.or_else(|| pool_property(name))
            .ok_or_else(|| Failure::Usage(format!("bad property list: invalid property '{name}'")))
    };
    asked.iter().map(known).collect()
}

/// The columns, with the name and all that `zpool get` lists in the place of `all`.
fn with_all(asked: &[String], pool: Option<&Pool>) -> Vec<String> {
    let features = pool.into_iter().flat_map(|pool| &pool.properties).map(|p| p.name.clone());
    let features: Vec<String> = features.filter(|name| name.starts_with("feature@")).collect();
    let all = || {
        let listed = TABLE.iter().filter(|row| row.listed).map(|row| row.name.to_string());
        std::iter::once("name".to_string()).chain(listed).chain(features.clone()).collect::<Vec<_>>()
    };
    asked.iter().flat_map(|name| if name == ALL { all() } else { vec![name.clone()] }).collect()
}

/// The table. Its heading is printed once, however often the listing is repeated.
pub(super) fn render(pools: &[Pool], names: &[String], args: &List, heading: bool) -> String {
    let columns: Vec<Column> = names.iter().map(|name| pool_column(name)).collect();
    let rows: Vec<Vec<String>> = pools.iter().map(|p| cells(p, names, args.style.exact)).collect();
    // For scripts only the lines of classes have widths: those of OpenZFS, which does not count the paths of devices.
    let (shown, style) = if args.scripted { (&[][..], Style::default()) } else { (&rows[..], args.style) };
    let mut widths = table::widths(&columns, shown);
    if args.verbose {
        let needed = pools.iter().filter_map(|p| Some(name_width(p.vdevs.as_ref()?, &p.name, style, 0)));
        widths[0] = needed.fold(NAME_MIN, usize::max).max(widths[0]);
    }
    let mut text = String::new();
    if heading && !args.scripted {
        text += &table::heading(&columns, &widths);
    }
    for (pool, row) in pools.iter().zip(&rows) {
        text += &if args.scripted { row.join("\t") + "\n" } else { table::line(&columns, &widths, row) };
        if args.verbose
            && let Some(root) = &pool.vdevs
        {
            text += &list_vdevs::render(root, names, &widths, args);
        }
    }
    text
}

fn cells(pool: &Pool, names: &[String], exact: bool) -> Vec<String> {
    names.iter().map(|name| cell(pool, name, exact)).collect()
}

fn cell(pool: &Pool, name: &str, exact: bool) -> String {
    match name {
        "name" => pool.name.clone(),
        "health" => pool.health.clone(),
        _ => show_pool(name, pool.property(name).and_then(|p| p.value.as_ref()), exact),
    }
}

fn document(pools: &[Pool], names: &[String], args: &List) -> String {
    let mut content = Map::new();
    for pool in pools {
        let mut item = summary(pool, args.json.json_int);
        item.insert("type".into(), json!("POOL"));
        let mut properties = Map::new();
        for name in names.iter().filter(|n| *n != "name") {
            let source = pool.property(name).map_or(&Source::None, |p| &p.source);
            let value = cell(pool, name, args.style.exact);
            properties.insert(name.clone(), json::property(&value, source, args.json.json_int));
        }
        item.insert("properties".into(), Json::Object(properties));
        if args.verbose
            && let Some(root) = &pool.vdevs
        {
            item.insert("vdevs".into(), list_vdevs::document(root, names, args));
        }
        content.insert(key(pool, args.json.json_pool_key_guid), Json::Object(item));
    }
    json::document("zpool list", "pools", content)
}

/// What every JSON answer says of a pool.
pub(super) fn summary(pool: &Pool, as_int: bool) -> Map<String, Json> {
    let mut item = Map::new();
    item.insert("name".into(), json!(pool.name));
    item.insert("state".into(), json!(pool.health));
    item.insert("pool_guid".into(), json::number(pool.guid, as_int));
    item.insert("txg".into(), json::number(pool.txg, as_int));
    item.insert("spa_version".into(), json::number(dsl::pool_props::VERSION_FEATURES, as_int));
    item.insert("zpl_version".into(), json::number(5, as_int));
    item
}

pub(super) fn key(pool: &Pool, by_guid: bool) -> String {
    if by_guid { pool.guid.to_string() } else { pool.name.clone() }
}
