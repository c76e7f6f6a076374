//! TRIM: telling devices which bytes are not needed.
//!
//! ```text
//!   allocatable ── trim_freed / trim_metaslab / trim_some ──▶ trimming ── the batch is dropped ──▶ allocatable
//! ```
//!
//! A segment that is being discarded must not be allocated meanwhile: the discard could pass the write. So a [`TrimBatch`]
//! takes its segments out of allocatable space, and gives them back when it is dropped, whatever became of the discards.
//! On disk they are free all the time.

use crate::metaslab::{Load, Metaslab, State};
use crate::ranges::{Ranges, Segment};
use crate::space::Space;
use std::sync::Arc;
use units::{Error, Result, VdevId};

/// Segments of one metaslab that may be discarded as long as this lives.
#[derive(Debug)]
pub struct TrimBatch {
    metaslab: Arc<Metaslab>,
    segments: Vec<Segment>,
}

impl TrimBatch {
    pub fn vdev(&self) -> VdevId {
        self.metaslab.place.vdev
    }

    /// In the vdev's allocatable space, as in DVAs; in order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    fn take(metaslab: &Arc<Metaslab>, choose: impl FnOnce(&mut State) -> Vec<Segment>) -> Option<TrimBatch> {
        let mut state = metaslab.lock();
        let chosen = choose(&mut state);
        let Load::Loaded(free) = &mut state.load else { return None };
        let taken: Vec<Segment> = chosen.into_iter().filter(|s| free.remove(*s).is_ok()).collect();
        for segment in &taken {
            state.trimming.add(*segment).expect("what was allocatable is not being discarded");
        }
        metaslab.reweigh(&state);
        (!taken.is_empty()).then(|| TrimBatch { metaslab: metaslab.clone(), segments: taken })
    }
}

impl Drop for TrimBatch {
    fn drop(&mut self) {
        let mut state = self.metaslab.lock();
        for segment in &self.segments {
            state.trimming.remove(*segment).expect("a batch gives back what it took");
            state.make_allocatable(*segment).expect("what was being discarded was not free elsewhere");
        }
        self.metaslab.reweigh(&state);
    }
}

impl Space {
    /// Whether freed segments are remembered for [`Space::trim_freed`] (the property `autotrim`).
    pub fn remember_freed(&self, remember: bool) {
        for metaslab in self.vdevs().iter().flat_map(|v| &v.metaslabs) {
            let trim = &mut metaslab.lock().trim;
            match (remember, &trim) {
                (true, None) => *trim = Some(Ranges::default()),
                (false, Some(_)) => *trim = None,
                _ => {}
            }
        }
    }

    /// What was freed since the last call, in segments of at least `min` bytes; smaller ones wait to be joined by others.
    pub fn trim_freed(&self, vdev: VdevId, min: u64) -> Vec<TrimBatch> {
        let Some(top) = self.vdev(vdev) else { return Vec::new() };
        let freed = |state: &mut State| {
            if !state.is_loaded() {
                return Vec::new();
            }
            let Some(trim) = &mut state.trim else { return Vec::new() };
            let large: Vec<Segment> = trim.iter().filter(|s| s.len() >= min).collect();
            for segment in &large {
                trim.remove(*segment).expect("it was just listed");
            }
            large
        };
        top.metaslabs.iter().filter_map(|m| TrimBatch::take(m, freed)).collect()
    }

    /// Everything that is free in one metaslab, in segments of at least `min` bytes.
    pub async fn trim_metaslab(&self, vdev: VdevId, index: usize, min: u64) -> Result<Option<TrimBatch>> {
        let top = self.vdev(vdev);
        let metaslab = top.as_ref().and_then(|top| top.metaslabs.get(index));
        let metaslab =
            metaslab.ok_or_else(|| Error::invalid(format!("trim: no metaslab {index} on vdev {vdev}")))?;
        self.load_metaslab(metaslab).await?;
        Ok(TrimBatch::take(metaslab, |state| {
            let free = state.allocatable().map(|free| free.ranges());
            free.into_iter().flat_map(|ranges| ranges.iter()).filter(|s| s.len() >= min).collect()
        }))
    }

    /// As [`Space::trim_metaslab`], of what is free at `from` and behind it, and at most `most` bytes of that: what is being
    /// trimmed cannot be allocated, and a nearly full pool must not lack it. `most` is a multiple of the allocation unit.
    pub async fn trim_some(
        &self,
        vdev: VdevId,
        index: usize,
        (from, most): (u64, u64),
        min: u64,
    ) -> Result<Option<TrimBatch>> {
        let top = self.vdev(vdev);
        let metaslab = top.as_ref().and_then(|top| top.metaslabs.get(index));
        let metaslab =
            metaslab.ok_or_else(|| Error::invalid(format!("trim: no metaslab {index} on vdev {vdev}")))?;
        self.load_metaslab(metaslab).await?;
        Ok(TrimBatch::take(metaslab, |state| {
            let free = state.allocatable().map(|free| free.ranges());
            let behind = free.into_iter().flat_map(|ranges| ranges.iter()).filter_map(|s| {
                let start = s.start.max(from);
                (s.end > start).then(|| Segment::new(start, s.end - start)).filter(|s| s.len() >= min)
            });
            first_bytes(behind, most)
        }))
    }
}

/// The first segments, cut where they have `most` bytes in all.
fn first_bytes(segments: impl Iterator<Item = Segment>, most: u64) -> Vec<Segment> {
    let (mut left, mut first) = (most, Vec::new());
    for segment in segments {
        if left == 0 {
            break;
        }
        let len = segment.len().min(left);
        first.push(Segment::new(segment.start, len));
        left -= len;
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_bytes_are_taken_and_the_next_call_goes_on_behind_them() {
        let all = [Segment::new(0, 10), Segment::new(20, 10), Segment::new(40, 10)];
        for (most, first) in
            [(0, vec![]), (4, vec![(0, 4)]), (10, vec![(0, 10)]), (15, vec![(0, 10), (20, 5)])]
        {
            let taken: Vec<_> =
                first_bytes(all.into_iter(), most).iter().map(|s| (s.start, s.len())).collect();
            assert_eq!(taken, first, "{most}");
        }
        assert_eq!(first_bytes(all.into_iter(), 1000).len(), 3);
    }
}
