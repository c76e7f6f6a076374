//! The lanes.

use crate::choose::{Choice, Chooser, Random};
use crate::ledger::Ledger;
use crate::report::Report;
use crate::spec::{Limit, Spec};
use crate::stamp;
use crate::target::Target;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use units::{Error, Kind, Result};
use world::{Buf, Instant, IoBuf, Task};

/// Different blocks to write when they are not verified later.
const SAMPLES: usize = 16;

/// Runs a workload and measures it. The blocks written are noise, the same few again and again.
pub async fn run(target: Arc<dyn Target>, spec: &Spec) -> Result<Report> {
    start(target, spec, None).await
}

/// Runs a workload whose every block is stamped and whose every read is checked. `ledger` knows what earlier runs have
/// left; it covers exactly the blocks of the spec.
pub async fn run_verified(target: Arc<dyn Target>, spec: &Spec, ledger: Arc<Ledger>) -> Result<Report> {
    start(target, spec, Some(ledger)).await
}

/// Reads all blocks and checks them against the ledger. After a crash, whatever was not flushed may be older.
pub async fn verify(target: &dyn Target, spec: &Spec, ledger: &Ledger, after_crash: bool) -> Result<()> {
    let (first, count) = matching_blocks(target, spec, ledger)?;
    for block in 0..count {
        let offset = first + block * u64::from(spec.block_size);
        let pieces = target.read(offset, spec.block_size).await?;
        let found = stamp::check(&joined(&pieces, spec.block_size)?, spec.seed, offset)?;
        match after_crash {
            true => ledger.check_after_crash(block, found)?,
            false => ledger.check_now(block, found)?,
        }
    }
    Ok(())
}

fn matching_blocks(target: &dyn Target, spec: &Spec, ledger: &Ledger) -> Result<(u64, u64)> {
    let (first, count) = spec.blocks(target.size())?;
    if ledger.blocks() != count {
        return Err(Error::invalid(format!(
            "the ledger has {} blocks, the workload {count}",
            ledger.blocks()
        )));
    }
    Ok((first, count))
}

/// A block in one piece.
fn joined(pieces: &[Buf], len: u32) -> Result<Buf> {
    let total: usize = pieces.iter().map(|p| p.len()).sum();
    match pieces {
        _ if total != len as usize => {
            Err(Error::new(Kind::Corrupt, format!("verify: {total} bytes were read instead of {len}")))
        }
        [only] => Ok(only.clone()),
        _ => {
            let mut whole = IoBuf::scratch(total);
            let mut at = 0;
            for piece in pieces {
                whole[at..at + piece.len()].copy_from_slice(piece);
                at += piece.len();
            }
            Ok(whole.freeze())
        }
    }
}

/// How many requests the lanes make before one of them lets the other tasks of its core run.
const PATIENCE: u64 = 16;

/// What the lanes share.
struct Shared {
    target: Arc<dyn Target>,
    spec: Spec,
    first: u64,
    ledger: Option<Arc<Ledger>>,
    samples: Vec<Buf>,
    deadline: Option<Instant>,
    turn: AtomicU64,
    writes: AtomicU64,
    failed: AtomicBool,
}

async fn start(target: Arc<dyn Target>, spec: &Spec, ledger: Option<Arc<Ledger>>) -> Result<Report> {
    let (first, count) = match &ledger {
        Some(ledger) => matching_blocks(&*target, spec, ledger)?,
        None => spec.blocks(target.size())?,
    };
    let samples = if ledger.is_none() { samples(spec) } else { Vec::new() };
    let (begun, cpu) = (world::now(), cpu_time());
    let deadline = match spec.limit {
        Limit::Time(limit) => Some(begun.after(limit)),
        Limit::Requests(_) => None,
    };
    let shared = Arc::new(Shared {
        target,
        spec: spec.clone(),
        first,
        ledger,
        samples,
        deadline,
        turn: AtomicU64::new(0),
        writes: AtomicU64::new(0),
        failed: AtomicBool::new(false),
    });
    let mut report = lanes(&shared, count).await?;
    if report.writes.count() > 0 {
        shared.flush(&mut report).await?;
    }
    report.elapsed = world::now().since(begun);
    report.cpu = cpu_time().saturating_sub(cpu);
    Ok(report)
}

/// Runs all lanes to their end; the first error stops them.
async fn lanes(shared: &Arc<Shared>, count: u64) -> Result<Report> {
    let lanes = 0..shared.spec.queue_depth;
    let tasks: Vec<Task<Result<Report>>> = lanes
        .map(|lane| {
            let chooser = Chooser::new(&shared.spec, count, lane);
            let work = run_lane(shared.clone(), chooser);
            match shared.spec.cores {
                0 | 1 => world::spawn(work),
                cores => world::spawn_on(lane % cores, work),
            }
        })
        .collect();
    let (mut report, mut failure) = (Report::default(), None);
    for task in tasks {
        match task.await {
            Ok(lane) => report.merge(&lane),
            Err(e) => failure = failure.or(Some(e)),
        }
    }
    failure.map_or(Ok(report), Err)
}

async fn run_lane(shared: Arc<Shared>, mut chooser: Chooser) -> Result<Report> {
    let mut report = Report::default();
    while let Some(turn) = shared.next_turn() {
        let request = shared.request(chooser.choose(turn), turn, &mut report);
        if let Err(e) = request.await {
            shared.failed.store(true, Ordering::Relaxed);
            return Err(e);
        }
        // A target that never waits would keep the others of this core out.
        if turn.is_multiple_of(PATIENCE) {
            world::yield_now().await;
        }
    }
    Ok(report)
}

impl Shared {
    fn next_turn(&self) -> Option<u64> {
        if self.failed.load(Ordering::Relaxed) || self.deadline.is_some_and(|d| world::now() >= d) {
            return None;
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        match self.spec.limit {
            Limit::Requests(limit) if turn >= limit => None,
            _ => Some(turn),
        }
    }

    async fn request(&self, choice: Choice, turn: u64, report: &mut Report) -> Result<()> {
        let block = match &self.ledger {
            Some(ledger) => ledger.take(choice.block),
            None => choice.block,
        };
        if choice.read {
            self.read(block, report).await?;
        } else {
            self.write(block, turn, report).await?;
        }
        if let Some(ledger) = &self.ledger {
            ledger.release(block);
        }
        let every = self.spec.flush_every;
        if !choice.read
            && every > 0
            && (self.writes.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(every)
        {
            self.flush(report).await?;
        }
        Ok(())
    }

    fn offset(&self, block: u64) -> u64 {
        self.first + block * u64::from(self.spec.block_size)
    }

    async fn read(&self, block: u64, report: &mut Report) -> Result<()> {
        let (offset, len) = (self.offset(block), self.spec.block_size);
        let begun = world::now();
        let pieces = self.target.read(offset, len).await?;
        report.reads.record(world::now().since(begun));
        report.bytes_read += u64::from(len);
        if let Some(ledger) = &self.ledger {
            let found = stamp::check(&joined(&pieces, len)?, self.spec.seed, offset)?;
            ledger.check_now(block, found)?;
        }
        Ok(())
    }

    async fn write(&self, block: u64, turn: u64, report: &mut Report) -> Result<()> {
        let offset = self.offset(block);
        let data = match &self.ledger {
            Some(ledger) => self.stamped(offset, ledger.begin(block)),
            None => self.samples[turn as usize % SAMPLES].clone(),
        };
        let begun = world::now();
        self.target.write(offset, data).await?;
        report.writes.record(world::now().since(begun));
        report.bytes_written += u64::from(self.spec.block_size);
        if let Some(ledger) = &self.ledger {
            ledger.done(block);
        }
        Ok(())
    }

    fn stamped(&self, offset: u64, generation: stamp::Generation) -> Buf {
        let mut block = IoBuf::scratch(self.spec.block_size as usize);
        stamp::fill(&mut block, self.spec.seed, offset, generation, zeros_per_sector(&self.spec));
        block.freeze()
    }

    async fn flush(&self, report: &mut Report) -> Result<()> {
        let promise = self.ledger.as_ref().map(|ledger| ledger.begin_flush());
        let begun = world::now();
        self.target.flush().await?;
        report.flushes.record(world::now().since(begun));
        if let Some((ledger, promise)) = self.ledger.as_ref().zip(promise) {
            ledger.flushed(promise);
        }
        Ok(())
    }
}

fn zeros_per_sector(spec: &Spec) -> usize {
    stamp::SECTOR * usize::from(spec.compressible_percent) / 100
}

fn samples(spec: &Spec) -> Vec<Buf> {
    let mut random = Random(spec.seed);
    let sample = |_| {
        let mut block = IoBuf::scratch(spec.block_size as usize);
        stamp::fill(&mut block, random.next(), 0, 1, zeros_per_sector(spec));
        block.freeze()
    };
    (0..SAMPLES).map(sample).collect()
}

/// User and system time of this process.
fn cpu_time() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(t.tv_sec.max(0) as u64, t.tv_nsec.clamp(0, 999_999_999) as u32)
}
