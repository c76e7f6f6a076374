//! How things are laid out. Pure.

use crate::draft::size;
use api::attributes::{Attribute, Shape};
use api::{Property, Source, Value};

/// Where the names of properties end.
const NAME_WIDTH: usize = 30;
/// Where the echo of a setting begins.
const ECHO_MARGIN: usize = 23;
/// What is shown of a secret.
pub(crate) const SECRET: &str = "********";

/// `                       logbias = latency (uncommitted)`
pub(crate) fn property(name: &str, value: &str, note: &str) -> String {
    let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
    format!("{name:>NAME_WIDTH$} = {value}{note}\n")
}

/// What was set, behind one margin, as appliances echo it: `                       volblocksize = 16K (uncommitted)`
pub(crate) fn echo(name: &str, value: &str, note: &str) -> String {
    format!("{:ECHO_MARGIN$}{name} = {value} ({note})\n", "")
}

/// `                       target-000 => text`
pub(crate) fn child(name: &str, text: &str) -> String {
    format!("{name:>NAME_WIDTH$} => {text}\n")
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
