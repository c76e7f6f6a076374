//! One thing that has happened, and the place where it did.

use crate::breakdown::{Breakdown, Field};
use crate::names::Op;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A word that many events carry, made once; see [`crate::Hub::label`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(pub(crate) Arc<str>);

impl Label {
    /// A word of its own. Where the same one comes up in many places, [`crate::Hub::label`] has it once.
    pub fn new(text: &str) -> Label {
        Label(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a dataset is as an appliance sees it: pool, project and share; a volume right below its pool is a share of the
/// default project.
pub fn labels_of(dataset: &str, is_volume: bool) -> Vec<(Breakdown, &str)> {
    let mut parts = dataset.splitn(3, '/');
    let pool = parts.next().unwrap_or_default();
    let (project, share) = match (parts.next(), parts.next()) {
        (None, _) => ("default", ""),
        (Some(volume), None) if is_volume => ("default", volume),
        (Some(project), None) => (project, ""),
        (Some(project), Some(share)) => (project, share),
    };
    vec![
        (Breakdown::Dataset, dataset),
        (Breakdown::Pool, pool),
        (Breakdown::Project, if dataset.is_empty() { "" } else { project }),
        (Breakdown::Share, share),
    ]
}

/// What is the same for all events of a place: client, LUN, dataset, disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Labels {
    all: [Option<Label>; Breakdown::LABELS],
    /// See [`key_of`]; 0 where there is none.
    keys: [usize; Breakdown::LABELS],
}

/// What stands for a word as long as it stays where it is. Words of different lengths may begin at one address.
pub(crate) fn key_of(word: &str) -> usize {
    word.as_ptr().addr().wrapping_add(word.len() << 48)
}

impl Labels {
    pub fn set(&mut self, by: Breakdown, label: Label) {
        match by.field() {
            Field::Label(index) => {
                self.keys[index] = key_of(label.as_str());
                self.all[index] = Some(label);
            }
            _ => panic!("{by} is no label of a place"),
        }
    }

    pub fn get(&self, index: usize) -> Option<&Label> {
        self.all[index].as_ref()
    }

    pub fn key(&self, index: usize) -> usize {
        self.keys[index]
    }
}

/// One thing that has happened. What its family does not have stays as it is by default.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    pub op: Op,
    /// The other word: the command, the class of the queue, hit or miss, component or type of object.
    pub kind: &'static str,
    /// In bytes, within the volume, file or device.
    pub offset: u64,
    pub bytes: u64,
    pub latency: Duration,
    /// Of that, what the stage took which `kind` names.
    pub spent: Duration,
    pub failed: bool,
    /// It is on stable storage when it is answered: the client asked for that with the request.
    pub durable: bool,
    /// Which of the things in one dataset: the number of a file; 0 where there is but one.
    pub object: u64,
    /// How many shared it.
    pub writers: u64,
    /// To be found out only where [`crate::Probe::wants_files`].
    pub file: Option<&'a Label>,
}

impl Default for Event<'_> {
    fn default() -> Self {
        Event {
            op: Op::Read,
            kind: "",
            offset: 0,
            bytes: 0,
            latency: Duration::ZERO,
            spent: Duration::ZERO,
            failed: false,
            durable: false,
            object: 0,
            writers: 1,
            file: None,
        }
    }
}

impl Event<'_> {
    pub(crate) fn nanos(&self) -> u64 {
        nanos(self.latency)
    }

    pub(crate) fn spent_nanos(&self) -> u64 {
        nanos(self.spent)
    }
}

fn nanos(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(time.subsec_nanos()))
}
