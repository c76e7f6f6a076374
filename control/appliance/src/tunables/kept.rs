//! What the home remembers of tunables, and what an appliance starts with.

use crate::config::Config;
use crate::home::Home;
use crate::memory::Defaults;
use api::{ApiError, ErrorKind, Result};
use std::sync::Arc;
use tunables::{Tunable, Tunables};

/// The values that an appliance starts with.
pub(crate) fn at_start(config: &Config) -> Result<Arc<Tunables>> {
    let failed = |e: units::Error| ApiError::new(e.kind().into(), e.to_string());
    let dirty = Defaults::of_this_machine().dirty;
    let tunables = Tunables::with_defaults(&[(Tunable::DirtyDataMax, dirty)]).map_err(failed)?;
    let kept = if config.is_safe { Vec::new() } else { kept(&config.home)? };
    for (tunable, value) in kept.into_iter().chain(config.system.iter().copied()) {
        tunables.set(tunable, value).map_err(failed)?;
    }
    Ok(tunables)
}

/// What the home remembers. What it does not know is not passed over: a setting that was made must not be lost.
pub(super) fn kept(home: &Home) -> Result<Vec<(Tunable, u64)>> {
    let remembered = home.tunables().map_err(|e| ApiError::new(e.kind().into(), e.to_string()))?;
    let known = |(name, value): (String, u64)| {
        let found = Tunable::find(&name).ok().filter(|t| t.definition().check(value).is_ok());
        found.map(|tunable| (tunable, value)).ok_or_else(|| {
            let place = home.tunables_file();
            let message = format!("cannot start: {}: '{name}' with the value {value}", place.display());
            ApiError::new(
                ErrorKind::Invalid,
                format!("{message} is not known here; correct or remove it, or start with --safe"),
            )
        })
    };
    remembered.into_iter().map(known).collect()
}
