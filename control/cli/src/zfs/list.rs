//! `zfs list`.

use super::scope::{self, pool_of};
use crate::args::SortKey;
use crate::args::zfs::List;
use crate::session::{Failure, Outcome, Session};
use crate::text::json;
use crate::text::property::{dataset_column, dataset_property, show_dataset};
use crate::text::table::{self, Column};
use api::{Dataset, DatasetKind, Source, Value};
use serde_json::{Map, Value as Json, json};
use std::cmp::Ordering;

const DEFAULT: [&str; 5] = ["name", "used", "available", "referenced", "mountpoint"];
/// What `-o space` stands for.
const SPACE: [&str; 7] = [
    "name",
    "available",
    "used",
    "usedbysnapshots",
    "usedbydataset",
    "usedbyrefreservation",
    "usedbychildren",
];

pub(super) fn run(session: &mut Session<'_>, args: &List) -> Outcome {
    let columns = columns(&args.columns)?;
    let keys = args.sort.0.iter().map(known_key).collect::<Outcome<Vec<_>>>()?;
    let mut kinds = scope::kinds(&args.scope.types)?;
    if kinds.is_empty() {
        kinds = vec![DatasetKind::Filesystem, DatasetKind::Volume];
        // A snapshot that is named is meant.
        if args.datasets.iter().any(|n| n.contains('@')) {
            kinds.push(DatasetKind::Snapshot);
        }
        if args.datasets.iter().any(|n| n.contains('#')) {
            kinds.push(DatasetKind::Bookmark);
        }
    }
    let mut wanted = columns.clone();
    wanted.extend(keys.iter().map(|k| k.property.clone()));
    wanted.push("createtxg".into());
    let mut datasets = scope::datasets(session, &args.scope, &args.datasets, kinds, wanted)?;
    sort(&mut datasets, &keys);
    if args.json.json {
        return session.print(&document(&datasets, &columns, args));
    }
    if datasets.is_empty() {
        // What was asked for and is not there was complained of.
        if !args.scripted && !session.has_failed {
            session.complain("no datasets available");
        }
        return Ok(());
    }
    session.print(&render(&datasets, &columns, args.scripted, args.exact))
}

fn columns(asked: &[String]) -> Outcome<Vec<String>> {
    if asked.is_empty() {
        return Ok(DEFAULT.map(String::from).to_vec());
    }
    let mut columns = Vec::new();
    for name in asked {
        match name.as_str() {
            "space" => columns.extend(SPACE.map(String::from)),
            _ => columns.push(known(name)?),
        }
    }
    Ok(columns)
}

fn known(name: &str) -> Outcome<String> {
    dataset_property(name)
        .ok_or_else(|| Failure::Usage(format!("bad property list: invalid property '{name}'")))
}

fn known_key(key: &SortKey) -> Outcome<SortKey> {
    Ok(SortKey { property: known(&key.property)?, descending: key.descending })
}

/// By the keys; what they leave undecided stays as the service ordered it: parents first, snapshots by age.
fn sort(datasets: &mut [Dataset], keys: &[SortKey]) {
    if keys.is_empty() {
        return;
    }
    datasets.sort_by(|a, b| {
        let by = |key: &SortKey| {
            let order = compare(a, b, &key.property);
            if key.descending { order.reverse() } else { order }
        };
        keys.iter().map(by).find(|o| *o != Ordering::Equal).unwrap_or_else(|| a.name.cmp(&b.name))
    });
}

/// What has the property comes before what has not.
fn compare(a: &Dataset, b: &Dataset, property: &str) -> Ordering {
    if property == "name" {
        return a.name.cmp(&b.name);
    }
    let value = |d: &Dataset| d.property(property).and_then(|p| p.value.clone());
    match (value(a), value(b)) {
        (Some(Value::Number(a)), Some(Value::Number(b))) => a.cmp(&b),
        (Some(Value::Text(a)), Some(Value::Text(b))) => a.cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

pub(super) fn render(datasets: &[Dataset], names: &[String], scripted: bool, exact: bool) -> String {
    let columns: Vec<Column> = names.iter().map(|name| dataset_column(name)).collect();
    let row = |d: &Dataset| names.iter().map(|name| cell(d, name, exact)).collect();
    let rows: Vec<Vec<String>> = datasets.iter().map(row).collect();
    table::render(&columns, &rows, scripted)
}

pub(super) fn cell(dataset: &Dataset, name: &str, exact: bool) -> String {
    match name {
        "name" => dataset.name.clone(),
        "type" => dataset.kind.word().into(),
        _ => show_dataset(name, dataset.property(name).and_then(|p| p.value.as_ref()), exact),
    }
}

fn document(datasets: &[Dataset], names: &[String], args: &List) -> String {
    let describe = |dataset: &Dataset| {
        let mut item = summary(dataset, args.json.json_int);
        let mut properties = Map::new();
        for name in names.iter().filter(|n| *n != "name") {
            let source = dataset.property(name).map_or(&Source::None, |p| &p.source);
            let value = cell(dataset, name, args.exact);
            properties.insert(name.clone(), json::property(&value, source, args.json.json_int));
        }
        item.insert("properties".into(), Json::Object(properties));
        (dataset.name.clone(), Json::Object(item))
    };
    json::document("zfs list", "datasets", datasets.iter().map(describe).collect::<Map<_, _>>())
}

/// What every JSON answer says of a dataset.
pub(super) fn summary(dataset: &Dataset, as_int: bool) -> Map<String, Json> {
    let mut item = Map::new();
    item.insert("name".into(), json!(dataset.name));
    item.insert("type".into(), json!(dataset.kind.word().to_uppercase()));
    item.insert("pool".into(), json!(pool_of(&dataset.name)));
    if let Some((of, snapshot)) = dataset.name.split_once('@') {
        item.insert("dataset".into(), json!(of));
        item.insert("snapshot_name".into(), json!(snapshot));
    }
    if let Some(txg) = dataset.property("createtxg").and_then(|p| p.value.as_ref()?.number()) {
        item.insert("createtxg".into(), json::number(txg, as_int));
    }
    item
}
