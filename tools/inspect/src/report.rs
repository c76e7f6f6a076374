//! Reports: what a command found, written as aligned text or as JSON.

use ondisk::{NvList, NvValue};
use serde_json::{Map, Value, json};
use units::pretty_size;

#[derive(Clone, Debug, Default)]
pub struct Report {
    pub sections: Vec<Section>,
}

/// A part of a report with its title, which is also its key in JSON.
#[derive(Clone, Debug)]
pub enum Section {
    Table {
        title: String,
        columns: Vec<Column>,
        rows: Vec<Vec<Cell>>,
    },
    /// Names with one value each.
    Fields {
        title: String,
        fields: Vec<(&'static str, Cell)>,
    },
    /// A configuration.
    Tree {
        title: String,
        list: NvList,
    },
}

#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub name: &'static str,
    /// Numbers stand to the right.
    pub right: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    Text(String),
    Number(u64),
    /// A number that people read with a unit.
    Bytes(u64),
    Nothing,
}

impl From<u64> for Cell {
    fn from(n: u64) -> Cell {
        Cell::Number(n)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.into())
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Nothing, Into::into)
    }
}

/// Columns by name; those that end with `>` stand to the right.
pub(crate) fn columns(names: &'static [&'static str]) -> Vec<Column> {
    let column = |name: &'static str| match name.strip_suffix('>') {
        Some(name) => Column { name, right: true },
        None => Column { name, right: false },
    };
    names.iter().map(|name| column(name)).collect()
}

impl Cell {
    fn text(&self, exact: bool) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Bytes(n) if !exact => pretty_size(*n),
            Cell::Number(n) | Cell::Bytes(n) => n.to_string(),
            Cell::Nothing => "-".into(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Cell::Text(text) => json!(text),
            Cell::Number(n) | Cell::Bytes(n) => json!(n),
            Cell::Nothing => Value::Null,
        }
    }
}

impl Report {
    pub fn table(&mut self, title: &str, columns: Vec<Column>, rows: Vec<Vec<Cell>>) {
        self.sections.push(Section::Table { title: title.into(), columns, rows });
    }

    pub fn fields(&mut self, title: &str, fields: Vec<(&'static str, Cell)>) {
        self.sections.push(Section::Fields { title: title.into(), fields });
    }

    /// One object whose keys are the titles.
    pub fn to_json(&self) -> String {
        let map: Map<String, Value> =
            self.sections.iter().map(|s| (s.title().replace(' ', "_"), s.json())).collect();
        format!("{:#}\n", Value::Object(map))
    }

    pub fn to_text(&self, exact: bool) -> String {
        let texts: Vec<String> = self.sections.iter().map(|s| s.text(exact)).collect();
        texts.join("\n")
    }
}

impl Section {
    fn title(&self) -> &str {
        match self {
            Section::Table { title, .. } | Section::Fields { title, .. } | Section::Tree { title, .. } => {
                title
            }
        }
    }

    fn json(&self) -> Value {
        match self {
            Section::Table { columns, rows, .. } => {
                let row = |cells: &Vec<Cell>| -> Value {
                    let pairs = columns.iter().zip(cells).map(|(c, cell)| (key(c.name), cell.json()));
                    Value::Object(pairs.collect())
                };
                rows.iter().map(row).collect()
            }
            Section::Fields { fields, .. } => {
                Value::Object(fields.iter().map(|(name, cell)| (key(name), cell.json())).collect())
            }
            Section::Tree { list, .. } => list_json(list),
        }
    }

    fn text(&self, exact: bool) -> String {
        let body = match self {
            Section::Table { columns, rows, .. } => table_text(columns, rows, exact),
            Section::Fields { fields, .. } => {
                let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
                let line = |(name, cell): &(&str, Cell)| format!("{name:<width$}  {}\n", cell.text(exact));
                fields.iter().map(line).collect()
            }
            Section::Tree { list, .. } => list.to_string(),
        };
        let indented: String = body.lines().map(|line| format!("  {line}\n")).collect();
        format!("{}:\n{indented}", self.title())
    }
}

fn key(name: &str) -> String {
    name.to_ascii_lowercase().replace(' ', "_")
}

fn table_text(columns: &[Column], rows: &[Vec<Cell>], exact: bool) -> String {
    let heading = columns.iter().map(|c| c.name.to_string()).collect();
    let cells = rows.iter().map(|row| row.iter().map(|cell| cell.text(exact)).collect());
    let lines: Vec<Vec<String>> = std::iter::once(heading).chain(cells).collect();
    let width = |i: usize| lines.iter().map(|line| line[i].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |cells: &Vec<String>| {
        let padded = cells.iter().zip(columns).zip(&widths).map(|((cell, column), width)| {
            if column.right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_string() + "\n"
    };
    lines.iter().map(line).collect()
}

fn list_json(list: &NvList) -> Value {
    Value::Object(list.iter().map(|(name, value)| (name.to_string(), value_json(value))).collect())
}

fn value_json(value: &NvValue) -> Value {
    match value {
        NvValue::Boolean => Value::Bool(true),
        NvValue::BooleanValue(v) => json!(v),
        NvValue::Byte(v) | NvValue::Uint8(v) => json!(v),
        NvValue::Int8(v) => json!(v),
        NvValue::Int16(v) => json!(v),
        NvValue::Uint16(v) => json!(v),
        NvValue::Int32(v) => json!(v),
        NvValue::Uint32(v) => json!(v),
        NvValue::Int64(v) | NvValue::HrTime(v) => json!(v),
        NvValue::Uint64(v) => json!(v),
        NvValue::Double(v) => json!(v),
        NvValue::String(v) => json!(v),
        NvValue::List(list) => list_json(list),
        NvValue::BooleanArray(v) => json!(v),
        NvValue::ByteArray(v) | NvValue::Uint8Array(v) => json!(v),
        NvValue::Int8Array(v) => json!(v),
        NvValue::Int16Array(v) => json!(v),
        NvValue::Uint16Array(v) => json!(v),
        NvValue::Int32Array(v) => json!(v),
        NvValue::Uint32Array(v) => json!(v),
        NvValue::Int64Array(v) => json!(v),
        NvValue::Uint64Array(v) => json!(v),
        NvValue::StringArray(v) => json!(v),
        NvValue::ListArray(lists) => lists.iter().map(list_json).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_columns_for_people_and_exact_numbers_for_programs() {
        let mut report = Report::default();
        let rows = vec![vec!["plain file".into(), 1536u64.into()], vec!["zvol".into(), 7u64.into()]];
        report.table("blocks", columns(&["TYPE", "LOGICAL>"]), rows);
        let exact = report.to_text(true);
        let lines: Vec<&str> = exact.lines().collect();
        let at = |word: &str| lines.iter().find(|l| l.contains(word)).unwrap().len();
        assert_eq!(at("1536"), at("LOGICAL"), "numbers stand to the right: {exact}");
        assert!(exact.contains("zvol") && exact.contains("blocks:"), "{exact}");
        let json: Value = serde_json::from_str(&report.to_json()).unwrap();
        assert!(json.to_string().contains("1536"), "{json}");
    }
}
