//! `zfs get`.

use super::fields::{Field, Line, render};
use super::list::{cell, summary};
use super::scope;
use crate::args::zfs::Get;
use crate::session::{Failure, Outcome, Session};
use crate::text::json;
use crate::text::property::{dataset_column, dataset_property, show_dataset};
use api::{Dataset, Property, Source};
use dsl::props::TABLE;
use serde_json::{Map, Value as Json};

pub(super) fn run(session: &mut Session<'_>, args: &Get) -> Outcome {
    let asked = properties(&args.properties)?;
    let fields = Field::parse(&args.fields, &[Field::Name, Field::Property, Field::Value, Field::Source])?;
    check_sources(&args.sources)?;
    let kinds = scope::kinds(&args.scope.types)?;
    // All that there are has to be asked for by no name at all.
    let mut wanted = asked.clone().unwrap_or_default();
    if asked.is_some() {
        wanted.push("createtxg".into());
    }
    let datasets = scope::datasets(session, &args.scope, &args.datasets, kinds, wanted)?;
    let lines = |d: &Dataset| lines(d, asked.as_deref(), args);
    if args.json.json {
        let describe = |d: &Dataset| {
            let mut item = summary(d, args.json.json_int);
            let properties = lines(d)
                .into_iter()
                .map(|l| (l.property, json::property(&l.value, &l.source, args.json.json_int)));
            item.insert("properties".into(), Json::Object(properties.collect()));
            (d.name.clone(), Json::Object(item))
        };
        let content: Map<_, _> = datasets.iter().map(describe).collect();
        return session.print(&json::document("zfs get", "datasets", content));
    }
    let all: Vec<Line> = datasets.iter().flat_map(lines).collect();
    session.print(&render(&all, &fields, value_width(asked.as_deref()), args.scripted))
}

/// `None` for all.
fn properties(asked: &str) -> Outcome<Option<Vec<String>>> {
    if asked == "all" {
        return Ok(None);
    }
    let known = |name: &str| {
        dataset_property(name)
            .ok_or_else(|| Failure::Usage(format!("bad property list: invalid property '{name}'")))
    };
    asked.split(',').map(known).collect::<Outcome<Vec<String>>>().map(Some)
}

fn check_sources(words: &[String]) -> Outcome {
    let known = ["local", "default", "inherited", "received", "temporary", "none"];
    match words.iter().find(|w| !known.contains(&w.as_str())) {
        Some(word) => Err(Failure::Usage(format!("invalid source '{word}'"))),
        None => Ok(()),
    }
}

fn has_source(source: &Source, words: &[String]) -> bool {
    let word = match source {
        Source::None => "none",
        Source::Default => "default",
        Source::Local => "local",
        Source::Inherited(_) => "inherited",
        Source::Received => "received",
        Source::Temporary => "temporary",
    };
    words.is_empty() || words.iter().any(|w| w == word)
}

fn lines(dataset: &Dataset, asked: Option<&[String]>, args: &Get) -> Vec<Line> {
    let missing = |name: &str| Property::new(name, None, Source::None);
    let properties: Vec<Property> = match asked {
        Some(names) => {
            names.iter().map(|n| dataset.property(n).cloned().unwrap_or_else(|| missing(n))).collect()
        }
        None => dataset.properties.clone(),
    };
    let line = |p: Property| Line {
        name: dataset.name.clone(),
        value: cell(dataset, &p.name, args.exact),
        received: p.received.as_ref().map(|v| show_dataset(&p.name, Some(v), args.exact)),
        property: p.name,
        source: p.source,
    };
    properties.into_iter().filter(|p| has_source(&p.source, &args.sources)).map(line).collect()
}

/// As wide as the heading and any value of the properties in question.
fn value_width(asked: Option<&[String]>) -> usize {
    let width = |name: &str| {
        let column = dataset_column(name);
        column.min.max(column.heading.len())
    };
    match asked {
        Some(names) => names.iter().map(|n| width(n)).max().unwrap_or(0),
        None => TABLE.iter().filter(|row| row.listed).map(|row| width(row.name)).max().unwrap_or(0),
    }
}
