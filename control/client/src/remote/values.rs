//! What the API answers, as the values of `api`. Pure.

use api::attributes::{Attribute, Shape};
use api::http::seconds;
use api::shares::{Item, ItemKind, Place};
use api::{Custom, CustomType, Pool, Property, Source};
use serde_json::Value;

pub(super) fn text(of: &Value, name: &str) -> String {
    of[name].as_str().unwrap_or_default().into()
}

pub(super) fn texts(of: &Value, name: &str) -> Vec<String> {
    of[name].as_array().into_iter().flatten().filter_map(Value::as_str).map(String::from).collect()
}

pub(super) fn list<'a>(of: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    of[name].as_array().into_iter().flatten()
}

/// As far as the API tells of it.
pub(super) fn pool(of: &Value) -> Pool {
    Pool {
        name: text(of, "name"),
        guid: text(of, "guid").parse().unwrap_or(0),
        txg: 0,
        health: text(of, "status").to_uppercase(),
        properties: Vec::new(),
        vdevs: None,
        scan: None,
        errors: api::DataErrors::default(),
        unusable: texts(of, "problems"),
        suspended: None,
        problem: None,
        logs: Vec::new(),
        clock_ns: 0,
    }
}

pub(super) fn item(of: &Value, place: Place, kind: ItemKind) -> Item {
    let source = |name: &str| match of["source"][name].as_str() {
        Some("default") => Source::Default,
        Some("local") => Source::Local,
        // From where is not told.
        Some("inherited") => Source::Inherited(String::new()),
        Some("received") => Source::Received,
        _ => Source::None,
    };
    let attribute = |attribute: &'static Attribute| {
        let value = value(attribute.shape, of.get(attribute.name)?)?;
        Some(Property::new(attribute.name, Some(value), source(attribute.name)))
    };
    let custom = |(name, value): (&String, &Value)| {
        let (kind, text) = match value {
            Value::Bool(flag) => (CustomType::Boolean, flag.to_string()),
            Value::Number(number) => (CustomType::Integer, number.to_string()),
            Value::String(text) => (CustomType::String, text.clone()),
            _ => return None,
        };
        name.starts_with(api::schema::PREFIX).then(|| Custom {
            name: name.clone(),
            kind,
            value: Some(text),
            source: source(name),
        })
    };
    Item {
        place,
        kind,
        attributes: Attribute::of(kind).filter_map(attribute).collect(),
        custom: of.as_object().into_iter().flatten().filter_map(custom).collect(),
    }
}

fn value(shape: Shape, of: &Value) -> Option<api::Value> {
    Some(match (shape, of) {
        (Shape::Date, Value::String(text)) => seconds(text)?.into(),
        (_, Value::String(text)) => text.as_str().into(),
        (_, Value::Number(number)) => number.as_u64()?.into(),
        (_, Value::Bool(flag)) => flag.to_string().into(),
        (_, Value::Array(all)) => all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",").into(),
        // The origin of a clone, which is known here by its name as a dataset.
        (_, Value::Object(_)) => {
            let place = Place::project(&text(of, "pool"), &text(of, "project"));
            let share = Some(text(of, "share")).filter(|share| !share.is_empty());
            let dataset = Place { share, ..place }.dataset();
            format!("{dataset}@{}", text(of, "snapshot")).as_str().into()
        }
        _ => return None,
    })
}

/// An attribute as a body holds it, from the words of a command.
pub(super) fn spelt(kind: ItemKind, name: &str, word: &str) -> Value {
    match Attribute::find(name, kind).map(|attribute| attribute.shape) {
        Some(Shape::List) => {
            word.split(',').map(str::trim).filter(|w| !w.is_empty()).collect::<Vec<_>>().into()
        }
        Some(Shape::Number) => word.parse::<u64>().map_or_else(|_| word.into(), Value::from),
        _ => word.into(),
    }
}
