//! A dataset as a project, file system or LUN, with everything that is said of it.

use super::lun_facts::{facts, number};
use super::root;
use super::schema::values as values_of;
use crate::pools::Open;
use crate::values;
use api::attributes::{Attribute, Kept, OF_ROOT, Shape};
use api::shares::{Item, ItemKind, Place};
use api::{CustomProperty, Property, Source, Value};
use dsl::Stats;
use dsl::props::{Prop, PropName};
use ondisk::ObjsetType;
use units::Result;

/// Projects and shares, not snapshots.
pub(crate) async fn item(open: &Open, dataset: &str, schema: &[CustomProperty]) -> Result<Item> {
    let pool = &open.pool;
    let stats = pool.dsl().stats(dataset).await?;
    let is_volume = stats.kind == ObjsetType::Zvol;
    let place = Place::of(dataset, is_volume);
    let kind = match (&place.share, is_volume) {
        (None, _) => ItemKind::Project,
        (Some(_), true) => ItemKind::Lun,
        (Some(_), false) => ItemKind::Filesystem,
    };
    let mut attributes = Vec::new();
    for attribute in Attribute::of(kind) {
        attributes.extend(match OF_ROOT.contains(&attribute.name) {
            true => {
                let value = root::shown(pool, dataset, attribute.name).await;
                value.map(|value| Property::computed(attribute.name, value.as_str()))
            }
            false => describe(&stats, dataset, attribute).await?,
        });
    }
    open.show_mountpoint(&mut attributes);
    if kind == ItemKind::Lun {
        as_lun(&mut attributes, facts(&stats, dataset).await?.is_some());
    }
    let custom = values_of(&stats, schema).await?;
    Ok(Item { place, kind, attributes, custom })
}

/// A volume that is no LUN is offline, whatever it inherits, and has no number.
fn as_lun(attributes: &mut [Property], is_lun: bool) {
    for attribute in attributes {
        match attribute.name.as_str() {
            "status" if !is_lun => *attribute = Property::computed("status", "offline"),
            "status" if attribute.source == Source::Default => attribute.value = Some("online".into()),
            name @ ("lunumber" | "lunguid") if !is_lun => {
                *attribute = Property::new(name, None, Source::None)
            }
            _ => {}
        }
    }
}

async fn describe(stats: &Stats<'_>, dataset: &str, attribute: &Attribute) -> Result<Option<Property>> {
    let name = attribute.name;
    let shown = match attribute.kept {
        Kept::Native(property) => {
            let property = PropName::parse(property)?;
            let PropName::Native(prop) = property else { return Ok(None) };
            let shown = stats.get(&property).await?;
            shown.map(|(value, source)| (values::travelling(prop.row(), &value), values::source(&source)))
        }
        Kept::User(property) => {
            let shown = stats.get(&PropName::User(property.into())).await?;
            let shown = shown.map(|(value, source)| (values::plain(&value), values::source(&source)));
            Some(shown.unwrap_or_else(|| (attribute.default.into(), Source::Default)))
        }
        // It belongs to the appliance alone, which adds it.
        Kept::Computed if ["migration", "problem"].contains(&name) => None,
        Kept::Computed if name == "origin" => {
            let shown = stats.get(&PropName::Native(Prop::Origin)).await?;
            shown.map(|(value, _)| (values::plain(&value), Source::None))
        }
        Kept::Computed => Some((computed(stats, dataset, name).await?, Source::None)),
    };
    Ok(shown.map(|(value, source)| Property::new(name, Some(shaped(attribute.shape, value)), source)))
}

async fn computed(stats: &Stats<'_>, dataset: &str, name: &str) -> Result<Value> {
    Ok(match name {
        "sparse" => {
            let (size, reserved) =
                (number(stats, Prop::VolSize).await?, number(stats, Prop::RefReservation).await?);
            if reserved < size { "true" } else { "false" }.into()
        }
        _ => dataset.into(),
    })
}

/// As administrators of an appliance write it.
fn shaped(shape: Shape, value: Value) -> Value {
    match (shape, &value) {
        (Shape::Flag, Value::Text(text)) if text == "on" => "true".into(),
        (Shape::Flag, Value::Text(text)) if text == "off" => "false".into(),
        (Shape::Size, Value::Text(text)) => match units::parse_size(text) {
            Ok(bytes) => Value::Number(bytes),
            Err(_) => value,
        },
        _ => value,
    }
}
