//! A bounded queue from many senders to one receiver.
//!
//! A sender needs a permit for a place in the queue, so senders are served in order and a slow receiver slows them
//! down; the receiver returns the permit when it takes the value out. The channel ends when the receiver is gone
//! (senders get their value back) or when all senders are gone and the queue is empty.

use super::{Semaphore, lock};
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

struct State<T> {
    queue: VecDeque<T>,
    receiver: Option<Waker>,
    senders: usize,
}

struct Shared<T> {
    /// Free places. Closed when the receiver is gone.
    room: Semaphore,
    state: Mutex<State<T>>,
}

/// The receiver is gone; this is the value it did not get.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    Full(T),
    Closed(T),
}

pub struct Sender<T>(Arc<Shared<T>>);
pub struct Receiver<T>(Arc<Shared<T>>);

/// A queue of at most `bound` values.
pub fn channel<T>(bound: usize) -> (Sender<T>, Receiver<T>) {
    let state = State { queue: VecDeque::new(), receiver: None, senders: 1 };
    let shared = Arc::new(Shared { room: Semaphore::new(bound), state: Mutex::new(state) });
    (Sender(shared.clone()), Receiver(shared))
}

impl<T> Sender<T> {
    /// Waits for a place in the queue. Dropped before that, nothing is sent.
    pub async fn send(&self, value: T) -> Result<(), SendError<T>> {
        match self.0.room.acquire(1).await {
            Ok(place) => {
                place.forget();
                self.0.push(value).map_err(SendError)
            }
            Err(_) => Err(SendError(value)),
        }
    }

    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        match self.0.room.try_acquire(1) {
            Some(place) => {
                place.forget();
                self.0.push(value).map_err(TrySendError::Closed)
            }
            None if self.is_closed() => Err(TrySendError::Closed(value)),
            None => Err(TrySendError::Full(value)),
        }
    }

    pub fn is_closed(&self) -> bool {
        self.0.room.is_closed()
    }
}

impl<T> Receiver<T> {
    /// The next value, or `None` when all senders are gone. Dropping the wait loses nothing.
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        {
            let mut state = lock(&self.0.state);
            if state.queue.is_empty() && state.senders > 0 {
                state.receiver = Some(cx.waker().clone());
                return Poll::Pending;
            }
        }
        Poll::Ready(self.try_recv())
    }

    pub fn try_recv(&mut self) -> Option<T> {
        let value = lock(&self.0.state).queue.pop_front()?;
        self.0.room.release(1);
        Some(value)
    }

    pub fn len(&self) -> usize {
        lock(&self.0.state).queue.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Refuses further values; those in the queue can still be received.
    pub fn close(&mut self) {
        self.0.room.close();
    }
}

impl<T> Shared<T> {
    /// Gives the value back when the receiver went away after the place was granted.
    fn push(&self, value: T) -> Result<(), T> {
        let waker = {
            let mut state = lock(&self.state);
            // The receiver closes the room before it empties the queue under this lock, so a value pushed here
            // while the room is open is either received or dropped with the queue, never stranded.
            if self.room.is_closed() {
                return Err(value);
            }
            state.queue.push_back(value);
            state.receiver.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        lock(&self.0.state).senders += 1;
        Sender(self.0.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let waker = {
            let mut state = lock(&self.0.state);
            state.senders -= 1;
            if state.senders == 0 { state.receiver.take() } else { None }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.room.close();
        // Dropped after the lock is released: a value's own drop may do anything.
        let abandoned = std::mem::take(&mut lock(&self.0.state).queue);
        drop(abandoned);
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("channel::Sender")
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("channel::Receiver")
    }
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendError: the receiver is gone")
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySendError::Full(_) => "TrySendError: the queue is full",
            TrySendError::Closed(_) => "TrySendError: the receiver is gone",
        })
    }
}
