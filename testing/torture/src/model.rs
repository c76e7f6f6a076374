//! What the volumes of a pool hold, as arrays of bytes, and what of it may be left after a crash.
//!
//! Work is one change after another, so a txg holds the first `k` of them. The intent log of a volume goes further for
//! that volume alone, up to its last commit:
//!
//! ```text
//!   changes     1 a   2 b   3 a   4 c   5 a   6 b        of volumes a, b and c
//!   txg         ───────────────▶ k = 3                    all of them
//!   log of a    ──────────────────────────▶ 5 …           committed: answered, so it must be there
//!   log of b    ───────────────▶ 2 …                      whatever a log is at work on at the crash: as far as it has come
//! ```
//!
//! A log takes all there is whenever it is at work, asked for or not. And it may have come into the midst of a write: then
//! whole pages or blocks of it are there, from its beginning on.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// One change of one volume, or of several at once. A snapshot is a volume that does not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Create {
        name: String,
        size: u64,
        block: u64,
    },
    Destroy {
        name: String,
    },
    Resize {
        name: String,
        size: u64,
    },
    Write {
        name: String,
        offset: u64,
        len: u64,
        seed: u64,
    },
    Zero {
        name: String,
        offset: u64,
        len: u64,
    },
    /// Becomes what something else is: snapshots, clones, rollbacks.
    Put {
        name: String,
        content: Content,
    },
    /// All of them or none.
    Together(Vec<Change>),
}

/// A volume: its block size and its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Content {
    pub block: u64,
    pub bytes: Vec<u8>,
}

/// The volumes by name, and the changes that may not be durable yet.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub volumes: BTreeMap<String, Content>,
    /// As of the last txg that was waited for.
    durable: BTreeMap<String, Content>,
    since: Vec<Change>,
    /// By volume: its log holds what concerns it of so many of the changes since.
    committed: BTreeMap<String, usize>,
    /// Whose log is being committed, and those whose log was ever asked to be.
    committing: Option<String>,
    logging: BTreeSet<String>,
    /// Begun, and not yet known to be done: a crash may leave it done or not.
    pending: Option<Change>,
    made: u64,
    /// Prints what is done.
    pub is_loud: bool,
}

/// The log divides data at multiples of this, or of a block.
const PAGE: u64 = 4096;

/// The bytes that `seed` stands for: some incompressible, some of few values, some of zeros.
pub fn pattern(seed: u64, len: u64) -> Vec<u8> {
    let mut rng = sim::Rng::new(seed);
    let mut bytes = Vec::with_capacity(len as usize);
    let style = seed % 3;
    while (bytes.len() as u64) < len {
        let word = rng.next_u64();
        let word = if style == 0 { word } else { (word % 7) * 0x0101_0101 };
        bytes.extend(word.to_le_bytes());
    }
    bytes.truncate(len as usize);
    bytes
}

impl Model {
    /// A number never used before, for a new volume's name.
    pub fn count(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    pub fn begin(&mut self, change: Change) {
        if self.is_loud {
            println!("{change:?}");
        }
        self.pending = Some(change);
    }

    /// What was begun is done.
    pub fn done(&mut self) {
        if let Some(change) = self.pending.take() {
            apply(&mut self.volumes, &change);
            self.since.push(change);
        }
    }

    /// Its log is asked to hold all changes of this volume so far, and one that was begun.
    pub fn commit(&mut self, name: &str) {
        if self.is_loud {
            println!("commit {name}");
        }
        self.committing = Some(name.into());
        self.logging.insert(name.into());
    }

    /// They are, and what was begun is done.
    pub fn committed(&mut self) {
        self.done();
        if let Some(name) = self.committing.take() {
            self.committed.insert(name, self.since.len());
        }
    }

    /// Everything so far is on disk.
    pub fn acknowledge(&mut self) {
        if self.is_loud {
            println!("on disk: {} changes", self.since.len());
        }
        self.durable.clone_from(&self.volumes);
        self.since.clear();
        self.committed.clear();
    }

    /// After a crash: takes `found` for the present, if it can be what was left. How many of the changes since the last
    /// txg that was waited for are there for all volumes; or what is wrong.
    pub fn resume(&mut self, found: &BTreeMap<String, Content>) -> Result<usize, String> {
        self.since.extend(self.pending.take());
        let names: BTreeSet<&String> = self
            .durable
            .keys()
            .chain(found.keys())
            .chain(self.since.iter().flat_map(Change::names))
            .collect();
        let tracks: Vec<Track> = names.into_iter().map(|name| self.track(name, found.get(name))).collect();
        let count = self.since.len();
        let Some(k) = (0..=count).find(|k| tracks.iter().all(|track| track.allows(*k))) else {
            return Err(self.describe(found));
        };
        if self.is_loud {
            println!("recovered: {k} of {count} changes since");
        }
        self.committing = None;
        self.volumes.clone_from(found);
        self.acknowledge();
        Ok(k)
    }

    /// What was found of one volume, beside what it held after each number of changes.
    fn track(&self, name: &String, found: Option<&Content>) -> Track {
        let mut held: BTreeMap<String, Content> =
            self.durable.get(name).map(|content| (name.clone(), content.clone())).into_iter().collect();
        let mut track = Track {
            same: vec![held.get(name) == found],
            torn: Vec::new(),
            least: self.committed.get(name).copied().unwrap_or(0),
            has_log: self.logging.contains(name),
        };
        for change in &self.since {
            let (mut same, mut torn) = (track.same[track.same.len() - 1], false);
            if change.names().contains(&name) {
                torn = track.has_log && is_torn(held.get(name), change, found);
                apply(&mut held, change);
                same = held.get(name) == found;
            }
            track.same.push(same);
            track.torn.push(torn);
        }
        track
    }

    fn describe(&self, found: &BTreeMap<String, Content>) -> String {
        let mut text = format!("durable {:?}, found {:?}", self.durable.keys(), found.keys());
        for (name, content) in &self.durable {
            let Some(other) = found.get(name) else { continue };
            let differs = content.bytes.iter().zip(&other.bytes).position(|(a, b)| a != b);
            text += &format!(
                "; '{name}' {} bytes, found {}, first difference {differs:?}",
                content.bytes.len(),
                other.bytes.len()
            );
        }
        let (committed, committing) = (&self.committed, &self.committing);
        text + &format!("; changes since: {:?}; committed {committed:?}, {committing:?}", self.since)
    }
}

/// One volume after a crash.
struct Track {
    /// It is as it was after so many changes.
    same: Vec<bool>,
    /// It is as it was after so many changes, and has part of the next.
    torn: Vec<bool>,
    /// Its log holds so many.
    least: usize,
    has_log: bool,
}

impl Track {
    /// Whether it can be so when the last txg held `k` changes.
    fn allows(&self, k: usize) -> bool {
        let least = k.max(self.least);
        if !self.has_log {
            return self.same[least];
        }
        self.same[least..].iter().chain(&self.torn[least..]).any(|is_it| *is_it)
    }
}

/// Whether `found` is `before` with whole pages of a write's beginning.
fn is_torn(before: Option<&Content>, change: &Change, found: Option<&Content>) -> bool {
    let (Change::Write { offset, len, seed, .. }, Some(before), Some(found)) = (change, before, found) else {
        return false;
    };
    if before.bytes.len() != found.bytes.len() {
        return false;
    }
    let (start, end) = (*offset as usize, (offset + len) as usize);
    let same = |range: Range<usize>| before.bytes[range.clone()] == found.bytes[range];
    let data = pattern(*seed, *len);
    let step = PAGE.min(before.block);
    let cuts = (offset / step + 1..(offset + len).div_ceil(step)).map(|n| (n * step) as usize);
    same(0..start)
        && same(end..before.bytes.len())
        && cuts.into_iter().any(|cut| found.bytes[start..cut] == data[..cut - start] && same(cut..end))
}

impl Change {
    /// The volumes that it is about.
    fn names(&self) -> Vec<&String> {
        match self {
            Change::Create { name, .. }
            | Change::Destroy { name }
            | Change::Resize { name, .. }
            | Change::Write { name, .. }
            | Change::Zero { name, .. }
            | Change::Put { name, .. } => vec![name],
            Change::Together(changes) => changes.iter().flat_map(Change::names).collect(),
        }
    }
}

/// What was done, without the bytes of whole volumes.
impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes in blocks of {}", self.bytes.len(), self.block)
    }
}

fn apply(volumes: &mut BTreeMap<String, Content>, change: &Change) {
    match change {
        Change::Create { name, size, block } => {
            volumes.insert(name.clone(), Content { block: *block, bytes: vec![0; *size as usize] });
        }
        Change::Destroy { name } => {
            volumes.remove(name);
        }
        Change::Resize { name, size } => {
            if let Some(volume) = volumes.get_mut(name) {
                volume.bytes.resize(*size as usize, 0);
            }
        }
        Change::Write { name, offset, len, seed } => {
            if let Some(volume) = volumes.get_mut(name) {
                volume.bytes[*offset as usize..(offset + len) as usize]
                    .copy_from_slice(&pattern(*seed, *len));
            }
        }
        Change::Zero { name, offset, len } => {
            if let Some(volume) = volumes.get_mut(name) {
                volume.bytes[*offset as usize..(offset + len) as usize].fill(0);
            }
        }
        Change::Put { name, content } => {
            volumes.insert(name.clone(), content.clone());
        }
        Change::Together(changes) => changes.iter().for_each(|change| apply(volumes, change)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 4 * PAGE;

    fn write(name: &str, page: u64, pages: u64, seed: u64) -> Change {
        Change::Write { name: name.into(), offset: page * PAGE, len: pages * PAGE, seed }
    }

    /// Two volumes on disk.
    fn model() -> Model {
        let mut model = Model::default();
        for name in ["a", "b"] {
            model.begin(Change::Create { name: name.into(), size: SIZE, block: PAGE });
            model.done();
        }
        model.acknowledge();
        model
    }

    fn done(model: &mut Model, change: Change) {
        model.begin(change);
        model.done();
    }

    /// What there is after some of the changes.
    fn with(model: &Model, changes: &[Change]) -> BTreeMap<String, Content> {
        let mut volumes = model.durable.clone();
        changes.iter().for_each(|change| apply(&mut volumes, change));
        volumes
    }

    #[test]
    fn a_txg_holds_the_first_changes_and_a_log_more_of_one_volume() {
        let (one, two, three) = (write("a", 0, 1, 1), write("b", 0, 1, 2), write("a", 1, 1, 3));
        let allows = |commit: Option<&str>, left: &[&Change]| {
            let mut model = model();
            done(&mut model, one.clone());
            done(&mut model, two.clone());
            done(&mut model, three.clone());
            if let Some(name) = commit {
                model.commit(name);
                model.committed();
            }
            let left: Vec<Change> = left.iter().map(|change| (*change).clone()).collect();
            let found = with(&model, &left);
            model.resume(&found)
        };
        assert_eq!(allows(None, &[]), Ok(0));
        assert_eq!(allows(None, &[&one, &two]), Ok(2));
        assert!(allows(None, &[&one, &three]).is_err(), "no txg is like that");
        assert_eq!(allows(Some("a"), &[&one, &three]), Ok(0), "but a log is");
        assert!(allows(Some("a"), &[&one, &two]).is_err(), "what was committed is not there");
        assert_eq!(allows(Some("b"), &[&two]), Ok(0));
        assert!(allows(Some("b"), &[&two, &three]).is_err(), "that log holds nothing of another volume");
    }

    #[test]
    fn a_commit_under_way_may_have_come_to_any_place() {
        let (one, two) = (write("a", 0, 1, 1), write("a", 1, 3, 3));
        let allows = |change: &dyn Fn(&mut BTreeMap<String, Content>)| {
            let mut model = model();
            done(&mut model, one.clone());
            model.begin(two.clone());
            model.commit("a");
            let mut found = with(&model, std::slice::from_ref(&one));
            change(&mut found);
            model.resume(&found).is_ok()
        };
        assert!(allows(&|_| ()));
        assert!(allows(&|found| apply(found, &two)));
        let page = |found: &mut BTreeMap<String, Content>, n: usize| {
            let at = n * PAGE as usize..(n + 1) * PAGE as usize;
            let data = pattern(3, 3 * PAGE);
            found.get_mut("a").unwrap().bytes[at.clone()]
                .copy_from_slice(&data[at.start - PAGE as usize..at.end - PAGE as usize]);
        };
        assert!(allows(&|found| page(found, 1)), "its first page");
        assert!(!allows(&|found| page(found, 2)), "not its second alone");
        assert!(!allows(&|found| found.get_mut("a").unwrap().bytes[PAGE as usize] ^= 9));
    }
}
