//! What a property that is set does here.
//!
//! ```text
//!   Acts    some code follows it                     set as in OpenZFS
//!   Later   the part that will follow it is missing  set and kept, shown with "no effect here"
//!   Never   what it is about does not exist here     only its default can be set; another value, which a pool of OpenZFS
//!                                                    brings along, is kept for OpenZFS and shown with "no effect here"
//! ```
//!
//! A property that is accepted and ignored is a promise that is not kept. A test holds the place of each that acts.

use super::{Property, Value, show_value};
use crate::pool_props::PoolProp;
use crate::props::Prop;
use units::{Error, Result};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Acts,
    Later,
    Never,
}

impl Prop {
    pub fn effect(self) -> Effect {
        use Prop::*;
        match self {
            // Shares over NFS and SMB.
            ShareNfs | ShareSmb => Effect::Later,
            // Zones, virus scanners, labels, device nodes of volumes: not here.
            Zoned | ZonedUid | Vscan | Nbmand | MlsLabel | Context | FsContext | DefContext | RootContext
            | IscsiOptions | StmfShareInfo | VolMode | VolThreading | SnapDev => Effect::Never,
            _ => Effect::Acts,
        }
    }
}

impl PoolProp {
    pub fn effect(self) -> Effect {
        use PoolProp::*;
        match self {
            Delegation | ListSnapshots | DedupDitto | DedupTableQuota => Effect::Never,
            _ => Effect::Acts,
        }
    }
}

/// Whether a property, of datasets or of pools, does nothing here whatever it is set to.
pub fn has_no_effect(name: &str) -> bool {
    let effect =
        Prop::by_name(name).map(Prop::effect).or_else(|| PoolProp::by_name(name).map(PoolProp::effect));
    effect.is_some_and(|effect| effect != Effect::Acts)
}

/// Refuses to set what would never act.
pub(crate) fn check(row: &Property, effect: Effect, value: &Value) -> Result<()> {
    let default = row.default_value();
    if effect != Effect::Never || default.as_ref() == Some(value) {
        return Ok(());
    }
    let allowed = match default {
        Some(default) => format!("; it stays '{}'", show_value(row, &default, false)),
        None => String::new(),
    };
    Err(Error::unsupported(format!("'{}' has no effect here, so it cannot be set{allowed}", row.name)))
}

#[cfg(test)]
mod tests;
