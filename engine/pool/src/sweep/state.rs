//! What is known of a sweep, in memory and in the ZAP of its device, where OpenZFS keeps it too.

use dmu::Tx;
use dsl::zaps::Table;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use units::{Guid, Result};
use world::Task;
use world::sync::Event;

/// What is done to the free space of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sweep {
    /// The device is told that it is not needed.
    Trim,
    /// It is written, so that a thin device has it.
    Initialize,
}

/// How far a sweep of a device has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SweepState {
    /// Nothing of the kind was ever begun.
    #[default]
    None,
    Active,
    Canceled,
    Suspended,
    Complete,
}

impl SweepState {
    /// The word of OpenZFS's history.
    pub(super) fn recorded(self) -> &'static str {
        match self {
            SweepState::None => "uninitialized",
            SweepState::Active => "activated",
            SweepState::Canceled => "canceled",
            SweepState::Suspended => "suspended",
            SweepState::Complete => "complete",
        }
    }
}

const STATES: [SweepState; 5] =
    [SweepState::None, SweepState::Active, SweepState::Canceled, SweepState::Suspended, SweepState::Complete];

/// The last sweep of a device, or the one under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepStatus {
    pub state: SweepState,
    /// When it got into this state, in seconds since 1970.
    pub since: u64,
    /// Everything before this is done: bytes, from where the device's data begins.
    pub position: u64,
    /// Bytes a second at most; 0: as fast as it goes.
    pub rate: u64,
    /// How often one was begun since the pool was opened: two that end within a second are two.
    pub begun: u64,
}

/// The names of the entries, and where the count of bytes begins in them.
struct Names {
    position: &'static str,
    state: &'static str,
    since: &'static str,
    rate: Option<&'static str>,
    flags: &'static [&'static str],
}

const TRIM: Names = Names {
    position: "org.zfsonlinux:next_offset_to_trim",
    state: "org.zfsonlinux:vdev_trim_state",
    since: "org.zfsonlinux:vdev_trim_action_time",
    rate: Some("org.zfsonlinux:vdev_trim_rate"),
    flags: &["org.zfsonlinux:vdev_trim_partial", "org.zfsonlinux:vdev_trim_secure"],
};

const INITIALIZE: Names = Names {
    position: "com.delphix:next_offset_to_initialize",
    state: "com.delphix:vdev_initialize_state",
    since: "com.delphix:vdev_initialize_action_time",
    rate: None,
    flags: &[],
};

/// On disk a position counts from the very start of the device.
const BEFORE_DATA: u64 = ondisk::label::DATA_OFFSET;

impl Sweep {
    pub(crate) const ALL: [Sweep; 2] = [Sweep::Trim, Sweep::Initialize];

    fn names(self) -> &'static Names {
        match self {
            Sweep::Trim => &TRIM,
            Sweep::Initialize => &INITIALIZE,
        }
    }

    /// The word of OpenZFS's history.
    pub(super) fn recorded(self) -> &'static str {
        match self {
            Sweep::Trim => "trim",
            Sweep::Initialize => "initialize",
        }
    }

    /// As in "currently trimming".
    pub(crate) fn doing(self) -> &'static str {
        match self {
            Sweep::Trim => "trimming",
            Sweep::Initialize => "initializing",
        }
    }
}

impl SweepStatus {
    /// What the device's ZAP says. A state that has no meaning counts as none: it is only progress that is lost.
    pub(crate) async fn read(table: &Table, kind: Sweep) -> Result<SweepStatus> {
        let names = kind.names();
        let number = async |name: &str| Ok::<u64, units::Error>(table.lookup_u64(name).await?.unwrap_or(0));
        let state = STATES.get(usize::try_from(number(names.state).await?).unwrap_or(usize::MAX));
        Ok(SweepStatus {
            state: state.copied().unwrap_or_default(),
            since: number(names.since).await?,
            position: number(names.position).await?.saturating_sub(BEFORE_DATA),
            rate: match names.rate {
                Some(name) => number(name).await?,
                None => 0,
            },
            begun: 0,
        })
    }

    pub(crate) async fn write(&self, table: &Table, tx: &Tx, kind: Sweep) -> Result<()> {
        let names = kind.names();
        let all = [names.position, names.state, names.since];
        if self.state == SweepState::None {
            for name in all.into_iter().chain(names.rate).chain(names.flags.iter().copied()) {
                dsl::zaps::remove_if_any(table, tx, name).await?;
            }
            return Ok(());
        }
        let state = STATES.iter().position(|s| *s == self.state).unwrap_or(0) as u64;
        let position = if self.position == 0 { 0 } else { self.position + BEFORE_DATA };
        let values = [position, state, self.since];
        let rate = names.rate.map(|name| (name, self.rate));
        let flags = names.flags.iter().map(|name| (*name, 0));
        for (name, value) in all.into_iter().zip(values).chain(rate).chain(flags) {
            table.update(tx, name, zap::Value::from(value)).await?;
        }
        Ok(())
    }
}

/// One that the pool knows.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub status: SweepStatus,
    pub at_work: Option<(Arc<Event>, Task<()>)>,
}

/// See the module above.
#[derive(Debug)]
pub(crate) struct Sweeps {
    pub known: Mutex<BTreeMap<(Guid, Sweep), Known>>,
    /// Held while commands change what is under way.
    pub commands: world::sync::Mutex<()>,
    /// Held while space is out of the allocator's hands: what one sweep has taken another one would pass over.
    pub turn: world::sync::Mutex<()>,
}

impl Default for Sweeps {
    fn default() -> Sweeps {
        let lock = || world::sync::Mutex::new(());
        Sweeps { known: Mutex::default(), commands: lock(), turn: lock() }
    }
}
