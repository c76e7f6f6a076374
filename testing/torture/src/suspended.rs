//! Pools whose devices fail and come back, under clients that stay, leave and come again.
//!
//! ```text
//!   write  flush  reconnect  read  snapshot     at random, each given up after a while
//!     │ meanwhile, at random:
//!     ├ hurt    some devices, or all: no room, no writes, no flushes (which forget), unplugged (which lose their cache)
//!     └ mend    all devices, and clear: the pool must go on
//!   end: mend, clear, flush ─▶ every block, every structure ─▶ export, import ─▶ again
//!        or, in one run of three: close it suspended, import ─▶ at least what was flushed
//! ```
//!
//! What a block may hold is a set: the last write that was answered, and those after it that were not, for a request that
//! was given up may have been carried out or not. A read that answers anything else has lied. A read may fail while devices
//! are hurt, and at no other time.
//!
//! Not here: power cuts ([`crate::power`]).

use crate::bench::{POOL, create_pool, import};
use crate::layout::Shape;
use crate::model::pattern;
use pool::{Content, Pool};
use sim::{Config, Disks, Fault, Model, Rng, run_with};
use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;
use std::time::Duration;
use units::{Error, Result};
use world::{Buf, timeout};
use zvol::Volume;

const DIR: &str = "/sim";
const DISK: u64 = 96 << 20;
const BLOCK: u64 = 16 << 10;
const BLOCKS: u64 = 96;
const VOLUME: &str = "tank/v";
/// A client that hears nothing for so long goes away.
const PATIENCE: Duration = Duration::from_secs(3);
/// Nothing takes so long unless it waits for ever.
const EVER: Duration = Duration::from_secs(3600);

/// One run: everything follows from the seed.
#[derive(Clone, Copy, Debug)]
pub struct Suspensions {
    pub seed: u64,
    pub steps: u64,
}

impl fmt::Display for Suspensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "suspended:{}:{}", self.seed, self.steps)
    }
}

impl FromStr for Suspensions {
    type Err = String;

    fn from_str(case: &str) -> std::result::Result<Suspensions, String> {
        let numbers = || {
            let (seed, steps) = case.strip_prefix("suspended:")?.split_once(':')?;
            Some(Suspensions { seed: seed.parse().ok()?, steps: steps.parse().ok()? })
        };
        numbers().ok_or_else(|| format!("'{case}' is not of the form suspended:SEED:STEPS"))
    }
}

/// What a run has done.
#[derive(Clone, Copy, Debug, Default)]
pub struct SuspensionFigures {
    pub suspended: u64,
    pub flushes: u64,
    pub reads: u64,
}

impl AddAssign for SuspensionFigures {
    fn add_assign(&mut self, other: SuspensionFigures) {
        self.suspended += other.suspended;
        self.flushes += other.flushes;
        self.reads += other.reads;
    }
}

impl fmt::Display for SuspensionFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} suspensions, {} flushes, {} reads", self.suspended, self.flushes, self.reads)
    }
}

/// What one block may hold, as the seeds of its content; 0 is nothing.
#[derive(Clone, Debug, Default)]
struct Known {
    answered: u64,
    /// Given up, or failed, since then.
    maybe: Vec<u64>,
    /// What it may hold after the pool was closed as it is on disk: what was flushed last, and all that came later.
    since_flush: Vec<u64>,
}

impl Known {
    fn may_be(&self, bytes: &[u8]) -> bool {
        content(self.answered) == bytes || self.maybe.iter().any(|&seed| content(seed) == bytes)
    }
}

fn content(seed: u64) -> Vec<u8> {
    if seed == 0 { vec![0; BLOCK as usize] } else { pattern(seed, BLOCK) }
}

struct Run {
    disks: Disks,
    shape: Shape,
    pool: Pool,
    volume: Option<Volume>,
    blocks: Vec<Known>,
    rng: Rng,
    last_seed: u64,
    is_hurt: bool,
    figures: SuspensionFigures,
}

impl Suspensions {
    /// # Errors
    /// What was lost, or lied about.
    pub fn run(&self) -> Result<SuspensionFigures, String> {
        let mut rng = Rng::new(self.seed);
        let shapes = Shape::all();
        let shape = Shape { logs: rng.below(3) as usize, ..shapes[rng.below(shapes.len() as u64) as usize] };
        let disks = Disks::new();
        shape.paths(DIR).into_iter().for_each(|path| drop(disks.add(path, DISK, Model::NVME)));
        let (own, steps) = (disks.clone(), self.steps);
        let outcome = run_with(&disks, self.seed, Config::default(), async move {
            let mut run = Run::begin(own, shape, rng).await?;
            for _ in 0..steps {
                run.step().await?;
            }
            run.finish().await
        });
        outcome.map_err(|e| format!("{self:?} {shape:?}: {e}"))
    }
}

impl Run {
    async fn begin(disks: Disks, shape: Shape, mut rng: Rng) -> Result<Run> {
        let pool = create_pool(shape.groups(DIR)?, shape.ashift).await?;
        let content = Content::Volume { size: BLOCKS * BLOCK, block_size: BLOCK };
        pool.create_dataset(VOLUME, content, Vec::new()).await?;
        if rng.below(2) == 0 {
            pool.set_property("failmode", "continue").await?;
        }
        let blocks = vec![Known { since_flush: vec![0], ..Known::default() }; BLOCKS as usize];
        let figures = SuspensionFigures::default();
        Ok(Run { disks, shape, pool, volume: None, blocks, rng, last_seed: 0, is_hurt: false, figures })
    }

    async fn step(&mut self) -> Result<()> {
        match self.rng.below(40) {
            0..16 => self.write().await,
            16..22 => self.flush().await,
            22..31 => self.read().await,
            31..34 => {
                self.volume = None;
                Ok(())
            }
            34 => {
                let name = format!("{VOLUME}@{}", self.rng.next_u64());
                _ = timeout(EVER, self.pool.snapshot(vec![name], Vec::new())).await.ok_or_else(for_ever)?;
                Ok(())
            }
            35 => {
                world::sleep(Duration::from_secs(self.rng.below(20))).await;
                Ok(())
            }
            36 | 37 if !self.is_hurt => {
                self.hurt();
                Ok(())
            }
            38 | 39 if self.is_hurt => self.mend().await,
            _ => Ok(()),
        }
    }

    /// The volume, as a client has it that came some time ago, or comes now.
    async fn client(&mut self) -> Result<Option<Volume>> {
        if self.volume.is_none() {
            let opened = timeout(PATIENCE, self.pool.open_volume(VOLUME)).await;
            self.volume = match opened {
                Some(Ok(volume)) => Some(volume),
                Some(Err(e)) if !self.is_hurt => return Err(e),
                _ => None,
            };
        }
        Ok(self.volume.clone())
    }

    async fn write(&mut self) -> Result<()> {
        let Some(volume) = self.client().await? else { return Ok(()) };
        let (at, many) = (self.rng.below(BLOCKS), 1 + self.rng.below(8));
        for at in at..(at + many).min(BLOCKS) {
            self.last_seed += 1;
            let seed = self.last_seed;
            let written = timeout(PATIENCE, volume.write(at * BLOCK, Buf::copy_from(&content(seed)))).await;
            let known = &mut self.blocks[at as usize];
            known.since_flush.push(seed);
            match written {
                Some(Ok(())) => {
                    (known.answered, known.maybe) = (seed, Vec::new());
                }
                Some(Err(e)) if !self.is_hurt => return Err(e.at("a write on sound devices")),
                _ => known.maybe.push(seed),
            }
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<()> {
        let Some(volume) = self.client().await? else { return Ok(()) };
        match timeout(PATIENCE, volume.flush()).await {
            Some(Ok(())) => {
                self.figures.flushes += 1;
                for known in &mut self.blocks {
                    known.since_flush = [known.answered].into_iter().chain(known.maybe.clone()).collect();
                }
                Ok(())
            }
            Some(Err(e)) if !self.is_hurt => Err(e.at("a flush on sound devices")),
            _ => Ok(()),
        }
    }

    async fn read(&mut self) -> Result<()> {
        if self.rng.below(4) == 0 {
            self.pool.pipeline().cache().clear();
        }
        let Some(volume) = self.client().await? else { return Ok(()) };
        for _ in 0..8 {
            let at = self.rng.below(BLOCKS);
            match timeout(PATIENCE, volume.read(at * BLOCK, BLOCK)).await {
                Some(Ok(parts)) => {
                    self.figures.reads += 1;
                    self.compare(at, &joined(&parts))?;
                }
                Some(Err(e)) if !self.is_hurt => return Err(e.at("a read from sound devices")),
                _ => {}
            }
        }
        Ok(())
    }

    fn compare(&self, at: u64, bytes: &[u8]) -> Result<()> {
        let known = &self.blocks[at as usize];
        if known.may_be(bytes) {
            return Ok(());
        }
        let found = (0..=self.last_seed).find(|&seed| content(seed) == bytes);
        Err(Error::corrupt(format!("block {at} is {found:?}, and should be {known:?}")))
    }

    fn hurt(&mut self) {
        let all = 1_000_000;
        let none = Fault::default();
        let kind = self.rng.below(5);
        let everywhere = self.rng.below(2) == 0;
        for path in self.shape.paths(DIR) {
            if !everywhere && self.rng.below(2) == 0 {
                continue;
            }
            let Some(disk) = self.disks.get(&path) else { continue };
            match kind {
                0 => disk.set_fault(Fault { full: true, ..none }),
                1 => disk.set_fault(Fault { write_errors_ppm: all, ..none }),
                2 => disk.set_fault(Fault { flush_errors_ppm: all, forgets: true, ..none }),
                3 => disk.unplug(),
                _ => {
                    let n = 1 + self.rng.below(60);
                    disk.fault_at_write(n, Fault { write_errors_ppm: all, ..none });
                }
            }
        }
        self.is_hurt = true;
    }

    async fn mend(&mut self) -> Result<()> {
        for path in self.shape.paths(DIR) {
            if let Some(disk) = self.disks.get(path) {
                disk.set_fault(Fault::default());
                // One that was to fail later does not.
                disk.forgive();
            }
        }
        self.figures.suspended += u64::from(self.pool.suspended().is_some());
        timeout(EVER, self.pool.clear(None)).await.ok_or_else(for_ever)?.map_err(|e| e.at("clear"))?;
        self.is_hurt = false;
        // What was refused while a device was away is brought to it before the next is taken away.
        for _ in 0..100 {
            timeout(EVER, self.pool.sync()).await.ok_or_else(for_ever)??;
            if self.pool.tree().leaves().iter().all(|leaf| !leaf.missing().is_any()) {
                break;
            }
            self.pool.scrub().await.ok();
            world::sleep(Duration::from_secs(10)).await;
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<SuspensionFigures> {
        if self.is_hurt && self.pool.suspended().is_some() && self.rng.below(3) == 0 {
            return self.close_suspended().await;
        }
        self.mend().await?;
        self.volume = None;
        self.flush().await?;
        self.check_all().await?;
        self.pool.export().await?;
        self.volume = None;
        self.pool = import(DIR).await?;
        self.check_all().await?;
        self.pool.export().await?;
        Ok(self.figures)
    }

    /// Every block, and all that leads to them.
    async fn check_all(&mut self) -> Result<()> {
        self.pool.pipeline().cache().clear();
        let volume = self.pool.open_volume(VOLUME).await?;
        for at in 0..BLOCKS {
            self.compare(at, &joined(&volume.read(at * BLOCK, BLOCK).await?))?;
        }
        let report = self.pool.verify(|_| ()).await?;
        match report.is_sound() {
            true => Ok(()),
            false => Err(Error::corrupt(format!("damage: {:?}", report.damage))),
        }
    }

    async fn close_suspended(mut self) -> Result<SuspensionFigures> {
        // What it could not write it does not pretend to have written; and it ends.
        _ = timeout(EVER, self.pool.close()).await.ok_or_else(for_ever)?;
        self.volume = None;
        for path in self.shape.paths(DIR) {
            if let Some(disk) = self.disks.get(path) {
                disk.set_fault(Fault::default());
                disk.forgive();
            }
        }
        self.pool = import(DIR).await?;
        for known in &mut self.blocks {
            known.maybe = std::mem::take(&mut known.since_flush);
            known.answered = known.maybe[0];
        }
        self.check_all().await?;
        self.pool.export().await?;
        Ok(self.figures)
    }
}

fn joined(parts: &[Buf]) -> Vec<u8> {
    parts.iter().flat_map(|part| part.iter().copied()).collect()
}

fn for_ever() -> Error {
    Error::corrupt(format!("{POOL} is waited for, for ever"))
}
