//! What is asked for: a statistic, filters that all must hold, and what it is broken down by.
//!
//! ```text
//!   iscsi.ops[op=read][client=iqn.1998-01.org:db][latency>=10ms][lun]
//!   └ statistic └ filter …                                      └ breakdown, at most one, last
//!
//!   words    =  !=             a backslash before ] and \ in a value
//!   numbers  >= > < <=         exactly;   = is the bucket that holds the number: size=512K is what a heat map shows there
//! ```
//!
//! `utilization=95` means 95 and more, as the appliance has it. What is printed is read as the same query.

use crate::breakdown::Breakdown;
use crate::statistics::{Cost, Statistic};
use std::fmt;
use std::str::FromStr;
use units::{Error, Result};

/// More filters say nothing that fewer cannot.
const FILTERS_MAX: usize = 16;
/// A longer query is no query of ours; file names are at most 255 bytes.
const LEN_MAX: usize = 4096;

/// How a filter compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Compare {
    Is,
    IsNot,
    AtLeast,
    Above,
    AtMost,
    Below,
}

impl Compare {
    /// Longer ones first, since they begin with the shorter.
    const ALL: [(&'static str, Compare); 6] = [
        (">=", Compare::AtLeast),
        ("<=", Compare::AtMost),
        ("!=", Compare::IsNot),
        (">", Compare::Above),
        ("<", Compare::Below),
        ("=", Compare::Is),
    ];

    fn name(self) -> &'static str {
        Compare::ALL.iter().find(|(_, c)| *c == self).map_or("", |(name, _)| name)
    }
}

/// With what it compares.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operand {
    Word(String),
    Number(u64),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Filter {
    pub by: Breakdown,
    pub compare: Compare,
    pub operand: Operand,
}

/// See the module.
#[derive(Clone)]
pub struct Query {
    pub statistic: &'static Statistic,
    pub filters: Vec<Filter>,
    pub breakdown: Option<Breakdown>,
}

impl Query {
    /// What it costs while it is open: most for names of files.
    pub fn cost(&self) -> Cost {
        let by_file = self.breakdown == Some(Breakdown::File);
        let of_file = self.filters.iter().any(|f| f.by == Breakdown::File);
        if by_file || of_file { Cost::High } else { self.statistic.cost }
    }

    /// In words: `iSCSI operations of op read broken down by latency`.
    pub fn title(&self) -> String {
        let mut title = self.statistic.title.to_string();
        for filter in &self.filters {
            let by = filter.by.about();
            let value = filter.printed();
            title += &match filter.compare {
                Compare::Is => format!(" of {by} {value}"),
                Compare::IsNot => format!(" not of {by} {value}"),
                Compare::AtLeast => format!(" of {by} {value} or more"),
                Compare::Above => format!(" of {by} over {value}"),
                Compare::AtMost => format!(" of {by} {value} or less"),
                Compare::Below => format!(" of {by} under {value}"),
            };
        }
        if let Some(by) = self.breakdown {
            title += &format!(" broken down by {}", by.about());
        }
        title
    }
}

impl PartialEq for Query {
    fn eq(&self, other: &Query) -> bool {
        self.statistic.name == other.statistic.name
            && self.filters == other.filters
            && self.breakdown == other.breakdown
    }
}

impl Eq for Query {}

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.statistic.name)?;
        for filter in &self.filters {
            write!(f, "[{}{}", filter.by, filter.compare.name())?;
            for c in filter.printed().chars() {
                if matches!(c, ']' | '\\') {
                    f.write_str("\\")?;
                }
                write!(f, "{c}")?;
            }
            f.write_str("]")?;
        }
        match self.breakdown {
            Some(by) => write!(f, "[{by}]"),
            None => Ok(()),
        }
    }
}

impl Filter {
    fn printed(&self) -> String {
        match (&self.operand, self.by.quantity()) {
            (Operand::Number(number), Some(quantity)) => quantity.print(*number),
            (Operand::Number(number), None) => number.to_string(),
            (Operand::Word(word), _) => word.clone(),
        }
    }
}

impl FromStr for Query {
    type Err = Error;

    fn from_str(text: &str) -> Result<Query> {
        if text.len() > LEN_MAX {
            return Err(Error::invalid(format!("a statistic has at most {LEN_MAX} bytes")));
        }
        let (name, rest) = text.split_at(text.find('[').unwrap_or(text.len()));
        let statistic = Statistic::named(name).ok_or_else(|| unknown(name))?;
        let mut query = Query { statistic, filters: Vec::new(), breakdown: None };
        let mut rest = rest;
        while !rest.is_empty() {
            let (part, after) = bracketed(rest).ok_or_else(|| {
                Error::invalid(format!("'{text}': '[…]' must follow, with a breakdown or a filter in it"))
            })?;
            query.take(&part)?;
            rest = after;
        }
        Ok(query)
    }
}

impl Query {
    fn take(&mut self, part: &Part) -> Result<()> {
        let by = by(self.statistic, &part.name)?;
        let Some((compare, value)) = &part.compared else {
            return match self.breakdown.replace(by) {
                Some(first) => Err(Error::invalid(format!(
                    "{} is broken down by one thing at a time: by {first} or by {by}",
                    self.statistic.name
                ))),
                None => Ok(()),
            };
        };
        if self.filters.len() == FILTERS_MAX {
            return Err(Error::invalid(format!("a statistic has at most {FILTERS_MAX} filters")));
        }
        self.filters.push(Filter { by, compare: *compare, operand: operand(by, *compare, value)? });
        Ok(())
    }
}

fn operand(by: Breakdown, compare: Compare, value: &str) -> Result<Operand> {
    let Some(quantity) = by.quantity() else {
        return match compare {
            Compare::Is | Compare::IsNot => Ok(Operand::Word(value.to_string())),
            _ => Err(Error::invalid(format!("{by} is compared with = or !=, not with {}", compare.name()))),
        };
    };
    let example = match quantity {
        crate::Quantity::Bytes => "512K",
        crate::Quantity::Time => "10ms",
        crate::Quantity::Number => "95",
    };
    match quantity.parse(value) {
        Some(number) => Ok(Operand::Number(number)),
        None => {
            Err(Error::invalid(format!("{by} is compared with a number like {example}, not with '{value}'")))
        }
    }
}

fn by(statistic: &Statistic, name: &str) -> Result<Breakdown> {
    let known = Breakdown::named(name).filter(|by| statistic.breakdowns.contains(by));
    known.ok_or_else(|| {
        let all: Vec<&str> = statistic.breakdowns.iter().map(|b| b.name()).collect();
        Error::invalid(format!("{} has no '{name}': it has {}", statistic.name, all.join(", ")))
    })
}

fn unknown(name: &str) -> Error {
    if let Some((_, why)) = crate::RESERVED.iter().find(|(reserved, _)| *reserved == name) {
        return Error::invalid(format!("there is no statistic '{name}' yet: {why}"));
    }
    let family = name.split('.').next().unwrap_or_default();
    let near: Vec<&str> = crate::statistics()
        .iter()
        .map(|s| s.name)
        .filter(|n| n.strip_prefix(family).is_some_and(|rest| rest.starts_with('.')))
        .collect();
    let hint = if near.is_empty() { String::new() } else { format!("; there are {}", near.join(", ")) };
    Error::invalid(format!("there is no statistic '{name}'{hint}"))
}

/// What stands in one pair of brackets.
struct Part {
    name: String,
    compared: Option<(Compare, String)>,
}

/// The part that `text` begins with, and what follows it.
fn bracketed(text: &str) -> Option<(Part, &str)> {
    let inner = text.strip_prefix('[')?;
    let at = inner.find(['=', '!', '<', '>', ']'])?;
    let (name, rest) = inner.split_at(at);
    let name = name.to_string();
    if let Some(after) = rest.strip_prefix(']') {
        return Some((Part { name, compared: None }, after));
    }
    let (compare, rest) =
        Compare::ALL.iter().find_map(|(sign, compare)| Some((*compare, rest.strip_prefix(sign)?)))?;
    let mut value = String::new();
    let mut chars = rest.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            ']' => return Some((Part { name, compared: Some((compare, value)) }, &rest[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            _ => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests;
