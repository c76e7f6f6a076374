//! Persistent reservations: who is registered, and who holds the unit. Pure.
//!
//! ```text
//!   register ──▶ registered ──reserve──▶ holder ──release──▶ registered ──unregister──▶ gone
//!                     ▲                    │
//!                     └──── preempted ◀────┘  (by another registrant that names the key)
//! ```
//!
//! A registration belongs to one nexus: an initiator port through one target port. ALL_TG_PT registers through each port
//! there is. With the types "all registrants" every registrant holds it.
//!
//! Every change says whom it must be told to; the device turns that into unit attentions.

use crate::attention::Attention;
use crate::identity::Nexus;
use crate::sense::{Refusal, Sense};
use std::sync::Arc;

/// More would make the reports of them too long.
const MAX_REGISTRATIONS: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    WriteExclusive = 1,
    ExclusiveAccess = 3,
    WriteExclusiveRegistrants = 5,
    ExclusiveAccessRegistrants = 6,
    WriteExclusiveAll = 7,
    ExclusiveAccessAll = 8,
}

impl Kind {
    pub fn of(code: u8) -> Result<Kind, Sense> {
        Ok(match code {
            1 => Kind::WriteExclusive,
            3 => Kind::ExclusiveAccess,
            5 => Kind::WriteExclusiveRegistrants,
            6 => Kind::ExclusiveAccessRegistrants,
            7 => Kind::WriteExclusiveAll,
            8 => Kind::ExclusiveAccessAll,
            _ => return Err(Sense::field(2, Some(3))),
        })
    }

    /// All who are registered may do everything.
    pub fn is_shared(self) -> bool {
        !matches!(self, Kind::WriteExclusive | Kind::ExclusiveAccess)
    }

    /// All who are registered hold it.
    pub fn is_held_by_all(self) -> bool {
        matches!(self, Kind::WriteExclusiveAll | Kind::ExclusiveAccessAll)
    }

    /// Others may not even read.
    pub fn is_exclusive(self) -> bool {
        matches!(self, Kind::ExclusiveAccess | Kind::ExclusiveAccessRegistrants | Kind::ExclusiveAccessAll)
    }
}

/// One end of a registration: an initiator port through a target port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Registrant {
    pub initiator: Arc<str>,
    /// Relative identifier of the target port.
    pub port: u16,
}

impl Registrant {
    pub fn of(nexus: &Nexus) -> Registrant {
        Registrant { initiator: nexus.initiator.clone(), port: nexus.port.relative }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registration {
    pub registrant: Registrant,
    pub key: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub kind: Kind,
    /// Who made it; meaningful unless all registrants hold it.
    pub holder: Registrant,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registrations {
    pub generation: u32,
    pub list: Vec<Registration>,
    pub reservation: Option<Reservation>,
    /// APTPL: all of this must survive a restart.
    pub survives: bool,
}

/// What happened, for those it concerns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    pub told: Vec<(Registrant, Attention)>,
    /// Whose commands are aborted.
    pub aborted: Vec<Registrant>,
}

type Done = Result<Effects, Refusal>;

/// A request to register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Register {
    /// The key that the client is registered with, unless it does not care.
    pub old: Option<u64>,
    pub new: u64,
    pub survives: bool,
    /// Through which ports: all of them, or the one it came by.
    pub ports: Vec<u16>,
    /// Other initiators to register with it.
    pub others: Vec<Arc<str>>,
}

impl Registrations {
    pub fn key_of(&self, registrant: &Registrant) -> Option<u64> {
        self.list.iter().find(|r| r.registrant == *registrant).map(|r| r.key)
    }

    pub fn is_registered(&self, registrant: &Registrant) -> bool {
        self.key_of(registrant).is_some()
    }

    pub fn holds(&self, registrant: &Registrant) -> bool {
        self.reservation.as_ref().is_some_and(|r| match r.kind.is_held_by_all() {
            true => self.is_registered(registrant),
            false => r.holder == *registrant,
        })
    }

    /// Only a registrant that names its key may go on.
    fn check_key(&self, registrant: &Registrant, key: u64) -> Result<(), Refusal> {
        if self.key_of(registrant) == Some(key) { Ok(()) } else { Err(Refusal::Conflict) }
    }

    fn tell_others(&self, except: &Registrant, attention: Attention) -> Vec<(Registrant, Attention)> {
        let others = self.list.iter().filter(|r| r.registrant != *except);
        others.map(|r| (r.registrant.clone(), attention)).collect()
    }

    pub fn register(&mut self, registrant: &Registrant, ask: &Register) -> Done {
        let registered = self.key_of(registrant);
        if let Some(old) = ask.old
            && registered.unwrap_or(0) != old
        {
            return Err(Refusal::Conflict);
        }
        if registered.is_some() && !ask.others.is_empty() {
            return Err(Sense::parameter(20).into());
        }
        let mut effects = Effects::default();
        let mut initiators = vec![registrant.initiator.clone()];
        initiators.extend(ask.others.iter().cloned());
        let all: Vec<Registrant> = initiators
            .iter()
            .flat_map(|initiator| {
                ask.ports.iter().map(|&port| Registrant { initiator: initiator.clone(), port })
            })
            .collect();
        if ask.new != 0 && self.list.len() + all.len() > MAX_REGISTRATIONS {
            return Err(Sense::NO_REGISTRATION_ROOM.into());
        }
        for one in &all {
            if ask.new == 0 {
                effects.told.extend(self.unregister(one));
            } else {
                self.set_key(one, ask.new);
            }
        }
        if ask.new != 0 || registered.is_some() {
            self.generation = self.generation.wrapping_add(1);
        }
        self.survives = ask.survives;
        Ok(effects)
    }

    fn set_key(&mut self, registrant: &Registrant, key: u64) {
        match self.list.iter_mut().find(|r| r.registrant == *registrant) {
            Some(registration) => registration.key = key,
            None => self.list.push(Registration { registrant: registrant.clone(), key }),
        }
    }

    /// Removes a registration, and the reservation with it when no holder is left.
    fn unregister(&mut self, registrant: &Registrant) -> Vec<(Registrant, Attention)> {
        let held = self.holds(registrant);
        self.list.retain(|r| r.registrant != *registrant);
        let Some(reservation) = &self.reservation else { return Vec::new() };
        let (kind, ends) =
            (reservation.kind, held && (!reservation.kind.is_held_by_all() || self.list.is_empty()));
        if !ends {
            return Vec::new();
        }
        self.reservation = None;
        if kind.is_shared() {
            self.tell_others(registrant, Attention::ReservationsReleased)
        } else {
            Vec::new()
        }
    }

    pub fn reserve(&mut self, registrant: &Registrant, key: u64, kind: Kind) -> Done {
        self.check_key(registrant, key)?;
        match &self.reservation {
            None => self.reservation = Some(Reservation { kind, holder: registrant.clone() }),
            Some(r) if r.kind == kind && self.holds(registrant) => {}
            Some(_) => return Err(Refusal::Conflict),
        }
        Ok(Effects::default())
    }

    pub fn release(&mut self, registrant: &Registrant, key: u64, kind: Kind) -> Done {
        self.check_key(registrant, key)?;
        if !self.holds(registrant) {
            return Ok(Effects::default());
        }
        if self.reservation.as_ref().is_some_and(|r| r.kind != kind) {
            return Err(Sense::RELEASE_INVALID.into());
        }
        self.reservation = None;
        let told = if kind.is_shared() {
            self.tell_others(registrant, Attention::ReservationsReleased)
        } else {
            Vec::new()
        };
        Ok(Effects { told, ..Effects::default() })
    }

    pub fn clear(&mut self, registrant: &Registrant, key: u64) -> Done {
        self.check_key(registrant, key)?;
        let told = self.tell_others(registrant, Attention::ReservationsPreempted);
        self.list.clear();
        self.reservation = None;
        self.generation = self.generation.wrapping_add(1);
        Ok(Effects { told, ..Effects::default() })
    }

    pub fn preempt(
        &mut self,
        registrant: &Registrant,
        key: u64,
        victim: u64,
        kind: Option<Kind>,
        abort: bool,
    ) -> Done {
        self.check_key(registrant, key)?;
        let by_all = self.reservation.as_ref().is_some_and(|r| r.kind.is_held_by_all());
        let holder_key = self.reservation.as_ref().filter(|_| !by_all).and_then(|r| self.key_of(&r.holder));
        if victim == 0 && !by_all {
            return Err(Sense::parameter(8).into());
        }
        let takes = holder_key == Some(victim) || (by_all && victim == 0);
        // The type counts only where a reservation is made.
        let kind = if takes { Some(kind.ok_or(Sense::field(2, Some(3)))?) } else { None };
        let is_victim =
            |r: &Registration| r.registrant != *registrant && ((by_all && victim == 0) || r.key == victim);
        let removed: Vec<Registrant> =
            self.list.iter().filter(|r| is_victim(r)).map(|r| r.registrant.clone()).collect();
        if removed.is_empty() && !takes && self.key_of(registrant) != Some(victim) {
            return Err(Refusal::Conflict);
        }
        let mut effects = Effects::default();
        self.list.retain(|r| !removed.contains(&r.registrant));
        effects.told.extend(removed.iter().map(|w| (w.clone(), Attention::RegistrationsPreempted)));
        if let Some(kind) = kind {
            let before = self.reservation.replace(Reservation { kind, holder: registrant.clone() });
            if before.is_some_and(|before| before.kind != kind) {
                effects.told.extend(self.tell_others(registrant, Attention::ReservationsReleased));
            }
        } else if key == victim && !by_all && holder_key.is_none() {
            // It preempted itself: its registration goes.
            self.list.retain(|r| r.registrant != *registrant);
        }
        if abort {
            effects.aborted = removed;
        }
        self.generation = self.generation.wrapping_add(1);
        Ok(effects)
    }

    /// Gives the reservation to another nexus, which is registered with `new` for it.
    pub fn register_and_move(
        &mut self,
        registrant: &Registrant,
        key: u64,
        new: u64,
        to: Registrant,
        leave: bool,
        survives: bool,
    ) -> Done {
        self.check_key(registrant, key)?;
        let Some(reservation) = self.reservation.clone() else { return Err(Refusal::Conflict) };
        if reservation.kind.is_held_by_all() || reservation.holder != *registrant {
            return Err(Refusal::Conflict);
        }
        if new == 0 {
            return Err(Sense::parameter(8).into());
        }
        if to == *registrant {
            return Err(Sense::parameter(24).into());
        }
        self.set_key(&to, new);
        self.reservation = Some(Reservation { holder: to, ..reservation });
        if leave {
            self.list.retain(|r| r.registrant != *registrant);
        }
        self.survives = survives;
        self.generation = self.generation.wrapping_add(1);
        Ok(Effects::default())
    }
}

#[cfg(test)]
mod tests;
