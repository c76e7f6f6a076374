//! Making a state of the pool the last one: labels and uberblock, in the order that the module above draws.
//!
//! Which device gets what is decided by `plan`, which is pure; [`Tree::commit`] carries it out.
//!
//! A label must reach at least one leaf of every top-level vdev, else a reader could not find the vdev; a log is
//! exempt, the pool opens without it. An uberblock must reach one label of one leaf.

use super::{config::PoolConfig, part};
use crate::{Leaf, Priority, Spec, Top, Tree};
use futures_util::future::join_all;
use ondisk::label::{LABELS, NVLIST_OFFSET};
use ondisk::{LabelLayout, NvList, PoolState, Uberblock, UberblockRing};
use std::sync::Arc;
use units::{Error, Kind, Result};

/// What is committed.
#[derive(Clone, Debug)]
pub struct Commit {
    pub uberblock: Uberblock,
    /// Set when the configuration changed, and for the first commit after opening: a crash may have left labels that
    /// do not agree. Labels get the txg of the uberblock.
    pub config: Option<PoolConfig>,
    /// The last slot of the ring belongs to the heartbeats of multihost protection.
    pub multihost: bool,
}

/// On how many top-level vdevs an uberblock is enough when the configuration is the same as before.
const UBERBLOCK_TOPS: usize = 3;

impl Tree {
    /// Makes durable all data written so far, then the state that `commit` names, so that a crash at any moment leaves
    /// this state or the one before. When it fails, it can be repeated.
    pub async fn commit(&self, commit: &Commit) -> Result<()> {
        let tops = self.tops();
        self.flush_all(&tops).await?;
        let of_txg = |config: &PoolConfig| PoolConfig { txg: commit.uberblock.txg, ..config.clone() };
        let labels = commit.config.as_ref().map(|config| (of_txg(config), self.spec()));
        if let Some((config, spec)) = &labels {
            self.write_labels(&tops, config, spec, Round::Even).await?;
        }
        let chosen = plan(&tops, labels.is_some(), world::random_u64());
        // A device that gets it and goes away before the others have theirs is not one that went on alone.
        self.note_state(&commit.uberblock);
        write_uberblocks(&chosen, commit).await?;
        if let Some((config, spec)) = &labels {
            self.write_labels(&tops, config, spec, Round::Odd).await?;
        }
        Ok(())
    }

    /// Flushes every device; a top-level vdev may miss as many as its redundancy allows. What a log holds is of no use
    /// any more once the txg is committed, so a log may fail.
    async fn flush_all(&self, tops: &[Arc<Top>]) -> Result<()> {
        let usable: Vec<&Arc<Top>> = tops.iter().filter(|t| t.is_usable()).collect();
        let results = join_all(usable.iter().map(|t| t.flush())).await;
        usable.iter().zip(results).filter(|(t, _)| !t.is_log).try_for_each(|(_, result)| result)
    }

    async fn write_labels(
        &self,
        tops: &[Arc<Top>],
        config: &PoolConfig,
        root: &Spec,
        round: Round,
    ) -> Result<()> {
        let written = join_all(tops.iter().map(|top| write_labels_of(top, config, root, round))).await;
        for (top, good) in tops.iter().zip(written) {
            if good? == 0 && !top.is_log {
                return Err(Error::new(Kind::Io, "write the labels of").at(format!("vdev {}", top.id)));
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    Even,
    Odd,
}

impl Round {
    fn labels(self) -> impl Iterator<Item = u64> {
        (0..LABELS).filter(move |l| (l % 2 == 0) == (self == Round::Even))
    }
}

/// The vdevs whose leaves get the uberblock: all when labels are written with it; else three in use, from a random one
/// on, so that over time each carries some.
fn plan(tops: &[Arc<Top>], all: bool, random: u64) -> Vec<Arc<Top>> {
    if all || tops.is_empty() {
        return tops.to_vec();
    }
    let first = (random % tops.len() as u64) as usize;
    let turned = tops[first..].iter().chain(&tops[..first]);
    turned.filter(|t| !t.is_log && t.is_usable()).take(UBERBLOCK_TOPS).cloned().collect()
}

/// The leaves that may carry this state: not those of which the state does not say what they miss, if others can.
fn who_gets(top: &Top) -> Vec<Arc<Leaf>> {
    let usable: Vec<Arc<Leaf>> = top.leaves().into_iter().filter(|l| l.is_usable()).collect();
    let kept: Vec<Arc<Leaf>> = usable.iter().filter(|l| l.missing().unkept().is_none()).cloned().collect();
    if kept.is_empty() { usable } else { kept }
}

/// How many leaves of the vdev have this round of labels now.
async fn write_labels_of(top: &Top, config: &PoolConfig, root: &Spec, round: Round) -> Result<usize> {
    let Some(top_spec) = root.find(top.guid()) else {
        return Err(Error::corrupt(format!("vdev {} is not in the configuration", top.id)));
    };
    let mut jobs = Vec::new();
    for leaf in who_gets(top) {
        let spec = root.find(leaf.guid()).unwrap_or(top_spec);
        jobs.push(write_config(leaf, config.label(root, top_spec, spec), round.labels().collect()));
    }
    let results = join_all(jobs).await;
    Ok(results.iter().filter(|written| **written).count())
}

/// Writes the same configuration to some labels of a leaf and makes it durable. Whether one of them is.
pub(super) async fn write_config(leaf: Arc<Leaf>, config: NvList, labels: Vec<u64>) -> bool {
    let Some(layout) = LabelLayout::new(leaf.psize()) else { return false };
    let places: Vec<u64> = labels.into_iter().map(|label| layout.label(label) + NVLIST_OFFSET).collect();
    let Ok(parts) = part::encode_config(&config, &places) else { return false };
    let writes = places.iter().zip(parts).map(|(&at, part)| leaf.write_raw(at, part, Priority::SyncWrite));
    let written = join_all(writes).await.iter().any(Result::is_ok);
    written && leaf.flush().await.is_ok()
}

async fn write_uberblocks(tops: &[Arc<Top>], commit: &Commit) -> Result<()> {
    let mut jobs = Vec::new();
    for top in tops {
        for leaf in who_gets(top) {
            jobs.push(write_uberblock(leaf, top.ashift, commit));
        }
    }
    if join_all(jobs).await.contains(&true) {
        return Ok(());
    }
    Err(Error::new(Kind::Io, "write the uberblock").at(format!("txg {}", commit.uberblock.txg)))
}

/// Writes the uberblock to all labels of a leaf and makes it durable. Whether one of them is.
async fn write_uberblock(leaf: Arc<Leaf>, ashift: u32, commit: &Commit) -> bool {
    let Some(layout) = LabelLayout::new(leaf.psize()) else { return false };
    let ring = UberblockRing::new(ashift);
    let slot = ring.slot_offset(ring.slot_of(commit.uberblock.txg, commit.multihost));
    let writes = layout.labels().into_iter().map(|label| {
        let at = label + slot;
        let bytes = part::encode_uberblock(&commit.uberblock, ring.slot_size(), at);
        let leaf = &leaf;
        async move { leaf.write_raw(at, bytes, Priority::SyncWrite).await }
    });
    let written = join_all(writes).await.iter().any(Result::is_ok);
    written && leaf.flush().await.is_ok()
}

impl Tree {
    /// Writes the uberblock where other hosts look for a sign of life: in the last slot of one label of one device, others
    /// each time. Waits until the device has it, not until it is durable: another host reads it from the device.
    ///
    /// # Errors
    /// No device could be written.
    pub async fn write_heartbeat(&self, uberblock: &Uberblock) -> Result<()> {
        let tops = self.tops();
        let places: Vec<(u32, Arc<Leaf>)> =
            tops.iter().flat_map(|t| who_gets(t).into_iter().map(|leaf| (t.ashift, leaf))).collect();
        let random = world::random_u64();
        let first = (random % places.len().max(1) as u64) as usize;
        let mut failure = Error::new(Kind::Io, "write the heartbeat").because("no device can be used");
        for (ashift, leaf) in places[first..].iter().chain(&places[..first]) {
            let Some(layout) = LabelLayout::new(leaf.psize()) else { continue };
            let ring = UberblockRing::new(*ashift);
            let at = layout.label((random >> 32) % LABELS) + ring.slot_offset(ring.slots() - 1);
            let bytes = part::encode_uberblock(uberblock, ring.slot_size(), at);
            match leaf.write_raw(at, bytes, Priority::SyncWrite).await {
                Ok(()) => return Ok(()),
                Err(e) => failure = e,
            }
        }
        Err(failure)
    }
}

/// Writes all four labels of a spare or a cache device again, for instance because its path changed.
pub async fn write_aux_labels(leaf: Arc<Leaf>, spec: &Spec, version: u64, state: PoolState) -> Result<()> {
    let label = super::config::aux_label(version, state, spec);
    for round in [Round::Even, Round::Odd] {
        if !write_config(leaf.clone(), label.clone(), round.labels().collect()).await {
            return Err(Error::new(Kind::Io, "write the labels of").at(leaf.device()));
        }
    }
    Ok(())
}
