//! The queue in front of one device: it bounds what is outstanding and decides what goes next.
//!
//! ```text
//!   submit ── nothing in the way ──▶ the caller itself does the I/O, on its own loop ──▶ release
//!      │                                        ▲                                          │
//!      └── must wait ──▶ schedule ── Turn::Go ──┘   ◀── next batch ────────────────────────┘
//!                                └── Turn::Done ◀── a batch of neighbours, done by a task of its own
//! ```
//!
//! The caller's loop does the work, so that a request and its I/O stay on one core. Only a batch is spawned: no
//! single caller owns it.
//!
//! Invariants: a [`Slot`] exists for every active operation and gives its place free when it is dropped, also when
//! the caller went away; a caller that went away while waiting is skipped.

pub(crate) mod schedule;

use crate::{Limits, Priority};
use schedule::{Batch, Direction, Schedule, Shape};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tunables::{Tunables, Watcher};
use world::stages::{Open, Stage, open_stage, stage};
use world::sync::oneshot;
use world::{Buf, Disk, Instant, IoBuf};

/// What is done once an operation's turn has come.
#[derive(Debug)]
pub(crate) enum Work {
    Read,
    /// So many bytes each, into a buffer for each.
    ReadParts(Vec<usize>),
    /// The parts follow each other on the device.
    Write(Vec<Buf>),
    Trim,
}

/// What an operation answers.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Of a write or a trim.
    Done,
    /// Of [`Work::Read`].
    Bytes(Buf),
    /// Of [`Work::ReadParts`].
    Parts(Vec<Buf>),
}

/// What came of an operation, and how long it took at the device itself.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub result: io::Result<Answer>,
    /// When it left the queue.
    pub started: Instant,
    /// When the device had done it.
    pub ended: Instant,
    /// How many bytes went to the device in the operation that carried this one, when it carried others too.
    pub batch: Option<u64>,
    /// Whether it stands for its batch where batches are counted.
    pub leads: bool,
}

#[derive(Debug)]
struct Waiter {
    disk: Arc<dyn Disk>,
    work: Work,
    turn: oneshot::Sender<Turn>,
    /// What its request waits in, if that is timed.
    stage: Option<Open>,
}

#[derive(Debug)]
enum Turn {
    Go(Slot, Work),
    Done(Outcome),
}

#[derive(Debug)]
pub(crate) struct Queue {
    schedule: Mutex<Schedule<Waiter>>,
    /// Where the last operation ended: the next one that begins here needs no seek.
    last_end: AtomicU64,
    busy: Mutex<Busy>,
}

/// How long the device has had work: at least one operation.
#[derive(Debug, Default)]
struct Busy {
    active: u32,
    since: Instant,
    nanos: u64,
}

impl Busy {
    fn begin(&mut self, now: Instant) {
        if self.active == 0 {
            self.since = now;
        }
        self.active += 1;
    }

    fn end(&mut self, now: Instant) {
        self.active -= 1;
        if self.active == 0 {
            self.nanos = self.nanos_until(now);
        }
    }

    fn nanos_until(&self, now: Instant) -> u64 {
        self.nanos.saturating_add(u64::try_from(now.since(self.since).as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Queue {
    /// A queue that follows the tunables from now on.
    pub fn new(tunables: &Tunables, rotational: bool) -> Arc<Queue> {
        let schedule = Mutex::new(Schedule::new(Limits::of(tunables), rotational));
        let queue = Arc::new(Queue { schedule, last_end: AtomicU64::new(0), busy: Mutex::default() });
        tunables.watch(&queue);
        queue
    }

    /// Does one operation when its turn comes. `asked` is now: a clock is dear beside an operation that memory answers.
    pub async fn submit(
        self: &Arc<Queue>,
        disk: &Arc<dyn Disk>,
        shape: Shape,
        work: Work,
        asked: Instant,
    ) -> Outcome {
        let (slot, work, started) = match self.enter(disk, shape, work, asked) {
            Ok((slot, work)) => (slot, work, asked),
            Err(turn) => match turn.await {
                Ok(Turn::Go(slot, work)) => (slot, work, world::now()),
                Ok(Turn::Done(outcome)) => return outcome,
                Err(oneshot::Abandoned) => return Outcome::failed(io::ErrorKind::Interrupted.into()),
            },
        };
        self.last_end.store(shape.end(), Ordering::Relaxed);
        let result = stage(Stage::Device, perform(disk, shape, work)).await;
        let ended = world::now();
        slot.leave(ended);
        Outcome { result, started, ended, batch: None, leads: true }
    }

    /// How many asynchronous writes may be active at once.
    pub fn set_async_writes(&self, max_active: u32) {
        self.lock().set_async_writes(max_active);
    }

    /// What is waiting and what is active, by class.
    pub fn depths(&self) -> [(usize, u32); Priority::COUNT] {
        let schedule = self.lock();
        Priority::ALL.map(|p| (schedule.waiting(p), schedule.active(p)))
    }

    /// How many bytes of neighbours are asked for with one operation at most.
    pub fn together_max(&self) -> u64 {
        self.lock().together_max()
    }

    pub fn load(&self) -> usize {
        self.lock().load()
    }

    /// How many operations are at the device.
    pub fn active(&self) -> u32 {
        self.busy().active
    }

    /// How long there was at least one operation at the device, so far.
    pub fn busy_nanos(&self) -> u64 {
        let busy = self.busy();
        if busy.active > 0 { busy.nanos_until(world::now()) } else { busy.nanos }
    }

    fn busy(&self) -> MutexGuard<'_, Busy> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn last_end(&self) -> u64 {
        self.last_end.load(Ordering::Relaxed)
    }

    fn enter(
        self: &Arc<Queue>,
        disk: &Arc<dyn Disk>,
        shape: Shape,
        work: Work,
        asked: Instant,
    ) -> Result<(Slot, Work), oneshot::Receiver<Turn>> {
        let mut schedule = self.lock();
        if schedule.try_start(shape.class) {
            return Ok((Slot::new(self, shape.class, asked), work));
        }
        let (turn, receiver) = oneshot::channel();
        let stage = open_stage(Stage::Queue);
        schedule.push(shape, asked.0, Waiter { disk: disk.clone(), work, turn, stage });
        // Classes are independent: this one may have room although another one waits.
        drop(schedule);
        self.start_all();
        Err(receiver)
    }

    fn release(self: &Arc<Queue>, class: Priority, took: Duration) {
        let mut schedule = self.lock();
        if matches!(class, Priority::SyncRead | Priority::SyncWrite) {
            // A client waited for it.
            schedule.took(class, u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        }
        schedule.done(class);
        drop(schedule);
        self.start_all();
    }

    /// Lets go whatever may go. Callers that have gone away give their places back at once.
    fn start_all(self: &Arc<Queue>) {
        loop {
            let Some(batch) = self.lock().next() else { return };
            let class = batch.class;
            if !self.launch(batch) {
                self.lock().done(class);
            }
        }
    }

    /// Whether a request was left to launch it for.
    fn launch(self: &Arc<Queue>, mut batch: Batch<Waiter>) -> bool {
        let slot = Slot::new(self, batch.class, world::now());
        if batch.parts.len() > 1 {
            self.last_end.store(batch.span().0 + batch.span().1, Ordering::Relaxed);
            world::spawn(perform_batch(slot, batch));
            return true;
        }
        let (_, waiter) = batch.parts.remove(0);
        match waiter.turn.send(Turn::Go(slot, waiter.work)) {
            Ok(()) => true,
            Err(Turn::Go(slot, _)) => {
                slot.disarm();
                false
            }
            Err(Turn::Done(_)) => false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Schedule<Waiter>> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher for Queue {
    fn retuned(self: Arc<Queue>, tunables: &Tunables) {
        self.lock().set_limits(Limits::of(tunables));
        // There may be more room now.
        self.start_all();
    }
}

impl Outcome {
    fn failed(error: io::Error) -> Outcome {
        let now = world::now();
        Outcome { result: Err(error), started: now, ended: now, batch: None, leads: true }
    }
}

/// The place of one active operation.
#[derive(Debug)]
struct Slot {
    place: Option<(Arc<Queue>, Priority)>,
    /// When the device was given it.
    since: Instant,
}

impl Slot {
    fn new(queue: &Arc<Queue>, class: Priority, now: Instant) -> Slot {
        queue.busy().begin(now);
        Slot { place: Some((queue.clone(), class)), since: now }
    }

    /// The operation has ended.
    fn leave(mut self, now: Instant) {
        self.give_back(now);
    }

    fn give_back(&mut self, now: Instant) {
        if let Some((queue, class)) = self.place.take() {
            queue.busy().end(now);
            queue.release(class, now.since(self.since));
        }
    }

    /// It was not used; its place in the schedule is given back by another.
    fn disarm(mut self) {
        if let Some((queue, _)) = self.place.take() {
            queue.busy().end(world::now());
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.place.is_some() {
            self.give_back(world::now());
        }
    }
}

async fn perform(disk: &Arc<dyn Disk>, shape: Shape, work: Work) -> io::Result<Answer> {
    match work {
        Work::Read => {
            let (buf, result) = disk.read(shape.offset, IoBuf::to_fill(shape.len as usize)).await;
            result.map(|()| Answer::Bytes(buf.freeze()))
        }
        Work::ReadParts(lens) => {
            let parts = lens.into_iter().map(IoBuf::to_fill).collect();
            let (parts, result) = disk.read_parts(shape.offset, parts).await;
            result.map(|()| Answer::Parts(parts.into_iter().map(IoBuf::freeze).collect()))
        }
        Work::Write(parts) => disk.write(shape.offset, parts).await.map(|()| Answer::Done),
        Work::Trim => disk.discard(shape.offset, shape.len).await.map(|()| Answer::Done),
    }
}

/// Does a batch as one operation. If that fails, each part is done alone, so that only the guilty fail.
async fn perform_batch(slot: Slot, mut batch: Batch<Waiter>) {
    batch
        .parts
        .iter_mut()
        .flat_map(|(_, waiter)| &mut waiter.stage)
        .for_each(|open| open.becomes(Stage::Device));
    let (offset, len) = batch.span();
    let disk = batch.parts[0].1.disk.clone();
    let started = world::now();
    let whole = match batch.parts[0].0.direction {
        Direction::Read => read_batch(&disk, &batch).await,
        Direction::Write | Direction::Trim => {
            let written = disk.write(offset, all_parts(&batch)).await;
            written.map(|()| batch.parts.iter().map(|_| Answer::Done).collect())
        }
    };
    // As many answers as parts, or none.
    let mut answers = whole.unwrap_or_default().into_iter();
    for (i, (shape, waiter)) in batch.parts.into_iter().enumerate() {
        let result = match answers.next() {
            Some(answer) => Ok(answer),
            None => perform(&waiter.disk, shape, waiter.work).await,
        };
        let (ended, leads) = (world::now(), i == 0);
        // A caller that went away has no use for the result.
        let _ = waiter.turn.send(Turn::Done(Outcome { result, started, ended, batch: Some(len), leads }));
    }
    drop(slot);
}

/// Reads all of a batch, and what lies between, with one operation, into memory of its own for each buffer asked for: as a
/// slice of the whole, one would keep that of its neighbours, of which no account is made.
async fn read_batch(disk: &Arc<dyn Disk>, batch: &Batch<Waiter>) -> io::Result<Vec<Answer>> {
    let (offset, _) = batch.span();
    let (mut bufs, mut at) = (Vec::with_capacity(batch.parts.len()), offset);
    for (shape, waiter) in &batch.parts {
        // Nothing is asked of what lies between.
        bufs.extend((shape.offset > at).then(|| IoBuf::scratch((shape.offset - at) as usize)));
        match &waiter.work {
            Work::ReadParts(lens) => bufs.extend(lens.iter().map(|len| IoBuf::to_fill(*len))),
            _ => bufs.push(IoBuf::to_fill(shape.len as usize)),
        }
        at = shape.end();
    }
    let (bufs, result) = disk.read_parts(offset, bufs).await;
    result?;
    let (mut bufs, mut at) = (bufs.into_iter().map(IoBuf::freeze), offset);
    let answer = |(shape, waiter): &(Shape, Waiter)| {
        if shape.offset > at {
            bufs.next()?;
        }
        at = shape.end();
        Some(match &waiter.work {
            Work::ReadParts(lens) => Answer::Parts(bufs.by_ref().take(lens.len()).collect()),
            _ => Answer::Bytes(bufs.next()?),
        })
    };
    Ok(batch.parts.iter().map_while(answer).collect())
}

fn all_parts(batch: &Batch<Waiter>) -> Vec<Buf> {
    let parts = batch.parts.iter().map(|(_, waiter)| match &waiter.work {
        Work::Write(parts) => parts.as_slice(),
        Work::Read | Work::ReadParts(_) | Work::Trim => &[],
    });
    parts.flatten().cloned().collect()
}

#[cfg(test)]
mod tests;
