//! A connection is one future that is polled by hand: in turns, each of which moves all that can move, or half of what came
//! together, so that its replies are with the client while the rest is made.

use std::task::{Context, Poll};

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// All that is left waits for what will wake the task.
    Waits,
    Moved,
    /// More can move, but the kernel is to have what was begun before: it has it when others of this core had theirs.
    HandsOver,
}

impl Turn {
    /// Of a turn that moved something or not, and began to send a [whole piece](crate::Outbox::is_due) or not.
    pub fn of(has_moved: bool, has_piece: bool) -> Turn {
        match (has_moved, has_piece) {
            (true, true) => Turn::HandsOver,
            (true, false) => Turn::Moved,
            (false, _) => Turn::Waits,
        }
    }
}

/// What takes turns.
pub trait Turns {
    /// Moves what can move.
    fn turn(&mut self, cx: &mut Context<'_>) -> Turn;

    /// There is nothing left to do, now or later.
    fn is_over(&self) -> bool;

    /// No more can move for now.
    fn pause(&mut self);
}

/// Takes turns until nothing moves, or all is over. After `most` in a row other tasks of this core get theirs.
///
/// The time counts as the loop's for [its clients](world::serve).
pub fn take_turns(it: &mut impl Turns, most: usize, cx: &mut Context<'_>) -> Poll<()> {
    world::serve(|| take_counted_turns(it, most, cx))
}

fn take_counted_turns(it: &mut impl Turns, most: usize, cx: &mut Context<'_>) -> Poll<()> {
    for _ in 0..most {
        let turn = it.turn(cx);
        if it.is_over() {
            return Poll::Ready(());
        }
        match turn {
            Turn::Waits => {
                it.pause();
                return Poll::Pending;
            }
            Turn::Moved => {}
            Turn::HandsOver => break,
        }
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::task::{ArcWake, waker};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl ArcWake for Woken {
        fn wake_by_ref(woken: &Arc<Woken>) {
            woken.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Moves so many times; is over when it has moved all of `until_over`.
    struct Counter {
        moves: usize,
        until_over: usize,
        turns: usize,
        pauses: usize,
        /// Of its moves, each that is a multiple of it ends with a piece; none for 0.
        piece: usize,
    }

    impl Turns for Counter {
        fn turn(&mut self, _: &mut Context<'_>) -> Turn {
            self.turns += 1;
            let moved = self.moves > 0;
            self.moves = self.moves.saturating_sub(1);
            self.until_over = self.until_over.saturating_sub(1);
            Turn::of(moved, self.piece > 0 && self.turns.is_multiple_of(self.piece))
        }

        fn is_over(&self) -> bool {
            self.until_over == 0
        }

        fn pause(&mut self) {
            self.pauses += 1;
        }
    }

    #[test]
    fn turns_are_taken_until_nothing_moves_or_others_are_due_or_all_is_over() {
        let woken = Arc::new(Woken::default());
        let waker = waker(woken.clone());
        let mut cx = Context::from_waker(&waker);
        let counter = |moves, until_over| Counter { moves, until_over, turns: 0, pauses: 0, piece: 0 };

        let mut waits = counter(3, 100);
        assert!(take_turns(&mut waits, 8, &mut cx).is_pending());
        assert_eq!((waits.turns, waits.pauses, woken.0.load(Ordering::Relaxed)), (4, 1, 0));

        let mut busy = counter(100, 100);
        assert!(take_turns(&mut busy, 8, &mut cx).is_pending());
        assert_eq!((busy.turns, busy.pauses, woken.0.load(Ordering::Relaxed)), (8, 0, 1), "it wakes itself");

        let mut hands_over = Counter { piece: 3, ..counter(100, 100) };
        assert!(take_turns(&mut hands_over, 8, &mut cx).is_pending());
        assert_eq!((hands_over.turns, hands_over.pauses, woken.0.load(Ordering::Relaxed)), (3, 0, 2));

        let mut ends = counter(100, 5);
        assert!(take_turns(&mut ends, 8, &mut cx).is_ready());
        assert_eq!((ends.turns, ends.pauses), (5, 0));
    }
}
