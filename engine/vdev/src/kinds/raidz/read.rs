//! Reading a block from a RAIDZ vdev.
//!
//! ```text
//!   data columns ── all read, check passes ───────────────────────────────▶ block
//!        │ some failed                     ▲
//!        ├──▶ parity, rebuild them ────────┤
//!        │ check does not pass             │
//!        └──▶ all parity, rebuild suspects ┘ one set of columns after the other, until one passes
//! ```
//!
//! Once the block is known, so is what every column should hold. Those that returned something else are counted, and
//! written again together with those that could not be read.

use super::columns;
use super::map::{Map, Shape};
use super::suspect::suspects;
use crate::node::{Ask, Node};
use futures_util::future::join_all;
use std::sync::Arc;
use units::{Error, Kind, Result};
use world::Buf;

pub(crate) async fn read(shape: Shape, children: &[Arc<Node>], ask: &Ask) -> Result<Buf> {
    let map = shape.map(ask.offset, ask.len);
    let got = map.columns.iter().map(|_| Got::Untried).collect();
    let mut stripe = Stripe { map, children, ask, got };
    stripe.read().await
}

enum Got {
    Untried,
    Failed,
    Have(Buf),
}

struct Stripe<'a> {
    map: Map,
    children: &'a [Arc<Node>],
    ask: &'a Ask,
    got: Vec<Got>,
}

impl Stripe<'_> {
    async fn read(&mut self) -> Result<Buf> {
        let all = self.ask.everything || self.data().any(|c| !self.child(c).is_usable());
        let first = if all { 0 } else { self.map.parity };
        let mut error = self.fetch(first..self.map.columns.len()).await;
        if self.data().any(|c| matches!(self.got[c], Got::Failed)) {
            error = self.fetch(0..self.map.parity).await.or(error);
        }
        let failed = self.failed();
        let block = columns::rebuild(&self.map, &self.sound(&[]));
        match block.map(|b| b.freeze()) {
            Some(block) if self.passes(&block) => Ok(self.settle(block).await),
            Some(_) => self.read_by_guessing().await,
            None => {
                let lost =
                    format!("read from raidz with {} of {} columns lost", failed.len(), self.got.len());
                let error = error.unwrap_or_else(|| Error::new(Kind::Io, "use vdev"));
                Err(Error::new(Kind::Io, lost).because(error))
            }
        }
    }

    /// Some column is wrong. Believes one set of columns after the other to be wrong.
    async fn read_by_guessing(&mut self) -> Result<Buf> {
        self.fetch(0..self.map.columns.len()).await;
        let failed = self.failed();
        for (tried, set) in suspects(self.got.len(), self.map.parity, &failed).enumerate() {
            if let Some(block) = columns::rebuild(&self.map, &self.sound(&set)).map(|b| b.freeze())
                && self.passes(&block)
            {
                return Ok(self.settle(block).await);
            }
            // Each try is tens of microseconds: let others have their turn.
            if tried % 8 == 7 {
                world::yield_now().await;
            }
        }
        for c in (0..self.got.len()).filter(|&c| matches!(self.got[c], Got::Have(_))) {
            self.child(c).count_checksum_error(self.ask);
        }
        Err(Error::new(Kind::Checksum, "read from raidz"))
    }

    /// Reads those of the columns that were not tried yet. The error is one of theirs.
    async fn fetch(&mut self, which: std::ops::Range<usize>) -> Option<Error> {
        let untried: Vec<usize> = which.filter(|&c| matches!(self.got[c], Got::Untried)).collect();
        let results = join_all(untried.iter().map(|&c| self.child(c).read(self.ask_for(c)))).await;
        let mut error = None;
        for (c, result) in untried.into_iter().zip(results) {
            self.got[c] = match result {
                Ok(buf) => Got::Have(buf),
                Err(e) => {
                    error = Some(e);
                    Got::Failed
                }
            };
        }
        error
    }

    fn ask_for(&self, c: usize) -> Ask {
        let column = &self.map.columns[c];
        Ask { offset: column.offset, len: column.len(), check: None, ..self.ask.clone() }
    }

    /// Finds out which columns were wrong, now that the block is known, and sets them right.
    async fn settle(&self, block: Buf) -> Buf {
        let all_data_sound = self.data().all(|c| self.holds(c, &block[self.map.columns[c].bytes.clone()]));
        let parity_touched = (0..self.map.parity).any(|c| !matches!(self.got[c], Got::Untried));
        if all_data_sound && !parity_touched {
            return block;
        }
        let truth = columns::split(&self.map, &block);
        let mut bad = Vec::new();
        for (c, truth) in truth.iter().enumerate() {
            match &self.got[c] {
                Got::Have(buf) if buf[..] != truth[..] => {
                    self.child(c).count_checksum_error(self.ask);
                    bad.push(c);
                }
                Got::Failed => bad.push(c),
                // The column is good, but one of the devices that share it has missed it.
                Got::Have(_) if self.ask.repair && self.child(c).misses(self.ask.born) => bad.push(c),
                Got::Have(_) | Got::Untried => {}
            }
        }
        bad.retain(|&c| self.child(c).is_usable());
        self.ask.note_bad(bad.len());
        if self.ask.repair {
            let repair = |c: usize| self.child(c).repair(self.map.columns[c].offset, truth[c].clone());
            join_all(bad.into_iter().map(repair)).await;
        }
        block
    }

    fn holds(&self, c: usize, truth: &[u8]) -> bool {
        matches!(&self.got[c], Got::Have(buf) if buf[..] == *truth)
    }

    /// The columns at hand, without those in `suspects`.
    fn sound(&self, suspects: &[usize]) -> Vec<Option<&[u8]>> {
        self.got
            .iter()
            .enumerate()
            .map(|(c, got)| match got {
                Got::Have(buf) if !suspects.contains(&c) => Some(&buf[..]),
                _ => None,
            })
            .collect()
    }

    fn failed(&self) -> Vec<usize> {
        (0..self.got.len()).filter(|&c| matches!(self.got[c], Got::Failed)).collect()
    }

    fn passes(&self, block: &[u8]) -> bool {
        self.ask.check.as_ref().is_none_or(|check| check.passes(block))
    }

    fn data(&self) -> std::ops::Range<usize> {
        self.map.parity..self.map.columns.len()
    }

    fn child(&self, c: usize) -> &Arc<Node> {
        &self.children[self.map.columns[c].child]
    }
}
