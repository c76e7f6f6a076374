//! What a volume says of itself as a LUN, as the network needs to know it.

use api::san::DEFAULT_GROUP;
use dsl::Stats;
use dsl::props::{Prop, PropName, Source, Value};
use units::Result;

/// The property whose value makes a volume a LUN.
pub(crate) const IDENTIFIER: &str = "cenote:lunguid";

/// What is known of a LUN without opening it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LunFacts {
    pub dataset: String,
    /// The NAA identifier of type 6, 16 bytes.
    pub guid: [u8; 16],
    pub number: Option<u16>,
    /// Initiators see it, if they are of its groups.
    pub online: bool,
    pub target_group: String,
    pub initiator_groups: Vec<String>,
    pub size: u64,
    pub block_size: u64,
    /// Clients are told that writes may stay in memory until they ask for more.
    pub write_cache: bool,
    pub read_only: bool,
    /// Without a reservation of its whole size.
    pub sparse: bool,
}

/// Makes an identifier: type 6, the company that such appliances use, and 96 random bits.
pub(crate) fn new_guid() -> String {
    let random = u128::from(world::random_u64()) << 32 | u128::from(world::random_u64() >> 32);
    format!("600144f0{random:024x}")
}

pub(crate) fn parse_guid(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 || !text.starts_with('6') || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(text, 16).ok().map(u128::to_be_bytes)
}

/// The text of a user property, and whether it is the dataset's own.
pub(crate) async fn own(stats: &Stats<'_>, property: &str) -> Result<Option<(String, bool)>> {
    let shown = stats.get(&PropName::User(property.into())).await?;
    Ok(shown.and_then(|(value, source)| match value {
        Value::Text(text) => Some((text, source == Source::Local)),
        Value::Number(_) => None,
    }))
}

pub(crate) async fn number(stats: &Stats<'_>, prop: Prop) -> Result<u64> {
    let shown = stats.get(&PropName::Native(prop)).await?;
    Ok(shown.and_then(|(value, _)| value.number()).unwrap_or(0))
}

/// Names in a list, as administrators write it.
pub(crate) fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(String::from).collect()
}

/// What the volume says of itself; nothing if it is no LUN.
pub(crate) async fn facts(stats: &Stats<'_>, dataset: &str) -> Result<Option<LunFacts>> {
    let text = |property: &'static str| async move { own(stats, property).await };
    let Some(guid) = text(IDENTIFIER).await?.filter(|(_, own)| *own).and_then(|(t, _)| parse_guid(&t)) else {
        return Ok(None);
    };
    let or_default =
        |found: Option<(String, bool)>| found.map_or_else(|| DEFAULT_GROUP.into(), |(text, _)| text);
    let number_text = text("cenote:lunumber").await?.filter(|(_, own)| *own);
    let size = number(stats, Prop::VolSize).await?;
    Ok(Some(LunFacts {
        dataset: dataset.into(),
        guid,
        number: number_text.and_then(|(text, _)| text.parse().ok()),
        online: text("cenote:status").await?.is_none_or(|(status, _)| status != "offline"),
        target_group: or_default(text("cenote:targetgroup").await?),
        initiator_groups: list(&or_default(text("cenote:initiatorgroup").await?)),
        size,
        block_size: number(stats, Prop::VolBlockSize).await?,
        write_cache: text("cenote:writecache").await?.is_some_and(|(text, _)| text == "true"),
        read_only: number(stats, Prop::ReadOnly).await? != 0,
        sparse: number(stats, Prop::RefReservation).await? < size,
    }))
}

/// Whether [`facts`] may be others when this property changes, of the dataset or of one that it inherits from.
pub(crate) fn has_part_in(property: &PropName) -> bool {
    match property {
        PropName::Native(prop) => {
            matches!(prop, Prop::VolSize | Prop::VolBlockSize | Prop::ReadOnly | Prop::RefReservation)
        }
        PropName::User(name) => name.starts_with("cenote:"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_32_digits_that_begin_with_6() {
        let guid = "600144f0fa2f948b0000537cdb970008";
        assert_eq!(parse_guid(guid).unwrap()[..4], [0x60, 0x01, 0x44, 0xf0]);
        for bad in ["", "600144f0", "500144f0fa2f948b0000537cdb970008", "600144f0fa2f948b0000537cdb97000g"] {
            assert_eq!(parse_guid(bad), None, "{bad}");
        }
        assert_eq!(list(" a, b,,c "), ["a", "b", "c"]);
    }
}
