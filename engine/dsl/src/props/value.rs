//! A property's value: read from text, shown as text.

use units::{Error, Result, parse_size, pretty_size};

use super::user::MAX_VALUE;
use super::{Kind, Names, Property, Types, Unit, show_date};

/// What a property ZAP holds: a number, or text that ends with a zero byte on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Number(u64),
    Text(String),
}

impl Value {
    /// `refreservation=auto`: the caller replaces it by what a full volume can take.
    pub const AUTO: Value = Value::Number(u64::MAX);

    pub fn number(&self) -> Option<u64> {
        match self {
            Value::Number(n) => Some(*n),
            Value::Text(_) => None,
        }
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Number(_) => None,
            Value::Text(text) => Some(text),
        }
    }
}

/// Reads the value of `row` as people write it, for a dataset of kind `types`. Only the row's own rules are applied;
/// rules that concern one property are in [`super::parse_setting`].
pub fn parse_value(row: &Property, text: &str, types: Types) -> Result<Value> {
    match row.kind {
        Kind::Text { .. } if text.len() > MAX_VALUE => Err(too_long(row.name)),
        Kind::Text { .. } => Ok(Value::Text(text.into())),
        Kind::Index { names, .. } => parse_index(row, names, text),
        Kind::Number { unit, .. } => parse_number(row, unit, text, types),
    }
}

fn too_long(name: &str) -> Error {
    Error::invalid(format!("'{name}' is too long; {MAX_VALUE} characters are allowed"))
}

fn parse_index(row: &Property, names: Names, text: &str) -> Result<Value> {
    match names.iter().find(|(name, _)| *name == text) {
        Some((_, code)) => Ok(Value::Number(*code)),
        None => Err(Error::invalid(format!("'{}' must be one of '{}'", row.name, row.values))),
    }
}

fn parse_number(row: &Property, unit: Unit, text: &str, types: Types) -> Result<Value> {
    match text {
        "none" if unit == Unit::CountOrNone => Ok(Value::Number(u64::MAX)),
        "none" => Ok(Value::Number(0)),
        "auto" => parse_auto(row, types),
        _ => parse_size(text)
            .map(Value::Number)
            .map_err(|why| Error::invalid(format!("bad value '{text}' for '{}': {why}", row.name))),
    }
}

/// The two properties whose number this program can find by itself.
fn parse_auto(row: &Property, types: Types) -> Result<Value> {
    match row.name {
        "dedup_table_quota" => Ok(Value::AUTO),
        "refreservation" if types.overlaps(Types::VOLUME) => Ok(Value::AUTO),
        "refreservation" => Err(Error::invalid("'refreservation=auto' is only allowed on volumes")),
        name => Err(Error::invalid(format!("'auto' is an invalid value for '{name}'"))),
    }
}

/// Writes a value as `zfs get` shows it; `exact` as with `-p`. A code that no name stands for is shown as a number.
pub fn show_value(row: &Property, value: &Value, exact: bool) -> String {
    match (row.kind, value) {
        (_, Value::Text(text)) => text.clone(),
        (Kind::Index { names, .. }, Value::Number(code)) => show_index(names, *code),
        (Kind::Number { unit, .. }, Value::Number(n)) => show_number(unit, *n, exact),
        (Kind::Text { .. }, Value::Number(n)) => n.to_string(),
    }
}

fn show_index(names: Names, code: u64) -> String {
    names.iter().find(|(_, c)| *c == code).map_or_else(|| code.to_string(), |(name, _)| (*name).into())
}

fn show_number(unit: Unit, n: u64, exact: bool) -> String {
    match unit {
        Unit::CountOrNone if n == u64::MAX => "none".into(),
        Unit::Ratio if exact => format!("{}.{:02}", n / 100, n % 100),
        Unit::Ratio => format!("{}.{:02}x", n / 100, n % 100),
        _ if exact => n.to_string(),
        Unit::Exact => n.to_string(),
        Unit::BytesOrNone if n == 0 => "none".into(),
        Unit::Bytes | Unit::BytesOrNone => pretty_size(n),
        Unit::Scaled | Unit::CountOrNone => pretty_size(n).trim_end_matches('B').into(),
        Unit::Percent => format!("{n}%"),
        Unit::Date => show_date(n, false),
        Unit::DateSeconds => show_date(n, true),
    }
}
