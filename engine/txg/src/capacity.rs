//! What the devices can take, so that a sync never runs out of space.
//!
//! How much a change will take is known only when its txg syncs: blocks compress, and where free space is in small
//! pieces a block becomes a gang with headers. So each change is counted at its worst, twice:
//!
//! ```text
//!   begin_for(claim) ─▶ claimed: as much as the change may dirty, while its Tx lives
//!   Tx::charge       ─▶ promised to the Tx's txg: what it has dirtied, each block once; taken off the claim
//!   Dirty::landed    ─▶ a block is written: what it was promised beyond what it takes is free again
//!   Txgs::done       ─▶ the promises of the txg are facts: what is free has been told anew by then
//!
//!   0            allocated            free                                           all
//!   ├────────────────────────┼───────────────────────────┬─────────┬─────────┬─────────┤
//!                              promised, claimed      ─▶ │ 1/2 slop│  1/4    │   1/4 of the slop
//!                                    ordinary writes end ┘         │         │
//!                                    what frees space ends here ───┘         └ syncs alone: the pool's own structures
//! ```
//!
//! Freed space is not free before two more txgs have synced (it *ripens*), so what overwrites all the time waits for
//! txgs rather than fail. A change is refused only when waiting cannot help.
//!
//! Invariant: promises and claims for ordinary writes are at most what is free less half the slop. A single change that
//! would fit in one piece, but not at its worst, is let in when nothing else is under way.
//!
//! Not here: quotas and reservations ([`crate::SpaceReservation`]). Those say what may be used; this says what there is.

use units::Txg;

/// How far a change may reach into the slop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Half of it stays untouched.
    #[default]
    Normal,
    /// The last quarter stays: for what frees more than it takes.
    Freeing,
}

/// What a transaction may dirty at most, from its begin to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes that its txg's sync may be charged for, at worst.
    pub devices: u64,
    pub reach: Reach,
}

/// What the devices have left, in bytes with the redundancy divided out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceSpace {
    /// Neither allocated nor freed in the last txgs.
    pub free: u64,
    /// Freed, and free for use in a few txgs.
    pub ripening: u64,
    /// What the pool keeps back.
    pub slop: u64,
}

/// At its worst a block takes so many times what it takes in one piece.
const IN_PIECES: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Go,
    /// For a txg to sync.
    Wait,
    Full,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Capacity {
    /// As of the last sync; without end until the pool has told.
    space: Option<DeviceSpace>,
    promised: [u64; Txg::SLOTS],
    claimed: u64,
}

impl DeviceSpace {
    fn room(&self, reach: Reach) -> u64 {
        let kept = match reach {
            Reach::Normal => self.slop / 2,
            Reach::Freeing => self.slop / 4,
        };
        self.free.saturating_sub(kept)
    }
}

impl Capacity {
    pub fn set_space(&mut self, space: DeviceSpace) {
        self.space = Some(space);
    }

    /// What was promised in `txg` is allocated now, and told by [`Capacity::set_space`].
    pub fn synced(&mut self, txg: Txg) {
        self.promised[txg.slot()] = 0;
    }

    /// What was promised in `txg` takes `unneeded` bytes less.
    pub fn give_back(&mut self, txg: Txg, unneeded: u64) {
        let promised = &mut self.promised[txg.slot()];
        // Until the sync has ended something is promised: it may free what is wanted.
        *promised = promised.saturating_sub(unneeded).max((*promised).min(1));
    }

    fn taken(&self) -> u64 {
        self.promised.iter().fold(self.claimed, |sum, promised| sum.saturating_add(*promised))
    }

    /// Whether a change of at most `devices` bytes may begin.
    pub fn ask(&self, devices: u64, reach: Reach) -> Verdict {
        let Some(space) = self.space else { return Verdict::Go };
        let (room, taken) = (space.room(reach), self.taken());
        let alone = taken == 0 && room > 0 && devices / IN_PIECES <= room;
        if alone || taken.saturating_add(devices) <= room {
            return Verdict::Go;
        }
        if taken == 0 && space.ripening == 0 { Verdict::Full } else { Verdict::Wait }
    }

    pub fn claim(&mut self, devices: u64) {
        self.claimed = self.claimed.saturating_add(devices);
    }

    pub fn release(&mut self, devices: u64) {
        self.claimed = self.claimed.saturating_sub(devices);
    }

    pub fn promise(&mut self, txg: Txg, devices: u64) {
        let promised = &mut self.promised[txg.slot()];
        *promised = promised.saturating_add(devices);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capacity(free: u64, ripening: u64) -> Capacity {
        let mut capacity = Capacity::default();
        capacity.set_space(DeviceSpace { free, ripening, slop: 400 });
        capacity
    }

    #[test]
    fn what_is_promised_in_any_txg_leaves_half_the_slop_and_what_frees_may_take_half_of_that() {
        let mut capacity = capacity(1000, 0);
        assert_eq!(capacity.ask(800, Reach::Normal), Verdict::Go);
        capacity.promise(Txg(5), 500);
        capacity.promise(Txg(6), 200);
        capacity.claim(50);
        assert_eq!(capacity.ask(50, Reach::Normal), Verdict::Go);
        assert_eq!(
            capacity.ask(51, Reach::Normal),
            Verdict::Wait,
            "txgs under way may take less than promised"
        );
        assert_eq!(capacity.ask(150, Reach::Freeing), Verdict::Go);
        assert_eq!(capacity.ask(151, Reach::Freeing), Verdict::Wait);
        capacity.release(50);
        capacity.synced(Txg(5));
        assert_eq!(capacity.ask(600, Reach::Normal), Verdict::Go);
    }

    #[test]
    fn what_a_written_block_did_not_need_is_free_at_once_and_its_txg_is_waited_for() {
        let mut capacity = capacity(1000, 0);
        capacity.promise(Txg(5), 800);
        assert_eq!(capacity.ask(1, Reach::Normal), Verdict::Wait);
        capacity.give_back(Txg(5), 500);
        assert_eq!(capacity.ask(500, Reach::Normal), Verdict::Go);
        assert_eq!(capacity.ask(501, Reach::Normal), Verdict::Wait);
        capacity.give_back(Txg(5), 9000);
        assert_eq!(capacity.ask(10_000, Reach::Normal), Verdict::Wait, "its sync may free something");
        capacity.give_back(Txg(6), 1);
        capacity.synced(Txg(5));
        assert_eq!(capacity.ask(10_000, Reach::Normal), Verdict::Full);
    }

    #[test]
    fn only_what_waiting_cannot_help_is_refused() {
        assert_eq!(capacity(200, 1).ask(1, Reach::Normal), Verdict::Wait, "freed space ripens");
        let mut capacity = capacity(200, 0);
        assert_eq!(capacity.ask(1, Reach::Normal), Verdict::Full);
        assert_eq!(capacity.ask(100, Reach::Freeing), Verdict::Go);
        capacity.promise(Txg(5), 1);
        assert_eq!(capacity.ask(1, Reach::Normal), Verdict::Wait);
    }

    #[test]
    fn a_change_that_fits_in_one_piece_goes_alone() {
        let mut capacity = capacity(300, 0);
        assert_eq!(capacity.ask(300, Reach::Normal), Verdict::Go);
        assert_eq!(capacity.ask(304, Reach::Normal), Verdict::Full);
        capacity.claim(1);
        assert_eq!(capacity.ask(300, Reach::Normal), Verdict::Wait);
    }

    #[test]
    fn before_the_pool_has_told_there_is_room_without_end() {
        assert_eq!(Capacity::default().ask(u64::MAX, Reach::Normal), Verdict::Go);
    }
}
