//! Space accounting: what is charged to whom. Pure arithmetic over a chain of directories.
//!
//! A dataset charges its directory; each directory charges its parent, up to the pool:
//!
//! ```text
//!   pool      used = HEAD + SNAP + CHILD + CHILD_RSRV + REFRSRV
//!    ▲             │ CHILD       what children use
//!    │ charge      │ CHILD_RSRV  what they reserved beyond it: max(reserved, used) - used
//!   parent
//!    ▲
//!    │ charge      │ HEAD        blocks that only the head has     │ SNAP  that only snapshots have
//!   directory      │ REFRSRV     what the head reserved beyond its own: max(refreservation, unique) - unique
//!    ▲
//!   head dataset   referenced, unique
//! ```
//!
//! A parent is charged for `max(used, reserved)` of each child, so what it is told of a change depends on where the
//! child stands: [`DirSpace::charge`] and [`DirSpace::shift`] return it, and [`charge_chain`] carries it up. The
//! result depends on the sum of the changes alone, not on their order, so a whole txg's blocks are added up first and
//! charged once.
//!
//! Numbers come from disk: where they contradict each other they stop at zero, or at the largest number, instead
//! of wrapping round.

/// Who the space of a directory is charged to. The value of a variant is its place in the table on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Used {
    Head = 0,
    Snapshots = 1,
    Children = 2,
    ChildrenReserved = 3,
    RefReserved = 4,
}

/// A change of space: on the devices, after compression, as the caller sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    pub used: i64,
    pub compressed: i64,
    pub uncompressed: i64,
}

impl Delta {
    pub fn used(used: i64) -> Delta {
        Delta { used, ..Delta::default() }
    }
}

impl std::ops::Neg for Delta {
    type Output = Delta;
    fn neg(self) -> Delta {
        let negated = i64::saturating_neg;
        Delta {
            used: negated(self.used),
            compressed: negated(self.compressed),
            uncompressed: negated(self.uncompressed),
        }
    }
}

impl std::ops::AddAssign for Delta {
    fn add_assign(&mut self, other: Delta) {
        self.used = self.used.saturating_add(other.used);
        self.compressed = self.compressed.saturating_add(other.compressed);
        self.uncompressed = self.uncompressed.saturating_add(other.uncompressed);
    }
}

impl std::ops::Sub for Delta {
    type Output = Delta;
    fn sub(mut self, other: Delta) -> Delta {
        self += -other;
        self
    }
}

/// As much of a sum as a change of it can say. More than 2^63 bytes are no pool's, but a damaged one may say so.
pub(crate) fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// What a sum changes by when it goes from `before` to `after`.
pub(crate) fn difference(after: u64, before: u64) -> i64 {
    let apart = signed(after.abs_diff(before));
    if after < before { -apart } else { apart }
}

/// The space of one directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirSpace {
    pub used: u64,
    pub compressed: u64,
    pub uncompressed: u64,
    /// 0 for none.
    pub quota: u64,
    pub reserved: u64,
    /// By [`Used`]; pools older than version 13 do not keep it.
    pub breakdown: Option<[u64; 5]>,
}

fn add(to: &mut u64, delta: i64) {
    *to = to.saturating_add_signed(delta);
}

impl DirSpace {
    fn used_by(&mut self, kind: Used, delta: i64) {
        if let Some(breakdown) = &mut self.breakdown {
            add(&mut breakdown[kind as usize], delta);
        }
    }

    /// What the parent is charged for a directory that uses `used`.
    fn charged(&self, used: u64) -> u64 {
        used.max(self.reserved)
    }

    fn change(&mut self, delta: Delta) -> i64 {
        let before = self.charged(self.used);
        add(&mut self.used, delta.used);
        add(&mut self.compressed, delta.compressed);
        add(&mut self.uncompressed, delta.uncompressed);
        difference(self.charged(self.used), before)
    }

    /// Charges `delta` to `kind`; returns what the parent is to be charged.
    pub fn charge(&mut self, kind: Used, delta: Delta) -> i64 {
        self.used_by(kind, delta.used);
        self.change(delta)
    }

    /// `fresh` bytes are new under `to`, of which only `delta.used` are new at all: the rest had been reserved, and
    /// counted, under `from`. Returns what the parent is to be charged.
    pub fn shift(&mut self, delta: Delta, fresh: i64, from: Used, to: Used) -> i64 {
        self.used_by(from, delta.used.saturating_sub(fresh));
        self.used_by(to, fresh);
        self.change(delta)
    }

    /// Moves bytes from one kind to another.
    pub fn transfer(&mut self, bytes: i64, from: Used, to: Used) {
        self.used_by(from, bytes.saturating_neg());
        self.used_by(to, bytes);
    }
}

/// Charges `delta` to the first directory of a chain that ends with the pool's, and what follows from it to the rest.
pub fn charge_chain(chain: &mut [DirSpace], kind: Used, delta: Delta) {
    if let Some((dir, above)) = chain.split_first_mut() {
        let charged = dir.charge(kind, delta);
        carry_up(above, charged, delta);
    }
}

/// As [`charge_chain`], for space that was partly reserved; see [`DirSpace::shift`].
pub fn shift_chain(chain: &mut [DirSpace], delta: Delta, fresh: i64, from: Used, to: Used) {
    if let Some((dir, above)) = chain.split_first_mut() {
        let charged = dir.shift(delta, fresh, from, to);
        carry_up(above, charged, delta);
    }
}

/// `charged` is what the directories above are told of a change that really was `delta`.
fn carry_up(above: &mut [DirSpace], mut charged: i64, delta: Delta) {
    let mut real = delta.used;
    for dir in above {
        let told = Delta { used: charged, ..delta };
        let next = dir.shift(told, real, Used::ChildrenReserved, Used::Children);
        real = charged;
        charged = next;
    }
}

/// Sets the reservation of the first directory of a chain.
pub fn set_reservation(chain: &mut [DirSpace], reserved: u64) {
    let Some((dir, above)) = chain.split_first_mut() else { return };
    let before = dir.charged(dir.used);
    dir.reserved = reserved;
    let delta = difference(dir.charged(dir.used), before);
    charge_chain(above, Used::ChildrenReserved, Delta::used(delta));
}

/// What the first directory of a chain may still use, `pool_size` being what the pool can give at all, slop taken off.
pub fn available(chain: &[DirSpace], pool_size: u64) -> u64 {
    let (mut space, mut is_pool) = (u64::MAX, true);
    for dir in chain.iter().rev() {
        let mut quota = if dir.quota == 0 { u64::MAX } else { dir.quota };
        if is_pool {
            quota = quota.min(pool_size);
        } else {
            space = space.saturating_add(dir.reserved.saturating_sub(dir.used));
        }
        space = space.min(quota.saturating_sub(dir.used));
        is_pool = false;
    }
    space
}

/// The space of a head dataset, and what its properties allow it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadSpace {
    pub referenced: u64,
    pub unique: u64,
    /// 0 for none.
    pub refreservation: u64,
    pub refquota: u64,
}

impl HeadSpace {
    /// What of its reservation the head does not use.
    pub fn unused_reservation(&self) -> u64 {
        self.refreservation.saturating_sub(self.unique)
    }

    /// What the directory is charged when `unique` changes by `delta`.
    pub fn charged(&self, delta: i64) -> i64 {
        let before = self.unique.max(self.refreservation);
        let after = self.unique.saturating_add_signed(delta).max(self.refreservation);
        difference(after, before)
    }

    /// What the dataset itself may still write, given what its directory may.
    pub fn available(&self, of_dir: u64) -> u64 {
        let space = of_dir.saturating_add(self.unused_reservation());
        if self.refquota == 0 { space } else { space.min(self.refquota.saturating_sub(self.referenced)) }
    }
}

/// What a pool can give: its size less the slop kept back, so that there is always room to free something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolSpace {
    /// Of all devices, with the redundancy of raidz divided out.
    pub size: u64,
    /// The same, with the devices of all classes: no dataset has more blocks than fit there.
    pub everything: u64,
    pub slop: u64,
    /// Freed, but not yet given back to the allocator.
    pub deferred: u64,
}

/// How far a request may reach into the slop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Not at all: ordinary writes.
    Normal,
    /// Half of it: what in the end frees space, or needs little.
    Reserved,
    /// Three quarters: what an administrator does to get out of a full pool.
    ExtraReserved,
    /// All of it: destroys.
    Everything,
}

impl PoolSpace {
    pub fn usable(&self, reach: Reach) -> u64 {
        let kept = match reach {
            Reach::Normal => self.slop,
            Reach::Reserved => self.slop / 2,
            Reach::ExtraReserved => self.slop / 4,
            Reach::Everything => 0,
        };
        self.size.saturating_sub(self.deferred).saturating_sub(kept)
    }

    /// `spa_slop_shift`, `spa_min_slop`, `spa_max_slop`: 1/32 of the pool, at least 128 MiB but never more than half,
    /// at most 128 GiB.
    pub fn slop_of(size: u64) -> u64 {
        const MIN: u64 = 128 << 20;
        const MAX: u64 = 128 << 30;
        (size >> 5).min(MAX).max(MIN.min(size / 2))
    }
}

/// `compressratio`, in hundredths.
pub fn ratio(uncompressed: u64, compressed: u64) -> u64 {
    if compressed == 0 { 100 } else { (u128::from(uncompressed) * 100 / u128::from(compressed)) as u64 }
}

#[cfg(test)]
mod tests;
