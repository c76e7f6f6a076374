//! What a run of the proof amounts to.

use super::check::Undecided;
use std::fmt;
use std::time::Duration;

/// A case that did not hold, by the name that replays it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub case: String,
    pub why: String,
}

#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub workloads: u64,
    /// Imports after a cut, each checked.
    pub cuts: u64,
    /// The different states these left; each was recovered once.
    pub states: u64,
    /// Of the cuts: at a flush boundary.
    pub at_flush: u64,
    /// Of these: in the midst of the recovery from another.
    pub again: u64,
    /// Of these: with the log devices gone.
    pub without_log: u64,
    /// Of these: given to OpenZFS's `zdb`.
    pub by_zdb: u64,
    /// Changes that were not acknowledged at their cut: found, or not.
    pub undecided: Undecided,
    pub failures: Vec<Failure>,
    pub took: Duration,
}

impl Figures {
    pub fn add(&mut self, other: Figures) {
        self.workloads += other.workloads;
        self.cuts += other.cuts;
        self.states += other.states;
        self.at_flush += other.at_flush;
        self.again += other.again;
        self.without_log += other.without_log;
        self.by_zdb += other.by_zdb;
        self.undecided.present += other.undecided.present;
        self.undecided.absent += other.undecided.absent;
        self.failures.extend(other.failures);
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Undecided { present, absent } = self.undecided;
        writeln!(f, "workloads                    {:>9}", self.workloads)?;
        writeln!(f, "power cuts                   {:>9}", self.cuts)?;
        writeln!(f, "  different states left      {:>9}", self.states)?;
        writeln!(f, "  at a flush boundary        {:>9}", self.at_flush)?;
        writeln!(f, "  in the midst of a recovery {:>9}", self.again)?;
        writeln!(f, "  with the log devices lost  {:>9}", self.without_log)?;
        writeln!(f, "  examined by zdb            {:>9}", self.by_zdb)?;
        writeln!(f, "unpromised changes           {present:>9} found, {absent} not")?;
        writeln!(f, "failures                     {:>9}", self.failures.len())?;
        write!(f, "time                         {:>9.0} s", self.took.as_secs_f64())
    }
}
