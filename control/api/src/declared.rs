//! The requests that can be made over HTTP: one file for each family, see [`crate::http`] for what a declaration is.

pub mod alerts;
pub mod analytics;
pub mod automatic;
pub mod doctor;
pub mod fc;
pub mod pools;
pub mod san;
pub mod schema;
pub mod services;
pub mod shares;
pub mod snapshots;
pub mod updates;

use crate::Request;
use crate::http::{Declared, Sent, Spoken};
use crate::shares::ItemKind;

#[cfg(test)]
mod tests;

/// Every request that can be made over HTTP.
pub static TABLE: &[&[&Declared]] = &[
    alerts::ALL,
    analytics::ALL,
    automatic::ALL,
    doctor::ALL,
    fc::ALL,
    pools::ALL,
    san::ALL,
    schema::ALL,
    services::ALL,
    shares::ALL,
    snapshots::ALL,
    updates::ALL,
];

/// The words of the shell that are declared, with the requests that they make, of one place.
pub fn said_at(place: &str) -> impl Iterator<Item = (&'static Declared, &'static Spoken)> {
    let all = TABLE.iter().copied().flatten().copied();
    let words = all.flat_map(|declared| declared.said.iter().map(move |spoken| (declared, spoken)));
    words.filter(move |(_, spoken)| spoken.place == place)
}

/// How the client sends this request, where one exchange is all that it takes. Of one that is about a share, `kind` is what
/// that is.
pub fn sent(request: &Request, kind: Option<ItemKind>) -> Option<(&'static Declared, Sent)> {
    let all = TABLE.iter().copied().flatten().copied();
    let mut of_kind = all.filter(|declared| declared.of.is_none() || declared.of == kind);
    of_kind.find_map(|declared| Some((declared, (declared.sent)(request)?)))
}
