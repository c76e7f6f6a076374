//! Reservations of LUNs, kept beyond the clients that made them.
//!
//! In memory, as SCSI wants them to survive every farewell, and in the configuration where a client asked for them to
//! survive a restart.

use crate::san::lans::Lans;
use scsi::{ReservationStore, naa_text};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{Look, Table, Writer};
use units::{Error, Result};
use world::Pending;

/// Reservations that survive a restart, by the names of their units.
const RESERVATIONS: Table<String> = Table::new("san.reservations");

pub(super) type Naa = [u8; 16];
/// What is kept in memory, by unit.
pub(super) type Kept = Arc<Mutex<BTreeMap<Naa, String>>>;

fn lock(kept: &Kept) -> MutexGuard<'_, BTreeMap<Naa, String>> {
    // A text is put in or not.
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Of a configuration that came from elsewhere: reservations are of units, and such as a unit can take up.
pub(crate) fn check_records(writer: &Writer) -> Result<()> {
    for (unit, text) in writer.exact(&RESERVATIONS)? {
        if crate::shares::parse_guid(&unit).is_none() || !scsi::is_reservations(&text) {
            return Err(Error::invalid(format!("the reservations of '{unit}' are none")));
        }
    }
    Ok(())
}

/// Where the reservations of one unit are kept.
#[derive(Debug)]
pub(super) struct Reservations {
    pub lans: Arc<dyn Lans>,
    pub kept: Kept,
    pub unit: Naa,
}

impl Reservations {
    pub fn stored(&self) -> Result<String> {
        if let Some(text) = lock(&self.kept).get(&self.unit) {
            return Ok(text.clone());
        }
        let key = naa_text(&self.unit);
        let stored = self.lans.configuration()?.look(|reader| reader.get(&RESERVATIONS, &key))?;
        Ok(stored.unwrap_or_default())
    }
}

impl ReservationStore for Reservations {
    fn save(&self, text: String, lasting: Option<String>) -> Pending<Result<()>> {
        let key = naa_text(&self.unit);
        let saved = lasting.map_or(Ok(()), |lasting| {
            self.lans.configuration()?.change(|writer| match lasting.is_empty() {
                true => writer.remove(&RESERVATIONS, &key).map(drop),
                false => writer.put(&RESERVATIONS, &key, &lasting),
            })
        });
        if saved.is_ok() {
            lock(&self.kept).insert(self.unit, text);
        }
        Box::pin(std::future::ready(saved))
    }
}
