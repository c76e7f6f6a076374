//! Samples as text with commas: a line for each value of each sample.

use api::analytics::Data;
use std::fmt::Write;

/// `time,key,value`, times in UTC. A sample that is not broken down has no key.
pub fn csv(data: &Data) -> String {
    let mut text = String::from("time,key,value\n");
    for point in &data.points {
        let time = api::http::date(point.sample);
        match point.parts.is_empty() {
            true => drop(writeln!(text, "{time},,{}", point.value)),
            false => point.parts.iter().for_each(|part| {
                let _ = writeln!(text, "{time},{},{}", quoted(&part.key.shown(&data.scale)), part.value);
            }),
        }
    }
    text
}

/// As RFC 4180 has it; and a word that a spreadsheet would take for a formula begins with an apostrophe.
fn quoted(word: &str) -> String {
    let is_formula = word.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let word = if is_formula { format!("'{word}") } else { word.to_string() };
    match word.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", word.replace('"', "\"\"")),
        false => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::analytics::{Key, Part, Point};

    #[test]
    fn hostile_names_stay_in_their_field() {
        let part = |key| Part { key, value: 3, sum: 3 };
        let point = |parts| Point { sample: 0, samples: 1, value: 3, sum: 3, min: 3, max: 3, parts };
        let keys = [Key::Range(4096, 8192), Key::Text("=a,\"b\"\n".into()), Key::Other];
        let data = Data {
            scale: "bytes".into(),
            points: vec![point(Vec::new()), point(keys.map(part).to_vec())],
            ..Data::default()
        };
        let time = "1970-01-01T00:00:00Z";
        let expected =
            format!("time,key,value\n{time},,3\n{time},4K,3\n{time},\"'=a,\"\"b\"\"\n\",3\n{time},other,3\n");
        assert_eq!(csv(&data), expected);
    }
}
