//! Moving blocks: a step at a time, each of which is permitted anew.
//!
//! ```text
//!   step    permitted to read? ─▶ read ─▶ token still good? ─▶ permitted to write? ─▶ turn of the range ─▶ write
//! ```
//!
//! What is read stays in the buffers that the source has it in, and goes to the target in them; a hole becomes a hole. A
//! step ends where a block of the target does, so that whole blocks stay whole. Between two steps a copy can be stopped,
//! a unit be taken away or reserved: nothing is read or written after that. Blocks go in order, the first first, also
//! where both ranges overlap.

use super::operations::Operation;
use super::tokens::Token;
use crate::BLOCK;
use crate::cdb::{Blocks, Command};
use crate::epoch::{Epoch, Mark};
use crate::reach::ItlNexus;
use crate::sense::{Refusal, Sense};
use flow::Piece;
use std::sync::Arc;
use units::Error;
use world::Buf;

/// A step, in blocks: 1 MiB of data, or 16 MiB where there are none.
const STEP: u64 = (1 << 20) / BLOCK;
const HOLE_STEP: u64 = (16 << 20) / BLOCK;

/// A path that a copy works by. Resets and farewells of its unit wait until this is dropped, and end the copy.
pub(super) struct Leg {
    pub itl: Arc<ItlNexus>,
    mark: Arc<Mark>,
    _epoch: Arc<Epoch>,
}

impl Leg {
    pub fn new(itl: Arc<ItlNexus>) -> Leg {
        let epoch = itl.it_nexus.epoch();
        Leg { mark: epoch.mark(), _epoch: epoch, itl }
    }

    fn check(&self) -> Result<(), Refusal> {
        let is_over = self.mark.ended_by().is_some() || self.itl.device.is_away();
        if is_over { Err(Refusal::Busy) } else { Ok(()) }
    }
}

/// Why a copy goes no further.
#[derive(Debug)]
pub(super) enum Trouble {
    Stopped,
    Source(Refusal),
    Target(Refusal),
    Token(Sense),
}

/// One copy from a unit to a unit.
pub(super) struct Mover<'a> {
    pub operation: &'a Operation,
    /// The path by which the command came.
    pub own: &'a Leg,
    /// `None`: zeros.
    pub source: Option<&'a Leg>,
    /// What the blocks of the source must still be.
    pub token: Option<&'a Token>,
    pub target: &'a Leg,
}

fn failed(writing: bool) -> impl Fn(Error) -> Refusal {
    move |e| Refusal::Sense(Sense::of(e.kind(), writing))
}

impl Mover<'_> {
    fn check(&self) -> Result<(), Trouble> {
        if self.operation.stop.is_set() || self.own.check().is_err() || self.own.itl.it_nexus.has_left() {
            return Err(Trouble::Stopped);
        }
        if let Some(source) = self.source {
            source.check().map_err(Trouble::Source)?;
        }
        self.target.check().map_err(Trouble::Target)
    }

    /// Copies `count` blocks.
    pub async fn copy(&self, from: u64, to: u64, count: u64) -> Result<(), Trouble> {
        let mut done = 0;
        while done < count {
            // Others of this core have their turn, also when all there is to copy is in memory.
            world::yield_now().await;
            self.check()?;
            let at = Blocks { lba: to + done, count: count - done };
            let (pieces, step) = match self.source {
                Some(source) => self.read(source, from + done, at).await?,
                None => (Vec::new(), at.count.min(HOLE_STEP)),
            };
            let blocks = Blocks { count: step, ..at };
            self.write(blocks, pieces).await?;
            self.operation.moved(step);
            done += step;
        }
        Ok(())
    }

    /// What is to go to the beginning of `to`, and how many blocks that is; no pieces are a hole.
    async fn read(&self, source: &Leg, lba: u64, to: Blocks) -> Result<(Vec<Piece>, u64), Trouble> {
        let own = (u64::from(self.target.itl.device.unit.block_size()) / BLOCK).max(1);
        let whole = if own <= STEP { STEP - to.lba % own } else { STEP };
        let mut step = whole.min(to.count);
        let may = |count: u64| {
            let blocks = Blocks { lba, count };
            source.itl.permits(&Command::Read { blocks, fua: false }).map_err(Trouble::Source)
        };
        may(step)?;
        let unit = &source.itl.device.unit;
        let failed = |e| Trouble::Source(failed(false)(e));
        let mut pieces = unit.read(lba * BLOCK, (step * BLOCK) as u32).await.map_err(failed)?;
        if pieces.iter().all(|piece| matches!(piece, Piece::Hole(_))) {
            pieces.clear();
            let far = to.count.min(HOLE_STEP);
            if far > step {
                may(far)?;
                let extents = unit.extents(lba * BLOCK, far * BLOCK, 1).await.map_err(failed)?;
                let hole = extents.first().filter(|extent| extent.hole).map_or(0, |extent| extent.len);
                step = step.max((hole / BLOCK).min(far));
            }
        } else if to.count > step {
            unit.prefetch((lba + step) * BLOCK, STEP.min(to.count - step) * BLOCK);
        }
        if let Some(token) = self.token {
            token.check().map_err(Trouble::Token)?;
            token.touch();
        }
        Ok((pieces, step))
    }

    async fn write(&self, blocks: Blocks, pieces: Vec<Piece>) -> Result<(), Trouble> {
        let itl = &self.target.itl;
        let command = Command::Write { blocks, fua: false, then: None };
        let device = &itl.device;
        let _turn = device.range_locks.take(blocks.lba..blocks.lba + blocks.count).await;
        // Only now, since much may have happened while others were before us.
        self.check()?;
        itl.permits(&command).map_err(Trouble::Target)?;
        let _change = device.tokens.change(blocks);
        let failed = |e| Trouble::Target(failed(true)(e));
        let unit = &device.unit;
        if pieces.is_empty() {
            return unit.zero(blocks.offset(), blocks.len(), false).await.map_err(failed);
        }
        let (mut at, mut parts): (u64, Vec<Buf>) = (blocks.offset(), Vec::new());
        for piece in pieces {
            match piece {
                Piece::Data(buf) => parts.push(buf),
                Piece::Hole(len) => {
                    let before: u64 = parts.iter().map(|part| part.len() as u64).sum();
                    if before > 0 {
                        unit.write(at, std::mem::take(&mut parts), false).await.map_err(failed)?;
                    }
                    unit.zero(at + before, len.into(), false).await.map_err(failed)?;
                    at += before + u64::from(len);
                }
            }
        }
        if parts.is_empty() { Ok(()) } else { unit.write(at, parts, false).await.map_err(failed) }
    }

    /// What was copied is as durable as the target wants every write to be.
    pub async fn settle(&self) -> Result<(), Trouble> {
        let device = &self.target.itl.device;
        if device.modes().write_cache {
            return Ok(());
        }
        device.unit.flush().await.map_err(|e| Trouble::Target(failed(true)(e)))
    }
}
