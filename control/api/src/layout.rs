//! How the devices of a group share its blocks: one variant and one row each, from which the words of the command line and
//! the limits that are told before a device is looked at follow.

use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// How the devices of a group share its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Each device is a vdev of its own.
    Stripe,
    Mirror,
    Raidz {
        parity: u64,
    },
}

/// A kind of group that can be asked for.
#[derive(Debug)]
pub struct LayoutKind {
    /// What it is called, here and on disk.
    pub word: &'static str,
    /// Devices for parity; a number behind the word says how many. Without parity there is no number.
    pub parity: RangeInclusive<u64>,
    /// How many devices there are without those for parity, and how many in all.
    pub data_min: usize,
    pub devices_max: usize,
    pub can_be_log: bool,
    make: fn(u64) -> Layout,
}

pub const LAYOUTS: [LayoutKind; 2] = [
    LayoutKind {
        word: "mirror",
        parity: 0..=0,
        data_min: 2,
        devices_max: usize::MAX,
        can_be_log: true,
        make: |_| Layout::Mirror,
    },
    LayoutKind {
        word: "raidz",
        parity: 1..=3,
        data_min: 1,
        devices_max: 255,
        can_be_log: false,
        make: |parity| Layout::Raidz { parity },
    },
];

impl LayoutKind {
    /// `parity` is in the kind's range.
    pub fn layout(&self, parity: u64) -> Layout {
        (self.make)(parity)
    }
}

impl Layout {
    /// The kind of the group; a stripe is none.
    pub fn kind(self) -> Option<&'static LayoutKind> {
        let is_it = |kind: &&LayoutKind| kind.layout(self.parity()) == self;
        LAYOUTS.iter().find(is_it)
    }

    /// Its word in commands and on disk, without a number.
    pub fn word(self) -> &'static str {
        self.kind().map_or("stripe", |kind| kind.word)
    }

    pub fn parity(self) -> u64 {
        match self {
            Layout::Raidz { parity } => parity,
            Layout::Stripe | Layout::Mirror => 0,
        }
    }

    /// How many devices a group is made of; of a stripe each is a vdev.
    pub fn devices(self) -> RangeInclusive<usize> {
        match self.kind() {
            Some(kind) => kind.data_min + self.parity() as usize..=kind.devices_max,
            None => 1..=usize::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layout_is_of_the_kind_that_makes_it() {
        for kind in &LAYOUTS {
            for parity in kind.parity.clone() {
                let layout = kind.layout(parity);
                assert_eq!((layout.word(), layout.parity()), (kind.word, parity));
            }
        }
        assert_eq!(Layout::Stripe.word(), "stripe");
        assert_eq!(Layout::Raidz { parity: 2 }.devices(), 3..=255);
    }

    #[test]
    fn they_travel_as_they_always_did() {
        let text = |layout: Layout| serde_json::to_string(&layout).unwrap();
        assert_eq!(text(Layout::Mirror), "\"mirror\"");
        assert_eq!(text(Layout::Raidz { parity: 3 }), "{\"raidz\":{\"parity\":3}}");
    }
}
