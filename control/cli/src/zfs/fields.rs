//! The columns of `zfs get` and `zpool get`: one line for each property of each thing.

use crate::session::{Failure, Outcome};
use crate::text::visible::visible;
use api::Source;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Name,
    Property,
    Value,
    Received,
    Source,
}

/// One property of one thing.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub name: String,
    pub property: String,
    pub value: String,
    pub received: Option<String>,
    pub source: Source,
}

impl Field {
    const ALL: [Field; 5] = [Field::Name, Field::Property, Field::Value, Field::Received, Field::Source];

    fn heading(self) -> &'static str {
        match self {
            Field::Name => "NAME",
            Field::Property => "PROPERTY",
            Field::Value => "VALUE",
            Field::Received => "RECEIVED",
            Field::Source => "SOURCE",
        }
    }

    /// As a person is shown it, and as it is.
    fn of(self, line: &Line, is_for_people: bool) -> String {
        let cell = match self {
            Field::Name => line.name.clone(),
            Field::Property => line.property.clone(),
            Field::Value => line.value.clone(),
            Field::Received => line.received.clone().unwrap_or_else(|| "-".into()),
            Field::Source if is_for_people => source(&line.source) + note(line),
            Field::Source => source(&line.source),
        };
        if is_for_people { visible(&cell) } else { cell }
    }

    /// The fields of `-o`; without it, `default`.
    pub fn parse(words: &[String], default: &[Field]) -> Outcome<Vec<Field>> {
        let one = |word: &String| {
            let found = Field::ALL.into_iter().find(|f| f.heading().eq_ignore_ascii_case(word));
            found.ok_or_else(|| Failure::Usage(format!("invalid column name '{word}'")))
        };
        match words {
            [] => Ok(default.to_vec()),
            [all] if all == "all" => Ok(Field::ALL.to_vec()),
            _ => words.iter().map(one).collect(),
        }
    }
}

/// What is set and does nothing here.
fn note(line: &Line) -> &'static str {
    let is_set = !matches!(line.source, Source::None | Source::Default);
    if is_set && dsl::props::effect::has_no_effect(&line.property) { ", no effect here" } else { "" }
}

pub(crate) fn source(source: &Source) -> String {
    match source {
        Source::None => "-".into(),
        Source::Default => "default".into(),
        Source::Local => "local".into(),
        Source::Inherited(from) => format!("inherited from {from}"),
        Source::Received => "received".into(),
        Source::Temporary => "temporary".into(),
    }
}

/// `value_min` is how wide the column of values is at least.
pub(crate) fn render(lines: &[Line], fields: &[Field], value_min: usize, scripted: bool) -> String {
    let width = |field: Field| {
        let min = if field == Field::Value { value_min } else { 0 };
        let cells = lines.iter().map(|line| field.of(line, !scripted).chars().count());
        cells.chain([field.heading().len(), min]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = fields.iter().map(|f| width(*f)).collect();
    let row = |cells: Vec<String>| {
        let last = cells.len().saturating_sub(1);
        let pad = |(i, cell): (usize, &String)| {
            if i == last { cell.clone() } else { format!("{cell:<w$}  ", w = widths[i]) }
        };
        match scripted {
            true => cells.join("\t") + "\n",
            false => cells.iter().enumerate().map(pad).collect::<String>() + "\n",
        }
    };
    let mut text = String::new();
    if !scripted && !lines.is_empty() {
        text += &row(fields.iter().map(|f| f.heading().to_string()).collect());
    }
    lines.iter().for_each(|line| text += &row(fields.iter().map(|f| f.of(line, !scripted)).collect()));
    text
}
