//! What this front needs from the owner of the targets: which initiator may see what.
//!
//! It is asked anew at each login and whenever the server is told that something changed, so an answer may change at any
//! time. What an initiator was not given looks to it as if it were not there.

use crate::chap::Credentials;
use scsi::{Device, Lun, TargetPort};
use std::fmt::Debug;
use std::sync::Arc;
use units::Result;
use world::{Address, Pending};

/// Who asks, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking {
    /// The name it gives itself; proven only by a secret, if one is asked for.
    pub initiator: String,
    /// The address of the portal it came to; of one at every address of this machine the one that it found.
    pub portal: Address,
    pub from: Address,
}

/// A target as discovery shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    /// Where it is: `address:port,tag` of each portal. With none, it is where it was asked for.
    pub addresses: Vec<String>,
}

/// What must be proven, by each side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authentication {
    /// The initiator must prove that it is this one.
    pub initiator: Option<Credentials>,
    /// The target can prove that it is this one.
    pub target: Option<Credentials>,
}

/// A target that an initiator may log in to.
#[derive(Clone, Debug)]
pub struct Welcome {
    pub authentication: Authentication,
    /// The target port that this portal belongs to.
    pub port: TargetPort,
    /// The tag of its portal group.
    pub tag: u16,
    pub alias: String,
}

/// A unit and its number.
pub type Unit = (Lun, Arc<Device>);

/// See the module.
pub trait Directory: Send + Sync + Debug {
    /// What is asked of a discovery session.
    fn discovery(&self, asking: &Asking) -> Authentication;

    /// The targets that the initiator may log in to.
    fn targets(&self, asking: &Asking) -> Vec<Listed>;

    /// `None` when there is none of this name at this portal for it.
    fn target(&self, asking: &Asking, name: &str) -> Option<Welcome>;

    /// An initiator showed a wrong proof, after `wrong - 1` others of its name or address.
    fn note_wrong_proof(&self, asking: &Asking, wrong: u64) {
        let _ = (asking, wrong);
    }

    /// The units it has at a target, by number. The same unit must be the same device to everybody.
    fn units(&self, asking: &Asking, target: &str) -> Pending<Result<Vec<Unit>>>;
}
