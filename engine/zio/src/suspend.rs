//! Suspending a pool: I/O that must not fail waits, until an administrator has mended what is in its way.
//!
//! ```text
//!                    wait(why)                    resume()
//!   RUNNING ───────────────────────▶ SUSPENDED ──────────────▶ RUNNING     what waited is tried again
//!      │                                 │
//!      └──── give_up(), or close() ──────┴──────────────────▶ GIVEN UP     what waited fails, and so does what follows
//! ```
//!
//! The sync of a txg changes space maps, trees and datasets in memory as it goes, and there is no way back: a sync that
//! ended in the middle would leave a pool in memory that is neither the last txg nor the next. So it never ends by an I/O
//! error. A write, a flush or a read that it needs and that fails stands where it is, and with it the sync; all else
//! stays as it is in memory. When the pool is resumed, the same operation is tried again.
//!
//! Only what a sync needs waits here ([`is_steadfast`]). The requests of clients fail, or wait for the txg to be synced,
//! as the pool's `failmode` says: that is for `txg`. A read waits when a device that it needs gives no sign of life; a
//! block that a living device cannot give back is lost, and waiting would not bring it back.
//!
//! Invariant: between a call of `wait` that returned `Ok` and the call before it lies a `resume`.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use units::{Error, Kind, Result};
use world::sync::Notify;

/// Is told when the pool is suspended, with the reason, and with `None` when it goes on.
type Watcher = Box<dyn Fn(Option<&Error>) + Send + Sync>;

/// See the module. One for each open pool.
#[derive(Default)]
pub struct Suspension {
    state: Mutex<State>,
    changed: Notify,
    watcher: Mutex<Option<Watcher>>,
}

#[derive(Default)]
struct State {
    /// Why, as the first operation that failed said.
    why: Option<String>,
    resumed: u64,
    /// The pool is closing: what would have to wait gives the pool up.
    is_closing: bool,
    given_up: bool,
}

impl Suspension {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is a few assignments.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the function that is told of changes from now on; `watch` must not wait.
    pub fn watch(&self, watch: impl Fn(Option<&Error>) + Send + Sync + 'static) {
        *self.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(watch));
    }

    fn tell(&self, why: Option<&Error>) {
        if let Some(watch) = &*self.watcher.lock().unwrap_or_else(PoisonError::into_inner) {
            watch(why);
        }
        self.changed.notify_all();
    }

    /// How often the pool was resumed: to be asked before an operation begins that may have to wait.
    pub fn resumed(&self) -> u64 {
        self.lock().resumed
    }

    /// Suspends the pool because of `why`, unless it is already, and waits until it goes on. When it has gone on since
    /// `begun`, the failure is one of before: nothing is waited for.
    ///
    /// # Errors
    /// `Io`, when the pool is given up instead.
    pub async fn wait(&self, begun: u64, why: &Error) -> Result<()> {
        let (mine, is_first) = {
            let mut state = self.lock();
            if state.resumed != begun && !state.given_up {
                return Ok(());
            }
            let was_given_up = state.given_up;
            state.given_up |= state.is_closing;
            if state.given_up {
                drop(state);
                if !was_given_up {
                    self.changed.notify_all();
                }
                return Err(given_up(why.to_string()));
            }
            let is_first = state.why.is_none();
            if is_first {
                state.why = Some(why.to_string());
            }
            (state.resumed, is_first)
        };
        if is_first {
            self.tell(Some(why));
        }
        let answer = || {
            let state = self.lock();
            match state.given_up {
                true => Some(Err(given_up(why.to_string()))),
                false => (state.resumed != mine).then_some(Ok(())),
            }
        };
        self.changed.until(answer).await
    }

    /// Why the pool is suspended, when it is.
    pub fn why(&self) -> Option<String> {
        self.lock().why.clone()
    }

    /// Lets everything that waits try again.
    pub fn resume(&self) {
        {
            let mut state = self.lock();
            state.why = None;
            state.resumed += 1;
        }
        self.tell(None);
    }

    /// The pool is closing: the first operation that waits, or would, gives it up.
    pub fn close(&self) {
        {
            let mut state = self.lock();
            state.is_closing = true;
            state.given_up |= state.why.is_some();
        }
        self.changed.notify_all();
    }

    /// Takes [`Suspension::close`] back, unless the pool was given up.
    pub fn open(&self) {
        self.lock().is_closing = false;
    }

    /// Nothing waits from now on: what does, and what would, fails. There is no way back.
    pub fn give_up(&self) {
        self.lock().given_up = true;
        self.changed.notify_all();
    }

    pub fn is_given_up(&self) -> bool {
        self.lock().given_up
    }

    /// Waits until the pool is given up.
    pub async fn given_up(&self) {
        self.changed.until(|| self.lock().given_up.then_some(())).await;
    }

    /// Tries `work` until it succeeds, or fails by what no device is to blame for.
    pub async fn persist<T, F: Future<Output = Result<T>>>(&self, mut work: impl FnMut() -> F) -> Result<T> {
        loop {
            let begun = self.resumed();
            match work().await {
                Err(e) if is_of_devices(&e) => self.wait(begun, &e).await?,
                done => return done,
            }
        }
    }
}

impl fmt::Debug for Suspension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Suspension({:?})", self.why())
    }
}

fn given_up(why: String) -> Error {
    Error::new(Kind::Io, "wait for the suspended pool: it was given up").because(why)
}

/// What devices that are mended, or a host that has room again, may do another time.
fn is_of_devices(e: &Error) -> bool {
    matches!(e.kind(), Kind::Io | Kind::NoSpace)
}

thread_local! {
    static STEADFAST: Cell<bool> = const { Cell::new(false) };
}

/// Whether the work that is being polled is the sync of a txg, whose I/O must not fail.
pub fn is_steadfast() -> bool {
    STEADFAST.get()
}

/// Does `work` as the sync of a txg does: reads that it begins itself wait rather than fail. Tasks that it spawns do not.
pub fn steadfast<F: Future>(work: F) -> impl Future<Output = F::Output> {
    Steadfast(Box::pin(work))
}

struct Steadfast<F>(Pin<Box<F>>);

impl<F: Future> Future for Steadfast<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        struct Before(bool);
        impl Drop for Before {
            fn drop(&mut self) {
                STEADFAST.set(self.0);
            }
        }
        let _before = Before(STEADFAST.replace(true));
        self.0.as_mut().poll(cx)
    }
}
