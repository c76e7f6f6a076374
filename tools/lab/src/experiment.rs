//! What an experiment is, and what comes of it.
//!
//! ```text
//!   [`Experiment`]: name, what the document says, parameters, run ──▶ [`Row`]s: before and after, ours and the document's
//!                                                                       └▶ verdict: does the ratio count?
//! ```

use crate::parameters::Parameters;
use units::Result;

/// How a run is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ask {
    pub seed: u64,
    /// 1 is the experiment's own size; less runs sooner and is less exact.
    pub scale: f64,
    /// Of the figures the one with this number alone, for a run that is repeated with other parameters.
    pub only: Option<usize>,
}

impl Default for Ask {
    fn default() -> Ask {
        Ask { seed: 1, scale: 1.0, only: None }
    }
}

impl Ask {
    /// `count` at this scale, at least `least`.
    pub fn scaled(&self, count: f64, least: u64) -> u64 {
        ((count * self.scale).round() as u64).max(least)
    }

    /// The figures that are wanted, each from a run of its own.
    pub fn rows(&self, cases: Vec<Case<'_>>) -> Result<Vec<Row>> {
        let wanted = |number: usize| self.only.is_none_or(|only| only == number);
        let all = cases.into_iter().enumerate();
        all.filter(|(number, _)| wanted(*number)).map(|(_, case)| case()).collect()
    }
}

/// What makes one figure.
pub type Case<'a> = Box<dyn FnOnce() -> Result<Row> + 'a>;

/// One experiment. See the module.
#[derive(Clone, Copy)]
pub struct Experiment {
    pub name: &'static str,
    /// One line: the figure and its document.
    pub about: &'static str,
    /// What is modelled, and what is not.
    pub modelled: &'static str,
    /// What an honest reader must know of the result.
    pub remark: &'static str,
    /// The number of the figure whose ratio is shown against each doubtful parameter.
    pub chief: usize,
    /// Of the experiment's size, what is run for that.
    pub quick: f64,
    pub parameters: fn() -> Parameters,
    pub run: fn(&Parameters, &Ask) -> Result<Vec<Row>>,
}

impl std::fmt::Debug for Experiment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Experiment({})", self.name)
    }
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    More,
    Less,
}

/// Before and after a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    pub before: f64,
    pub after: f64,
}

/// What a document says of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Said {
    Both(Pair),
    /// The ratio alone.
    Ratio(f64),
    /// Neither: a case beside the document's, to be compared with it.
    Nothing,
}

/// One figure. See the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub case: String,
    pub unit: &'static str,
    pub better: Better,
    pub lab: Pair,
    pub said: Said,
}

/// Whether a ratio counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The baseline is within a quarter of the document's.
    Counts,
    /// It is not.
    BaselineOff,
    /// The document has no baseline: the ratio stands on the parameters alone, see the table of what it hangs on.
    NoBaseline,
    /// The document has no such figure.
    Beside,
}

/// How far a baseline may be off.
const BASELINE: f64 = 0.25;

impl Row {
    pub fn ratio_of(&self, pair: Pair) -> f64 {
        match self.better {
            Better::More => pair.after / pair.before.max(f64::MIN_POSITIVE),
            Better::Less => pair.before / pair.after.max(f64::MIN_POSITIVE),
        }
    }

    pub fn ratio(&self) -> f64 {
        self.ratio_of(self.lab)
    }

    pub fn said_ratio(&self) -> Option<f64> {
        match self.said {
            Said::Both(pair) => Some(self.ratio_of(pair)),
            Said::Ratio(ratio) => Some(ratio),
            Said::Nothing => None,
        }
    }

    /// Of the baseline: 0.1 is a tenth too much.
    pub fn baseline_error(&self) -> Option<f64> {
        match self.said {
            Said::Both(pair) => Some(self.lab.before / pair.before - 1.0),
            _ => None,
        }
    }

    pub fn ratio_error(&self) -> Option<f64> {
        self.said_ratio().map(|said| self.ratio() / said - 1.0)
    }

    pub fn verdict(&self) -> Verdict {
        match (self.said, self.baseline_error()) {
            (Said::Nothing, _) => Verdict::Beside,
            (_, None) => Verdict::NoBaseline,
            (_, Some(error)) if error.abs() <= BASELINE => Verdict::Counts,
            _ => Verdict::BaselineOff,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_counts_only_on_a_baseline_that_is_right() {
        let row = |before, said| Row {
            case: String::new(),
            unit: "s",
            better: Better::Less,
            lab: Pair { before, after: 7.0 },
            said,
        };
        let document = Said::Both(Pair { before: 56.0, after: 8.0 });
        let near = row(49.0, document);
        assert_eq!((near.ratio(), near.said_ratio(), near.verdict()), (7.0, Some(7.0), Verdict::Counts));
        assert_eq!(row(35.0, document).verdict(), Verdict::BaselineOff);
        assert_eq!(row(35.0, Said::Ratio(5.0)).ratio_error(), Some(0.0));
        assert_eq!(row(35.0, Said::Ratio(5.0)).verdict(), Verdict::NoBaseline);
        assert_eq!(row(35.0, Said::Nothing).verdict(), Verdict::Beside);
    }
}
