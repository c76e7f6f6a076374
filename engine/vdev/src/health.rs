//! How well a vdev is, and why: the words that `zpool status` prints.
//!
//! A leaf's state is set by what happens to it. The state of a vdev with children is never stored: it follows from
//! theirs by [`State::of_group`].
//!
//! ```text
//!   open ──▶ ONLINE ◀──── repaired, cleared ────┐
//!    │         │ too many errors, others can do without it ──▶ FAULTED
//!    │         └ too many errors, but the only copy ─────────▶ DEGRADED, and still used
//!    ├─ not found ──▶ UNAVAIL (cannot open)
//!    ├─ foreign or damaged label ──▶ FAULTED or UNAVAIL (corrupted data)
//!    └─ told so ──▶ OFFLINE
//! ```

/// From worst to best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Closed by the administrator.
    Offline,
    /// Taken out of the machine.
    Removed,
    /// It cannot be opened, or is not what it should be.
    CannotOpen,
    /// Given up after too many errors.
    Faulted,
    /// It works, but not as it should.
    Degraded,
    Online,
}

/// The reason of a state other than online.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Aux {
    #[default]
    None,
    OpenFailed,
    /// The label is unreadable or belongs to something else.
    CorruptData,
    NoReplicas,
    /// The sum of the guids of all devices is not the uberblock's: a top-level vdev is missing.
    BadGuidSum,
    TooSmall,
    BadLabel,
    BadAshift,
    ErrorsExceeded,
    /// Faulted by the administrator.
    External,
    /// A spare that is in use.
    Spared,
    UnsupportedFeature,
    ChildrenOffline,
    /// It was used without the others, and has what they have not.
    WentOn,
}

impl Aux {
    /// As `zpool status` says it; empty when there is nothing to say.
    pub fn phrase(self) -> &'static str {
        match self {
            Aux::None => "",
            Aux::OpenFailed => "cannot open",
            Aux::CorruptData => "corrupted data",
            Aux::NoReplicas => "insufficient replicas",
            Aux::BadGuidSum => "missing device",
            Aux::TooSmall => "device is too small",
            Aux::BadLabel => "invalid label",
            Aux::BadAshift => "unsupported minimum blocksize",
            Aux::ErrorsExceeded => "too many errors",
            Aux::External => "external device fault",
            Aux::Spared => "currently in use",
            Aux::UnsupportedFeature => "unsupported feature(s)",
            Aux::ChildrenOffline => "all children offline",
            Aux::WentOn => "used without the pool",
        }
    }
}

impl State {
    /// Whether I/O may be sent to it.
    pub fn is_usable(self) -> bool {
        self >= State::Degraded
    }

    /// The word in the STATE column.
    pub fn word(self, aux: Aux) -> &'static str {
        match self {
            State::Online => "ONLINE",
            State::Degraded => "DEGRADED",
            State::Faulted => "FAULTED",
            State::CannotOpen if aux == Aux::CorruptData => "FAULTED",
            State::CannotOpen => "UNAVAIL",
            State::Removed => "REMOVED",
            State::Offline => "OFFLINE",
        }
    }

    /// The state of a vdev that can do without `redundancy` of its `children`.
    pub fn of_group(redundancy: usize, children: impl IntoIterator<Item = State>) -> (State, Aux) {
        let (mut failed, mut worse) = (0, 0);
        for child in children {
            failed += usize::from(!child.is_usable());
            worse += usize::from(child != State::Online);
        }
        if failed > redundancy {
            (State::CannotOpen, Aux::NoReplicas)
        } else if worse > 0 {
            (State::Degraded, Aux::None)
        } else {
            (State::Online, Aux::None)
        }
    }
}

/// The state of one leaf and its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Health {
    pub state: State,
    pub aux: Aux,
}

impl Health {
    pub const ONLINE: Health = Health { state: State::Online, aux: Aux::None };

    pub fn new(state: State, aux: Aux) -> Health {
        Health { state, aux }
    }

    pub fn word(&self) -> &'static str {
        self.state.word(self.aux)
    }
}

/// Errors since the vdev was opened or cleared: the READ, WRITE and CKSUM columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Errors {
    pub read: u64,
    pub write: u64,
    pub checksum: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_as_well_as_its_redundancy_allows() {
        use State::*;
        for (redundancy, children, state) in [
            (1, vec![Online, Online], Online),
            (1, vec![Online, Faulted], Degraded),
            (1, vec![Online, Degraded], Degraded),
            (1, vec![Offline, CannotOpen], CannotOpen),
            (2, vec![Online, Offline, Removed, Online], Degraded),
            (2, vec![Faulted, Offline, Removed, Online], CannotOpen),
        ] {
            assert_eq!(State::of_group(redundancy, children.clone()).0, state, "{children:?}");
        }
    }

    #[test]
    fn states_are_printed_as_zpool_prints_them() {
        assert_eq!(Health::new(State::CannotOpen, Aux::OpenFailed).word(), "UNAVAIL");
        assert_eq!(Health::new(State::CannotOpen, Aux::CorruptData).word(), "FAULTED");
        assert_eq!(Health::ONLINE.word(), "ONLINE");
    }
}
