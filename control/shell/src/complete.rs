//! What a half-typed line could become.
//!
//! ```text
//!   shares select mysql select innodb-data set lo|
//!   └──────── contexts: gone into, as the line would ────────┘ └ what can be said there: a command, a name, a property
//!   ... set compression=l|                                       or a value of it
//! ```
//!
//! The shell goes into the contexts and comes back; nothing is changed by that. The rest is pure.

use crate::context::Context;
use crate::shell::Shell;
use crate::vocabulary::Settable;
use crate::{help, words};
use api::attributes::{Attribute, Shape};
use dsl::props::{Prop, TABLE};
use std::collections::BTreeMap;

/// What can be said where one is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Candidates {
    pub first: Vec<String>,
    /// What may follow a first word.
    pub after: BTreeMap<String, Vec<String>>,
}

/// What the line up to the cursor could become: where the word begins that is being typed, and what it could be.
pub(crate) fn at(shell: &mut Shell<'_>, line: &str) -> (usize, Vec<String>) {
    // Only the last command of a line is being typed.
    let own = line.rfind(';').map_or(0, |at| at + 1);
    let start = line.rfind(|c: char| c.is_whitespace() || c == ';').map_or(0, |at| at + 1);
    let Ok(before) = words::split(&line[own..start]) else { return (start, Vec::new()) };
    let typed = &line[start..];
    let found = shell.there(&before, |shell, rest| {
        let rest = rest.join(" ");
        let rest = if rest.is_empty() { typed.to_string() } else { format!("{rest} {typed}") };
        complete(&rest, &candidates(shell)).1
    });
    (start, found.unwrap_or_default())
}

/// What can be typed where the shell is.
fn candidates(shell: &mut Shell<'_>) -> Candidates {
    let first = help::first_words(shell.here());
    let settable = shell.settable();
    let names = shell.names();
    let mut candidates = Candidates { first, ..Candidates::default() };
    let kind = match shell.here() {
        Context::Item { kind, .. } => Some(*kind),
        _ => None,
    };
    let assignments = settable.iter().flat_map(|s| {
        let values = values(s, kind).into_iter().map(move |value| format!("{}={value}", s.name));
        std::iter::once(format!("{}=", s.name)).chain(values)
    });
    candidates.after.insert("set".into(), assignments.collect());
    let settable: Vec<String> = settable.into_iter().map(|s| s.name).collect();
    candidates.after.insert("get".into(), settable.clone());
    candidates.after.insert("unset".into(), settable);
    for verb in ["select", "destroy", "rename", "move"] {
        candidates.after.insert(verb.into(), names.clone());
    }
    candidates
}

/// The words that a property can be set to, where there are such.
fn values(settable: &Settable, kind: Option<api::shares::ItemKind>) -> Vec<String> {
    if settable.shape == Shape::Flag {
        return ["true", "false"].map(String::from).into();
    }
    let attribute = kind.and_then(|kind| Attribute::find(&settable.name, kind));
    let row = attribute.and_then(|_| Prop::by_name(&settable.name)).map(|prop| &TABLE[prop as usize]);
    let words = row.map_or("", |row| row.values).split(" | ").map(str::trim);
    words.filter(|w| !w.is_empty() && !w.contains(['<', ' ', '[', ','])).map(String::from).collect()
}

/// Where the word begins that is being typed, and what it could be.
pub(crate) fn complete(line: &str, candidates: &Candidates) -> (usize, Vec<String>) {
    let start = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let (before, typed) = line.split_at(start);
    let words: Vec<&str> = before.split_whitespace().filter(|w| *w != "confirm").collect();
    let all: &[String] = match words.first() {
        None => &candidates.first,
        Some(first) => candidates.after.get(*first).map_or(&[], Vec::as_slice),
    };
    // Values are offered once their property is written out.
    let is_due =
        |c: &&String| c.starts_with(typed) && (c.ends_with('=') || !c.contains('=') || typed.contains('='));
    let is_more = |c: &&String| !(typed.contains('=') && c.as_str() == typed && c.ends_with('='));
    (start, all.iter().filter(is_due).filter(is_more).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_a_command_and_the_next_depends_on_it() {
        let list = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let candidates = Candidates {
            first: list(&["select", "set", "show"]),
            after: BTreeMap::from([
                ("select".into(), list(&["mysql", "web"])),
                ("set".into(), list(&["logbias=", "quota=", "sync=", "sync=always", "sync=standard"])),
            ]),
        };
        for (line, start, found) in [
            ("", 0, &["select", "set", "show"][..]),
            ("se", 0, &["select", "set"]),
            ("select ", 7, &["mysql", "web"]),
            ("select m", 7, &["mysql"]),
            ("set lo", 4, &["logbias="]),
            ("set quota=1G lo", 13, &["logbias="]),
            ("confirm se", 8, &["select", "set"]),
            ("show x", 5, &[]),
            ("set sync=", 4, &["sync=always", "sync=standard"]),
            ("set sync=a", 4, &["sync=always"]),
            ("set sy", 4, &["sync="]),
        ] {
            assert_eq!(complete(line, &candidates), (start, list(found)), "{line}");
        }
    }
}
