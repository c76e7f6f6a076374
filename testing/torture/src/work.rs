//! A long run of random work with reopening and power cuts, from one seed.
//!
//! ```text
//!   create ─ some steps in peace ─▶ steps … ✂ recover ─ steps … ✂ recover ─ … ─▶ reopen, verify, export
//!                                         └ the n-th flush from the last cut, by the seed
//! ```
//!
//! The seed chooses the pool's shape too: ten seeds in a row are all the shapes, the next ten have a log device beside
//! them, and the ten after those a mirrored one.

use crate::bench::{Bench, Mix};
use crate::layout::Shape;
use crate::model::Model;
use sim::{Config, Disks, Model as DiskModel, Rng, run_until_cut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const DIR: &str = "/sim";
const DISK: u64 = 96 << 20;
/// So many flushes at most are between two cuts.
const FLUSHES_BETWEEN_CUTS: u64 = 200;
/// The first state of a pool is no promise yet: it is made in peace.
const STEPS_IN_PEACE: u64 = 30;

/// What to do.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    pub seed: u64,
    pub ops: u64,
    pub is_loud: bool,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkFigures {
    pub ops: u64,
    pub cuts: u64,
}

/// What outlives the world whose power is cut.
#[derive(Clone, Default)]
struct Known {
    model: Arc<Mutex<Model>>,
    ops: Arc<Mutex<u64>>,
    error: Arc<Mutex<Option<String>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Work {
    pub fn shape(&self) -> Shape {
        let all = Shape::all();
        let count = all.len() as u64;
        Shape { logs: (self.seed / count % 3) as usize, ..all[(self.seed % count) as usize] }
    }

    fn mix(&self) -> Mix {
        let many = Mix { flush_every: 12, ..Mix::default() };
        let small =
            Mix { size: 512 << 10, volumes: 2, flush_every: 12, admin_every: 40, reopen_every: 100, ..many };
        let mix = if (self.seed / 10).is_multiple_of(2) { many } else { small };
        // Of forty seeds in a row the latter half branch as well.
        if (self.seed / 20).is_multiple_of(2) { mix } else { Mix { branch_every: 12, ..mix } }
    }

    /// Does it all; `tell` hears of each cut. An error says after how many operations.
    pub fn run(&self, mut tell: impl FnMut(WorkFigures)) -> Result<WorkFigures, String> {
        let disks = Disks::new();
        for path in self.shape().paths(DIR) {
            disks.add(path, DISK, DiskModel::NVME);
        }
        let known = Known::default();
        lock(&known.model).is_loud = self.is_loud;
        let mut rng = Rng::new(self.seed);
        let mut figures = WorkFigures::default();
        self.go_on(&disks, rng.next_u64(), &known, Some(STEPS_IN_PEACE.min(self.ops)))?;
        loop {
            figures.ops = *lock(&known.ops);
            tell(figures);
            if figures.ops >= self.ops {
                return Ok(figures);
            }
            disks.cut_at_flush(1 + rng.below(FLUSHES_BETWEEN_CUTS));
            let ended = self.go_on(&disks, rng.next_u64(), &known, None)?;
            disks.power_cut(rng.next_u64());
            figures.cuts += u64::from(!ended);
        }
    }

    /// Works until the power is cut or all is done; true when it is. `fresh` makes the pool, for so many operations.
    fn go_on(&self, disks: &Disks, seed: u64, known: &Known, fresh: Option<u64>) -> Result<bool, String> {
        let (own, inner) = (known.clone(), *self);
        let outcome = run_until_cut(disks, seed, Config::default(), async move {
            if let Err(e) = inner.work(&own, fresh).await {
                *lock(&own.error) = Some(e.to_string());
            }
        });
        let done = *lock(&known.ops);
        match lock(&known.error).take() {
            Some(error) => Err(format!("after {done} operations: {error}")),
            None => Ok(outcome.is_some()),
        }
    }

    async fn work(self, known: &Known, fresh: Option<u64>) -> units::Result<()> {
        let (model, mix) = (known.model.clone(), self.mix());
        let mut bench = match fresh {
            Some(_) => Bench::create(DIR, &self.shape(), mix, model).await?,
            None => Bench::recover(DIR, model, mix).await?,
        };
        while *lock(&known.ops) < fresh.unwrap_or(self.ops) {
            bench.step().await?;
            *lock(&known.ops) += 1;
        }
        bench.finish().await
    }
}
