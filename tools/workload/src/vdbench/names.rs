//! Which definitions a name in `sd=` or `wd=` means.

use super::lines::Key;
use crate::words::{Parsed, shown};

/// The indexes of those that the patterns of a key mean, each once and in order; every pattern must mean one at least.
pub fn chosen(key: &Key, names: &[&str], kind: &str) -> Parsed<Vec<usize>> {
    let mut found = Vec::new();
    for pattern in &key.values {
        let these = matching(pattern, names);
        if these.is_empty() {
            let what = format!("there is no {kind} definition '{}' before it", shown(pattern));
            return key.place.complain(what);
        }
        found.extend(these);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// `sd1`, `sd*`, `sd1-sd8`.
fn matching(pattern: &str, names: &[&str]) -> Vec<usize> {
    let those = |is_meant: &dyn Fn(&str) -> bool| {
        names.iter().enumerate().filter(|(_, name)| is_meant(name)).map(|(index, _)| index).collect()
    };
    if let Some((from, to)) = pattern.split_once('-')
        && let (Some((stem, first)), Some((same, last))) = (ends_in_number(from), ends_in_number(to))
        && stem == same
    {
        return those(&|name| {
            ends_in_number(name).is_some_and(|(of, n)| of == stem && (first..=last).contains(&n))
        });
    }
    match pattern.split_once('*') {
        Some((head, tail)) => those(&|name| {
            name.len() >= head.len() + tail.len() && name.starts_with(head) && name.ends_with(tail)
        }),
        None => those(&|name| name == pattern),
    }
}

fn ends_in_number(name: &str) -> Option<(&str, u64)> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    Some((stem, name[stem.len()..].parse().ok()?))
}
