//! Reading a block from a RAIDZ vdev.
//!
//! ```text
//!   data columns ── all read, check passes ───────────────────────────────▶ block
//!        │ some failed                     ▲
//!        ├──▶ parity, rebuild them ────────┤
//!        │ check does not pass             │
//!        ├──▶ all parity, rebuild suspects ┤ one set of columns after the other, until one passes
//!        │ none does                       │
//!        └──▶ all versions of each column ─┘ the same again, for one choice of versions after the other
//! ```
//!
//! A column of a device that was much slower than the others lately counts as one that failed, until another fails.
//!
//! A column whose child is being replaced, or has a spare beside it, is on several devices. Which of them is behind is known
//! from what the pool keeps; before that has been read, when the pool is being opened, any of them may be the one that was
//! asked. So each device's version of the column is tried before a block is given up.
//!
//! Once the block is known, so is what every column should hold. Those that returned something else are counted, and
//! written again together with those that could not be read.

use super::columns;
use super::map::{Map, Shape};
use super::suspect::{TRIES_MAX, choices, suspects};
use crate::Leaf;
use crate::diagnosis::Fault;
use crate::node::{Ask, Node};
use crate::pace;
use futures_util::future::join_all;
use std::sync::Arc;
use units::{Error, Kind, Result};
use world::Buf;

pub(crate) async fn read(shape: Shape, children: &[Arc<Node>], ask: &Ask) -> Result<Buf> {
    let map = shape.map(ask.offset, ask.len);
    let got = map.columns.iter().map(|_| Got::Untried).collect();
    let versions = map.columns.iter().map(|_| Vec::new()).collect();
    let mut stripe = Stripe { map, children, ask, got, versions };
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
    /// What each device has of a column that several share, once they were asked.
    versions: Vec<Vec<(Arc<Leaf>, Buf)>>,
}

impl Stripe<'_> {
    async fn read(&mut self) -> Result<Buf> {
        let all = self.ask.everything || self.data().any(|c| !self.child(c).is_usable());
        let mut error = if all { None } else { self.fetch_without_the_slow().await };
        if all || !self.failed().is_empty() {
            error = self.fetch(0..self.map.columns.len()).await.or(error);
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

    /// Some column is wrong. Believes one set of columns after the other to be wrong, with what was read first; then with
    /// every version there is of the others.
    async fn read_by_guessing(&mut self) -> Result<Buf> {
        self.fetch(0..self.map.columns.len()).await;
        let mut tries = 0;
        if let Some(block) = self.guess(&mut tries).await {
            return Ok(self.settle(block).await);
        }
        let different = self.fetch_versions().await;
        let counts: Vec<usize> = different.iter().map(Vec::len).collect();
        for choice in choices(&counts).skip(1) {
            if tries >= TRIES_MAX {
                break;
            }
            for (c, version) in choice.into_iter().enumerate() {
                if let Some(version) = different[c].get(version) {
                    self.got[c] = Got::Have(version.clone());
                }
            }
            if let Some(block) = self.guess(&mut tries).await {
                return Ok(self.settle(block).await);
            }
        }
        for c in (0..self.got.len()).filter(|&c| matches!(self.got[c], Got::Have(_))) {
            self.child(c).count_checksum_error(self.ask);
        }
        Err(Error::new(Kind::Checksum, "read from raidz"))
    }

    /// The block, if it passes without some set of the columns at hand.
    async fn guess(&self, tries: &mut usize) -> Option<Buf> {
        let failed = self.failed();
        let sets = std::iter::once(Vec::new()).chain(suspects(self.got.len(), self.map.parity, &failed));
        for set in sets {
            let block = columns::rebuild(&self.map, &self.sound(&set)).map(|b| b.freeze());
            if block.as_ref().is_some_and(|block| self.passes(block)) {
                return block;
            }
            // Each try is tens of microseconds: let others have their turn.
            *tries += 1;
            if tries.is_multiple_of(8) {
                world::yield_now().await;
            }
        }
        None
    }

    /// Asks all devices of the columns that several share. Answers what different contents there are of each column, first
    /// what is at hand; none of one that cannot be read.
    async fn fetch_versions(&mut self) -> Vec<Vec<Buf>> {
        let asks: Vec<Ask> = (0..self.got.len()).map(|c| self.ask_for(c)).collect();
        let versions = asks.iter().enumerate().map(|(c, ask)| self.child(c).versions(ask));
        self.versions = join_all(versions).await;
        let different = self.got.iter().zip(&self.versions).map(|(got, versions)| {
            let mut different: Vec<Buf> = Vec::new();
            let at_hand = match got {
                Got::Have(buf) => Some(buf),
                Got::Untried | Got::Failed => None,
            };
            for buf in at_hand.into_iter().chain(versions.iter().map(|(_, buf)| buf)) {
                if !different.iter().any(|other| other[..] == buf[..]) {
                    different.push(buf.clone());
                }
            }
            different
        });
        different.collect()
    }

    /// Reads the columns of data; parity in place of those whose device is much slower than the others. When one of them
    /// fails, the slow ones are read after all.
    async fn fetch_without_the_slow(&mut self) -> Option<Error> {
        let (mut wanted, slow): (Vec<usize>, _) = (self.data().collect(), self.slow());
        let instead = if slow.is_empty() { Vec::new() } else { self.quick_parity() };
        for (slow, parity) in slow.into_iter().zip(instead) {
            wanted.retain(|c| *c != slow);
            wanted.push(parity);
        }
        self.fetch(wanted.into_iter()).await
    }

    /// The columns of data that are better had from parity; none when nothing would tell whether they are right.
    fn slow(&self) -> Vec<usize> {
        let paces: Vec<_> = (0..self.got.len()).map(|c| self.child(c).typical_read()).collect();
        let usual = pace::median(paces.iter().filter_map(|pace| *pace));
        let mut slow: Vec<usize> = self.data().filter(|&c| pace::is_slow(paces[c], usual)).collect();
        slow.retain(|_| self.ask.check.is_some());
        // Should there be more of them than parity, the slowest are left out.
        slow.sort_by_key(|&c| std::cmp::Reverse(paces[c]));
        slow
    }

    fn quick_parity(&self) -> Vec<usize> {
        let usual = pace::median(self.data().filter_map(|c| self.child(c).typical_read()));
        let quick = |&c: &usize| {
            let child = self.child(c);
            child.is_usable() && !child.misses(self.ask.born) && !pace::is_slow(child.typical_read(), usual)
        };
        (0..self.map.parity).filter(quick).collect()
    }

    /// Reads those of the columns that were not tried yet. The error is one of theirs.
    async fn fetch(&mut self, which: impl Iterator<Item = usize>) -> Option<Error> {
        let untried: Vec<usize> = which.filter(|&c| matches!(self.got[c], Got::Untried)).collect();
        let results = join_all(untried.iter().map(|&c| self.fetch_one(c))).await;
        let mut error = None;
        for (c, (result, versions)) in untried.into_iter().zip(results) {
            self.versions[c] = versions;
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

    /// A column; and what each device has of it, if all copies are to be read, several share it, and any is not known to
    /// miss it.
    async fn fetch_one(&self, c: usize) -> (Result<Buf>, Vec<(Arc<Leaf>, Buf)>) {
        let ask = self.ask_for(c);
        if self.ask.everything {
            let versions = self.child(c).versions(&Ask { avoid_stale: true, ..ask.clone() }).await;
            if let Some((_, first)) = versions.first() {
                return (Ok(first.clone()), versions);
            }
        }
        (self.child(c).read(ask).await, Vec::new())
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
        let truth = columns::split(&self.map, &self.with_zeros_behind(&block));
        // A column may be good on one device and missed by another that shares it: a scrub is to find that, too.
        let looks_for_missed = self.ask.repair || self.ask.everything;
        let misses = |c: usize| looks_for_missed && self.child(c).misses(self.ask.born);
        let mut bad = Vec::new();
        for (c, truth) in truth.iter().enumerate() {
            match &self.got[c] {
                _ if !self.versions[c].is_empty() => {
                    if self.blame_versions(c, truth) || misses(c) {
                        bad.push(c);
                    }
                }
                Got::Have(buf) if buf[..] != truth[..] => {
                    self.child(c).count_checksum_error(self.ask);
                    bad.push(c);
                }
                Got::Failed => bad.push(c),
                Got::Have(_) if misses(c) => bad.push(c),
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

    /// The block as it was written: what is behind its end, up to whole sectors, was zeros, which its checksum does not say.
    fn with_zeros_behind(&self, block: &Buf) -> Buf {
        let psize = self.ask.check.as_ref().map_or(block.len(), |check| check.psize);
        match block.get(psize..) {
            Some(behind) if behind.iter().any(|&byte| byte != 0) => {
                let mut whole = block.to_vec();
                whole[psize..].fill(0);
                Buf::copy_from(&whole)
            }
            _ => block.clone(),
        }
    }

    /// Counts an error on each device whose version of the column is wrong though it should have it. Whether any is wrong.
    fn blame_versions(&self, c: usize, truth: &[u8]) -> bool {
        let mut wrong = self.versions[c].iter().filter(|(_, buf)| buf[..] != *truth).peekable();
        let is_any = wrong.peek().is_some();
        for (leaf, _) in wrong.filter(|(leaf, _)| self.ask.blame && !leaf.missing().contains(self.ask.born)) {
            leaf.count(Fault::Checksum);
        }
        is_any
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
