//! `zpool trim` and `zpool initialize`: something is done to all that is free on a device, once.
//!
//! ```text
//!            start                       all of it done
//!   (none) ─────────▶ ACTIVE ──────────────────────────▶ COMPLETE ─▶ start again, from the beginning
//!                     │ ▲  │ cancel
//!             suspend ▼ │  └──▶ CANCELED ─▶ start again, from the beginning
//!                  SUSPENDED ─▶ start: on from there
//! ```
//!
//! A device is swept from its first metaslab to its last, some space at a time: that space is out of the allocator's
//! hands meanwhile, so no write can meet what is done to it, and a nearly full pool does not lack it. State and position are
//! in the device's ZAP: a sweep goes on when the pool is opened again, by this program or by OpenZFS.
//!
//! Invariants: only what is free in the last txg on disk and ripe is touched; at most one sweep of a kind is at work on a
//! device. One whose device is away waits for it.
//!
//! Not here: what is freed from now on (`autotrim`).

mod state;

pub(crate) use state::{Known, Sweeps};
pub use state::{Sweep, SweepState, SweepStatus};

use crate::attach::no_such;
use crate::pool::{Pool, lock};
use dsl::zaps;
use std::sync::Arc;
use std::time::Duration;
use tunables::Tunable;
use units::{Error, Guid, Kind, ObjectId, Result, VdevId};
use vdev::{DeviceRange, Leaf, Priority, Top};
use world::Boxed;
use world::Buf;
use world::sync::Event;

/// The largest piece of one trim, and of one write.
const TRIM_MAX: u64 = 128 << 20;
const WRITE_MAX: u64 = 1 << 20;
/// So much of a metaslab is swept at once, within bounds.
const SHARE: u64 = 16;
const AT_ONCE: (u64, u64) = (1 << 20, 64 << 20);
/// What an initialized device holds, as of OpenZFS.
const PATTERN: u64 = 0xdead_beef_dead_beef;
/// How often it is looked whether a device is back.
const LOOK: Duration = Duration::from_secs(1);

/// How a part of a turn ended.
enum Step {
    Done,
    Stopped,
    DeviceGone,
}

/// How one turn of a sweep ended.
enum Turn {
    Stopped,
    /// Go on in this metaslab from here.
    UpTo(u64),
    MetaslabDone,
}

impl Pool {
    /// What is known of the sweeps of each device.
    pub fn sweep(&self, device: Guid, kind: Sweep) -> SweepStatus {
        lock(&self.0.sweeps.known).get(&(device, kind)).map(|known| known.status).unwrap_or_default()
    }

    /// Begins a sweep of a device, or goes on with one that was suspended. `rate` is in bytes a second. Returns when it is
    /// on disk that it has begun.
    ///
    /// # Errors
    /// `Busy` when one is under way; `Invalid` when the device is not usable; `NotFound`; `Unsupported` in a pool without
    /// ZAPs of devices.
    pub fn sweep_start(&self, device: Guid, kind: Sweep, rate: Option<u64>) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let _one_at_a_time = self.0.sweeps.commands.lock().await;
            let (_, leaf) = self.tree().find_leaf(device).ok_or_else(no_such)?;
            let before = self.sweep(device, kind);
            if before.state == SweepState::Active {
                return Err(busy(kind, format!("currently {}", kind.doing())));
            }
            if !leaf.is_usable() {
                return Err(Error::invalid(
                    "the device is faulted, offline or unavailable: 'zpool online' comes first",
                ));
            }
            let goes_on = before.state == SweepState::Suspended;
            let status = SweepStatus {
                state: SweepState::Active,
                since: world::wall_clock().seconds,
                position: if goes_on { before.position } else { 0 },
                rate: rate.unwrap_or(if goes_on { before.rate } else { 0 }),
                begun: before.begun + 1,
            };
            self.keep_sweep(device, kind, status).await?;
            self.begin_sweep(device, kind, status);
            Ok(())
        })
    }

    /// Stops a sweep; the next start goes on where it was.
    ///
    /// # Errors
    /// `Invalid` when none is under way.
    pub fn sweep_suspend(&self, device: Guid, kind: Sweep) -> Boxed<'_, Result<()>> {
        Box::pin(
            async move { self.end_sweep(device, kind, &[SweepState::Active], SweepState::Suspended).await },
        )
    }

    /// Gives a sweep up; the next start begins anew.
    ///
    /// # Errors
    /// `Invalid` when none is under way or suspended.
    pub fn sweep_cancel(&self, device: Guid, kind: Sweep) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let from = [SweepState::Active, SweepState::Suspended];
            self.end_sweep(device, kind, &from, SweepState::Canceled).await
        })
    }

    /// Forgets that a device was ever swept.
    ///
    /// # Errors
    /// `Busy` when that is under way.
    pub fn sweep_forget(&self, device: Guid, kind: Sweep) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let _one_at_a_time = self.0.sweeps.commands.lock().await;
            self.tree().find_leaf(device).ok_or_else(no_such)?;
            if self.sweep(device, kind).state == SweepState::Active {
                return Err(busy(kind, format!("currently {}", kind.doing())));
            }
            self.keep_sweep(device, kind, SweepStatus::default()).await
        })
    }

    async fn end_sweep(&self, device: Guid, kind: Sweep, from: &[SweepState], to: SweepState) -> Result<()> {
        let _one_at_a_time = self.0.sweeps.commands.lock().await;
        self.tree().find_leaf(device).ok_or_else(no_such)?;
        self.halt_sweep(device, kind).await;
        // It may have come to its end by itself meanwhile.
        let status = self.sweep(device, kind);
        if !from.contains(&status.state) {
            let what = if kind == Sweep::Trim { "trim" } else { "initialization" };
            return Err(Error::invalid(format!("there is no active {what}")));
        }
        let position = if to == SweepState::Canceled { 0 } else { status.position };
        let since = world::wall_clock().seconds;
        self.keep_sweep(device, kind, SweepStatus { state: to, since, position, ..status }).await
    }

    /// Goes on with what was under way when the pool was closed.
    pub(crate) async fn load_sweeps(&self) -> Result<()> {
        let spec = self.tree().spec();
        for leaf in spec.leaves() {
            let Some(zap) = leaf.leaf_zap.and_then(|zap| ObjectId(zap).some()) else { continue };
            let table = zaps::open(self.mos(), zap).await?;
            for kind in Sweep::ALL {
                let status = SweepStatus::read(&table, kind).await?;
                if status.state == SweepState::None {
                    continue;
                }
                lock(&self.0.sweeps.known).insert((leaf.guid, kind), Known { status, at_work: None });
                if status.state == SweepState::Active && !self.is_read_only() {
                    self.begin_sweep(leaf.guid, kind, status);
                }
            }
        }
        Ok(())
    }

    /// Stops all of them; what they have done so far is kept, if the pool takes it. They are still active, and go on when
    /// the pool is opened next.
    pub(crate) async fn halt_sweeps(&self) {
        let _one_at_a_time = self.0.sweeps.commands.lock().await;
        let at_work: Vec<_> = {
            let known = lock(&self.0.sweeps.known);
            known.iter().filter(|(_, sweep)| sweep.at_work.is_some()).map(|(key, _)| *key).collect()
        };
        for (device, kind) in at_work {
            self.halt_sweep(device, kind).await;
            let status = self.sweep(device, kind);
            if status.state == SweepState::Active {
                let _ = self.keep_sweep(device, kind, status).await;
            }
        }
    }

    /// On return it does nothing any more.
    async fn halt_sweep(&self, device: Guid, kind: Sweep) {
        let at_work =
            lock(&self.0.sweeps.known).get_mut(&(device, kind)).and_then(|known| known.at_work.take());
        if let Some((stop, task)) = at_work {
            stop.set();
            task.await;
        }
    }

    fn begin_sweep(&self, device: Guid, kind: Sweep, status: SweepStatus) {
        let stop = Arc::new(Event::new());
        let (pool, seen) = (self.clone(), stop.clone());
        lock(&self.0.sweeps.known).insert((device, kind), Known { status, at_work: None });
        let task = self.spawn(async move { pool.sweep_task(device, kind, &seen).await });
        let mut known = lock(&self.0.sweeps.known);
        known.entry((device, kind)).or_default().at_work = Some((stop, task));
    }

    /// Writes it into the device's ZAP, another state into the history too, and then into memory.
    async fn keep_sweep(&self, device: Guid, kind: Sweep, status: SweepStatus) -> Result<()> {
        let is_news = status.state != self.sweep(device, kind).state;
        self.change(kind.doing(), move |pool, tx| async move {
            let spec = pool.tree().spec();
            let leaf = spec.find(device).ok_or_else(no_such)?;
            let zap = leaf.leaf_zap.and_then(|zap| ObjectId(zap).some()).ok_or_else(|| {
                Error::unsupported("the pool was made without room for the progress of its devices")
            })?;
            status.write(&zaps::open(pool.mos(), zap).await?, &tx, kind).await?;
            if is_news {
                let text = format!("vdev={} {}", leaf.name(), status.state.recorded());
                pool.dsl().record_event(&tx, kind.recorded(), &text, None).await?;
            }
            Ok(())
        })
        .await?;
        lock(&self.0.sweeps.known).entry((device, kind)).or_default().status = status;
        Ok(())
    }

    async fn sweep_task(self, device: Guid, kind: Sweep, stop: &Event) {
        let end = match self.sweep_all(device, kind, stop).await {
            Ok(false) => return,
            Ok(true) => SweepState::Complete,
            Err(e) => {
                // A device that left the pool takes what was known of it along.
                if self.tree().find_leaf(device).is_some() {
                    self.0.note_problem(e.at(format!("{} device {device}", kind.doing())));
                }
                SweepState::Canceled
            }
        };
        let since = world::wall_clock().seconds;
        let status = SweepStatus { state: end, since, ..self.sweep(device, kind) };
        if self.keep_sweep(device, kind, status).await.is_err() {
            // It is begun again when the pool is opened next.
            lock(&self.0.sweeps.known).entry((device, kind)).or_default().status = status;
        }
    }

    /// Whether it came to the end; if not, it was stopped.
    async fn sweep_all(&self, device: Guid, kind: Sweep, stop: &Event) -> Result<bool> {
        let min = match kind {
            Sweep::Trim => self.0.tunables.get(Tunable::TrimExtentBytesMin),
            Sweep::Initialize => 0,
        };
        let mut kept = world::now();
        let (top, _) = self.tree().find_leaf(device).ok_or_else(no_such)?;
        let size = 1 << top.metaslab_shift;
        let most = (size / SHARE).clamp(AT_ONCE.0, AT_ONCE.1);
        for index in 0..top.metaslabs() {
            let mut from = index * size;
            if end_on(&top, device, from, size) <= self.sweep(device, kind).position {
                continue;
            }
            loop {
                if !self.wait_for(device, stop).await? {
                    return Ok(false);
                }
                match self.sweep_some(device, kind, (top.id, index as usize), (from, most, min), stop).await?
                {
                    Turn::Stopped => return Ok(false),
                    Turn::UpTo(end) => from = end,
                    Turn::MetaslabDone => break,
                }
                let every = Duration::from_secs(self.0.tunables.get(Tunable::TxgTimeout));
                if world::now().since(kept) >= every {
                    kept = world::now();
                    // A pool that is suspended keeps it later.
                    let _ = self.keep_sweep(device, kind, self.sweep(device, kind)).await;
                }
            }
        }
        Ok(true)
    }

    /// Waits until the device is usable; false when the sweep is to stop.
    async fn wait_for(&self, device: Guid, stop: &Event) -> Result<bool> {
        loop {
            let (_, leaf) = self.tree().find_leaf(device).ok_or_else(no_such)?;
            if stop.is_set() || leaf.is_usable() {
                return Ok(!stop.is_set());
            }
            if world::timeout(LOOK, stop.wait()).await.is_some() {
                return Ok(false);
            }
        }
    }

    async fn sweep_some(
        &self,
        device: Guid,
        kind: Sweep,
        (id, index): (VdevId, usize),
        (from, most, min): (u64, u64, u64),
        stop: &Event,
    ) -> Result<Turn> {
        let _turn = self.0.sweeps.turn.lock().await;
        let top = self.tree().top(id).ok_or_else(no_such)?;
        let Some(batch) = self.space().trim_some(id, index, (from, most), min).await? else {
            return Ok(Turn::MetaslabDone);
        };
        let mut end = from;
        for segment in batch.segments() {
            let own = top.on_devices(segment.start, segment.len()).into_iter();
            for range in own.filter(|range| range.leaf.guid() == device) {
                match self.sweep_range(device, kind, &range, stop).await? {
                    Step::Done => {}
                    Step::Stopped => return Ok(Turn::Stopped),
                    // The space goes back to the allocator until the device does.
                    Step::DeviceGone => return Ok(Turn::UpTo(from)),
                }
            }
            end = segment.end;
        }
        Ok(Turn::UpTo(end))
    }

    /// Begins at the sweep's position, and moves that.
    async fn sweep_range(
        &self,
        device: Guid,
        kind: Sweep,
        range: &DeviceRange,
        stop: &Event,
    ) -> Result<Step> {
        let end = range.offset + range.len;
        let mut at = range.offset.max(self.sweep(device, kind).position);
        while at < end {
            if stop.is_set() {
                return Ok(Step::Stopped);
            }
            let len = (end - at).min(if kind == Sweep::Trim { TRIM_MAX } else { WRITE_MAX });
            let began = world::now();
            if let Err(e) = sweep_piece(kind, &range.leaf, at, len).await {
                return if range.leaf.is_usable() { Err(e) } else { Ok(Step::DeviceGone) };
            }
            at += len;
            let rate = {
                let mut known = lock(&self.0.sweeps.known);
                let status = &mut known.entry((device, kind)).or_default().status;
                status.position = at;
                status.rate
            };
            if rate > 0 {
                let due = Duration::from_secs_f64(len as f64 / rate as f64);
                let left = due.saturating_sub(world::now().since(began));
                if world::timeout(left, stop.wait()).await.is_some() {
                    return Ok(Step::Stopped);
                }
            }
        }
        Ok(Step::Done)
    }
}

async fn sweep_piece(kind: Sweep, leaf: &Arc<Leaf>, at: u64, len: u64) -> Result<()> {
    match kind {
        Sweep::Trim => leaf.trim(at, len).await,
        Sweep::Initialize => {
            let bytes = PATTERN.to_le_bytes().repeat(len as usize / size_of::<u64>());
            leaf.write(at, Buf::copy_from(&bytes), Priority::Initializing).await
        }
    }
}

/// Where on the device what follows the range begins; 0 when it is not one of these.
fn end_on(top: &Top, device: Guid, offset: u64, len: u64) -> u64 {
    let own = top.on_devices(offset, len).into_iter().filter(|range| range.leaf.guid() == device);
    own.map(|range| range.offset + range.len).max().unwrap_or(0)
}

fn busy(kind: Sweep, why: String) -> Error {
    Error::new(Kind::Busy, format!("{} device", kind.doing())).because(why)
}
