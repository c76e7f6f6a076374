//! How many asynchronous writes a device is given while clients wait for it. Pure, and without a clock.
//!
//! ```text
//!             a client was late beside writes: all the way, and patience doubles
//!      ┌──────────────────────────────────────────────────────────────┐
//!      ▼                                                              │
//!   level 4 ── 3 ── 2 ── 1 ── 0: as many writes as there may be       │
//!           └────┴────┴────┴── `patience` reads beside writes in time ┘
//! ```
//!
//! A device that serves one request after the other keeps a reader waiting for all writes that it has been given already,
//! and is no faster for having been given many. What a device is like is seen from how long its reads take at the device
//! itself: by themselves, and beside writes. Where they are late, writes go one at a time and in smaller pieces; a device
//! that serves both side by side has no late reads, and gets all there may be after a few dozen of them.
//!
//! What is true of a read is true of a write that a client waits for, as those of the intent log are: each has its own
//! measure of what is usual. One that meets no asynchronous write says nothing of them, and holds none back: the labels of
//! a txg are such.
//!
//! When many writes in a row met nothing of a client's, nothing is held back, until the next comes.
//!
//! Invariant: it only lowers what the limits allow, and never below one write.

/// From 16 writes side by side to one, by halves, and then to a piece of [`PIECE`].
const SHYEST: u32 = 4;
/// A client is in time when it waits no longer than twice what is usual, or this much more.
const TOLERANCE_NS: u64 = 1_000_000;
/// Of neighbours that leave together, beside a client that waits.
const PIECE: u64 = 64 << 10;
/// So many asynchronous writes in a row without a client's request: no client waits.
const QUIET: u32 = 64;
const PATIENCE_MIN: u32 = 16;
const PATIENCE_MAX: u32 = 8192;

/// What clients wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    Read,
    Write,
}

#[derive(Debug)]
pub(super) struct Courtesy {
    /// A device that seeks writes little when what lies together is cut, and wants a choice of two.
    rotational: bool,
    level: u32,
    /// What a client's read, and its write, take when nothing is in their way.
    usual_ns: [Option<u64>; 2],
    /// Requests beside writes that were in time, since the level was lowered last.
    good: u32,
    patience: u32,
    /// Asynchronous writes since a client last asked for something.
    quiet: u32,
}

impl Courtesy {
    pub fn new(rotational: bool) -> Courtesy {
        // What the device is like is not known: the first reads are not to be the ones that find out.
        Courtesy {
            rotational,
            level: SHYEST,
            usual_ns: [None; 2],
            good: 0,
            patience: PATIENCE_MIN,
            quiet: QUIET,
        }
    }

    /// A client asks for something that asynchronous writes may delay.
    pub fn client_comes(&mut self) {
        self.quiet = 0;
    }

    /// An asynchronous write has completed.
    pub fn wrote(&mut self) {
        self.quiet = self.quiet.saturating_add(1);
    }

    /// What a client waited for was with the device for so long, and asynchronous writes were there too, or not.
    pub fn took(&mut self, what: Waited, ns: u64, beside_writes: bool) {
        let usual_ns = &mut self.usual_ns[what as usize];
        let usual = usual_ns.map_or(ns, |usual| usual.min(ns));
        if !beside_writes {
            // Slowly up: requests may be larger than before, or more of them at once.
            let slower = ns.saturating_sub(usual) / 16;
            *usual_ns = Some(usual.saturating_add(slower));
            if what == Waited::Read {
                self.quiet = 0;
            }
            return;
        }
        *usual_ns = Some(usual);
        self.quiet = 0;
        if ns > usual.saturating_add(usual.max(TOLERANCE_NS)) {
            if self.level < SHYEST {
                self.patience = (self.patience * 2).min(PATIENCE_MAX);
            }
            (self.level, self.good) = (SHYEST, 0);
            return;
        }
        self.good += 1;
        if self.good >= self.patience && self.level > 0 {
            (self.level, self.good) = (self.level - 1, 0);
        }
    }

    /// How many of `max` asynchronous writes may be with the device.
    pub fn writes(&self, max: u32) -> u32 {
        let least = if self.rotational { 2.min(max) } else { 1 };
        if self.is_alone() { max } else { (max >> self.level).max(least).min(max) }
    }

    /// How many bytes of neighbours may leave as one asynchronous write.
    pub fn piece(&self, limit: u64) -> u64 {
        let cuts = self.level == SHYEST && !self.rotational && !self.is_alone();
        if cuts { limit.min(PIECE) } else { limit }
    }

    fn is_alone(&self) -> bool {
        self.quiet >= QUIET
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_device_that_serves_reads_beside_writes_gets_all_there_may_be() {
        let mut courtesy = Courtesy::new(false);
        assert_eq!((courtesy.writes(10), courtesy.piece(128 << 10)), (10, 128 << 10), "nobody reads");
        courtesy.client_comes();
        assert_eq!((courtesy.writes(10), courtesy.piece(128 << 10)), (1, 64 << 10), "it is not known yet");
        (0..4 * PATIENCE_MIN).for_each(|_| courtesy.took(Waited::Read, MS / 10, true));
        assert_eq!((courtesy.writes(10), courtesy.piece(128 << 10)), (10, 128 << 10));
    }

    #[test]
    fn a_late_read_takes_the_writes_back_and_it_is_tried_less_and_less_often() {
        let mut courtesy = Courtesy::new(false);
        let mut tries = Vec::new();
        for n in 0..4000 {
            let is_late = courtesy.level < SHYEST;
            if is_late {
                tries.push(n);
            }
            courtesy.took(Waited::Read, if is_late { 3 * MS } else { MS / 2 }, true);
            assert!(!is_late || courtesy.writes(10) == 1);
        }
        let between: Vec<_> = tries.windows(2).map(|w| w[1] - w[0]).collect();
        assert_eq!(between, [33, 65, 129, 257, 513, 1025], "{tries:?}");
    }

    #[test]
    fn what_is_usual_is_learnt_from_reads_that_had_the_device_to_themselves() {
        let mut courtesy = Courtesy::new(true);
        (0..200).for_each(|_| courtesy.took(Waited::Read, 8 * MS, false));
        (0..200).for_each(|_| courtesy.took(Waited::Read, 12 * MS, true));
        assert_eq!(courtesy.level, 0, "twice the usual is in time");
        courtesy.took(Waited::Read, 17 * MS, true);
        assert_eq!((courtesy.writes(10), courtesy.piece(1 << 20)), (2, 1 << 20), "it seeks");
    }

    #[test]
    fn without_a_reader_nothing_is_held_back() {
        let mut courtesy = Courtesy::new(false);
        courtesy.took(Waited::Read, MS, true);
        (1..QUIET).for_each(|_| courtesy.wrote());
        assert_eq!(courtesy.writes(10), 1);
        courtesy.wrote();
        assert_eq!((courtesy.writes(10), courtesy.writes(0)), (10, 0));
        courtesy.client_comes();
        assert_eq!(courtesy.writes(10), 1, "what the device is like is remembered");
    }

    #[test]
    fn a_write_that_a_client_waits_for_is_as_good_a_reason_as_a_read() {
        let mut courtesy = Courtesy::new(false);
        courtesy.took(Waited::Write, MS / 2, false);
        assert_eq!(courtesy.writes(10), 10, "the labels of a txg meet no asynchronous write");
        courtesy.client_comes();
        assert_eq!((courtesy.writes(10), courtesy.piece(128 << 10)), (1, 64 << 10));
        (0..4 * PATIENCE_MIN).for_each(|_| courtesy.took(Waited::Write, MS / 2, true));
        assert_eq!(courtesy.writes(10), 10, "the device serves both side by side");
        courtesy.took(Waited::Read, MS * 4, false);
        courtesy.took(Waited::Write, MS * 4, true);
        assert_eq!(courtesy.writes(10), 1, "it was late, whatever a read takes");
    }
}
