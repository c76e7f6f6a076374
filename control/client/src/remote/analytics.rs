//! Analytics over REST: data are asked for by a query, and what is made is told with its name.

use super::{Remote, misread};
use api::analytics::{Analytics, Data, DataQuery, Key, Part, Point, Start, Told};
use api::http::{Wrong, encode};
use api::{Reply, Request, Result};
use serde_json::Value;

impl Remote {
    pub(super) fn analytics(&mut self, asked: Analytics) -> Result<Reply> {
        match asked {
            Analytics::Data(query) => {
                let answer = self.get(&path(&query))?;
                let data = data(query.name, &answer).ok_or_else(|| misread(Wrong::Missing("data")))?;
                Ok(Reply::Analytics(Told::Data(data)))
            }
            // The name in its one spelling.
            Analytics::Open { statistic } => {
                let body = serde_json::json!({ "statistic": statistic });
                let answer = self.post("/api/analytics/v1/datasets", &body)?;
                Ok(Reply::Named { name: answer["dataset"]["name"].as_str().unwrap_or_default().into() })
            }
            asked => self.declared(&Request::Analytics(asked)),
        }
    }
}

fn path(query: &DataQuery) -> String {
    let start = match query.start {
        Start::Now => "now".into(),
        Start::At(second) => second.to_string(),
        Start::Ago(seconds) => format!("-{seconds}"),
    };
    let (name, seconds, granularity) = (encode(&query.name), query.seconds, query.granularity.word());
    format!(
        "/api/analytics/v1/datasets/{name}/data?start={start}&seconds={seconds}&granularity={granularity}"
    )
}

fn data(name: String, answer: &Value) -> Option<Data> {
    let text = |name: &str| answer[name].as_str().unwrap_or_default().to_string();
    let points = answer["data"].as_array()?.iter().map(point).collect::<Option<_>>()?;
    Some(Data { name, unit: text("unit"), scale: text("scale"), points })
}

fn point(told: &Value) -> Option<Point> {
    let of = &told["data"];
    let value = of["value"].as_u64()?;
    // What a point of one second does not say is its value.
    let or_value = |name: &str| of[name].as_u64().unwrap_or(value);
    let parts = of["data"].as_array().into_iter().flatten().map(part).collect::<Option<_>>()?;
    Some(Point {
        sample: told["sample"].as_u64()?,
        samples: told["samples"].as_u64()?,
        value,
        sum: or_value("sum"),
        min: or_value("min"),
        max: or_value("max"),
        parts,
    })
}

fn part(told: &Value) -> Option<Part> {
    let value = told["value"].as_u64()?;
    let key = match (told["from"].as_u64(), told["to"].as_u64()) {
        (Some(from), Some(to)) => Key::Range(from, to),
        _ => Key::Text(told["key"].as_str()?.into()),
    };
    Some(Part { key, value, sum: told["sum"].as_u64().unwrap_or(value) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::analytics::Granularity;
    use serde_json::json;

    #[test]
    fn data_are_asked_for_by_a_query_and_taken_as_they_were_told() {
        let query = DataQuery {
            name: "io.ops[size]".into(),
            start: Start::Ago(60),
            seconds: 60,
            granularity: Granularity::Minute,
        };
        assert_eq!(
            path(&query),
            "/api/analytics/v1/datasets/io.ops%5Bsize%5D/data?start=-60&seconds=60&granularity=minute"
        );
        let answer = json!({ "unit": "operations/s", "scale": "bytes", "size": 1, "data": [
            { "sample": 60, "startTime": "19700101T00:01:00", "samples": 60, "data": { "value": 2, "sum": 120, "min": 0,
              "max": 9, "data": [{ "key": "512K", "from": 524_288, "to": 1_048_576, "value": 2, "sum": 120 }] } }] });
        let part = Part { key: Key::Range(524_288, 1_048_576), value: 2, sum: 120 };
        let point = Point { sample: 60, samples: 60, value: 2, sum: 120, min: 0, max: 9, parts: vec![part] };
        let expected = Data {
            name: "io.ops[size]".into(),
            unit: "operations/s".into(),
            scale: "bytes".into(),
            points: vec![point],
        };
        assert_eq!(data("io.ops[size]".into(), &answer), Some(expected));
        assert_eq!(data("x".into(), &json!({ "data": [{}] })), None);
    }
}
