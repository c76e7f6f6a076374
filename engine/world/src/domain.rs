//! Panics, kept where they happened.
//!
//! A panic ends the task that it happens in, and a task that is not awaited would end unnoticed: what it was to do is
//! never done, and tasks that wait for its effects wait for ever. So work that belongs together runs in a *domain*,
//! which is told of every panic in it:
//!
//! ```text
//!   within(domain, work) ── poll ──▶ work ── spawn ──▶ task, in the same domain ── compute ──▶ job, in the same domain
//!        │                            │ panic             │ panic                              │ panic
//!        ▼                            ▼                   ▼                                    ▼
//!   Err(Panic) to the caller     domain.panicked(message and place), once for each
//! ```
//!
//! Invariants: a task is in the domain of the task that spawned it; a domain is told before a task that awaits the
//! other can know that it has ended.
//!
//! Not here: what a panic means. The pool suspends itself.

use crate::around::around;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};
use std::task::Poll;

/// What is told of panics. See the module.
pub trait Domain: fmt::Debug + Send + Sync + 'static {
    /// Called on the thread that panicked, after the unwinding. Must not panic itself.
    fn panicked(&self, panic: &Panic);
}

/// A panic: what it said, and where it was in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panic {
    pub message: String,
    pub place: String,
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the program panicked at {}: {}", self.place, self.message)
    }
}

impl std::error::Error for Panic {}

pub(crate) type Current = Option<Arc<dyn Domain>>;

thread_local! {
    static DOMAIN: RefCell<Current> = const { RefCell::new(None) };
    /// How many catchers are below on this thread's stack: only then is it worth noting where a panic was.
    static CATCHERS: Cell<u32> = const { Cell::new(0) };
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The domain of the task that is being polled.
pub(crate) fn current() -> Current {
    DOMAIN.with_borrow(Clone::clone)
}

/// Does `work` in `domain`. A panic in it ends it, and is told to the domain and to the caller.
pub fn within<T>(
    domain: Arc<dyn Domain>,
    work: impl Future<Output = T>,
) -> impl Future<Output = Result<T, Panic>> {
    around(work, move |work, cx| match caught(&domain, || work.poll(cx)) {
        Ok(polled) => polled.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    })
}

/// As [`within`], for work that does not wait.
pub fn within_now<T>(domain: &Arc<dyn Domain>, work: impl FnOnce() -> T) -> Result<T, Panic> {
    caught(domain, work)
}

/// As [`within`], where there may be no domain; then a panic goes on as it would have.
pub(crate) fn inherited<T>(
    domain: Current,
    work: impl Future<Output = T>,
) -> impl Future<Output = Option<T>> {
    around(work, move |work, cx| match &domain {
        Some(domain) => caught(domain, || work.poll(cx)).map_or(Poll::Ready(None), |polled| polled.map(Some)),
        None => work.poll(cx).map(Some),
    })
}

/// As [`inherited`], for a computation.
pub(crate) fn inherited_job<T>(domain: Current, job: impl FnOnce() -> T) -> Option<T> {
    match domain {
        Some(domain) => caught(&domain, job).ok(),
        None => Some(job()),
    }
}

/// Runs `f` in a domain, on this thread's stack.
fn caught<R>(domain: &Arc<dyn Domain>, f: impl FnOnce() -> R) -> Result<R, Panic> {
    note_places();
    let outer = DOMAIN.replace(Some(domain.clone()));
    CATCHERS.set(CATCHERS.get() + 1);
    let result = catch_unwind(AssertUnwindSafe(f));
    CATCHERS.set(CATCHERS.get() - 1);
    DOMAIN.set(outer);
    result.map_err(|payload| {
        let place = PLACE.take().unwrap_or_else(|| "an unknown place".into());
        let panic = Panic { message: message_of(payload.as_ref()), place };
        domain.panicked(&panic);
        panic
    })
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message").to_string()
}

/// The place of a panic is known only to the hook: from the first use on there is one, before that of the program.
fn note_places() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if CATCHERS.try_with(Cell::get).is_ok_and(|n| n > 0)
                && let Some(at) = info.location()
            {
                PLACE.set(Some(format!("{}:{}", at.file(), at.line())));
            }
            before(info);
        }));
    });
}
