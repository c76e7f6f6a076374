//! What a statistic came to between two looks.

use crate::breakdown::Breakdown;
use crate::query::{Compare, Filter, Operand};
use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;
use units::HashMap;

/// A sample has at most so many words; the smallest further ones are together one [`Key::Other`].
pub const WORDS_MAX: usize = 1024;

/// Of what a part is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// Those without a value, as a LUN outside of a project, have the word "-".
    Text(Arc<str>),
    /// From the first to before the second; the last bucket ends with `u64::MAX`.
    Range {
        from: u64,
        to: u64,
    },
    Other,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Text(text) => f.write_str(text),
            Key::Range { from, .. } => write!(f, "{from}"),
            Key::Other => f.write_str("other"),
        }
    }
}

/// What was told since the last look, or what is so now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    pub value: u64,
    /// By the breakdown; their sum is the value. Empty without a breakdown. Ranges go upwards, words from the largest value.
    pub parts: Vec<(Key, u64)>,
}

impl Sample {
    /// Of a value that is not broken down.
    pub fn whole(value: u64) -> Sample {
        Sample { value, parts: Vec::new() }
    }

    /// Of the parts of a breakdown: those of the same key are added, those of nothing left out.
    pub fn of(parts: impl IntoIterator<Item = (Key, u64)>) -> Sample {
        let mut sums: HashMap<Key, u64> = HashMap::default();
        let mut value = 0u64;
        for (key, part) in parts {
            value += part;
            *sums.entry(key).or_default() += part;
        }
        let mut other = sums.remove(&Key::Other).unwrap_or(0);
        let mut parts: Vec<(Key, u64)> = sums.into_iter().filter(|(_, part)| *part > 0).collect();
        parts.sort_by_cached_key(|(key, part)| match key {
            Key::Range { from, .. } => (Reverse(0), *from, key.clone()),
            _ => (Reverse(*part), 0, key.clone()),
        });
        if parts.len() > WORDS_MAX {
            other += parts.split_off(WORDS_MAX).iter().map(|(_, part)| part).sum::<u64>();
        }
        if other > 0 {
            parts.push((Key::Other, other));
        }
        Sample { value, parts }
    }
}

/// A value that a source reads, and of what it is. Two of one source differ in their marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    pub marks: Vec<(Breakdown, Mark)>,
    pub value: u64,
}

/// A word, a number or a bucket of a reading.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mark {
    Word(Arc<str>),
    Number(u64),
    Key(Key),
}

impl From<Key> for Mark {
    fn from(key: Key) -> Mark {
        match key {
            Key::Text(text) => Mark::Word(text),
            key => Mark::Key(key),
        }
    }
}

impl From<&crate::Label> for Mark {
    fn from(label: &crate::Label) -> Mark {
        Mark::Word(label.0.clone())
    }
}

impl Reading {
    fn mark(&self, by: Breakdown) -> Option<&Mark> {
        self.marks.iter().find(|(b, _)| *b == by).map(|(_, mark)| mark)
    }

    pub(crate) fn passes(&self, filters: &[Filter]) -> bool {
        filters.iter().all(|filter| match (self.mark(filter.by), &filter.operand) {
            (Some(Mark::Word(word)), Operand::Word(wanted)) => {
                (**word == **wanted) == (filter.compare == Compare::Is)
            }
            (Some(Mark::Number(number)), Operand::Number(than)) => passes(*number, filter.compare, *than),
            (Some(Mark::Key(Key::Range { from, .. })), Operand::Number(than)) => {
                passes(*from, filter.compare, *than)
            }
            _ => filter.compare == Compare::IsNot,
        })
    }

    /// Percentages go by fives; a hundred belongs to the last.
    pub(crate) fn key(&self, by: Breakdown) -> Key {
        match self.mark(by) {
            Some(Mark::Word(word)) => Key::Text(word.clone()),
            Some(Mark::Key(key)) => key.clone(),
            Some(Mark::Number(number)) => {
                let from = (number / 5 * 5).min(95);
                Key::Range { from, to: from + 5 }
            }
            None => Key::Text("-".into()),
        }
    }
}

/// As the appliance has it, `utilization=95` is 95 and more.
fn passes(number: u64, compare: Compare, than: u64) -> bool {
    match compare {
        Compare::Is | Compare::AtLeast => number >= than,
        Compare::IsNot | Compare::Below => number < than,
        Compare::Above => number > than,
        Compare::AtMost => number <= than,
    }
}
