//! Futures are polled by hand here, so that each interleaving is written down and not left to chance.

#![allow(clippy::disallowed_methods, reason = "real threads, to find what a single one cannot")]

use super::*;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn poll_counting<F: Future>(future: Pin<&mut F>, count: &Arc<Count>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(&Waker::from(count.clone())))
}

fn ready<T>(poll: Poll<T>) -> T {
    match poll {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("expected it to be ready"),
    }
}

/// Runs a future on this thread; for the tests in which threads race for real.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn permits_go_in_order_and_a_large_request_is_not_overtaken() {
    let s = Semaphore::new(2);
    let held = s.try_acquire(1).unwrap();
    let mut large = pin!(s.acquire(2));
    let mut small = pin!(s.acquire(1));
    assert!(poll(large.as_mut()).is_pending());
    assert!(poll(small.as_mut()).is_pending(), "one permit is free, but the large request came first");
    assert!(s.try_acquire(1).is_none());
    drop(held);
    let large = ready(poll(large)).unwrap();
    assert!(poll(small.as_mut()).is_pending());
    drop(large);
    assert_eq!(ready(poll(small)).unwrap().count(), 1);
    assert_eq!(s.available(), 2);
}

#[test]
fn a_waiter_dropped_from_the_queue_lets_those_behind_it_go() {
    let s = Semaphore::new(1);
    let count = Arc::new(Count::default());
    let mut large = Box::pin(s.acquire(2));
    assert!(poll(large.as_mut()).is_pending());
    let mut small = pin!(s.acquire(1));
    assert!(poll_counting(small.as_mut(), &count).is_pending());
    drop(large);
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    let _permit = ready(poll(small)).unwrap();
    assert_eq!((s.available(), s.waiting()), (0, 0));
}

#[test]
fn a_grant_whose_waiter_is_dropped_passes_to_the_next() {
    let s = Semaphore::new(1);
    let held = s.try_acquire(1).unwrap();
    let mut first = Box::pin(s.acquire(1));
    let mut second = pin!(s.acquire(1));
    assert!(poll(first.as_mut()).is_pending());
    assert!(poll(second.as_mut()).is_pending());
    drop(held); // granted to `first`, which never looks
    assert_eq!(s.available(), 0);
    drop(first);
    let _permit = ready(poll(second)).unwrap();
}

#[test]
fn closing_refuses_waiters_and_newcomers_but_not_the_granted() {
    let s = Semaphore::new(1);
    let held = s.try_acquire(1).unwrap();
    let mut granted = pin!(s.acquire(1));
    let mut waiting = pin!(s.acquire(1));
    assert!(poll(granted.as_mut()).is_pending());
    assert!(poll(waiting.as_mut()).is_pending());
    drop(held);
    s.close();
    assert!(ready(poll(granted)).is_ok());
    assert_eq!(ready(poll(waiting)).unwrap_err(), Closed);
    assert_eq!(ready(poll(pin!(s.acquire(1)))).unwrap_err(), Closed);
    assert!(s.try_acquire(1).is_none());
}

#[test]
fn forgotten_permits_come_back_by_release_and_shrink_returns_a_part() {
    let s = Arc::new(Semaphore::new(3));
    s.try_acquire(1).unwrap().forget();
    let mut rest = s.try_acquire_owned(2).unwrap();
    assert_eq!(s.available(), 0);
    s.release(1);
    assert_eq!(s.available(), 1);
    rest.shrink(1);
    assert_eq!((s.available(), rest.count()), (2, 1));
}

#[test]
fn a_mutex_is_handed_over_in_order_and_survives_a_waiter_that_gives_up() {
    let m = Mutex::new(vec![0]);
    let mut guard = ready(poll(pin!(m.lock())));
    guard.push(1);
    let mut quitter = Box::pin(m.lock());
    let mut next = Box::pin(m.lock());
    assert!(poll(quitter.as_mut()).is_pending());
    assert!(poll(next.as_mut()).is_pending());
    assert!(m.try_lock().is_none());
    drop(guard); // the turn is the quitter's
    assert!(poll(next.as_mut()).is_pending());
    drop(quitter);
    ready(poll(next.as_mut())).push(2);
    drop(next);
    assert_eq!(m.into_inner(), [0, 1, 2]);
}

#[test]
fn guards_are_send() {
    fn send<T: Send>(_: &T) {}
    let m = Arc::new(Mutex::new(1));
    send(&m.try_lock().unwrap());
    let l = Arc::new(RwLock::new(1));
    send(&l.try_read().unwrap());
    send(&l.try_write().unwrap());
    send(&ready(poll(pin!(m.lock_owned()))));
    send(&ready(poll(pin!(l.read_owned()))));
    send(&ready(poll(pin!(l.write_owned()))));
}

#[test]
fn readers_share_and_a_waiting_writer_holds_back_later_readers() {
    let l = RwLock::new(7);
    let (a, b) = (l.try_read().unwrap(), l.try_read().unwrap());
    assert_eq!((*a, *b), (7, 7));
    let mut writer = pin!(l.write());
    let mut late = pin!(l.read());
    assert!(poll(writer.as_mut()).is_pending());
    assert!(poll(late.as_mut()).is_pending());
    drop(a);
    assert!(poll(writer.as_mut()).is_pending());
    drop(b);
    let mut w = ready(poll(writer));
    *w = 8;
    assert!(poll(late.as_mut()).is_pending());
    drop(w);
    assert_eq!(*ready(poll(late)), 8);
    assert!(l.try_write().is_some());
}

#[test]
fn notify_one_wakes_the_first_or_the_next_to_come() {
    let n = Notify::new();
    let (mut a, mut b) = (pin!(n.notified()), pin!(n.notified()));
    assert!(poll(b.as_mut()).is_pending());
    n.notify_one();
    assert!(poll(b.as_mut()).is_pending(), "a came first, though b was polled first");
    ready(poll(a.as_mut()));
    n.notify_one();
    ready(poll(b));
    n.notify_one();
    n.notify_one();
    ready(poll(pin!(n.notified())));
    assert!(poll(pin!(n.notified())).is_pending(), "only one is stored");
}

#[test]
fn notify_all_wakes_those_made_before_it_and_only_those() {
    let n = Notify::new();
    let (mut a, mut b) = (pin!(n.notified()), pin!(n.notified()));
    assert!(poll(a.as_mut()).is_pending());
    n.notify_all();
    ready(poll(a));
    ready(poll(b.as_mut()));
    assert!(poll(pin!(n.notified())).is_pending());
}

#[test]
fn a_notification_whose_waiter_is_dropped_passes_on() {
    let n = Notify::new();
    let a = n.notified();
    let mut b = pin!(n.notified());
    assert!(poll(b.as_mut()).is_pending());
    n.notify_one();
    drop(a);
    ready(poll(b));
    let c = n.notified();
    n.notify_one();
    n.notify_all();
    drop(c);
    ready(poll(pin!(n.notified())));
}

#[test]
fn an_event_lets_everybody_through_for_ever() {
    let e = Event::new();
    let mut early = pin!(e.wait());
    assert!(poll(early.as_mut()).is_pending());
    e.set();
    ready(poll(early));
    ready(poll(pin!(e.wait())));
    assert!(e.is_set());
}

#[test]
fn a_watch_shows_the_latest_value_and_wakes_on_change() {
    let w = Watch::new(1);
    let version = w.version();
    let mut changed = pin!(w.changed(version));
    let mut three = pin!(w.wait_for(|&v| v == 3));
    assert!(poll(changed.as_mut()).is_pending());
    assert!(poll(three.as_mut()).is_pending());
    w.set(2);
    assert!(poll(three.as_mut()).is_pending());
    w.update(|v| *v += 1);
    assert_eq!(ready(poll(changed)), version + 2);
    assert_eq!(ready(poll(three)), 3);
    assert_eq!(w.get(), 3);
}

#[test]
fn a_channel_is_bounded_ordered_and_ends_with_its_senders() {
    let (tx, mut rx) = channel(2);
    tx.try_send(1).unwrap();
    tx.try_send(2).unwrap();
    assert!(matches!(tx.try_send(9), Err(TrySendError::Full(9))));
    let mut third = Box::pin(tx.send(3));
    assert!(poll(third.as_mut()).is_pending());
    assert_eq!(ready(poll(pin!(rx.recv()))), Some(1));
    ready(poll(third.as_mut())).unwrap();
    drop(third);
    let other = tx.clone();
    drop(tx);
    assert_eq!((rx.try_recv(), rx.try_recv(), rx.try_recv()), (Some(2), Some(3), None));
    let count = Arc::new(Count::default());
    {
        let mut end = pin!(rx.recv());
        assert!(poll_counting(end.as_mut(), &count).is_pending());
        drop(other);
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert_eq!(ready(poll(end)), None);
    }
}

#[test]
fn senders_get_their_value_back_when_the_receiver_is_gone() {
    let (tx, rx) = channel(1);
    tx.try_send(1).unwrap();
    let mut waiting = pin!(tx.send(2));
    assert!(poll(waiting.as_mut()).is_pending());
    drop(rx);
    assert_eq!(ready(poll(waiting)).unwrap_err().0, 2);
    assert!(matches!(tx.try_send(3), Err(TrySendError::Closed(3))));
}

#[test]
fn at_most_n_futures_are_under_way_and_results_keep_their_order() {
    let (running, peak) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = (0..20).map(|i| {
        let (running, peak) = (&running, &peak);
        async move {
            peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            crate::yield_now().await;
            running.fetch_sub(1, Ordering::SeqCst);
            i
        }
    });
    let results = block_on(join_all_bounded(3, work));
    assert_eq!(results, (0..20).collect::<Vec<_>>());
    assert_eq!(peak.load(Ordering::SeqCst), 3);
    let failing = (0..5).map(|i| async move { if i < 3 { Ok(i) } else { Err(i) } });
    assert_eq!(block_on(try_join_all_bounded(2, failing)), Err(3));
}

/// Threads that lock, and sometimes give up waiting, must neither lose an increment nor the lock.
#[test]
fn a_mutex_excludes_racing_threads_even_when_some_give_up() {
    let m = Arc::new(Mutex::new(0u64));
    let threads: Vec<_> = (0..4)
        .map(|t| {
            let m = m.clone();
            std::thread::spawn(move || {
                for i in 0..2000 {
                    if (i + t) % 3 == 0 {
                        let mut given_up = Box::pin(m.lock());
                        let _ = poll(given_up.as_mut()).map(drop);
                        std::thread::yield_now();
                        drop(given_up);
                    }
                    let before = {
                        let mut guard = block_on(m.lock());
                        *guard += 1;
                        *guard
                    };
                    assert!(before >= 1);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    assert_eq!(*block_on(m.lock()), 8000);
}
