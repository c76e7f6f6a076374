//! What is allocated in a metaslab: all of it that is not free to be given out.
//!
//! Space that was freed shortly before counts, since uberblocks that can still be gone back to lead to it; so does space
//! that a device is just told is free. A metaslab whose map makes no sense counts as a whole.

use crate::metaslab::Load;
use crate::ranges::Segment;
use crate::space::Space;
use units::{Error, Result, VdevId};

impl Space {
    /// The allocated segments of one metaslab at and behind `from`, in order; `from` is an offset of the vdev.
    ///
    /// # Errors
    /// `Invalid` when there is no such metaslab; what reading its map meets.
    pub async fn allocated_in(&self, vdev: VdevId, index: usize, from: u64) -> Result<Vec<Segment>> {
        let top = self.vdev(vdev);
        let metaslab = top.as_ref().and_then(|top| top.metaslabs.get(index));
        let metaslab =
            metaslab.ok_or_else(|| Error::invalid(format!("no metaslab {index} on vdev {vdev}")))?;
        loop {
            self.load_metaslab(metaslab).await?;
            let state = metaslab.lock();
            let region = state.place.region;
            match &state.load {
                Load::Loaded(free) => return Ok(between(region, from, free.ranges().iter())),
                Load::Broken => return Ok(between(region, from, std::iter::empty())),
                // It was unloaded meanwhile, or is away.
                Load::Unloaded | Load::Away(_) => {}
            }
        }
    }
}

/// What lies between the free segments.
fn between(region: Segment, from: u64, free: impl Iterator<Item = Segment>) -> Vec<Segment> {
    let mut at = region.start.max(from);
    let mut allocated = Vec::new();
    for segment in free.filter(|segment| segment.end > from) {
        if segment.start > at {
            allocated.push(Segment::new(at, segment.start - at));
        }
        at = at.max(segment.end);
    }
    if at < region.end {
        allocated.push(Segment::new(at, region.end - at));
    }
    allocated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocated_is_what_lies_between_the_free_segments_behind_a_place() {
        let region = Segment::new(100, 100);
        let free = [Segment::new(100, 10), Segment::new(120, 10), Segment::new(190, 10)];
        let check = |from, expected: &[(u64, u64)]| {
            let found = between(region, from, free.into_iter());
            assert_eq!(found.iter().map(|s| (s.start, s.end)).collect::<Vec<_>>(), expected, "from {from}");
        };
        check(0, &[(110, 120), (130, 190)]);
        check(115, &[(115, 120), (130, 190)]);
        check(125, &[(130, 190)]);
        check(140, &[(140, 190)]);
        check(195, &[]);
        assert_eq!(between(region, 0, std::iter::empty()).len(), 1, "all of it");
        assert_eq!(between(region, 300, std::iter::empty()), []);
    }
}
