//! Which kinds of vdev there are, and what is known of each with no device behind it: one row of [`KINDS`] each. Pure.
//!
//! How a group of devices is read and written is in [`crate::kinds`].

use std::fmt;
use std::ops::RangeInclusive;

/// What a vdev is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VdevType {
    Root,
    Mirror,
    /// A mirror of the old device and the one that takes its place.
    Replacing,
    /// A mirror of a device and the spare that stands in for it.
    Spare,
    Raidz,
    Draid,
    DraidSpare,
    Disk,
    File,
    /// A top-level vdev of which no device was found.
    Missing,
    /// Where a log device was removed.
    Hole,
    /// A removed vdev: its blocks are elsewhere, through a mapping.
    Indirect,
}

/// What a vdev is to the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Root,
    /// A device of its own.
    Leaf,
    /// Devices, or groups of them, that share blocks.
    Group(Redundancy),
    /// Where a top-level vdev was, or should be: no block can be written there.
    Place,
}

/// How many of its children a group can be without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redundancy {
    /// Each child holds all blocks: one is enough.
    Copies,
    /// As many as the vdev has parity.
    Parity,
}

/// One kind of vdev.
#[derive(Debug)]
pub(crate) struct Row {
    pub vdev_type: VdevType,
    /// The word on disk.
    pub word: &'static str,
    pub role: Role,
    /// Devices that a new one is made of, without those for parity.
    pub devices: RangeInclusive<usize>,
    /// What this program cannot read, in words of the user.
    pub unsupported: Option<&'static str>,
}

const fn row(vdev_type: VdevType, word: &'static str, role: Role, devices: RangeInclusive<usize>) -> Row {
    Row { vdev_type, word, role, devices, unsupported: None }
}

const fn refused(vdev_type: VdevType, word: &'static str, role: Role, what: &'static str) -> Row {
    Row { vdev_type, word, role, devices: 0..=0, unsupported: Some(what) }
}

const COPIES: Role = Role::Group(Redundancy::Copies);
const PARITY: Role = Role::Group(Redundancy::Parity);
const REMOVED: &str = "a removed vdev (device_removal)";

/// In the order of [`VdevType`].
pub(crate) static KINDS: [Row; 12] = [
    row(VdevType::Root, "root", Role::Root, 0..=0),
    row(VdevType::Mirror, "mirror", COPIES, 2..=usize::MAX),
    row(VdevType::Replacing, "replacing", COPIES, 2..=usize::MAX),
    row(VdevType::Spare, "spare", COPIES, 2..=usize::MAX),
    row(VdevType::Raidz, "raidz", PARITY, 1..=255),
    refused(VdevType::Draid, "draid", PARITY, "draid"),
    refused(VdevType::DraidSpare, "dspare", Role::Leaf, "draid"),
    row(VdevType::Disk, "disk", Role::Leaf, 1..=1),
    row(VdevType::File, "file", Role::Leaf, 1..=1),
    row(VdevType::Missing, "missing", Role::Place, 0..=0),
    row(VdevType::Hole, "hole", Role::Place, 0..=0),
    refused(VdevType::Indirect, "indirect", Role::Place, REMOVED),
];

impl Redundancy {
    /// How many of so many children may fail.
    pub fn of(self, children: usize, nparity: Option<u64>) -> usize {
        match self {
            Redundancy::Copies => children.saturating_sub(1),
            // Pools older than double parity did not say.
            Redundancy::Parity => nparity.unwrap_or(1) as usize,
        }
    }
}

impl VdevType {
    pub(crate) fn row(self) -> &'static Row {
        &KINDS[self as usize]
    }

    /// The word on disk.
    pub fn word(self) -> &'static str {
        self.row().word
    }

    pub fn from_word(word: &str) -> Option<VdevType> {
        KINDS.iter().find(|row| row.word == word).map(|row| row.vdev_type)
    }

    /// Whether it is a device of its own.
    pub fn is_leaf(self) -> bool {
        self.row().role == Role::Leaf
    }

    /// Whether devices share its blocks, in a way that this program can read.
    pub(crate) fn is_group(self) -> bool {
        matches!(self.row().role, Role::Group(_)) && self.row().unsupported.is_none()
    }

    /// Whether it holds the same bytes several times.
    pub fn is_mirror(self) -> bool {
        self.row().role == COPIES
    }

    /// Whether some of its devices' space is for parity, so that blocks take more than their size.
    pub fn has_parity(self) -> bool {
        self.row().role == PARITY && self.row().unsupported.is_none()
    }

    /// Whether blocks can be in it: not in places left by vdevs that are gone.
    pub fn is_concrete(self) -> bool {
        self.row().role != Role::Place
    }

    /// How many of its children it can be without.
    pub(crate) fn redundancy(self, children: usize, nparity: Option<u64>) -> usize {
        match self.row().role {
            Role::Group(redundancy) => redundancy.of(children, nparity),
            Role::Root | Role::Leaf | Role::Place => 0,
        }
    }
}

impl fmt::Display for VdevType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// How the devices of a new group share its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Each device is a top-level vdev of its own.
    Stripe,
    Mirror,
    Raidz {
        parity: u64,
    },
}

impl Layout {
    /// By the word on disk of the group; `stripe` for none.
    pub fn from_word(word: &str, parity: u64) -> Option<Layout> {
        let all = [Layout::Stripe, Layout::Mirror, Layout::Raidz { parity }];
        all.into_iter().find(|layout| layout.word() == word)
    }

    /// The kind of the group, and its parity where it has some.
    pub(crate) fn group(self) -> Option<(VdevType, Option<u64>)> {
        match self {
            Layout::Stripe => None,
            Layout::Mirror => Some((VdevType::Mirror, None)),
            Layout::Raidz { parity } => Some((VdevType::Raidz, Some(parity))),
        }
    }

    pub fn word(self) -> &'static str {
        self.group().map_or("stripe", |(vdev_type, _)| vdev_type.word())
    }

    pub(crate) fn parity(self) -> u64 {
        self.group().and_then(|(_, parity)| parity).unwrap_or(0)
    }

    /// How many devices a group is made of; of a stripe each is a vdev.
    pub fn devices(self) -> RangeInclusive<usize> {
        match self.group() {
            None => 1..=usize::MAX,
            Some((vdev_type, parity)) => {
                let devices = &vdev_type.row().devices;
                devices.start() + parity.unwrap_or(0) as usize..=*devices.end()
            }
        }
    }

    /// How many of so many devices may fail.
    pub fn redundancy(self, devices: usize) -> usize {
        self.group().map_or(0, |(vdev_type, parity)| vdev_type.redundancy(devices, parity))
    }

    /// A log is read when a pool is opened and at no other time: parity is not made for it.
    pub(crate) fn can_be_log(self) -> bool {
        self.group().is_none_or(|(vdev_type, _)| vdev_type.is_mirror())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_row_and_its_word() {
        for (i, row) in KINDS.iter().enumerate() {
            assert_eq!(row.vdev_type as usize, i, "{row:?}");
            assert_eq!(VdevType::from_word(row.word), Some(row.vdev_type));
        }
        assert_eq!(VdevType::from_word("tape"), None);
    }

    #[test]
    fn layouts_say_how_many_devices_they_take_and_may_lose() {
        for (layout, word, least, lost) in [
            (Layout::Stripe, "stripe", 1, 0),
            (Layout::Mirror, "mirror", 2, 4),
            (Layout::Raidz { parity: 2 }, "raidz", 3, 2),
        ] {
            assert_eq!(Layout::from_word(word, 2), Some(layout));
            assert_eq!(*layout.devices().start(), least, "{layout:?}");
            assert_eq!(layout.redundancy(5), lost, "{layout:?}");
        }
    }
}
