//! `-r -d -t`: which datasets are meant.

use crate::args::zfs::Scope;
use crate::expect_reply;
use crate::session::{Failure, Outcome, Session};
use api::{Dataset, DatasetKind, DatasetQuery, Reply, Request};

/// Reads the words of `-t`.
pub(super) fn kinds(words: &[String]) -> Outcome<Vec<DatasetKind>> {
    use DatasetKind::*;
    let mut kinds = Vec::new();
    for word in words {
        match word.as_str() {
            "filesystem" | "fs" => kinds.push(Filesystem),
            "volume" | "vol" => kinds.push(Volume),
            "snapshot" | "snap" => kinds.push(Snapshot),
            "bookmark" => kinds.push(Bookmark),
            "all" => kinds.extend([Filesystem, Volume, Snapshot, Bookmark]),
            _ => return Err(Failure::Usage(format!("invalid type '{word}'"))),
        }
    }
    kinds.sort();
    kinds.dedup();
    Ok(kinds)
}

/// How far down: named datasets alone unless more is asked for, everything where none is named.
pub(super) fn depth(scope: &Scope, names: &[String], kinds: &[DatasetKind]) -> Option<u32> {
    let below_only = |k: &DatasetKind| matches!(k, DatasetKind::Snapshot | DatasetKind::Bookmark);
    match scope.depth {
        Some(depth) => Some(depth),
        None if scope.recursive || names.is_empty() => None,
        // Snapshots are below what is named.
        None if !kinds.is_empty() && kinds.iter().all(below_only) => Some(1),
        None => Some(0),
    }
}

pub(super) fn datasets(
    session: &mut Session<'_>,
    scope: &Scope,
    names: &[String],
    kinds: Vec<DatasetKind>,
    properties: Vec<String>,
) -> Outcome<Vec<Dataset>> {
    let depth = depth(scope, names, &kinds);
    let names: Vec<String> = names.iter().map(|n| n.trim_end_matches('/').to_string()).collect();
    let mut found = session.ask_each(&names, |session, names| {
        let query = DatasetQuery { names, depth, kinds: kinds.clone(), properties: properties.clone() };
        let reply = session.ask(Request::Datasets(query))?;
        Ok(expect_reply!(reply, Reply::Datasets(datasets) => datasets))
    })?;
    if names.len() > 1 {
        in_order(&mut found);
    }
    Ok(found)
}

/// By name, snapshots after what they are of and by age; what two of the names lead to is there once.
pub(super) fn in_order(datasets: &mut Vec<Dataset>) {
    let key = |d: &Dataset| {
        let (of, snapshot) = d.name.split_once('@').map_or((&*d.name, None), |(of, s)| (of, Some(s)));
        let age = d.property("createtxg").and_then(|p| p.value.as_ref()?.number());
        (of.to_string(), snapshot.map(|s| (age, s.to_string())))
    };
    datasets.sort_by_cached_key(key);
    datasets.dedup_by(|a, b| a.name == b.name);
}

/// The pool that a dataset is in.
pub(super) fn pool_of(name: &str) -> &str {
    name.split(['/', '@', '#']).next().unwrap_or(name)
}
