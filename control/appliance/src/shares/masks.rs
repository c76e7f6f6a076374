//! Which clients see a LUN, as it stays when the LUN is copied or goes elsewhere.
//!
//! ```text
//!   origin ──clone──▶ what masks the origin is set on the clone, unless its project has the same for it
//!   LUN    ──rename─▶ what it had of an ancestor that it leaves is set on it, unless its new place has the same
//! ```
//!
//! The masks are properties (target group, initiator groups, status, `cenote:nbd`), so a LUN may have them of its project. A
//! copy in another project would have that project's instead: the data would be shown to initiators that the original was
//! hidden from. So they go with the data, and only an administrator changes them.
//!
//! A volume that is no LUN and has none of these is left as it is: no initiator sees it until it becomes one.

use super::lun_facts::{facts, list};
use api::san::DEFAULT_GROUP;
use dsl::props::{PropName, Source, Value};
use dsl::{Dsl, Stats};
use ondisk::ObjsetType;
use units::{Error, Kind, Result};

/// What an administrator says of a volume, or of a project: `on`, `off`, `socket`, or as the table has it.
pub(crate) const NBD: &str = "cenote:nbd";
/// The value for clients at the daemon's own socket that know the name.
pub(crate) const SOCKET: &str = "socket";
/// The value that says nothing.
pub(crate) const AUTO: &str = "auto";

/// The properties that decide which clients see a volume: as a LUN, and over NBD.
const MASKS: [&str; 4] = ["cenote:targetgroup", "cenote:initiatorgroup", "cenote:status", NBD];

/// What of the masks has to be set, by their properties.
pub(crate) type Masks = Vec<(&'static str, String)>;

fn name(mask: &'static str) -> PropName {
    PropName::User(mask.into())
}

/// The mask's value, and where it is from.
async fn shown(stats: &Stats<'_>, mask: &'static str) -> Result<Option<(String, Source)>> {
    let shown = stats.get(&name(mask)).await?;
    Ok(shown.and_then(|(value, source)| match value {
        Value::Text(text) => Some((text, source)),
        Value::Number(_) => None,
    }))
}

/// What a LUN has that nothing was said of.
fn default_of(mask: &str) -> &'static str {
    match mask {
        "cenote:status" => "online",
        NBD => AUTO,
        _ => DEFAULT_GROUP,
    }
}

/// Which clients see a volume, or would if it were a LUN.
#[derive(Clone, Debug)]
pub(crate) struct SeenBy {
    pub is_lun: bool,
    pub online: bool,
    pub target_group: String,
    pub initiator_groups: Vec<String>,
}

impl SeenBy {
    /// Every initiator, through every target.
    pub fn is_by_all(&self) -> bool {
        let is_default = |group: &String| group == DEFAULT_GROUP;
        is_default(&self.target_group) && self.initiator_groups.iter().any(is_default)
    }
}

pub(crate) async fn seen_by(stats: &Stats<'_>, dataset: &str) -> Result<SeenBy> {
    let text = async |mask: &'static str| {
        Ok::<_, Error>(shown(stats, mask).await?.map_or(default_of(mask).into(), |(text, _)| text))
    };
    let (target_group, groups): (String, String) =
        (text("cenote:targetgroup").await?, text("cenote:initiatorgroup").await?);
    let status: String = text("cenote:status").await?;
    Ok(SeenBy {
        is_lun: facts(stats, dataset).await?.is_some(),
        online: status != "offline",
        target_group,
        initiator_groups: list(&groups),
    })
}

/// The masks that a clone of `origin` below `parent` needs, so that the initiators of its origin see it, and no others.
pub(crate) async fn of_clone(dsl: &Dsl, origin: &str, parent: &str) -> Result<Masks> {
    let stats = dsl.stats(origin).await?;
    let there = match dsl.stats(parent).await {
        // What is made on the way there has nothing of its own; or the clone is refused.
        Err(e) if e.kind() == Kind::NotFound => match dsl::name::split_parent(parent) {
            Some((above, _)) => return Box::pin(of_clone(dsl, origin, above)).await,
            None => return Err(e),
        },
        there => there?,
    };
    let mut masks = Masks::new();
    if stats.kind != ObjsetType::Zvol {
        return Ok(masks);
    }
    let is_lun = facts(&stats, origin).await?.is_some();
    for mask in MASKS {
        let there = shown(&there, mask).await?.map(|(text, _)| text);
        match shown(&stats, mask).await? {
            Some((text, Source::Inherited(_))) if there.as_ref() == Some(&text) => {}
            Some((text, _)) => masks.push((mask, text)),
            None if is_lun && there.is_some() => masks.push((mask, default_of(mask).into())),
            None => {}
        }
    }
    Ok(masks)
}

/// What has to be set on `from` and all below it before it is called `to`, so that no other client sees its LUNs.
pub(crate) async fn of_renamed(dsl: &Dsl, from: &str, to: &str) -> Result<Vec<(String, Masks)>> {
    let Some((parent, _)) = dsl::name::split_parent(to) else { return Ok(Vec::new()) };
    let there = dsl.stats(parent).await?;
    let goes_along = |of: &str| of == from || of.strip_prefix(from).is_some_and(|rest| rest.starts_with('/'));
    let mut all = Vec::new();
    for dataset in dsl.descendants(from).await? {
        let stats = dsl.stats(&dataset).await?;
        if stats.kind != ObjsetType::Zvol {
            continue;
        }
        let is_lun = facts(&stats, &dataset).await?.is_some();
        let mut masks = Masks::new();
        for mask in MASKS {
            let there = shown(&there, mask).await?.map(|(text, _)| text);
            match shown(&stats, mask).await? {
                Some((text, Source::Inherited(of))) if !goes_along(&of) && there.as_ref() != Some(&text) => {
                    masks.push((mask, text));
                }
                None if is_lun && there.is_some() => masks.push((mask, default_of(mask).into())),
                _ => {}
            }
        }
        if !masks.is_empty() {
            all.push((dataset, masks));
        }
    }
    Ok(all)
}

/// As the properties of a dataset.
pub(crate) fn as_properties(masks: Masks) -> impl Iterator<Item = (PropName, Value)> {
    masks.into_iter().map(|(mask, text)| (name(mask), Value::Text(text)))
}

#[cfg(test)]
mod tests;
