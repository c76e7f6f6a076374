//! What goes on now as lines, a screen a second: for a count, for other programs, and where no terminal is.

use super::law::Numbers;
use super::layers::LAYERS;
use crate::args::calc::Top;
use crate::calc::digits;
use crate::live;
use crate::session::{Outcome, Session};
use crate::text::json;
use crate::text::visible::visible;
use api::analytics::{Data, Start};
use serde_json::{Map, Value, json};

const PARTS_MAX: usize = 20;

/// Prints until it is ended, or for as many seconds as the count says.
pub fn run(session: &mut Session<'_>, args: &Top) -> Outcome {
    let mut left = args.count.unwrap_or(u64::MAX);
    let wanted = match args.statistics.is_empty() {
        true => LAYERS.iter().flat_map(|layer| layer.statistics()).collect(),
        false => args.statistics.clone(),
    };
    let names: Vec<String> = wanted.iter().map(|name| live::open(session, name)).collect::<Outcome<_>>()?;
    while left > 0 {
        left -= 1;
        let mut all: Vec<Data> = Vec::new();
        let mut start = Start::Now;
        for name in &names {
            let data = live::samples(session, name, start, 1)?;
            // All are of the second that the first waited for.
            if let Some(point) = data.points.first() {
                start = Start::At(point.sample);
            }
            all.push(data);
        }
        if args.json {
            session.print(&document(&all))?;
            continue;
        }
        let text = if args.statistics.is_empty() { layers(&all) } else { breakdowns(&all) };
        live::show(session, text)?;
    }
    Ok(())
}

fn layers(all: &[Data]) -> String {
    let mut text = format!("{}\n", live::moment(all.first()));
    let heads = ["OPS/S", "MB/S", "SIZE", "RESPONSE", "UNDER WAY"];
    text.push_str(&format!("{:<8}{}\n", "LAYER", heads.map(|head| format!("{head:>12}")).concat()));
    for (layer, data) in LAYERS.iter().zip(all.chunks(2)) {
        let [operations, bytes] = data else { continue };
        let (Some(operations), Some(bytes)) = (operations.points.first(), bytes.points.first()) else {
            continue;
        };
        let columns = Numbers::of(operations, bytes).columns();
        text.push_str(&format!(
            "{:<8}{}\n",
            layer.title,
            columns.map(|column| format!("{column:>12}")).concat()
        ));
    }
    text
}

fn breakdowns(all: &[Data]) -> String {
    let mut text = format!("{}\n", live::moment(all.first()));
    for data in all {
        let Some(point) = data.points.first() else {
            text.push_str(&format!("\n{}: no sample\n", visible(&data.name)));
            continue;
        };
        text.push_str(&format!("\n{}: {} {}\n", visible(&data.name), digits(point.value as f64), data.unit));
        let mut parts: Vec<_> = point.parts.iter().collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.value));
        for part in parts.iter().take(PARTS_MAX) {
            let key = visible(&part.key.shown(&data.scale));
            text.push_str(&format!("{:>14}  {key}\n", digits(part.value as f64)));
        }
    }
    text
}

/// One second: each statistic with all its parts, exact.
fn document(all: &[Data]) -> String {
    let mut content = Map::new();
    for data in all {
        let mut told = Map::new();
        told.insert("unit".into(), data.unit.as_str().into());
        if let Some(point) = data.points.first() {
            let parts = point
                .parts
                .iter()
                .map(|part| json!({ "key": part.key.shown(&data.scale), "value": part.value }));
            told.insert("time".into(), api::http::date(point.sample).into());
            told.insert("value".into(), point.value.into());
            told.insert("parts".into(), parts.collect::<Vec<_>>().into());
        }
        content.insert(data.name.clone(), Value::Object(told));
    }
    json::document("top", "statistics", content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::analytics::{Key, Part, Point};

    fn data(unit: &str, value: u64, parts: Vec<Part>) -> Data {
        let point = Point { sample: 60, samples: 1, value, sum: value, min: value, max: value, parts };
        Data { name: "x".into(), unit: unit.into(), scale: "nanoseconds".into(), points: vec![point] }
    }

    #[test]
    fn a_second_is_printed_by_layer_by_part_and_as_json() {
        let part = |from, to, value| Part { key: Key::Range(from, to), value, sum: value };
        let ops = data(
            "operations/s",
            2_000,
            vec![part(1_000_000, 3_000_000, 1_500), part(9_000_000, 11_000_000, 500)],
        );
        let bytes = data("bytes/s", 131_072_000, Vec::new());
        let text = layers(&[ops.clone(), bytes]);
        let line = text.lines().find(|line| line.starts_with("iSCSI")).unwrap();
        assert_eq!(
            line.split_whitespace().collect::<Vec<_>>(),
            ["iSCSI", "2,000", "131", "64K", "4", "ms", "8"]
        );
        let text = breakdowns(std::slice::from_ref(&ops));
        assert!(text.contains("x: 2,000 operations/s") && text.contains("         1,500  1ms"), "{text}");
        let idle = layers(&[data("", 0, Vec::new()), data("", 0, Vec::new())]);
        assert!(idle.contains("iSCSI"), "{idle}");
        let told: Value = serde_json::from_str(&document(&[ops])).unwrap();
        let own = &told["statistics"]["x"];
        assert_eq!((&own["value"], &own["time"]), (&json!(2_000), &json!("1970-01-01T00:01:00Z")));
        assert_eq!(own["parts"][1], json!({ "key": "9ms", "value": 500 }));
    }
}
