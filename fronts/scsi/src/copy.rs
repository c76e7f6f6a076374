//! The copy manager: blocks from one unit to another, while the client only says which.
//!
//! ```text
//!   EXTENDED COPY ───────── units and segments ─┐
//!   POPULATE TOKEN ─▶ token                     ├─▶ mover ─▶ LogicalUnit of the source ─▶ LogicalUnit of the target
//!   WRITE USING TOKEN ───── token and ranges ───┘      │
//!   RECEIVE COPY RESULTS, ROD TOKEN INFORMATION ◀──── operations
//! ```
//!
//! A unit is named by its designator, and looked for among the paths that the same initiator has through the same target
//! ([`crate::reach`]): what it was not given, it cannot name. Each step of a copy is checked as if the initiator had
//! read or written by itself: access states, reservations, write protection, the unit's present size.
//!
//! A token stands for data as they were: it is revoked by the first change of them ([`tokens`]). It can be used through
//! any unit of the target by an initiator that also has the unit that it was made of.
//!
//! Invariants: a copy holds at most one step in memory; it ends within a step after it was aborted, its session ended, or
//! one of its units was reset or taken away, and until then those wait for it.
//!
//! Not here: lists with long identifiers for EXTENDED COPY, streams, inline data, tokens of other targets.

pub(crate) mod limits;
mod lists;
mod mover;
mod operations;
mod tokens;

pub(crate) use operations::Copies;
pub use operations::Stop;
pub(crate) use tokens::Tokens;

use crate::cdb::Command;
use crate::reach::ItlNexus;
use crate::sense::{Answer, Refusal, Sense};
use limits::{THIS_UNIT, TYPE_ZEROS};
use lists::{CopyList, Populate, Segment, Target, Usage, WriteUsing, pairs};
use mover::{Leg, Mover, Trouble};
use operations::{Asked, End, Operation};
use std::sync::Arc;
use tokens::Token;
use world::Pending;

/// Whether a command is one of those that [`start`] takes.
pub(crate) fn may_take_long(command: &Command) -> bool {
    matches!(
        command,
        Command::ExtendedCopy { .. } | Command::PopulateToken { .. } | Command::WriteUsingToken { .. }
    )
}

/// Begins a command that copies, or that promises to.
pub(crate) fn start(itl: &Arc<ItlNexus>, command: Command, list: Vec<u8>, stop: Stop) -> Pending<Answer> {
    let itl = itl.clone();
    match command {
        Command::ExtendedCopy { .. } => Box::pin(extended_copy(itl, list, stop)),
        Command::PopulateToken { list: id, .. } => {
            Box::pin(async move { populate(&itl, id, &list, stop).map(|()| Vec::new()) })
        }
        Command::WriteUsingToken { list: id, .. } => Box::pin(write_using(itl, id, list, stop)),
        _ => Box::pin(std::future::ready(Err(Sense::INVALID_OPCODE.into()))),
    }
}

/// A copy that is under way; dropped before its end was told, it was given up.
struct Begun {
    itl: Arc<ItlNexus>,
    operation: Arc<Operation>,
}

impl Begun {
    fn new(itl: &Arc<ItlNexus>, asked: Asked, stop: Stop) -> Result<Begun, Refusal> {
        let operation = itl.it_nexus.copies.begin(asked, stop)?;
        Ok(Begun { itl: itl.clone(), operation })
    }

    fn end(&self, end: End, token: Option<Arc<Token>>) {
        self.itl.it_nexus.copies.end(&self.operation, end, token);
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.end(End::Stopped, None);
    }
}

async fn extended_copy(itl: Arc<ItlNexus>, list: Vec<u8>, stop: Stop) -> Answer {
    let Some(list) = CopyList::read(&list)? else { return Ok(Vec::new()) };
    let asked = Asked {
        list: (list.usage != Usage::Nameless).then_some(list.id.into()),
        action: 0x00,
        is_kept: list.usage == Usage::Kept,
        in_background: false,
    };
    let begun = Begun::new(&itl, asked, stop)?;
    let own = Leg::new(itl);
    for (number, segment) in list.segments.iter().enumerate() {
        begun.operation.begin_segment();
        let ended = copy_segment(&own, &begun.operation, &list.targets, segment).await;
        if let Err(sense) = ended {
            let refusal = Refusal::Sense(Sense { segment: Some(number as u16), ..sense });
            begun.end(if begun.operation.stop.is_set() { End::Stopped } else { End::Failed(refusal) }, None);
            return Err(refusal);
        }
    }
    begun.end(End::Done, None);
    Ok(Vec::new())
}

async fn copy_segment(
    own: &Leg,
    operation: &Operation,
    targets: &[Target],
    segment: &Segment,
) -> Result<(), Sense> {
    let source = leg(own, targets, segment.source)?;
    let target = leg(own, targets, segment.target)?;
    for (lba, itl, byte) in [(segment.from, &source.itl, 12), (segment.to, &target.itl, 20)] {
        let end = lba.checked_add(segment.count);
        if end.is_none_or(|end| end > itl.device.unit.size() / crate::BLOCK) {
            let field = Sense::parameter(segment.at + byte).field;
            return Err(Sense { field, ..Sense::COPY_ABORTED });
        }
    }
    let mover = Mover { operation, own, source: Some(&source), token: None, target: &target };
    let copied = match mover.copy(segment.from, segment.to, segment.count).await {
        Ok(()) => mover.settle().await,
        Err(trouble) => Err(trouble),
    };
    copied.map_err(|trouble| match trouble {
        Trouble::Stopped => Sense::COPY_ABORTED,
        Trouble::Source(Refusal::Sense(sense)) | Trouble::Target(Refusal::Sense(sense))
            if sense == Sense::NO_SUCH_UNIT =>
        {
            Sense::COPY_UNREACHABLE
        }
        Trouble::Source(_) | Trouble::Target(_) | Trouble::Token(_) => Sense::COPY_DEVICE_FAILED,
    })
}

/// The unit that a segment means by a number.
fn leg(own: &Leg, targets: &[Target], number: u16) -> Result<Leg, Sense> {
    if number == THIS_UNIT {
        return Ok(Leg::new(own.itl.clone()));
    }
    let target = targets.get(usize::from(number)).ok_or(Sense::COPY_UNREACHABLE)?;
    let at = Sense::parameter(target.at).field;
    let is_meant =
        |itl: Arc<ItlNexus>| itl.device.is_called(target.code_set, target.kind, &target.name).then_some(itl);
    let found = own.itl.reach.find(is_meant).ok_or(Sense { field: at, ..Sense::COPY_UNREACHABLE })?;
    if target.device_type != 0 {
        return Err(Sense { field: at, ..Sense::COPY_DEVICE_TYPE });
    }
    Ok(Leg::new(found))
}

/// A token is made at once, so it makes no difference whether an initiator waits for it.
fn populate(itl: &Arc<ItlNexus>, id: u32, list: &[u8], stop: Stop) -> Result<(), Refusal> {
    let Some(asked) = Populate::read(list)? else { return Ok(()) };
    for blocks in &asked.ranges {
        itl.check_blocks(*blocks, u64::MAX)?;
    }
    let operation = Asked { list: Some(id), action: 0x10, is_kept: true, in_background: false };
    let begun = Begun::new(itl, operation, stop)?;
    match itl.device.tokens.make(
        itl.device.identity(),
        &*itl.device.unit,
        &itl.it_nexus.nexus,
        asked.ranges,
        asked.timeout,
    ) {
        Ok(token) => {
            begun.end(End::Done, Some(token));
            Ok(())
        }
        Err(sense) => {
            begun.end(End::Failed(sense.into()), None);
            Err(sense.into())
        }
    }
}

/// Where the data of a token are; nowhere when they are zeros.
enum Origin {
    Zeros,
    Unit(Leg, Arc<Token>),
}

impl Origin {
    fn find(itl: &ItlNexus, bytes: &[u8; tokens::TOKEN]) -> Result<Origin, Sense> {
        let kind = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        if kind == TYPE_ZEROS {
            return Ok(Origin::Zeros);
        }
        if kind != limits::TYPE_VULNERABLE {
            return Err(Sense::UNSUPPORTED_TOKEN);
        }
        let found = itl.reach.find(|other| {
            let found = other.device.tokens.find(bytes)?;
            Some(found.map(|token| (other, token)))
        });
        let (other, token) = found.unwrap_or(Err(Sense::TOKEN_UNKNOWN))?;
        Ok(Origin::Unit(Leg::new(other), token))
    }
}

async fn write_using(itl: Arc<ItlNexus>, id: u32, list: Vec<u8>, stop: Stop) -> Answer {
    let Some(asked) = WriteUsing::read(&list)? else { return Ok(Vec::new()) };
    for blocks in &asked.ranges {
        itl.check_blocks(*blocks, u64::MAX)?;
    }
    itl.check_writable()?;
    let origin = Origin::find(&itl, &asked.token)?;
    let pairs = match &origin {
        Origin::Zeros => asked.ranges.iter().map(|blocks| (0, blocks.lba, blocks.count)).collect(),
        Origin::Unit(_, token) if asked.offset >= token.len() => return Err(Sense::parameter(8).into()),
        Origin::Unit(_, token) => pairs(&token.ranges, asked.offset, &asked.ranges),
    };
    let all: u64 = asked.ranges.iter().map(|blocks| blocks.count).sum();
    let is_whole = pairs.iter().map(|(_, _, count)| count).sum::<u64>() == all;
    let operation = Asked { list: Some(id), action: 0x11, is_kept: true, in_background: asked.immediate };
    let begun = Begun::new(&itl, operation, stop)?;
    let own = Leg::new(itl);
    let work = async move {
        let ended = copy_pairs(&own, &begun.operation, &origin, &pairs).await;
        if let (true, Origin::Unit(leg, token)) = (asked.delete, &origin) {
            leg.itl.device.tokens.delete(token);
        }
        let (end, answer) = match ended {
            Ok(()) => (if is_whole { End::Done } else { End::Partly }, Ok(Vec::new())),
            Err(Trouble::Stopped) => (End::Stopped, Err(Sense::COPY_ABORTED.into())),
            Err(Trouble::Target(refusal)) => (End::Failed(refusal), Err(refusal)),
            Err(Trouble::Token(sense)) => (End::Failed(sense.into()), Err(sense.into())),
            Err(Trouble::Source(_)) => {
                let refusal = Refusal::Sense(Sense::COPY_DEVICE_FAILED);
                (End::Failed(refusal), Err(refusal))
            }
        };
        begun.end(end, None);
        answer
    };
    if asked.immediate {
        world::spawn(async move {
            // How it ends is asked for by its identifier.
            let _ = work.await;
        });
        return Ok(Vec::new());
    }
    work.await
}

async fn copy_pairs(
    own: &Leg,
    operation: &Operation,
    origin: &Origin,
    pairs: &[(u64, u64, u64)],
) -> Result<(), Trouble> {
    let (source, token) = match origin {
        Origin::Zeros => (None, None),
        Origin::Unit(leg, token) => (Some(leg), Some(&**token)),
    };
    let mover = Mover { operation, own, source, token, target: own };
    for &(from, to, count) in pairs {
        mover.copy(from, to, count).await?;
    }
    mover.settle().await
}
