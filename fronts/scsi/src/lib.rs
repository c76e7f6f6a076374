//! A SCSI direct-access device server: commands in, statuses and data out, and no wire.
//!
//! ```text
//!   cdb          bytes of a command -> Command, or the sense that refuses it          (pure)
//!   inquiry, mode, opcodes, report   what a unit says of itself                       (pure)
//!   registrations persistent reservations: registrants and the holder                   (pure)
//!   device       one unit, shared by all that reach it; a Path is one initiator's way to it
//!   epoch        the tasks of a path, as an abort sees them
//!   media        reads, writes and their kin, carried out on a LogicalUnit
//!   copy         blocks from one unit to another without the client between, by lists or by tokens
//!   reach        the paths of one initiator: what it may copy between
//!   quiesced     a unit that is away for a moment, and keeps its place
//!   unit         what we need from the owner of the blocks
//! ```
//!
//! A transport gives a command twice to its [`Path`]: [`Path::admit`] looks at its bytes and says how much data to fetch
//! for it, or refuses it before any data was moved; [`Path::execute`] carries it out, at once if nothing need be waited
//! for. Both are cheap: without reservations and attentions a read takes no lock.
//!
//! SPC-4, SBC-3 and SAM-5 are what is spoken. Every initiator has a task set of its own (TST 1), so order among commands
//! is the transport's to keep. Blocks are 512 bytes for the client; the unit's own block is what it sees as the physical
//! one, so clients align to it.
//!
//! Invariants: nothing in a command or its parameters can make us panic or allocate more than it announced and we
//! admitted; a change of reservations that was asked to survive is stored before it is answered; an aborted command
//! changes nothing after the abort was answered, since the answer waits for it.
//!
//! Not here: protection information, removable media.

mod attention;
mod cdb;
mod copy;
mod device;
mod epoch;
mod guard;
mod identity;
mod inquiry;
mod lun;
mod media;
pub mod memory;
mod mode;
mod opcodes;
mod path;
mod persist;
mod quiesced;
mod reach;
mod registrations;
mod report;
mod sense;
mod unit;

pub use attention::Attention;
pub use copy::Stop;
pub use device::{Device, Options, PortGroup, PortState, ReservationStore};
pub use flow::{Extent, Piece, Reading};
pub use identity::{Identity, Nexus, TargetPort, is_node_name, naa_text};
pub use lun::Lun;
pub use path::{Admission, Execution, Path};
pub use persist::is_reservations;
pub use reach::Reach;
pub use report::{absent, report_luns};
pub use sense::{Outcome, Sense, SenseKey, Status};
pub use unit::LogicalUnit;

/// The size of a logical block, as clients see it.
pub const BLOCK: u64 = 512;

/// Bytes of data that a command takes of its client, as far as its bytes tell; 0 when they are no command.
pub fn intake(cdb: &[u8]) -> u64 {
    cdb::parse(cdb).map_or(0, |command| command.intake().0)
}
