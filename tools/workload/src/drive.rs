//! Carries a description out, inside a world, and tells what it measures.
//!
//! ```text
//!   Description ─▶ run ─▶ streams ─▶ lanes: wait for a turn ─▶ draw ─▶ target ─▶ tally
//!                   │                        │ pace: due at a time          one for each row and core
//!                   │                        │ gate: not ahead of its share
//!                   └─ every interval: take the tallies, tell; at the end: the summary
//! ```
//!
//! The lanes of a stream stay on one loop, as a job of other programs is one thread; streams are dealt out to the loops.
//! Requests that are under way at the end of a run are waited for, and not counted.
//!
//! Not here: what a place is and how it is opened ([`Places`]), and how figures are shown.

mod gate;
mod lane;
mod open;
mod run;

pub use open::{How, Places};

use crate::describe::{Description, Load, Run};
use crate::tally::Figures;
use open::Opened;
use std::sync::Arc;
use units::Result;
use world::sync::Event;

/// What becomes known while a description is carried out.
#[derive(Debug)]
pub enum News<'a> {
    /// `asked` is requests per second; `None` is as many as are taken.
    Begins {
        run: &'a Run,
        asked: Option<f64>,
    },
    Interval {
        number: u64,
        is_warmup: bool,
        figures: &'a Figures,
    },
    /// What each row had in that interval, after it.
    Rows {
        number: u64,
        is_warmup: bool,
        rows: &'a [(String, Figures)],
    },
    Ends(&'a Summary),
}

/// What came of a run, warm-up not included.
#[derive(Clone, Debug)]
pub struct Summary {
    pub run: String,
    /// The most requests that could be under way at once.
    pub lanes: u64,
    /// Requests per second that were asked for.
    pub asked: Option<f64>,
    pub figures: Figures,
    /// By the names of streams; those of one name are one row.
    pub rows: Vec<(String, Figures)>,
    /// Whether it was ended before its time.
    pub is_interrupted: bool,
    /// How many units were read again at the end and found right, where something was verified.
    pub verified: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What places, sizes and bytes are drawn from.
    pub seed: u64,
}

/// Carries out all runs, one after the other, or until `stop` is set: then the run that is on ends, and no more begin.
///
/// # Errors
/// What is wrong with the description; a place that cannot be opened; the first request that failed.
pub async fn drive(
    description: &Description,
    places: &dyn Places,
    options: Options,
    stop: Arc<Event>,
    tell: &mut (dyn FnMut(News<'_>) + Send),
) -> Result<Vec<Summary>> {
    description.check()?;
    let mut opened = Opened::new(description, options.seed);
    let (mut summaries, mut maximum) = (Vec::new(), None);
    for (number, run) in description.runs.iter().enumerate() {
        if stop.is_set() {
            break;
        }
        opened.open_for(run, places).await?;
        let asked = match run.load {
            Load::Max => None,
            Load::PerSecond(rate) => Some(rate),
            Load::OfMax(percent) => maximum.map(|rate: f64| (rate * percent / 100.0).max(1e-3)),
        };
        let seed = options.seed.wrapping_add((number as u64) << 32);
        let summary = run::carry_out(run, asked, &opened, seed, &stop, tell).await?;
        if run.load == Load::Max {
            maximum = Some(summary.figures.rate());
        }
        tell(News::Ends(&summary));
        summaries.push(summary);
    }
    Ok(summaries)
}

#[cfg(test)]
mod tests;
