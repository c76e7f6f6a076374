//! Projects and shares as answers tell them: each attribute in the form of its kind, and where its value comes from.

use crate::attributes::{Attribute, Shape as Form};
use crate::http::{Wrong, date, filled, seconds};
use crate::shares::{Item, ItemKind, Place};
use crate::{Custom, CustomType, Property, Source};
use serde_json::{Map, Value, json};

/// Where a project or share is.
pub fn path(place: &Place, kind: ItemKind) -> String {
    let Place { pool, project, share } = place;
    let template = match kind {
        ItemKind::Project => "/api/storage/v1/pools/{pool}/projects/{project}",
        ItemKind::Filesystem => "/api/storage/v1/pools/{pool}/projects/{project}/filesystems/{filesystem}",
        ItemKind::Lun => "/api/storage/v1/pools/{pool}/projects/{project}/luns/{lun}",
    };
    filled(template, [pool.as_str(), project].into_iter().chain(share.as_deref()))
}

/// An item, as an answer tells it.
pub fn tell(item: &Item) -> Value {
    let Place { pool, project, share } = &item.place;
    let (mut values, sources) = attributes(item);
    values.insert("href".into(), path(&item.place, item.kind).into());
    values.insert("name".into(), share.as_ref().unwrap_or(project).as_str().into());
    values.insert("pool".into(), pool.as_str().into());
    if share.is_some() {
        values.insert("project".into(), project.as_str().into());
    }
    if item.kind == ItemKind::Lun {
        values.insert("assignednumber".into(), numbers(&values).into());
        // It is always there: drivers read it of every volume.
        values.entry("lunguid").or_insert_with(|| "".into());
    }
    values.insert("source".into(), sources.into());
    Value::Object(values)
}

/// The item of this kind that an answer tells of.
pub fn take(of: &Value, kind: ItemKind) -> Result<Item, Wrong> {
    let text = |name: &'static str| of[name].as_str().ok_or(Wrong::Missing(name));
    let place = match kind {
        ItemKind::Project => Place::project(text("pool")?, text("name")?),
        _ => Place::project(text("pool")?, text("project")?).share(text("name")?),
    };
    let source = |name: &str| match of["source"][name].as_str() {
        Some("default") => Source::Default,
        Some("local") => Source::Local,
        // From where is not told.
        Some("inherited") => Source::Inherited(String::new()),
        Some("received") => Source::Received,
        _ => Source::None,
    };
    let attribute = |attribute: &'static Attribute| {
        let value = taken(attribute.shape, of.get(attribute.name)?)?;
        Some(Property::new(attribute.name, Some(value), source(attribute.name)))
    };
    let custom = |(name, value): (&String, &Value)| {
        let (kind, text) = match value {
            Value::Bool(flag) => (CustomType::Boolean, flag.to_string()),
            Value::Number(number) => (CustomType::Integer, number.to_string()),
            Value::String(text) => (CustomType::String, text.clone()),
            _ => return None,
        };
        name.starts_with(crate::schema::PREFIX).then(|| Custom {
            name: name.clone(),
            kind,
            value: Some(text),
            source: source(name),
        })
    };
    Ok(Item {
        place,
        kind,
        attributes: Attribute::of(kind).filter_map(attribute).collect(),
        custom: of.as_object().into_iter().flatten().filter_map(custom).collect(),
    })
}

/// All items of this kind that stand under `name` in an answer.
pub fn take_all(answer: &Value, name: &str, kind: ItemKind) -> Result<Vec<Item>, Wrong> {
    answer[name].as_array().into_iter().flatten().map(|one| take(one, kind)).collect()
}

/// The number of a LUN, once for each of its initiator groups: drivers look up the one beside the group that they gave it.
fn numbers(lun: &Map<String, Value>) -> Vec<u64> {
    let number: Option<u64> = lun.get("lunumber").and_then(Value::as_str).and_then(|n| n.parse().ok());
    let groups = lun.get("initiatorgroup").and_then(Value::as_array).map_or(1, Vec::len);
    number.map_or_else(Vec::new, |number| vec![number; groups])
}

/// Its attributes, and where each comes from.
fn attributes(item: &Item) -> (Map<String, Value>, Map<String, Value>) {
    let mut values = Map::new();
    let mut sources = Map::new();
    for property in &item.attributes {
        let Some(attribute) = Attribute::find(&property.name, item.kind) else { continue };
        let Some(value) = property.value.as_ref().and_then(|v| told(attribute, v)) else { continue };
        values.insert(property.name.clone(), value);
        if let Some(source) = source(&property.source) {
            sources.insert(property.name.clone(), source.into());
        }
    }
    for custom in &item.custom {
        let Some(text) = &custom.value else { continue };
        values.insert(custom.name.clone(), told_custom(custom.kind, text));
        if let Some(source) = source(&custom.source) {
            sources.insert(custom.name.clone(), source.into());
        }
    }
    (values, sources)
}

fn source(source: &Source) -> Option<&'static str> {
    Some(match source {
        Source::None => return None,
        Source::Default => "default",
        Source::Local | Source::Temporary => "local",
        Source::Inherited(_) => "inherited",
        Source::Received => "received",
    })
}

/// What does not fit its type, which may have been another, is text.
fn told_custom(kind: CustomType, text: &str) -> Value {
    let told: Option<Value> = match kind {
        CustomType::Boolean => text.parse::<bool>().ok().map(Into::into),
        CustomType::Integer | CustomType::PositiveInteger => text.parse::<i64>().ok().map(Into::into),
        _ => None,
    };
    told.unwrap_or_else(|| text.into())
}

fn told(attribute: &Attribute, value: &crate::Value) -> Option<Value> {
    let text = match value {
        crate::Value::Number(n) if matches!(attribute.shape, Form::Date) => return Some(date(*n).into()),
        crate::Value::Number(n) if matches!(attribute.shape, Form::Word) => n.to_string(),
        crate::Value::Number(n) => return Some((*n).into()),
        crate::Value::Text(text) => text.clone(),
    };
    Some(match attribute.shape {
        _ if attribute.name == "origin" => origin(&text),
        Form::Flag => matches!(text.as_str(), "true" | "on").into(),
        Form::List => text.split(',').filter(|w| !w.is_empty()).collect::<Vec<_>>().into(),
        // "none": there is no such number.
        Form::Size | Form::Number | Form::Ratio => units::parse_size(&text).unwrap_or(0).into(),
        Form::Word | Form::Date => text.into(),
    })
}

/// The snapshot of a share, from its name as a dataset. What is directly in a pool and was cloned is a volume.
fn origin(snapshot: &str) -> Value {
    let (dataset, name) = snapshot.split_once('@').unwrap_or((snapshot, ""));
    let Place { pool, project, share } = Place::of(dataset, true);
    json!({
        "pool": pool, "project": project, "share": share.unwrap_or_default(), "snapshot": name,
        "collection": "local",
    })
}

fn taken(form: Form, of: &Value) -> Option<crate::Value> {
    let text = |name: &str| of[name].as_str().unwrap_or_default();
    Some(match (form, of) {
        (Form::Date, Value::String(text)) => seconds(text)?.into(),
        (_, Value::String(text)) => text.as_str().into(),
        (_, Value::Number(number)) => number.as_u64()?.into(),
        (_, Value::Bool(flag)) => flag.to_string().into(),
        (_, Value::Array(all)) => all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",").into(),
        // The origin of a clone, which is known here by its name as a dataset.
        (_, Value::Object(_)) => {
            let place = Place::project(text("pool"), text("project"));
            let share = Some(text("share")).filter(|share| !share.is_empty()).map(String::from);
            let dataset = Place { share, ..place }.dataset();
            format!("{dataset}@{}", text("snapshot")).as_str().into()
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_taken_as_it_was_told() {
        let set = |name: &str, value: crate::Value, source| Property::new(name, Some(value), source);
        let lun = Item {
            place: Place::project("tank", "my sql").share("data"),
            kind: ItemKind::Lun,
            attributes: vec![
                set("creation", 1_795_294_245.into(), Source::None),
                set("logbias", "latency".into(), Source::Inherited(String::new())),
                set("origin", "tank/my sql/old@before".into(), Source::None),
                set("volsize", 1_048_576.into(), Source::None),
                set("initiatorgroup", "a,b".into(), Source::Local),
                set("lunumber", "3".into(), Source::Local),
                set("lunguid", "600".into(), Source::Local),
                set("writecache", "true".into(), Source::Default),
            ],
            custom: vec![Custom {
                name: "custom:owner".into(),
                kind: CustomType::String,
                value: Some("ann".into()),
                source: Source::Received,
            }],
        };
        let told = tell(&lun);
        assert_eq!(told["href"], "/api/storage/v1/pools/tank/projects/my%20sql/luns/data");
        assert_eq!(told["assignednumber"], json!([3, 3]));
        assert_eq!(take(&told, ItemKind::Lun), Ok(lun));
        let project = Item {
            place: Place::project("tank", "p"),
            kind: ItemKind::Project,
            attributes: Vec::new(),
            custom: Vec::new(),
        };
        assert_eq!(
            take_all(&json!({ "projects": [tell(&project)] }), "projects", ItemKind::Project),
            Ok(vec![project])
        );
        assert_eq!(take(&json!({ "name": "x" }), ItemKind::Project), Err(Wrong::Missing("pool")));
    }
}
