//! `zpool get`.

use super::list::{key, summary};
use super::{get_vdev, pools};
use crate::args::zpool::Get;
use crate::session::{Failure, Outcome, Session};
use crate::text::json;
use crate::text::property::{pool_column, pool_property, show_pool};
use crate::zfs::fields::{Field, Line, render};
use api::{Pool, Property, Source};
use dsl::pool_props::{PoolProp, TABLE};
use serde_json::{Map, Value as Json, json};

pub(super) fn run(session: &mut Session<'_>, args: &Get) -> Outcome {
    if let Some(asked) = get_vdev::asked(session, args)? {
        return get_vdev::show(session, &asked, args);
    }
    if let Some(path) = args.pools.iter().find(|name| name.contains('/')) {
        let why = match args.pools.iter().position(|name| name == path) {
            Some(0) => {
                "it is no name of a pool; a device is named behind its pool: zpool get PROPERTY POOL DEVICE"
                    .into()
            }
            _ => format!("no such device in pool '{}'", args.pools[0]),
        };
        return Err(Failure::Failed(format!("cannot open '{path}': {why}")));
    }
    let asked = properties(&args.properties)?;
    let fields = Field::parse(&args.fields, &[Field::Name, Field::Property, Field::Value, Field::Source])?;
    let pools = pools(session, &args.pools)?;
    if pools.is_empty() && !args.json.json {
        let is_said = args.scripted || !args.pools.is_empty();
        return if is_said { Ok(()) } else { session.print("no pools available\n") };
    }
    if args.json.json {
        return session.print(&document(&pools, asked.as_deref(), args));
    }
    let width = asked.as_ref().map(|names| names.iter().map(|n| value_width(n)).max().unwrap_or(0));
    let width = width.unwrap_or_else(all_width);
    let lines: Vec<Line> = pools.iter().flat_map(|p| lines(p, asked.as_deref(), args.exact)).collect();
    session.print(&render(&lines, &fields, width, args.scripted))
}

/// `None` for all.
fn properties(asked: &str) -> Outcome<Option<Vec<String>>> {
    if asked == "all" {
        return Ok(None);
    }
    let known = |name: &str| {
        pool_property(name)
            .ok_or_else(|| Failure::Usage(format!("bad property list: invalid property '{name}'")))
    };
    asked.split(',').map(known).collect::<Outcome<Vec<String>>>().map(Some)
}

/// The column of values is as wide as any value could be, and as the property's heading.
fn value_width(name: &str) -> usize {
    let column = pool_column(name);
    column.min.max(column.heading.len())
}

fn all_width() -> usize {
    let native = TABLE.iter().filter(|row| row.listed).map(|row| value_width(row.name));
    let features = ondisk::Feature::all().map(|f| "feature@".len() + f.name().len());
    native.chain(features).max().unwrap_or(0)
}

/// The properties to show: those asked for, in that order, or all that are listed.
fn chosen<'a>(pool: &'a Pool, asked: Option<&[String]>) -> Vec<Property> {
    let missing = |name: &str| Property::new(name, None, Source::None);
    match asked {
        Some(names) => {
            names.iter().map(|n| pool.property(n).cloned().unwrap_or_else(|| missing(n))).collect()
        }
        None => {
            let is_listed =
                |p: &&'a Property| PoolProp::by_name(&p.name).is_none_or(|prop| prop.row().listed);
            pool.properties.iter().filter(is_listed).cloned().collect()
        }
    }
}

fn lines(pool: &Pool, asked: Option<&[String]>, exact: bool) -> Vec<Line> {
    let line = |p: Property| {
        let value = match p.name.as_str() {
            "name" => pool.name.clone(),
            name => show_pool(name, p.value.as_ref(), exact),
        };
        Line { name: pool.name.clone(), property: p.name, value, received: None, source: p.source }
    };
    chosen(pool, asked).into_iter().map(line).collect()
}

fn document(pools: &[Pool], asked: Option<&[String]>, args: &Get) -> String {
    let describe = |pool: &Pool| {
        let mut item = summary(pool, args.json.json_int);
        item.insert("type".into(), json!("POOL"));
        let lines = lines(pool, asked, args.exact).into_iter();
        let properties = lines.map(|l| (l.property, json::property(&l.value, &l.source, args.json.json_int)));
        item.insert("properties".into(), Json::Object(properties.collect()));
        (key(pool, args.json.json_pool_key_guid), Json::Object(item))
    };
    json::document("zpool get", "pools", pools.iter().map(describe).collect::<Map<_, _>>())
}
