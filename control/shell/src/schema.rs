//! `shares schema`: properties of an administrator's own.

use crate::context::Context;
use crate::draft::Draft;
use crate::shares::unexpected;
use crate::shell::Shell;
use crate::show;
use crate::vocabulary::{Result, Settable, Shown};
use api::attributes::Shape;
use api::{CustomProperty, CustomType, Reply, Request, Schema};

pub(crate) fn settable() -> Vec<Settable> {
    let text = |name: &str| Settable { name: name.into(), shape: Shape::Word, is_secret: false };
    vec![text("type"), text("description")]
}

fn parse(word: &str) -> Result<CustomType> {
    CustomType::parse(word).ok_or_else(|| {
        let all = CustomType::ALL.map(CustomType::word).join(", ");
        format!("invalid value \"{word}\" for \"type\": it is one of {all}")
    })
}

impl Shell<'_> {
    pub(crate) fn schema(&mut self) -> Result<Vec<CustomProperty>> {
        match self.ask("", Request::Schema(Schema::Show))? {
            Reply::Schema(all) => Ok(all),
            _ => Err(unexpected()),
        }
    }

    fn schema_property(&mut self, name: &str) -> Result<CustomProperty> {
        let found = self.schema()?.into_iter().find(|p| p.name == name);
        found.ok_or_else(|| format!("there is no property \"{name}\" in the schema"))
    }

    pub(crate) fn enter_schema(&mut self, words: &[String]) -> Result<Option<usize>> {
        let (Context::Schema, [verb, name, ..]) = (self.here(), words) else { return Ok(None) };
        let new = match verb.as_str() {
            "create" => true,
            "select" => false,
            _ => return Ok(None),
        };
        if !new {
            self.schema_property(name)?;
        }
        self.push(Context::SchemaProperty { name: name.clone(), new, draft: Draft::default() });
        Ok(Some(2))
    }

    pub(crate) fn command_schema(&mut self, words: &[String]) -> Result<bool> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match (self.here().clone(), &words[..]) {
            (Context::Schema, ["list"]) => {
                let text = self.lists_schema()?.join("\n");
                self.print(&text);
            }
            (Context::Schema, ["destroy", name]) => self.destroy_schema(name, &words.join(" "))?,
            (Context::SchemaProperty { name, new: false, .. }, ["destroy"]) => {
                self.destroy_schema(&name, "destroy")?;
                // What one was in is gone.
                self.stack.pop();
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn destroy_schema(&mut self, name: &str, command: &str) -> Result {
        self.schema_property(name)?;
        let what =
            format!("This takes the property \"{name}\" out of the schema: no share shows it any more.");
        self.must_confirm(&what, command)?;
        self.ask("", Request::Schema(Schema::Destroy { name: name.into() })).map(drop)
    }

    pub(crate) fn commit_schema(&mut self) -> Result {
        let Context::SchemaProperty { name, new, draft } = self.here().clone() else { return Ok(()) };
        let kind = draft.get("type").map(parse).transpose()?;
        let description = draft.get("description").map(String::from);
        let asked = match new {
            true => Schema::Create(CustomProperty {
                name,
                kind: kind.unwrap_or_default(),
                description: description.unwrap_or_default(),
            }),
            false => Schema::Change { name, kind, description },
        };
        self.ask("", Request::Schema(asked)).map(drop)
    }

    pub(crate) fn properties_schema(&mut self) -> Result<Vec<Shown>> {
        let Context::SchemaProperty { name, new, draft } = self.here().clone() else { return Ok(Vec::new()) };
        let there = if new { CustomProperty::default() } else { self.schema_property(&name)? };
        let one = |name: &str, kept: &str| match draft.get(name) {
            Some(value) => Shown::new(name, value, "uncommitted"),
            None => Shown::new(name, kept, if new { "default" } else { "" }),
        };
        Ok(vec![one("type", there.kind.word()), one("description", &there.description)])
    }

    pub(crate) fn lists_schema(&mut self) -> Result<Vec<String>> {
        if !matches!(self.here(), Context::Schema) {
            return Ok(Vec::new());
        }
        let row = |p: CustomProperty| vec![p.name, p.kind.word().into(), p.description];
        let rows: Vec<Vec<String>> = self.schema()?.into_iter().map(row).collect();
        match rows.is_empty() {
            true => Ok(Vec::new()),
            false => Ok(vec![show::table("Properties", &["NAME", "TYPE", "DESCRIPTION"], &rows)]),
        }
    }

    pub(crate) fn names_schema(&mut self) -> Vec<String> {
        self.schema().unwrap_or_default().into_iter().map(|p| p.name).collect()
    }
}
