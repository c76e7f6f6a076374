//! What no case may do: panic, spin, or take memory without bounds.
//!
//! A panic is noticed wherever it happens, also in a task whose panic is contained. A case that spins never comes back, so
//! a thread beside it looks at the CPU time that the case has taken, which does not depend on what else the machine does,
//! and at the memory of the process; it tells the case and its stage, and ends the program.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

thread_local! {
    static STAGE: Cell<&'static str> = const { Cell::new("") };
    static PANICS: Cell<Option<String>> = const { Cell::new(None) };
}

/// The stage of a case that hangs, for the thread that watches.
static NOW: Mutex<&'static str> = Mutex::new("");

/// What is being done from here on.
pub fn stage(name: &'static str) {
    STAGE.set(name);
    *NOW.lock().unwrap_or_else(PoisonError::into_inner) = name;
}

pub const CPU_MAX: Duration = Duration::from_secs(10);
pub const MEMORY_MAX: u64 = 1 << 30;
/// Of the clock that counts CPU time in `/proc`.
const TICKS: u64 = 100;

/// The case under way, and what had been used when it began: ticks and bytes.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    ticks: u64,
    memory: u64,
}

/// Watches the thread that made it, one case after another.
#[derive(Debug)]
pub struct Watch {
    case: Arc<Mutex<Option<Case>>>,
    is_over: Arc<AtomicBool>,
    thread: String,
}

impl Watch {
    /// `end` is told the case that takes too much, and why; it does not come back.
    pub fn new(end: impl Fn(&str, &str) + Send + 'static) -> Watch {
        hook();
        let link = std::fs::read_link("/proc/thread-self").unwrap_or_default();
        let thread = format!("/proc/{}/stat", link.display());
        let watch = Watch { case: Arc::default(), is_over: Arc::default(), thread };
        let (case, is_over, thread) = (watch.case.clone(), watch.is_over.clone(), watch.thread.clone());
        std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(100));
                let begun = case.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let Some(Case { name, ticks, memory }) = begun else { continue };
                let stage = *NOW.lock().unwrap_or_else(PoisonError::into_inner);
                let (took, memory) = (cpu(&thread).saturating_sub(ticks), resident().saturating_sub(memory));
                if took > CPU_MAX.as_secs() * TICKS {
                    end(&name, &format!("{stage}: more than {} s of CPU time", CPU_MAX.as_secs()));
                } else if memory > MEMORY_MAX {
                    end(&name, &format!("{stage}: {} MiB of memory", memory >> 20));
                }
            }
        });
        watch
    }

    /// Runs one case. The error says where it panicked.
    pub fn run<T>(&self, name: &str, work: impl FnOnce() -> T) -> Result<T, String> {
        PANICS.set(None);
        let begun = Case { name: name.to_string(), ticks: cpu(&self.thread), memory: resident() };
        *self.case.lock().unwrap_or_else(PoisonError::into_inner) = Some(begun);
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        *self.case.lock().unwrap_or_else(PoisonError::into_inner) = None;
        // From here on a panic of this thread is told again.
        let stage = STAGE.take();
        match (PANICS.take(), done) {
            (Some(panic), _) => Err(format!("{stage}: {panic}")),
            (None, Ok(done)) => Ok(done),
            (None, Err(_)) => Err(format!("{stage}: it unwound")),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Remembers the first panic of each thread that a [`Watch`] is in; the others are told as ever.
fn hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if STAGE.get().is_empty() {
                return usual(info);
            }
            let words = info.payload_as_str().unwrap_or("a panic without words");
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            let first = PANICS.take().unwrap_or_else(|| format!("{words}, at {place}"));
            PANICS.set(Some(first));
        }));
    });
}

/// What the thread has used, in ticks.
fn cpu(thread: &str) -> u64 {
    let stat = std::fs::read_to_string(thread).unwrap_or_default();
    // The name, in parentheses, may hold spaces.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum()
}

fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}
