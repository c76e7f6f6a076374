//! The requests that can be made over HTTP: one file for each family, see [`crate::http`] for what a declaration is.

pub mod alerts;
pub mod analytics;
pub mod san;
pub mod schema;
pub mod services;
pub mod shares;
pub mod updates;

use crate::Request;
use crate::http::{Declared, Sent};

#[cfg(test)]
mod tests;

/// Every request that can be made over HTTP.
pub static TABLE: &[&[&Declared]] =
    &[alerts::ALL, analytics::ALL, san::ALL, schema::ALL, services::ALL, updates::ALL];

/// How the client sends this request, where one exchange is all that it takes.
pub fn sent(request: &Request) -> Option<(&'static Declared, Sent)> {
    TABLE.iter().copied().flatten().find_map(|declared| Some((*declared, (declared.sent)(request)?)))
}
