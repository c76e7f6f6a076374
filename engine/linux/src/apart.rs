//! Threads that hold none of the process's files.
//!
//! A process that was killed is gone when the last of its threads is, and until then its files are open and its locks held.
//! A thread that asks the kernel for what the process itself has to answer, as by a path below a file system that it
//! serves, never ends once the other threads are gone: the kernel waits for an answer until the file that it would come
//! through is closed, and this thread holds it open.
//!
//! ```text
//!   other threads    one table: /dev/fuse, locks, sockets     killed: all are closed, and the request below fails
//!   [`apart`]        another table: 0 1 2                     waits for the request, and ends with it
//! ```
//!
//! The other table is that of a thread which begins before the process has opened anything, and begins all the others. One
//! that copied the table later and closed its copies would wait at each file of a server that is gone: the close of any copy
//! tells the server.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread::Builder;
use std::time::Duration;

/// How soon it is tried again to make a thread, where there are as many as may be.
const NEXT_TRY: Duration = Duration::from_millis(20);

/// It does its work when it is first called.
type Job = Arc<dyn Fn() + Send + Sync>;

static FIRST: OnceLock<mpsc::Sender<Job>> = OnceLock::new();

/// Begins the thread that begins the others, if there is none yet; to be called before much is open.
///
/// # Panics
/// When there can be no thread.
#[allow(unsafe_code)]
pub(crate) fn prepare() -> &'static mpsc::Sender<Job> {
    FIRST.get_or_init(|| {
        let (jobs, all) = mpsc::channel::<Job>();
        let body = move || {
            let (first, last) = (3u32, u32::MAX);
            // SAFETY: it changes the table of this thread alone, which has no descriptor yet that is used through it.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_UNSHARE) };
            for job in all {
                let body = move || job();
                while Builder::new().name("apart".into()).spawn(body.clone()).is_err() {
                    std::thread::sleep(NEXT_TRY);
                }
            }
        };
        Builder::new().name("apart".into()).spawn(body).expect("there is room for a thread");
        jobs
    })
}

/// Does `work` on a thread that has the first three descriptors of the process, those of others apart and no other, and
/// waits for it. `work` must bring none along, nor take any home, nor wake tasks: a loop is woken through a descriptor. On
/// kernels before 5.9 the thread has all of them, as any other.
///
/// # Panics
/// When `work` does.
pub fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel::<Result<T, Box<dyn Any + Send>>>();
    let job = Mutex::new(Some((work, done)));
    let job = move || {
        let taken = job.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((work, done)) = taken {
            let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
        }
    };
    prepare().send(Arc::new(job)).expect("the first thread apart never ends");
    wait.recv().expect("the work is done once").unwrap_or_else(|panic| resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is open.
    fn files() -> Vec<std::path::PathBuf> {
        let listed = std::fs::read_dir("/proc/thread-self/fd").unwrap();
        listed.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok()).collect()
    }

    /// A daemon that was killed while it made a directory below its own mount was never gone: it could not be started again,
    /// and its clients waited for ever.
    #[test]
    fn a_thread_apart_has_no_descriptor_of_the_process_and_the_process_keeps_its_own() {
        let path =
            std::env::temp_dir().canonicalize().unwrap().join(format!("cenote-apart-{}", std::process::id()));
        let held = std::fs::File::create(&path).unwrap();
        assert!(files().contains(&path));
        assert!(!apart(files).contains(&path));
        assert!(held.metadata().is_ok() && files().contains(&path));
        std::fs::remove_file(&path).unwrap();
    }

    /// Each had a copy of what was open, and closed it: a file whose server is gone kept it for as long as that was gone.
    #[test]
    fn what_is_apart_shares_a_table_that_was_made_once() {
        let (first, second) = (apart(files), apart(files));
        assert!(first.len() < 16 && second.len() < 16, "{first:?} {second:?}");
        let table = || std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let size = |status: String| status.lines().find(|l| l.starts_with("FDSize")).unwrap().to_string();
        let many: Vec<_> = (0..600).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        assert_ne!(size(table()), size(apart(table)), "a copy of a table has its size");
        drop(many);
    }

    #[test]
    #[should_panic(expected = "as it is")]
    fn a_panic_apart_is_that_of_the_caller() {
        apart(|| panic!("as it is"));
    }
}
