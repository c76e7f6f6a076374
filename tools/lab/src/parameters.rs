//! What a model is made of: numbers, each with its source.
//!
//! ```text
//!   tables of [`Parameter`] ──▶ [`Parameters`] of one experiment ──▶ the hardware that is built from them
//!                                   │  one of them set to its low or high end
//!                                   └──▶ the same experiment again: how far the ratio hangs on it
//! ```
//!
//! A parameter is never derived from the figure that an experiment is to predict. One that is not known has a range: its
//! value is the middle, or what the source says, and the ends are what `--sensitivity` tries.

use std::collections::BTreeMap;
use std::fmt;

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// A data sheet or manual.
    Sheet,
    /// A measurement that was published, or published source code.
    Published,
    /// The document whose figure is predicted says it, as a condition of its test.
    Document,
    /// Reckoned from others of these.
    Arithmetic,
    /// Not known; the source says why this much.
    Assumed,
    /// Known to the authors, without a source at hand.
    Memory,
}

impl Basis {
    pub fn word(self) -> &'static str {
        match self {
            Basis::Sheet => "data sheet",
            Basis::Published => "published",
            Basis::Document => "the document",
            Basis::Arithmetic => "reckoned",
            Basis::Assumed => "assumed",
            Basis::Memory => "from memory",
        }
    }
}

/// One number of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    pub key: &'static str,
    pub value: f64,
    /// The ends of what it may be; both equal to the value when there is no doubt.
    pub low: f64,
    pub high: f64,
    pub unit: &'static str,
    pub basis: Basis,
    pub source: &'static str,
}

/// A parameter that its source fixes.
pub const fn fixed(
    key: &'static str,
    value: f64,
    unit: &'static str,
    basis: Basis,
    source: &'static str,
) -> Parameter {
    Parameter { key, value, low: value, high: value, unit, basis, source }
}

/// A parameter of which only a range is known.
pub const fn within(
    key: &'static str,
    (low, value, high): (f64, f64, f64),
    unit: &'static str,
    basis: Basis,
    source: &'static str,
) -> Parameter {
    Parameter { key, value, low, high, unit, basis, source }
}

impl Parameter {
    pub fn is_doubtful(&self) -> bool {
        self.low < self.high
    }
}

/// All parameters of one experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    all: Vec<Parameter>,
    by_key: BTreeMap<&'static str, f64>,
}

impl Parameters {
    /// # Panics
    /// When two tables have the same key: which of them counts would be chance.
    pub fn of(tables: &[&[Parameter]]) -> Parameters {
        let all: Vec<Parameter> = tables.iter().flat_map(|table| table.iter().copied()).collect();
        let by_key: BTreeMap<_, _> = all.iter().map(|one| (one.key, one.value)).collect();
        assert_eq!(by_key.len(), all.len(), "each parameter is in one table");
        Parameters { all, by_key }
    }

    /// # Panics
    /// When no table has the key.
    pub fn get(&self, key: &str) -> f64 {
        *self.by_key.get(key).unwrap_or_else(|| panic!("no table of the experiment has '{key}'"))
    }

    /// As [`Parameters::get`], for what is counted.
    pub fn count(&self, key: &str) -> u64 {
        self.get(key).round() as u64
    }

    pub fn is_on(&self, key: &str) -> bool {
        self.get(key) != 0.0
    }

    /// The same with one of them changed.
    #[must_use]
    pub fn with(&self, key: &str, value: f64) -> Parameters {
        let mut changed = self.clone();
        for one in changed.all.iter_mut().filter(|one| one.key == key) {
            one.value = value;
            changed.by_key.insert(one.key, value);
        }
        changed
    }

    pub fn iter(&self) -> impl Iterator<Item = &Parameter> {
        self.all.iter()
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = match self.is_doubtful() {
            true => format!(" ({} to {})", show(self.low), show(self.high)),
            false => String::new(),
        };
        write!(f, "{} = {}{range} {}", self.key, show(self.value), self.unit)
    }
}

/// A number with as many digits as say something.
pub fn show(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.1}").trim_end_matches('0').trim_end_matches('.').into(),
        v if v >= 0.001 => {
            let digits = (3 - v.log10().floor() as i32).clamp(0, 6) as usize;
            let text = format!("{value:.digits$}");
            text.trim_end_matches('0').trim_end_matches('.').into()
        }
        _ => format!("{value:.3e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &[Parameter] =
        &[fixed("a", 2.0, "ms", Basis::Sheet, "x"), within("b", (1.0, 2.0, 3.0), "ms", Basis::Assumed, "y")];

    #[test]
    fn one_is_changed_and_the_others_stay() {
        let all = Parameters::of(&[A]);
        let changed = all.with("b", 3.0);
        assert_eq!((changed.get("a"), changed.get("b"), all.get("b")), (2.0, 3.0, 2.0));
        assert_eq!(changed.iter().filter(|one| one.is_doubtful()).count(), 1);
        assert_eq!(A[1].to_string(), "b = 2 (1 to 3) ms");
    }

    #[test]
    #[should_panic(expected = "each parameter is in one table")]
    fn a_key_is_said_once() {
        Parameters::of(&[A, A]);
    }

    #[test]
    fn numbers_are_shown_as_they_are_said() {
        let shown = [0.0, 8.333, 1365.0, 0.01985, 3.146e-5, 189.0, 0.16].map(show);
        assert_eq!(shown, ["0", "8.333", "1365", "0.01985", "3.146e-5", "189", "0.16"]);
    }
}
