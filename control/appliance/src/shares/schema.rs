//! The schema: which properties of an administrator's own there are. See [`api::Schema`].

use crate::appliance::Appliance;
use crate::error_text::{About, why};
use api::schema::{PREFIX, is_name};
use api::{ApiError, Custom, CustomProperty, CustomType, Reply, Schema, Source};
use dsl::Stats;
use dsl::props::PropName;
use serde::{Deserialize, Serialize};
use store::{Look, Table, Writer};
use units::{Error, Kind, Result};

/// By the names of the properties, without their prefix.
const SCHEMA: Table<Record> = Table::new("shares.schema");
/// Each is read for each share that is shown.
const PROPERTIES_MAX: usize = 256;
const DESCRIPTION_MAX: usize = 1024;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Record {
    kind: CustomType,
    description: String,
}

impl Appliance {
    /// The properties there are, by their names.
    pub(crate) fn schema(&self) -> api::Result<Vec<CustomProperty>> {
        let all = self.configuration().and_then(|c| c.look(|reader| reader.all(&SCHEMA)));
        let all = all.map_err(|e| ApiError::cannot("read the schema", &e))?;
        let told = |(name, record): (String, Record)| CustomProperty {
            name,
            kind: record.kind,
            description: record.description,
        };
        Ok(all.into_iter().map(told).collect())
    }

    pub(crate) fn ask_schema(&self, asked: Schema) -> api::Result<Reply> {
        let doing = match &asked {
            Schema::Show => return Ok(Reply::Schema(self.schema()?)),
            Schema::Create(property) => format!("create property '{}'", property.name),
            Schema::Change { name, .. } => format!("change property '{name}'"),
            Schema::Destroy { name } => format!("destroy property '{name}'"),
        };
        let failed =
            |e: Error| ApiError::new(e.kind().into(), format!("cannot {doing}: {}", why(About::Dataset, &e)));
        self.configuration().and_then(|c| c.change(|writer| change(writer, asked))).map_err(failed)?;
        Ok(Reply::Done)
    }
}

fn change(writer: &mut Writer, asked: Schema) -> Result<()> {
    let missing = || Error::new(Kind::NotFound, "find").because("there is no such property");
    match asked {
        Schema::Show => Ok(()),
        Schema::Create(CustomProperty { name, kind, description }) => {
            if !is_name(&name) {
                return Err(Error::invalid(
                    "its name has lower case letters, digits, '-', '_' and '.', and begins with a letter",
                ));
            }
            check_description(&description)?;
            let all = writer.all(&SCHEMA)?;
            if all.iter().any(|(there, _)| *there == name) {
                return Err(Error::new(Kind::Exists, "create").because("there is such a property already"));
            }
            if all.len() >= PROPERTIES_MAX {
                return Err(Error::invalid(format!("there are {PROPERTIES_MAX} properties at most")));
            }
            writer.put(&SCHEMA, &name, &Record { kind, description })
        }
        Schema::Change { name, kind, description } => {
            let mut record = writer.get(&SCHEMA, &name)?.ok_or_else(missing)?;
            record.kind = kind.unwrap_or(record.kind);
            if let Some(description) = description {
                check_description(&description)?;
                record.description = description;
            }
            writer.put(&SCHEMA, &name, &record)
        }
        Schema::Destroy { name } => match writer.remove(&SCHEMA, &name)? {
            true => Ok(()),
            false => Err(missing()),
        },
    }
}

/// Of a configuration that came from elsewhere.
pub(crate) fn check_records(writer: &Writer) -> Result<()> {
    let all = writer.exact(&SCHEMA)?;
    if all.len() > PROPERTIES_MAX {
        return Err(Error::invalid(format!("there are {PROPERTIES_MAX} properties at most")));
    }
    for (name, record) in all {
        if !is_name(&name) {
            return Err(Error::invalid(format!("'{name}' is no name for a property")));
        }
        check_description(&record.description)?;
    }
    Ok(())
}

fn check_description(text: &str) -> Result<()> {
    match text.len() <= DESCRIPTION_MAX && !text.chars().any(char::is_control) {
        true => Ok(()),
        false => Err(Error::invalid(format!("a description is one line of at most {DESCRIPTION_MAX} bytes"))),
    }
}

/// What a dataset has of each property.
pub(super) async fn values(stats: &Stats<'_>, schema: &[CustomProperty]) -> Result<Vec<Custom>> {
    let mut all = Vec::new();
    for property in schema {
        let name = format!("{PREFIX}{}", property.name);
        let shown = stats.get(&PropName::User(name.clone())).await?;
        let (value, source) = match shown {
            Some((dsl::props::Value::Text(text), source)) => (Some(text), crate::values::source(&source)),
            _ => (None, Source::Default),
        };
        all.push(Custom { name, kind: property.kind, value, source });
    }
    Ok(all)
}
