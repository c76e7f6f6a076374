//! From a file to definitions: comments away, continued lines joined, `key=value` taken apart with the line of each.
//!
//! ```text
//!   * a comment, as are lines that begin with / or #
//!   sd=sd1,lun=/dev/mapper/mpatha,size=1g,      a comma at the end of the words: the next line goes on
//!      openflags=o_direct,threads=128           what follows the first blank outside of parentheses is a comment
//!   rd=run1,wd=wd1,forthreads=(1-64,d)          commas in parentheses separate the values of one key
//! ```

use crate::words::{Parsed, Place, shown};

/// More than these in one file are a mistake, or meant to be one.
const DEFINITIONS_MAX: usize = 20_000;

/// `sd=sd1,…`: what is defined, and its keys in order.
#[derive(Clone, Debug)]
pub struct Definition {
    pub kind: String,
    pub name: String,
    pub place: Place,
    pub keys: Vec<Key>,
}

#[derive(Clone, Debug)]
pub struct Key {
    pub name: String,
    pub place: Place,
    /// Without parentheses, separated by commas.
    pub values: Vec<String>,
}

impl Key {
    /// Its only value.
    pub fn one(&self) -> Parsed<&str> {
        match self.values.as_slice() {
            [only] => Ok(only),
            _ => self.place.complain("it has exactly one value"),
        }
    }
}

pub fn definitions(file: &str, text: &str) -> Parsed<Vec<Definition>> {
    let mut found: Vec<Definition> = Vec::new();
    let mut goes_on = false;
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with(['*', '#', '/']) {
            continue;
        }
        let place = Place::new(file, number, "");
        let (words, continued) = split(line, &place)?;
        let mut keys =
            words.iter().map(|word| key(file, number, word)).collect::<Parsed<Vec<_>>>()?.into_iter();
        if !goes_on {
            let Some(first) = keys.next() else { continue };
            let name = first.values.join(",");
            found.push(Definition { kind: first.name, name, place: first.place, keys: Vec::new() });
        }
        if let Some(definition) = found.last_mut() {
            definition.keys.extend(keys);
        }
        if found.len() > DEFINITIONS_MAX {
            return place.complain(format!("more than {DEFINITIONS_MAX} definitions"));
        }
        goes_on = continued;
    }
    match found.last() {
        Some(last) if goes_on => {
            last.place.complain("the last definition ends with a comma, and nothing follows")
        }
        _ => Ok(found),
    }
}

/// The words of a line between commas outside of parentheses, and whether the next line goes on.
fn split(line: &str, place: &Place) -> Parsed<(Vec<String>, bool)> {
    let mut words = vec![String::new()];
    let (mut depth, mut quoted) = (0u32, false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => push(&mut words, c),
            '(' => {
                depth += 1;
                push(&mut words, c);
            }
            ')' => {
                depth = depth.checked_sub(1).ok_or_else(|| place.complaint("')' without '('"))?;
                push(&mut words, c);
            }
            ',' if depth == 0 => words.push(String::new()),
            c if c.is_whitespace() && depth > 0 => {}
            c if c.is_whitespace() => break,
            c => push(&mut words, c),
        }
    }
    if depth > 0 || quoted {
        return place.complain(if quoted { "a quote does not end" } else { "'(' without ')'" });
    }
    let continued = words.len() > 1 && words.last().is_some_and(String::is_empty);
    if continued {
        words.pop();
    }
    Ok((words, continued))
}

fn push(words: &mut [String], c: char) {
    if let Some(word) = words.last_mut() {
        word.push(c);
    }
}

fn key(file: &str, line: usize, word: &str) -> Parsed<Key> {
    let Some((name, value)) = word.split_once('=') else {
        return Place::new(file, line, "").complain(format!("'{}' is not key=value", shown(word)));
    };
    let name = name.trim().to_ascii_lowercase();
    let place = Place::new(file, line, &name);
    let inner = value.strip_prefix('(').and_then(|v| v.strip_suffix(')')).unwrap_or(value);
    let values: Vec<String> = inner.split(',').map(|v| v.trim().to_string()).collect();
    if name.is_empty() || values.iter().any(String::is_empty) {
        return place.complain(format!("'{}' has no value", shown(word)));
    }
    Ok(Key { name, place, values })
}
