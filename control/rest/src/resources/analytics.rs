//! `/api/analytics`: statistics, their datasets and data, worksheets.
//!
//! Data are asked for by `?start=now|TIME|SECOND|-SECONDS&seconds=N&granularity=second|minute|hour`, and waited for where
//! they lie in the future.

use super::unexpected;
use crate::endpoint::{Endpoint, Reply, get, handles, plain, put, run, shows};
use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest, nothing};
use api::Request;
use api::analytics::{Analytics, Data, DataQuery, Dataset, Granularity, Start, Told, Worksheet};
use api::declared::analytics as declared;
use api::http::seconds;
use serde_json::{Value, json};
use std::sync::Arc;

const ONE: Reply = Reply::One("dataset", &declared::DATASET.shape);

pub(crate) static ENDPOINTS: &[Endpoint] = &[
    get(
        "/api/analytics/v1",
        "What this service can do",
        Reply::One("service", &super::SERVICE),
        run!(super::describe),
    ),
    // They stand before the datasets that are named in a path.
    plain(&declared::SUSPEND_ALL),
    plain(&declared::RESUME_ALL),
    shows(&declared::GET_DATASET, run!(dataset)),
    handles(&declared::OPEN, run!(open)),
    handles(&declared::CHANGE_DATASET, run!(change_dataset)),
    handles(&declared::SAVE, run!(change_dataset)),
    put(
        "/api/analytics/v1/datasets/{dataset}/suspend",
        "Suspend a dataset: it takes no samples",
        ONE,
        run!(suspend),
    )
    .needs(declared::DATASET_CHANGES),
    put("/api/analytics/v1/datasets/{dataset}/resume", "Resume a dataset", ONE, run!(resume))
        .needs(declared::DATASET_CHANGES),
    handles(&declared::PRUNE, run!(change_dataset)),
    get(
        declared::DATA,
        "Samples of a dataset; those of the future are waited for",
        Reply::Document,
        run!(data),
    ),
    shows(&declared::GET_WORKSHEET, run!(worksheet)),
    handles(&declared::CREATE_WORKSHEET, run!(create_worksheet)),
    handles(&declared::RENAME_WORKSHEET, run!(change_worksheet)),
    shows(&declared::GET_GRAPHS, run!(graphs)),
    handles(&declared::ADD_GRAPH, run!(change_worksheet)),
    handles(&declared::CHANGE_GRAPH, run!(change_worksheet)),
    handles(&declared::CHANGE_SETTINGS, run!(settings)),
];

async fn the(rest: &Rest, asked: &Asked, name: &str) -> Outcome {
    let found = datasets(rest, asked).await?.into_iter().find(|dataset| dataset.name == name);
    let found = found.ok_or_else(|| Fault::not_found(format!("there is no dataset '{name}'")))?;
    Ok(json!({ "dataset": asked.told(&declared::DATASET, &found) }).into())
}

async fn datasets(rest: &Rest, asked: &Asked) -> Result<Vec<Dataset>, Fault> {
    match rest.call(asked, Request::Analytics(Analytics::Datasets)).await? {
        api::Reply::Analytics(Told::Datasets(all)) => Ok(all),
        _ => Err(unexpected()),
    }
}

async fn dataset(rest: Arc<Rest>, asked: Asked) -> Outcome {
    the(&rest, &asked, asked.param("dataset")).await
}

async fn open(rest: Arc<Rest>, asked: Asked) -> Outcome {
    match rest.call(&asked, asked.request()?).await? {
        api::Reply::Named { name } => the(&rest, &asked, &name).await,
        _ => Err(unexpected()),
    }
}

async fn change_dataset(rest: Arc<Rest>, asked: Asked) -> Outcome {
    rest.call(&asked, asked.request()?).await?;
    dataset(rest, asked).await
}

async fn switch(rest: Arc<Rest>, asked: Asked, suspended: bool) -> Outcome {
    let name = Some(asked.param("dataset").to_string());
    rest.call(&asked, Request::Analytics(Analytics::Suspend { name, suspended })).await?;
    dataset(rest, asked).await
}

async fn suspend(rest: Arc<Rest>, asked: Asked) -> Outcome {
    switch(rest, asked, true).await
}

async fn resume(rest: Arc<Rest>, asked: Asked) -> Outcome {
    switch(rest, asked, false).await
}

async fn data(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let query = DataQuery {
        name: asked.param("dataset").into(),
        start: start(asked.path.query("start"))?,
        seconds: number("seconds", asked.path.query("seconds"), 1)?,
        granularity: match asked.path.query("granularity") {
            None => Granularity::Second,
            Some(word) => Granularity::parse(word).ok_or_else(|| {
                Fault::invalid(format!("'{word}' is no granularity: second, minute or hour"))
            })?,
        },
    };
    match rest.call(&asked, Request::Analytics(Analytics::Data(query))).await? {
        api::Reply::Analytics(Told::Data(data)) => Ok(told(&data).into()),
        _ => Err(unexpected()),
    }
}

fn number(name: &str, text: Option<&str>, default: u64) -> Result<u64, Fault> {
    let Some(text) = text else { return Ok(default) };
    text.parse().map_err(|_| Fault::invalid(format!("'{name}' is a number, not '{text}'")))
}

/// `now`, a time of ISO 8601 in UTC, the second since 1970 that is the index of a sample, or `-N`: N seconds ago.
fn start(text: Option<&str>) -> Result<Start, Fault> {
    let Some(text) = text.filter(|text| *text != "now") else { return Ok(Start::Now) };
    if let Some(ago) = text.strip_prefix('-') {
        return number("start", Some(ago), 0).map(Start::Ago);
    }
    if let Ok(second) = text.parse() {
        return Ok(Start::At(second));
    }
    // The appliance writes dates without hyphens as well.
    let date = match text.as_bytes() {
        [y @ .., b'T', _, _, b':', _, _, b':', _, _] if y.len() == 8 => {
            format!("{}-{}-{}{}", &text[..4], &text[4..6], &text[6..8], &text[8..])
        }
        _ => text.into(),
    };
    let found = date.is_ascii().then(|| seconds(&date)).flatten();
    found.map(Start::At).ok_or_else(|| {
        Fault::invalid(format!(
            "'{text}' is no start: now, -SECONDS, a time such as 2026-11-24T23:31:04, or a sample"
        ))
    })
}

/// `20261124T23:31:04`, as the appliance has it.
fn time(second: u64) -> String {
    let date = api::http::date(second);
    date.trim_end_matches('Z').replacen('-', "", 2)
}

fn told(data: &Data) -> Value {
    let points: Vec<Value> = data
        .points
        .iter()
        .map(|point| {
            let mut of = json!({ "value": point.value });
            if !point.parts.is_empty() {
                of["data"] = point.parts.iter().map(|part| part_told(data, part)).collect();
            }
            if point.samples > 1 {
                (of["min"], of["max"], of["sum"]) = (point.min.into(), point.max.into(), point.sum.into());
            }
            json!({
                "sample": point.sample, "startTime": time(point.sample), "samples": point.samples, "data": of,
            })
        })
        .collect();
    json!({ "size": points.len(), "data": points })
}

fn part_told(data: &Data, part: &api::analytics::Part) -> Value {
    let mut told = json!({ "key": part.key.shown(&data.scale), "value": part.value });
    if part.sum != part.value {
        told["sum"] = part.sum.into();
    }
    if let api::analytics::Key::Range(from, to) = part.key {
        (told["from"], told["to"]) = (from.into(), to.into());
    }
    told
}

async fn worksheets(rest: &Rest, asked: &Asked) -> Result<Vec<Worksheet>, Fault> {
    match rest.call(asked, Request::Analytics(Analytics::Worksheets)).await? {
        api::Reply::Analytics(Told::Worksheets(all)) => Ok(all),
        _ => Err(unexpected()),
    }
}

async fn find(rest: &Rest, asked: &Asked, named: &str) -> Result<Worksheet, Fault> {
    let mut all = worksheets(rest, asked).await?.into_iter();
    let found = all.find(|worksheet| worksheet.uuid == named || worksheet.name == named);
    found.ok_or_else(|| Fault::not_found(format!("there is no worksheet '{named}'")))
}

async fn worksheet(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let found = find(&rest, &asked, asked.param("worksheet")).await?;
    Ok(json!({ "worksheet": asked.told(&declared::WORKSHEET, &found) }).into())
}

async fn create_worksheet(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = asked.args.text("name").unwrap_or_default().to_string();
    let owner = asked.who.user.clone();
    after(rest, &asked, Request::Analytics(Analytics::WorksheetCreate { name, owner })).await
}

async fn change_worksheet(rest: Arc<Rest>, asked: Asked) -> Outcome {
    after(rest, &asked, asked.request()?).await
}

/// The worksheet as it is after that.
async fn after(rest: Arc<Rest>, asked: &Asked, request: Request) -> Outcome {
    match rest.call(asked, request).await? {
        api::Reply::Named { name } => {
            let found = find(&rest, asked, &name).await?;
            Ok(json!({ "worksheet": asked.told(&declared::WORKSHEET, &found) }).into())
        }
        _ => nothing(),
    }
}

async fn graphs(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let found = find(&rest, &asked, asked.param("worksheet")).await?;
    Ok(json!({ "datasets": declared::graphs(&found) }).into())
}

async fn settings(rest: Arc<Rest>, asked: Asked) -> Outcome {
    match rest.call(&asked, asked.request()?).await? {
        api::Reply::Analytics(Told::Settings(settings)) => {
            Ok(json!({ "settings": asked.told(&declared::SETTINGS, &settings) }).into())
        }
        _ => Err(unexpected()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::analytics::{Key, Part, Point};

    #[test]
    fn a_start_is_said_in_the_ways_of_the_appliance() {
        for (text, expected) in [
            ("now", Start::Now),
            ("-600", Start::Ago(600)),
            ("1795563064", Start::At(1_795_563_064)),
            ("2026-11-24T23:31:04", Start::At(1_795_563_064)),
            ("2026-11-24T23:31:04Z", Start::At(1_795_563_064)),
            ("20261124T23:31:04", Start::At(1_795_563_064)),
        ] {
            assert_eq!(start(Some(text)).unwrap(), expected, "{text}");
        }
        assert_eq!(time(1_795_563_064), "20261124T23:31:04");
        for text in ["", "-", "--3", "yesterday", "ééééT23:31:04", "2026-13-24T00:00:00", "1e9"] {
            let fault = start(Some(text)).unwrap_err();
            assert_eq!(fault.code, 400, "{text}");
        }
    }

    #[test]
    fn points_are_told_with_what_their_granularity_has() {
        let part = |key, value, sum| Part { key, value, sum };
        let point = |sample, samples, parts| Point {
            sample,
            samples,
            value: 2,
            sum: 2 * samples,
            min: 1,
            max: 3,
            parts,
        };
        let data = Data {
            name: "x".into(),
            unit: String::new(),
            scale: "bytes".into(),
            points: vec![
                point(60, 1, vec![part(Key::Range(524_288, 1_048_576), 2, 2)]),
                point(120, 60, vec![part(Key::Text("<b>".into()), 2, 120)]),
                point(180, 1, Vec::new()),
            ],
        };
        let expected = json!({ "size": 3, "data": [
            { "sample": 60, "startTime": "19700101T00:01:00", "samples": 1, "data": { "value": 2, "data": [
                { "key": "512K", "from": 524_288, "to": 1_048_576, "value": 2 }] } },
            { "sample": 120, "startTime": "19700101T00:02:00", "samples": 60, "data": {
                "value": 2, "min": 1, "max": 3, "sum": 120,
                "data": [{ "key": "<b>", "value": 2, "sum": 120 }] } },
            { "sample": 180, "startTime": "19700101T00:03:00", "samples": 1, "data": { "value": 2 } },
        ]});
        assert_eq!(told(&data), expected);
    }
}
