//! The DSL directory: a dataset's place in the tree of names, with its limits and the space below it.

use super::Space;
use crate::bytes::{Reader, Writer, bonus};
use units::{ObjectId, Result};

/// Bonus of 256 bytes, all words.
///
/// ```text
///     0  creation time (unused)   8  head dataset   16  parent   24  origin snapshot   32  ZAP of children
///    40  used   48  compressed   56  uncompressed   64  quota    72  reservation
///    80  ZAP of properties       88  ZAP of delegations          96  flags
///   104  used by: head, snapshots, children, children's reservations, refreservation
///   144  ZAP of clones          152  padding to 256
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DslDirPhys {
    pub creation_time: u64,
    /// 0 for directories without contents, such as `$MOS`.
    pub head_dataset: ObjectId,
    pub parent: ObjectId,
    /// The snapshot it was cloned from.
    pub origin: ObjectId,
    pub children: ObjectId,
    /// Of the dataset, its snapshots and all below, reservations included.
    pub space: Space,
    /// 0: none.
    pub quota: u64,
    pub reservation: u64,
    pub properties: ObjectId,
    pub delegations: ObjectId,
    pub flags: u64,
    pub used_breakdown: UsedBreakdown,
    /// A ZAP of the directories cloned from snapshots of this one.
    pub clones: ObjectId,
}

/// `space.used` by what uses it; kept if the flag [`DslDirPhys::USED_BREAKDOWN`] is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsedBreakdown {
    pub head: u64,
    pub snapshots: u64,
    pub children: u64,
    pub children_reserved: u64,
    pub refreservation: u64,
}

impl DslDirPhys {
    pub const SIZE: usize = 256;
    pub const USED_BREAKDOWN: u64 = 1;

    pub fn decode(r: &mut Reader<'_>) -> Result<DslDirPhys> {
        let [creation_time, head_dataset, parent, origin, children] = r.u64s()?;
        let [used, compressed, uncompressed, quota, reservation] = r.u64s()?;
        let [properties, delegations, flags] = r.u64s()?;
        let [head, snapshots, below, children_reserved, refreservation, clones] = r.u64s()?;
        r.skip(104)?;
        Ok(DslDirPhys {
            creation_time,
            head_dataset: ObjectId(head_dataset),
            parent: ObjectId(parent),
            origin: ObjectId(origin),
            children: ObjectId(children),
            space: Space { used, compressed, uncompressed },
            quota,
            reservation,
            properties: ObjectId(properties),
            delegations: ObjectId(delegations),
            flags,
            used_breakdown: UsedBreakdown {
                head,
                snapshots,
                children: below,
                children_reserved,
                refreservation,
            },
            clones: ObjectId(clones),
        })
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        let (s, b) = (&self.space, &self.used_breakdown);
        w.u64s(&[self.creation_time, self.head_dataset.0, self.parent.0, self.origin.0, self.children.0]);
        w.u64s(&[s.used, s.compressed, s.uncompressed, self.quota, self.reservation]);
        w.u64s(&[self.properties.0, self.delegations.0, self.flags]);
        w.u64s(&[b.head, b.snapshots, b.children, b.children_reserved, b.refreservation, self.clones.0]);
        w.zeros(104);
    }
}

bonus!(DslDirPhys, "DSL directory");
