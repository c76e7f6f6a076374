//! A configuration that came from elsewhere, looked at as a whole before it replaces the one that is there.
//!
//! ```text
//!   backup ──▶ the new tables, uncommitted ──▶ check ──▶ committed, or nothing is changed
//!                                               │ every table is known; every record says nothing but what is understood;
//!                                               │ each is one that a change could have made
//!                                               └ and all of them together with the LUNs that there are
//! ```
//!
//! Each table is checked where its records are made, by the rules of making them. Invariant: what is accepted here is read
//! without an error by a daemon that starts with it.
//!
//! Not here: whether the file is whole, and of a schema that this program knows (`store`).

use crate::san::{Network, at_most_one_number};
use crate::shares::LunFacts;
use std::net::SocketAddr;
use std::sync::Arc;
use store::{Look, Table, Writer};
use units::{Error, Result};

/// Users, roles and what is set of the API, as one record: it is small, and a change of it is one.
pub const USERS: Table<access::State> = Table::new("access.state");
pub const USERS_KEY: &str = "state";
/// What a configuration says of itself: its schema.
const ABOUT: Table<u64> = Table::new("store");
/// Of the settings beside users: where the API listens.
const LISTEN: &str = "rest.listen";

type Check = fn(&Writer) -> Result<()>;

/// Every table there is, and what its records must be.
const TABLES: &[(&str, Check)] = &[
    (USERS.name(), users),
    ("alerts.receivers", crate::alerts::records::check_records),
    ("alerts.thresholds", crate::alerts::records::check_records),
    ("analytics.export", crate::analytics::records::check_records),
    ("analytics.settings", crate::analytics::records::check_records),
    ("analytics.worksheets", crate::analytics::records::check_records),
    ("san.fc_initiator_groups", crate::san::check_records),
    ("san.fc_initiators", crate::san::check_records),
    ("san.fc_target_groups", crate::san::check_records),
    ("san.fc_targets", crate::san::check_records),
    ("san.initiator_groups", crate::san::check_records),
    ("san.initiators", crate::san::check_records),
    ("san.settings", crate::san::check_records),
    ("san.target_groups", crate::san::check_records),
    ("san.targets", crate::san::check_records),
    ("san.reservations", crate::san::check_reservations),
    ("services", crate::services::check_records),
    ("shares.automatic", crate::schedules::check_records),
    ("shares.schema", crate::shares::check_schema),
    (ABOUT.name(), about),
];

/// `luns`: those that are served, which keep their numbers.
pub(super) fn check(writer: &Writer, luns: &[Arc<LunFacts>]) -> Result<()> {
    for table in writer.tables()? {
        let Some((_, check)) = TABLES.iter().find(|(known, _)| *known == table) else {
            return Err(Error::invalid(format!("nothing is known of its table '{table}'")));
        };
        check(writer)?;
    }
    at_most_one_number(&Network::read(writer)?, luns)
}

/// The store has looked at the schema, and brought it up to its own.
fn about(writer: &Writer) -> Result<()> {
    match writer.exact(&ABOUT)?.as_slice() {
        [(_, store::SCHEMA)] => Ok(()),
        _ => Err(Error::invalid("it says more of itself than its schema")),
    }
}

fn users(writer: &Writer) -> Result<()> {
    for (key, state) in writer.exact(&USERS)? {
        if key != USERS_KEY {
            return Err(Error::invalid(format!("users are not kept as '{key}'")));
        }
        state.check().map_err(|e| Error::invalid(e.message))?;
        let listen = state.settings.get(LISTEN).map_or("", String::as_str);
        let wrong = listen.split(',').find(|a| !a.is_empty() && a.parse::<SocketAddr>().is_err());
        if let Some(wrong) = wrong {
            return Err(Error::invalid(format!("the API cannot listen on '{wrong}'")));
        }
    }
    Ok(())
}
