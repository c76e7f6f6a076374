//! Tunables: told, changed while everything runs, and kept in the home.
//!
//! ```text
//!   the machine's defaults ◀── the home's tunables.json ◀── a system file given at the start: later ones win
//! ```
//!
//! What a request sets is kept. What the system file says is not: it is read again at each start. A safe start passes
//! over what is kept, so that a value with which nothing works can be set right.

mod kept;

pub(crate) use kept::at_start;

use crate::appliance::Appliance;
use api::changes::Setting;
use api::{ApiError, ErrorKind, Reply, Result};
use kept::kept;
use std::collections::BTreeMap;
use std::sync::PoisonError;
use tunables::Tunable;

impl Appliance {
    pub(crate) fn tell_tunables(&self, names: &[String]) -> Result<Reply> {
        if names.is_empty() {
            return Ok(Reply::Tunables(Tunable::ALL.iter().map(|t| self.tell(*t)).collect()));
        }
        let found = names.iter().map(|name| find("get", name).map(|t| self.tell(t)));
        found.collect::<Result<_>>().map(Reply::Tunables)
    }

    pub(crate) fn set_tunables(&self, settings: &[(String, String)]) -> Result<Reply> {
        let mut parsed = Vec::new();
        for (name, text) in settings {
            let tunable = find("set", name)?;
            let value = tunable.definition().parse(text);
            let value = value.map_err(|e| ApiError::cannot(format!("set '{name}'"), &e))?;
            parsed.push((tunable, value));
        }
        let _turn = self.0.tuning.lock().unwrap_or_else(PoisonError::into_inner);
        // Kept first: what holds now holds after a restart too.
        let mut kept: BTreeMap<Tunable, u64> = kept(&self.0.config.home)?.into_iter().collect();
        kept.extend(parsed.iter().copied());
        kept.retain(|tunable, value| *value != self.0.tunables.default_of(*tunable));
        let named = kept.into_iter().map(|(tunable, value)| (tunable.name().to_string(), value)).collect();
        self.0.config.home.remember_tunables(&named).map_err(|e| ApiError::cannot("keep the setting", &e))?;
        for (tunable, value) in &parsed {
            let set = self.0.tunables.set(*tunable, *value);
            set.map_err(|e| ApiError::cannot(format!("set '{tunable}'"), &e))?;
        }
        Ok(Reply::Tunables(parsed.into_iter().map(|(tunable, _)| self.tell(tunable)).collect()))
    }

    /// The values of those that there are, as they are set.
    pub(crate) fn tunable_values(&self, names: &[String]) -> BTreeMap<String, Setting> {
        let value = |name: &String| {
            let tunable = Tunable::find(name).ok()?;
            let value = self.0.tunables.get(tunable);
            let is_own = value != self.0.tunables.default_of(tunable);
            Some((name.clone(), Setting { value: value.to_string(), is_own }))
        };
        names.iter().filter_map(value).collect()
    }

    /// What is at stake with the values that hold now, in whole sentences.
    pub fn warnings(&self) -> Vec<String> {
        let warning = |tunable: &Tunable| {
            let value = self.0.tunables.get(*tunable);
            let why = tunable.definition().warning_for(value)?;
            Some(format!("{tunable} is {value}: {why}"))
        };
        Tunable::ALL.iter().filter_map(warning).collect()
    }

    fn tell(&self, tunable: Tunable) -> api::Tunable {
        let definition = tunable.definition();
        let value = self.0.tunables.get(tunable);
        api::Tunable {
            name: definition.name.into(),
            value,
            default: self.0.tunables.default_of(tunable),
            min: definition.min,
            max: definition.max,
            unit: definition.unit.name().into(),
            about: definition.about.into(),
            warning: definition.warning_for(value).map(String::from),
        }
    }
}

fn find(verb: &str, name: &str) -> Result<Tunable> {
    let missing = |_| ApiError::new(ErrorKind::NotFound, format!("cannot {verb} '{name}': no such tunable"));
    Tunable::find(name).map_err(missing)
}
