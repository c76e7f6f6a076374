//! Values of properties as text, and the columns they stand in.

use super::table::Column;
use api::Value;
use dsl::pool_props::{PoolProp, VERSION_FEATURES};
use dsl::props::{Kind, Prop, Property as Row, Value as Plain, show_value};

/// A value that is not there.
const NONE: &str = "-";

/// A property of a dataset.
pub fn show_dataset(name: &str, value: Option<&Value>, exact: bool) -> String {
    match (value, Prop::by_name(name)) {
        (None, _) => NONE.into(),
        (Some(Value::Text(text)), _) if text.is_empty() => NONE.into(),
        (Some(Value::Text(text)), _) => text.clone(),
        (Some(Value::Number(n)), Some(prop)) => show_value(prop.row(), &Plain::Number(*n), exact),
        // `written@snapshot` and its like: sizes.
        (Some(Value::Number(n)), None) => super::number::count(*n, exact),
    }
}

/// A property of a pool.
pub fn show_pool(name: &str, value: Option<&Value>, exact: bool) -> String {
    let (prop, n) = match (value, PoolProp::by_name(name)) {
        (None, _) => return NONE.into(),
        (Some(Value::Text(text)), _) if text.is_empty() => return NONE.into(),
        (Some(Value::Text(text)), _) => return text.clone(),
        (Some(Value::Number(n)), None) => return n.to_string(),
        (Some(Value::Number(n)), Some(prop)) => (prop, *n),
    };
    match prop {
        PoolProp::ExpandSize | PoolProp::Checkpoint if n == 0 => NONE.into(),
        PoolProp::ExpandSize | PoolProp::Checkpoint => super::number::bytes(n, exact),
        PoolProp::Fragmentation if n == u64::MAX => NONE.into(),
        PoolProp::Version if n >= VERSION_FEATURES => NONE.into(),
        PoolProp::DedupTableQuota if n == u64::MAX => "auto".into(),
        PoolProp::DedupTableQuota if n == 0 && !exact => "none".into(),
        _ => show_value(prop.row(), &Plain::Number(n), exact),
    }
}

/// Columns whose values are numbers or words are as wide as the widest value that could be in them.
fn column(row: &Row) -> Column {
    let min = match row.kind {
        Kind::Number { .. } => 5,
        Kind::Index { names, .. } => names.iter().map(|(name, _)| name.len()).max().unwrap_or(0),
        Kind::Text { .. } => 0,
    };
    Column { heading: row.column.into(), right: row.is_right_aligned(), min }
}

/// The column of a property that users invented, or of a feature.
fn user_column(name: &str) -> Column {
    Column { heading: name.to_ascii_uppercase(), right: false, min: 0 }
}

pub fn dataset_column(name: &str) -> Column {
    Prop::by_name(name).map_or_else(|| user_column(name), |prop| column(prop.row()))
}

pub fn pool_column(name: &str) -> Column {
    match PoolProp::by_name(name) {
        Some(PoolProp::Health) => Column { heading: "HEALTH".into(), right: true, min: 8 },
        Some(prop) => column(prop.row()),
        None => user_column(name),
    }
}

/// The name by which a property of a dataset travels, aliases resolved; nothing if there is none.
pub fn dataset_property(name: &str) -> Option<String> {
    use dsl::props::user::{is_quota_property, is_user_property, is_written_property};
    match Prop::by_name(name) {
        Some(prop) => Some(prop.name().into()),
        None if is_user_property(name) || is_written_property(name) || is_quota_property(name) => {
            Some(name.into())
        }
        None => None,
    }
}

pub fn pool_property(name: &str) -> Option<String> {
    match PoolProp::by_name(name) {
        Some(prop) => Some(prop.name().into()),
        None if dsl::props::user::is_user_property(name) => Some(name.into()),
        None => {
            let feature = name.strip_prefix("feature@")?;
            ondisk::Feature::by_name(feature).map(|_| name.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_values_have_openzfs_dashes_and_percents() {
        let show = |name, n: u64, exact| show_pool(name, Some(&Value::Number(n)), exact);
        assert_eq!(show("expandsize", 0, false), "-");
        assert_eq!(show("checkpoint", 1 << 20, false), "1M");
        assert_eq!(show("fragmentation", u64::MAX, false), "-");
        assert_eq!(show("fragmentation", 5, false), "5%");
        assert_eq!(show("capacity", 29, true), "29");
        assert_eq!(show("version", 5000, false), "-");
        assert_eq!(show("version", 28, false), "28");
        assert_eq!(show("dedupratio", 100, false), "1.00x");
        assert_eq!(show("size", 66_571_993_088, false), "62G");
        assert_eq!(show_pool("altroot", None, false), "-");
        assert_eq!(show_pool("feature@lz4_compress", Some(&"active".into()), false), "active");
    }

    #[test]
    fn names_and_aliases_lead_to_one_property() {
        assert_eq!(dataset_property("refer").as_deref(), Some("referenced"));
        assert_eq!(dataset_property("org.x:y").as_deref(), Some("org.x:y"));
        assert_eq!(dataset_property("nonsense"), None);
        assert_eq!(pool_property("cap").as_deref(), Some("capacity"));
        assert_eq!(pool_property("feature@lz4_compress").as_deref(), Some("feature@lz4_compress"));
        assert_eq!(pool_property("feature@nonsense"), None);
    }
}
