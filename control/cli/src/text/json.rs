//! The JSON of `-j`, in OpenZFS's shape.

use api::Source;
use serde_json::{Map, Value as Json, json};

/// The frame around every answer.
pub fn document(command: &str, key: &str, content: Map<String, Json>) -> String {
    let version = json!({ "command": command, "vers_major": 0, "vers_minor": 1 });
    let mut document = Map::new();
    document.insert("output_version".into(), version);
    document.insert(key.into(), Json::Object(content));
    pretty(&Json::Object(document))
}

pub fn pretty(value: &Json) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    format!("{text}\n")
}

/// A number as people asked for it: a string, unless numbers were asked for.
pub fn number(n: u64, as_int: bool) -> Json {
    if as_int { json!(n) } else { json!(n.to_string()) }
}

/// A property's value that was made text already.
pub fn text(text: &str, as_int: bool) -> Json {
    match text.parse::<u64>() {
        Ok(n) if as_int => json!(n),
        _ => json!(text),
    }
}

pub fn property(value: &str, source: &Source, as_int: bool) -> Json {
    let (kind, data) = match source {
        Source::None => ("NONE", "-"),
        Source::Default => ("DEFAULT", "-"),
        Source::Local => ("LOCAL", "-"),
        Source::Inherited(from) => ("INHERITED", from.as_str()),
        Source::Received => ("RECEIVED", "-"),
        Source::Temporary => ("TEMPORARY", "-"),
    };
    json!({ "value": text(value, as_int), "source": { "type": kind, "data": data } })
}
