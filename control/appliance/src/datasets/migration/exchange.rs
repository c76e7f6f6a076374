//! One volume takes the place of another: name, settings and reservations, in one txg.

use crate::datasets::parity_groups;
use crate::error_text::{About, why};
use crate::shares::number;
use dmu::Tx;
use dsl::Stats;
use dsl::props::{Prop, PropName, Setting, Source, Value};
use dsl::thick::reservation_for;
use pool::Pool;
use std::collections::BTreeMap;
use units::Result;

/// What can be set on a volume at any time, and does not follow from its size.
pub(super) fn is_settable(name: &PropName) -> bool {
    match name {
        PropName::User(_) => true,
        PropName::Native(Prop::VolSize | Prop::Reservation | Prop::RefReservation) => false,
        PropName::Native(prop) => matches!(prop.row().setting, Setting::Inherited | Setting::Local),
    }
}

/// What was set on it, or came with it.
pub(super) async fn settings_of(stats: &Stats<'_>) -> Result<Vec<(PropName, Value)>> {
    let own = |source: &Source| matches!(source, Source::Local | Source::Received);
    let all = stats.all().await?.into_iter();
    let own = all.filter(|(name, (_, source))| own(source) && is_settable(name));
    Ok(own.map(|(name, (value, _))| (name, value)).collect())
}

/// Destroys `old` and gives what it was to `copy`. Whatever fails does so while both are there; reservations alone come
/// afterwards, since what the old one had must be free for them: of one that does not fit the caller is told.
pub(super) async fn exchange(
    pool: &Pool,
    tx: &Tx,
    (old, from): (&str, u64),
    (copy, to): (&str, u64),
) -> Result<Option<String>> {
    let dsl = pool.dsl();
    let plan = dsl.plan_destroy(old, false).await?;
    let reservations = carry_over(pool, tx, (old, from), (copy, to)).await?;
    dsl.destroy(tx, &plan).await?;
    dsl.rename(tx, copy, old).await?;
    let mut note = None;
    for (prop, bytes) in reservations {
        let set = dsl.set(tx, old, &PropName::Native(prop), &Value::Number(bytes)).await;
        if let Err(e) = set {
            note = Some(format!("done, without its {}: {}", prop.name(), why(About::Dataset, &e)));
        }
    }
    Ok(note)
}

/// The settings of the one become those of the other; the reservations that it should have.
async fn carry_over(
    pool: &Pool,
    tx: &Tx,
    (old, from): (&str, u64),
    (copy, to): (&str, u64),
) -> Result<Vec<(Prop, u64)>> {
    let dsl = pool.dsl();
    let (stats, there) = (dsl.stats(old).await?, dsl.stats(copy).await?);
    let wanted = settings_of(&stats).await?;
    let mut has: BTreeMap<String, (PropName, Value)> =
        settings_of(&there).await?.into_iter().map(|(n, v)| (n.as_str().to_string(), (n, v))).collect();
    for (name, value) in wanted {
        let before = has.remove(name.as_str()).map(|(_, value)| value);
        if before.as_ref() != Some(&value) {
            dsl.set(tx, copy, &name, &value).await?;
        }
    }
    for (name, _) in has.into_values() {
        dsl.inherit(tx, copy, &name, false).await?;
    }
    let (size, copies) = (number(&stats, Prop::VolSize).await?, number(&stats, Prop::Copies).await?);
    let full = |block| reservation_for(size, block, copies, &parity_groups(pool));
    let (of_tree, of_volume) =
        (number(&stats, Prop::Reservation).await?, number(&stats, Prop::RefReservation).await?);
    let of_volume = if of_volume == full(from) { full(to) } else { of_volume };
    let both = [(Prop::RefReservation, of_volume), (Prop::Reservation, of_tree)];
    Ok(both.into_iter().filter(|(_, bytes)| *bytes > 0).collect())
}
