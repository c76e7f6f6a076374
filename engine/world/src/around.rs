//! A future around another one, which it holds where it is.
//!
//! ```text
//!   async fn f(work)   │ argument: work │ awaited: work │     twice, and moved at the first poll from one to the other
//!   around(work, poll) │ work │ poll │
//! ```
//!
//! What a request waits for, who is told of its panics, what is timed: each is put around a future that others are in, and
//! each that was an `async fn` would double what is within. A read of a block had six around it.
//!
//! Invariant: the work is dropped when it is done, before that is said.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// `work`, each poll of which goes through `poll`.
pub(crate) fn around<F, P, T>(work: F, poll: P) -> Around<F, P>
where
    F: Future,
    P: FnMut(Pin<&mut F>, &mut Context<'_>) -> Poll<T>,
{
    Around { work: Some(work), poll }
}

/// See [`around`].
#[must_use = "a future does nothing until it is polled"]
pub(crate) struct Around<F, P> {
    work: Option<F>,
    poll: P,
}

impl<F, P, T> Future for Around<F, P>
where
    F: Future,
    P: FnMut(Pin<&mut F>, &mut Context<'_>) -> Poll<T>,
{
    type Output = T;

    #[allow(unsafe_code)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // SAFETY: `work` is pinned with this and stays where it is until it is dropped there; `poll` is never pinned. There
        // is no `Drop` and no `Unpin` of its own.
        let (mut work, poll) = unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut this.work), &mut this.poll)
        };
        let done = poll(work.as_mut().as_pin_mut().expect("not polled after its end"), cx);
        if done.is_ready() {
            work.set(None);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::Arc;
    use std::task::Waker;

    fn polled<T>(future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn work_is_polled_through_and_gone_when_it_is_done() {
        let held = Arc::new(());
        let work = {
            let held = held.clone();
            async move {
                crate::yield_now().await;
                Arc::strong_count(&held)
            }
        };
        let polls = Cell::new(0);
        let mut done = std::pin::pin!(around(work, |work, cx| {
            polls.set(polls.get() + 1);
            work.poll(cx).map(|count| count + 10)
        }));
        assert_eq!(polled(done.as_mut()), Poll::Pending);
        assert_eq!(Arc::strong_count(&held), 2);
        assert_eq!(polled(done.as_mut()), Poll::Ready(12));
        assert_eq!(Arc::strong_count(&held), 1, "before its end is said, and not with the future around it");
        assert_eq!(polls.get(), 2);
    }

    #[test]
    fn it_takes_the_room_of_the_work_once() {
        let work = |bytes: [u8; 1000]| async move {
            crate::yield_now().await;
            bytes.len()
        };
        let alone = size_of_val(&work([0; 1000]));
        let twice = around(around(work([0; 1000]), |work, cx| work.poll(cx)), |work, cx| work.poll(cx));
        let wrapped = around(twice, |work, cx| work.poll(cx));
        assert!(size_of_val(&wrapped) < alone + 100, "{} for {alone}", size_of_val(&wrapped));
    }
}
