//! Values of properties, between the tables of the DSL and the API: codes become words, numbers stay numbers.

use api::{Source, Value};
use dsl::props::{self, Kind, Property};

/// A stored value as it travels.
pub(crate) fn travelling(row: &Property, value: &props::Value) -> Value {
    match (row.kind, value) {
        (Kind::Index { .. }, value) => Value::Text(props::show_value(row, value, true)),
        (_, props::Value::Number(n)) => Value::Number(*n),
        (_, props::Value::Text(text)) => Value::Text(text.clone()),
    }
}

/// The value of a property that users invented.
pub(crate) fn plain(value: &props::Value) -> Value {
    match value {
        props::Value::Number(n) => Value::Number(*n),
        props::Value::Text(text) => Value::Text(text.clone()),
    }
}

pub(crate) fn source(source: &props::Source) -> Source {
    match source {
        props::Source::None => Source::None,
        props::Source::Default => Source::Default,
        props::Source::Local => Source::Local,
        props::Source::Inherited(from) => Source::Inherited(from.clone()),
        props::Source::Received => Source::Received,
        props::Source::Temporary => Source::Temporary,
    }
}
