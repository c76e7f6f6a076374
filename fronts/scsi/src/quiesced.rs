//! What is there in place of a unit that is away for a moment: it says who it is, and to wait.
//!
//! ```text
//!   served ── go_away: what is under way ends as it would ──▶ away ── its paths get the stand-in ──▶ dropped
//!      ▲                                                                         │ BUSY; "becoming ready"
//!      └──────────────── the same identity, another device of it ◀───────────────┘
//! ```
//!
//! So clients keep the unit they know and try again, where a unit that vanished would make them give it up.

use crate::cdb::Command;
use crate::device::{Device, Options, ReservationStore};
use crate::sense::{Refusal, Sense};
use crate::unit::LogicalUnit;
use flow::{Extent, Piece};
use std::sync::Arc;
use units::{Error, Kind, Result};
use world::{Buf, Pending};

/// The shape of a unit, without its blocks.
#[derive(Debug)]
struct Shape {
    size: u64,
    block_size: u32,
    read_only: bool,
    rotational: bool,
}

fn away<T: Send + 'static>() -> Pending<Result<T>> {
    Box::pin(std::future::ready(Err(Error::new(Kind::Busy, "use a unit that is away"))))
}

impl LogicalUnit for Shape {
    fn size(&self) -> u64 {
        self.size
    }

    fn block_size(&self) -> u32 {
        self.block_size
    }

    fn read_only(&self) -> bool {
        self.read_only
    }

    fn rotational(&self) -> bool {
        self.rotational
    }

    fn read(&self, _offset: u64, _len: u32) -> Pending<Result<Vec<Piece>>> {
        away()
    }

    fn write(&self, _offset: u64, _parts: Vec<Buf>, _durable: bool) -> Pending<Result<()>> {
        away()
    }

    fn zero(&self, _offset: u64, _len: u64, _durable: bool) -> Pending<Result<()>> {
        away()
    }

    fn flush(&self) -> Pending<Result<()>> {
        away()
    }

    fn extents(&self, _offset: u64, _len: u64, _max: usize) -> Pending<Result<Vec<Extent>>> {
        away()
    }
}

/// Nothing is reserved meanwhile.
#[derive(Debug)]
struct Nowhere;

impl ReservationStore for Nowhere {
    fn save(&self, _text: String, _lasting: Option<String>) -> Pending<Result<()>> {
        away()
    }
}

impl Device {
    /// What takes the place of this device while its unit is away.
    #[must_use]
    pub fn quiesced(&self) -> Arc<Device> {
        let unit = self.unit();
        let shape = Shape {
            size: unit.size(),
            block_size: unit.block_size(),
            read_only: unit.read_only(),
            rotational: unit.rotational(),
        };
        let modes = self.modes();
        let options = Options {
            write_cache: modes.write_cache,
            write_protect: modes.write_protect,
            max_transfer: self.limits.transfer * crate::BLOCK as u32,
        };
        let device = Device::new(Arc::new(shape), self.identity().clone(), options, Arc::new(Nowhere), "");
        device.set_groups(self.state().groups.clone());
        device.set_away();
        device
    }
}

/// What a command is told while its unit is away.
pub(crate) fn wait(command: Option<&Command>) -> Refusal {
    match command {
        // A command that asks whether it is ready is told why it is not; others are just tried again.
        Some(Command::TestUnitReady) => Sense::BECOMING_READY.into(),
        _ => Refusal::Busy,
    }
}
