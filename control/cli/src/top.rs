//! `top`: what goes on now, by layer, a screen a second.
//!
//! Operations, bandwidth and response time of a layer stand together, with what Little's law makes of them: operations
//! per second times response time is what is under way at once.
//!
//! The response time is the mean of a histogram whose buckets are narrow, each taken at its middle.

use crate::args::calc::Top;
use crate::calc::{digits, shown_time};
use crate::live;
use crate::session::{Outcome, Session};
use api::analytics::{Data, Key, Point, Start};

/// A layer, by the family of its statistics.
const LAYERS: [(&str, &str); 4] = [("iSCSI", "iscsi"), ("NBD", "nbd"), ("files", "fs"), ("disks", "io")];
const PARTS_MAX: usize = 20;

pub fn run(session: &mut Session<'_>, args: &Top) -> Outcome {
    let mut left = args.count.unwrap_or(u64::MAX);
    let wanted = match args.statistics.is_empty() {
        true => {
            LAYERS.iter().flat_map(|(_, of)| [format!("{of}.ops[latency]"), format!("{of}.bytes")]).collect()
        }
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
        let text = if args.statistics.is_empty() { layers(&all) } else { breakdowns(&all) };
        live::show(session, text)?;
    }
    Ok(())
}

/// The mean of what is in buckets, in seconds.
fn mean(point: &Point) -> Option<f64> {
    let middle = |key: &Key| match key {
        Key::Range(from, to) if *to != u64::MAX => (*from as f64 + *to as f64) / 2.0,
        Key::Range(from, _) => *from as f64,
        _ => 0.0,
    };
    let sum: f64 = point.parts.iter().map(|part| middle(&part.key) * part.value as f64).sum();
    let count: u64 = point.parts.iter().map(|part| part.value).sum();
    (count > 0).then(|| sum / count as f64 / 1e9)
}

fn layers(all: &[Data]) -> String {
    let mut text = format!("{}\n", live::moment(all.first()));
    let heads = ["OPS/S", "MB/S", "SIZE", "RESPONSE", "UNDER WAY"];
    text.push_str(&format!("{:<8}{}\n", "LAYER", heads.map(|head| format!("{head:>12}")).concat()));
    for ((name, _), data) in LAYERS.iter().zip(all.chunks(2)) {
        let [ops, bytes] = data else { continue };
        let (Some(ops), Some(bytes)) = (ops.points.first(), bytes.points.first()) else { continue };
        let response = mean(ops);
        let size = (ops.value > 0).then(|| units::pretty_size(bytes.value / ops.value));
        let columns = [
            digits(ops.value as f64),
            digits(bytes.value as f64 / 1e6),
            size.unwrap_or_else(|| "-".into()),
            response.map_or("-".into(), shown_time),
            response.map_or("-".into(), |seconds| digits(seconds * ops.value as f64)),
        ];
        text.push_str(&format!("{name:<8}{}\n", columns.map(|column| format!("{column:>12}")).concat()));
    }
    text
}

fn breakdowns(all: &[Data]) -> String {
    let mut text = format!("{}\n", live::moment(all.first()));
    for data in all {
        let Some(point) = data.points.first() else {
            text.push_str(&format!("\n{}: no sample\n", data.name));
            continue;
        };
        text.push_str(&format!("\n{}: {} {}\n", data.name, digits(point.value as f64), data.unit));
        let mut parts: Vec<_> = point.parts.iter().collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.value));
        for part in parts.iter().take(PARTS_MAX) {
            // What a name may do to a terminal, it may not.
            let key: String = part.key.shown(&data.scale).chars().filter(|c| !c.is_control()).collect();
            text.push_str(&format!("{:>14}  {key}\n", digits(part.value as f64)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::analytics::Part;

    fn data(unit: &str, value: u64, parts: Vec<Part>) -> Data {
        let point = Point { sample: 60, samples: 1, value, sum: value, min: value, max: value, parts };
        Data { name: "x".into(), unit: unit.into(), scale: "nanoseconds".into(), points: vec![point] }
    }

    #[test]
    fn three_numbers_stand_beside_what_the_law_makes_of_them() {
        let part = |from, to, value| Part { key: Key::Range(from, to), value, sum: value };
        let ops = data(
            "operations/s",
            2_000,
            vec![part(1_000_000, 3_000_000, 1_500), part(9_000_000, 11_000_000, 500)],
        );
        let bytes = data("bytes/s", 131_072_000, Vec::new());
        let text = layers(&[ops.clone(), bytes]);
        let line = text.lines().find(|line| line.starts_with("iSCSI")).unwrap();
        // 1,500 of 2 ms and 500 of 10 ms: 4 ms, and 2,000 a second of 4 ms are 8 at once.
        assert_eq!(
            line.split_whitespace().collect::<Vec<_>>(),
            ["iSCSI", "2,000", "131", "64K", "4", "ms", "8"]
        );
        let text = breakdowns(&[ops]);
        assert!(text.contains("x: 2,000 operations/s") && text.contains("         1,500  1ms"), "{text}");
        let idle = layers(&[data("", 0, Vec::new()), data("", 0, Vec::new())]);
        assert!(idle.contains("iSCSI"), "{idle}");
    }
}
