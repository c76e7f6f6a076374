//! What samples are taken from: a table of statistics, and one of them while it is open.

use std::fmt;
use std::sync::Arc;

/// For what a part of a sample stands. The order is the order in which parts are told.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// From, and up to but not with.
    Range(u64, u64),
    Text(Arc<str>),
    /// All values beyond as many as are told apart.
    Other,
}

impl Key {
    pub fn text(text: &str) -> Key {
        Key::Text(text.into())
    }

    pub(crate) fn told(&self) -> api::analytics::Key {
        match self {
            Key::Range(from, to) => api::analytics::Key::Range(*from, *to),
            Key::Text(text) => api::analytics::Key::Text(text.to_string()),
            Key::Other => api::analytics::Key::Other,
        }
    }
}

/// What a statistic came to since it was last taken. The parts, if it is broken down, add up to the value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    pub value: u64,
    pub parts: Vec<(Key, u64)>,
}

/// A statistic that is open; dropped, it is closed and costs nothing any more.
pub trait Tap: Send {
    /// Does not wait.
    fn take(&mut self) -> Taken;
}

/// A statistic that was opened.
pub struct Tapped {
    /// In its one spelling, which names the dataset.
    pub name: String,
    pub grouping: String,
    pub explanation: String,
    pub unit: String,
    pub overhead: String,
    /// What the ranges of its breakdown count, if they are ranges: `bytes`, `nanoseconds`, `percent`.
    pub scale: Option<String>,
    pub tap: Box<dyn Tap>,
}

impl fmt::Debug for Tapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tapped({})", self.name)
    }
}

/// Where statistics come from.
pub trait Taps: Send + Sync {
    fn statistics(&self) -> Vec<api::analytics::Statistic>;

    /// The error is a phrase that says what is wrong with the words.
    fn open(&self, statistic: &str) -> Result<Tapped, String>;
}
