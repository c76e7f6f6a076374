//! How things are laid out. Pure.

use crate::draft::size;
use api::attributes::{Attribute, Shape};
use api::http::{self, Answer, Field, Kind};
use api::{Property, Source, Value};
use cli::text::visible::visible;
use serde_json::Value as Json;

/// Where the names of properties end.
const NAME_WIDTH: usize = 30;
/// Where the echo of a setting begins.
const ECHO_MARGIN: usize = 23;
/// What is shown of a secret.
pub(crate) const SECRET: &str = "********";

/// `                       logbias = latency (uncommitted)`
pub(crate) fn property(name: &str, value: &str, note: &str) -> String {
    let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
    format!("{name:>NAME_WIDTH$} = {}{note}\n", visible(value))
}

/// What was set, behind one margin, as appliances echo it: `                       volblocksize = 16K (uncommitted)`
pub(crate) fn echo(name: &str, value: &str, note: &str) -> String {
    format!("{:ECHO_MARGIN$}{name} = {} ({note})\n", "", visible(value))
}

/// `                       target-000 => text`
pub(crate) fn child(name: &str, text: &str) -> String {
    format!("{name:>NAME_WIDTH$} => {}\n", visible(text))
}

pub(crate) fn value(attribute: &Attribute, property: &Property) -> String {
    match (&property.value, attribute.shape) {
        (None, _) => String::new(),
        (Some(Value::Text(text)), Shape::List) => text.replace(',', ", "),
        (Some(Value::Text(text)), _) => text.clone(),
        (Some(Value::Number(n)), Shape::Size) => size(*n),
        (Some(Value::Number(n)), Shape::Date) => cli::text::date::ctime(*n),
        (Some(Value::Number(n)), Shape::Ratio) => format!("{}.{:02}x", n / 100, n % 100),
        (Some(Value::Number(n)), _) => n.to_string(),
    }
}

/// Where a value comes from, in the words behind it; nothing for what was set right there.
pub(crate) fn note(source: &Source) -> &'static str {
    match source {
        Source::None | Source::Local => "",
        Source::Default => "default",
        Source::Inherited(_) => "inherited",
        Source::Received => "received",
        Source::Temporary => "temporary",
    }
}

/// Columns under a heading: a title, a blank line, and the rows.
pub(crate) fn table(title: &str, headings: &[&str], rows: &[Vec<String>]) -> String {
    use cli::text::table::{Column, line, widths};
    let column = |h: &&str| Column { heading: (*h).into(), right: false, min: 0 };
    let columns: Vec<Column> = headings.iter().map(column).collect();
    let widths = widths(&columns, rows);
    let heads: Vec<String> = headings.iter().map(ToString::to_string).collect();
    let mut text = format!("{title}:\n\n{}", line(&columns, &widths, &heads));
    rows.iter().for_each(|row| text.push_str(&line(&columns, &widths, row)));
    text
}

/// The answer to a request that is declared: a table or properties of the fields of its shape.
pub(crate) fn answer(reply: Answer, told: &Json) -> String {
    let fields = |shape: &'static http::Shape| shape.fields.iter().filter(|field| field.name != "href");
    match reply {
        Answer::Several(name, shape) => {
            let headings: Vec<String> = fields(shape).map(|field| field.name.to_uppercase()).collect();
            let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
            let row = |one: &Json| fields(shape).map(|field| cell(field, &one[field.name])).collect();
            let rows: Vec<Vec<String>> = told[name].as_array().into_iter().flatten().map(row).collect();
            let title: String = name.replace('_', " ");
            table(&(title[..1].to_uppercase() + &title[1..]), &headings, &rows)
        }
        Answer::One(name, shape) => fields(shape)
            .map(|field| property(field.name, &cell(field, &told[name][field.name]), ""))
            .collect(),
        Answer::Nothing | Answer::Text | Answer::Document => String::new(),
    }
}

fn cell(field: &Field, value: &Json) -> String {
    match (value, field.kind) {
        (Json::Null, _) => "-".into(),
        (Json::String(text), _) => text.clone(),
        (Json::Number(n), Kind::Size) => n.as_u64().map_or_else(|| n.to_string(), size),
        (Json::Array(all), _) => all.iter().map(|one| cell(field, one)).collect::<Vec<_>>().join(", "),
        // Of a value in a list, its name.
        (Json::Object(one), Kind::List(shape) | Kind::Object(shape)) => {
            let named = shape.fields.iter().find(|inner| inner.name != "href");
            named.and_then(|inner| one.get(inner.name)?.as_str()).unwrap_or_default().into()
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_where_the_appliance_ends_them() {
        assert_eq!(
            property("logbias", "latency", "uncommitted"),
            "                       logbias = latency (uncommitted)\n"
        );
        assert_eq!(property("volsize", "1T", ""), "                       volsize = 1T\n");
        assert_eq!(
            echo("volblocksize", "16K", "uncommitted"),
            "                       volblocksize = 16K (uncommitted)\n"
        );
    }
}
