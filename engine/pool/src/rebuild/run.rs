//! The copying: metaslab after metaslab, extent after extent, the position moved, kept from time to time, and the end.
//!
//! ```text
//!   last missed txg on disk ─▶ scrub stopped ─▶ metaslab: allocated segments ─▶ extents, some at once, counted in order
//!                                                  ▲                                │
//!                                                  └──── next, until none is left ◀─┘
//! ```
//!
//! Extents that were begun are always finished: a copy that was dropped half-way could still be written later.

use super::healthy;
use crate::pool::{Pool, lock};
use futures_util::StreamExt;
use futures_util::stream;
use metaslab::Segment;
use ondisk::RebuildState;
use ondisk::dsl::{ScanFunc, ScanState};
use std::sync::Arc;
use std::time::Duration;
use tunables::Tunable;
use units::{Result, VdevId};
use vdev::{Copied, Top};
use world::Instant;
use world::sync::Event;

/// How often it is looked whether a pool goes on that takes no changes.
const LOOK: Duration = Duration::from_millis(500);
/// Extents that are copied at once at most, however small they are.
const AT_ONCE_MAX: u64 = 64;

/// How a rebuild, or a part of it, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Done,
    /// It goes on when the pool is opened again; or another one has taken its place.
    Halted,
    /// No device is left that needs it.
    Superfluous,
}

/// One rebuild under way.
struct Run {
    pool: Pool,
    id: VdevId,
    epoch: u64,
    stop: Arc<Event>,
}

impl Pool {
    /// Goes on with what was under way when the pool was closed.
    pub(crate) fn resume_rebuilds(&self) {
        let active: Vec<VdevId> = {
            let known = lock(&self.0.rebuilds.known);
            known.iter().filter(|(_, k)| k.phys.state == RebuildState::Active).map(|(id, _)| *id).collect()
        };
        active.into_iter().for_each(|id| self.launch_rebuild(id));
    }

    /// Begins the copying, and does not wait for it.
    pub(crate) fn launch_rebuild(&self, id: VdevId) {
        let stop = Arc::new(Event::new());
        let mut all = lock(&self.0.rebuilds.known);
        let Some(known) = all.get_mut(&id) else { return };
        let run = Run { pool: self.clone(), id, epoch: known.epoch, stop: stop.clone() };
        let task = self.spawn(async move { run.finish().await });
        known.at_work = Some((stop, task));
    }

    /// Stops all of them because the pool is being closed; they go on when it is opened next.
    pub(crate) async fn halt_rebuilds(&self) {
        let at_work: Vec<_> = {
            let mut known = lock(&self.0.rebuilds.known);
            known.values_mut().filter_map(|known| known.at_work.take()).collect()
        };
        at_work.iter().for_each(|(stop, _)| stop.set());
        for (_, task) in at_work {
            task.await;
        }
    }
}

impl Run {
    async fn finish(self) {
        let (pool, id) = (&self.pool, self.id);
        let end = match self.all().await {
            // A pool that takes no changes goes on from where the position was last kept.
            Ok(End::Halted) => return drop(pool.keep_rebuild(id, self.epoch).await),
            Ok(End::Done) => RebuildState::Complete,
            Ok(End::Superfluous) => RebuildState::Canceled,
            Err(e) => {
                pool.0.note_problem(format!("the sequential rebuild of vdev {id} ended early: {e}"));
                RebuildState::Canceled
            }
        };
        // One that cannot be recorded goes on when the pool is opened next.
        if let Err(e) = pool.finish_rebuild(id, self.epoch, end).await {
            return pool
                .0
                .note_problem(format!("the end of a sequential rebuild could not be recorded: {e}"));
        }
        if let Err(e) = pool.release_devices().await {
            pool.0.note_problem(e.at("devices that are not needed any more"));
        }
        if pool.is_rebuilding() || self.stop.is_set() {
            return;
        }
        match pool.missing_span() {
            None if end == RebuildState::Complete && pool.scrubs_after_rebuilds() => {
                pool.launch(ScanFunc::Scrub)
            }
            None => {}
            // What it could not do, or what others missed meanwhile.
            Some(_) => pool.request_resilver().await,
        }
    }

    async fn all(&self) -> Result<End> {
        if !self.wait_for_what_was_under_way().await {
            return Ok(End::Halted);
        }
        let scan = self.pool.scan_status().filter(|scan| scan.state == ScanState::Scanning);
        if scan.is_some_and(|scan| scan.func == ScanFunc::Scrub) {
            let _ = self.pool.scrub_stop().await;
        }
        let Some(top) = self.pool.tree().top(self.id) else { return Ok(End::Superfluous) };
        self.begin_pass(&top);
        let mut kept = world::now();
        let mut index = self.position() >> top.metaslab_shift;
        while index < top.metaslabs() {
            match self.metaslab(&top, index as usize, &mut kept).await {
                Ok(End::Done) => {
                    index += 1;
                    let behind = index << top.metaslab_shift;
                    self.pool.of_epoch(self.id, self.epoch, |known| known.phys.last_offset = behind);
                }
                Ok(end) => return Ok(end),
                // Nothing can be said of the devices of a pool that is suspended.
                Err(_) if self.pool.suspended().is_some() => {
                    if world::timeout(LOOK, self.stop.wait()).await.is_some() {
                        return Ok(End::Halted);
                    }
                }
                Err(e) => return Err(e),
            }
        }
        Ok(End::Done)
    }

    /// False when the rebuild is to stop.
    async fn wait_for_what_was_under_way(&self) -> bool {
        loop {
            let Some(last) = self.pool.of_epoch(self.id, self.epoch, |known| known.phys.max_txg) else {
                return false;
            };
            if self.stop.is_set() {
                return false;
            }
            if self.pool.uberblock().txg >= last {
                return true;
            }
            let passed = self.pool.change("rebuild", |pool, tx| async move { pool.0.touch(&tx).await }).await;
            if passed.is_err() && world::timeout(LOOK, self.stop.wait()).await.is_some() {
                return false;
            }
        }
    }

    fn position(&self) -> u64 {
        self.pool.of_epoch(self.id, self.epoch, |known| known.phys.last_offset).unwrap_or(0)
    }

    fn begin_pass(&self, top: &Top) {
        let from = self.position();
        let metaslabs = self.pool.space().metaslabs(self.id).into_iter();
        let left: u64 = metaslabs.filter(|m| m.offset + m.size > from).map(|m| m.allocated).sum();
        top.set_copying(true);
        self.pool.of_epoch(self.id, self.epoch, |known| {
            known.pass_start = Some(world::now());
            known.phys.bytes_expected = known.phys.bytes_scanned.saturating_add(left);
        });
    }

    /// Copies what is allocated in one metaslab, from the position on.
    async fn metaslab(&self, top: &Arc<Top>, index: usize, kept: &mut Instant) -> Result<End> {
        let pool = &self.pool;
        let segments = pool.space().allocated_in(self.id, index, self.position()).await?;
        let largest = pool.0.tunables.get(Tunable::RebuildMaxSegment);
        let in_memory = pool.0.tunables.get(Tunable::RebuildVdevLimit);
        let at_once = (in_memory / largest).clamp(1, AT_ONCE_MAX) as usize;
        // No more are begun once one has failed.
        let no_more = Event::new();
        let wanted = pieces(segments, largest, top.min_alloc())
            .take_while(|_| !self.stop.is_set() && !no_more.is_set());
        let copy =
            |(offset, len): (u64, u64)| async move { (offset, len, top.copy_extent(offset, len).await) };
        let mut copies = std::pin::pin!(stream::iter(wanted).map(copy).buffered(at_once));
        let mut end = Ok(End::Done);
        while let Some((offset, len, copied)) = copies.next().await {
            if no_more.is_set() {
                continue;
            }
            end = self.note(top, (offset, len), copied);
            if !matches!(end, Ok(End::Done)) {
                no_more.set();
                continue;
            }
            let every = Duration::from_secs(pool.0.tunables.get(Tunable::ScanCheckpointInterval));
            if world::now().since(*kept) >= every {
                *kept = world::now();
                // A pool that is suspended keeps it later.
                let _ = pool.keep_rebuild(self.id, self.epoch).await;
            }
        }
        if self.stop.is_set() && matches!(end, Ok(End::Done)) {
            return Ok(End::Halted);
        }
        end
    }

    /// Counts a copy that was made, and asks whether there is any use in the next.
    fn note(&self, top: &Top, (offset, len): (u64, u64), copied: Result<Copied>) -> Result<End> {
        let copied = copied?;
        let is_known = self.pool.of_epoch(self.id, self.epoch, |known| {
            let phys = &mut known.phys;
            phys.last_offset = offset + len;
            phys.bytes_scanned = phys.bytes_scanned.saturating_add(len);
            phys.bytes_issued = phys.bytes_issued.saturating_add(len);
            phys.bytes_rebuilt = phys.bytes_rebuilt.saturating_add(copied.written);
            phys.errors = phys.errors.saturating_add(copied.lost);
            (known.pass_scanned, known.pass_issued) = (known.pass_scanned + len, known.pass_issued + len);
            !healthy(top, &known.began).is_empty()
        });
        Ok(match is_known {
            None => End::Halted,
            Some(false) => End::Superfluous,
            Some(true) => End::Done,
        })
    }
}

/// The segments in pieces of at most `largest` bytes, which is rounded down to the allocation unit.
fn pieces(segments: Vec<Segment>, largest: u64, unit: u64) -> impl Iterator<Item = (u64, u64)> {
    let largest = (largest / unit * unit).max(unit);
    segments.into_iter().flat_map(move |segment| {
        let starts = (segment.start..segment.end).step_by(largest as usize);
        starts.map(move |start| (start, largest.min(segment.end - start)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_cut_into_pieces_that_cover_them() {
        let cut = |segments: &[(u64, u64)], largest| {
            let segments = segments.iter().map(|(start, len)| Segment::new(*start, *len)).collect();
            pieces(segments, largest, 4).collect::<Vec<_>>()
        };
        assert_eq!(cut(&[(0, 8), (20, 12)], 8), [(0, 8), (20, 8), (28, 4)]);
        assert_eq!(cut(&[(4, 8)], 11), [(4, 8)]);
        assert_eq!(cut(&[(0, 8)], 2), [(0, 4), (4, 4)], "never less than a unit");
        assert_eq!(cut(&[], 8), []);
    }
}
