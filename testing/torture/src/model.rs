//! What the volumes of a pool hold, as arrays of bytes.

use std::collections::BTreeMap;

/// One change of one volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Create { name: String, size: u64, block: u64 },
    Destroy { name: String },
    Resize { name: String, size: u64 },
    Write { name: String, offset: u64, len: u64, seed: u64 },
    Zero { name: String, offset: u64, len: u64 },
}

/// A volume: its block size and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    pub block: u64,
    pub bytes: Vec<u8>,
}

/// The volumes by name, and the changes that may not be durable yet.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub volumes: BTreeMap<String, Content>,
    /// As of the last acknowledged flush.
    durable: BTreeMap<String, Content>,
    since: Vec<Change>,
    /// Begun, and not yet known to be done: a crash may leave it done or not.
    pending: Option<Change>,
    made: u64,
    /// Prints what is done.
    pub is_loud: bool,
}

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

    /// Everything so far is on disk.
    pub fn acknowledge(&mut self) {
        if self.is_loud {
            println!("on disk: {} changes", self.since.len());
        }
        self.durable.clone_from(&self.volumes);
        self.since.clear();
    }

    /// After a crash: takes `found` for the present, if it is what was durable and then the first of the changes since,
    /// however many. How many those were, or what is nearest to it.
    pub fn resume(&mut self, found: &BTreeMap<String, Content>) -> Result<usize, String> {
        let mut state = self.durable.clone();
        self.since.extend(self.pending.take());
        for k in 0..=self.since.len() {
            if state == *found {
                if self.is_loud {
                    println!("recovered: {k} of {} changes since", self.since.len());
                }
                self.volumes = state;
                self.acknowledge();
                return Ok(k);
            }
            if let Some(change) = self.since.get(k) {
                apply(&mut state, change);
            }
        }
        Err(describe(&self.durable, found, &self.since))
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
    }
}

fn describe(
    durable: &BTreeMap<String, Content>,
    found: &BTreeMap<String, Content>,
    since: &[Change],
) -> String {
    let mut text = format!("durable {:?}, found {:?}", durable.keys(), found.keys());
    for (name, content) in durable {
        let Some(other) = found.get(name) else { continue };
        let differs = content.bytes.iter().zip(&other.bytes).position(|(a, b)| a != b);
        text += &format!(
            "; '{name}' {} bytes, found {}, first difference {differs:?}",
            content.bytes.len(),
            other.bytes.len()
        );
    }
    text + &format!("; changes since: {since:?}")
}
