//! Threads that hold none of the process's files.
//!
//! A process that was killed is gone when the last of its threads is, and until then its files are open and its locks held.
//! A thread that asks the kernel for what the process itself has to answer, as by a path below a file system that it
//! serves, never ends once the other threads are gone: the kernel waits for an answer until the file that it would come
//! through is closed, and this thread holds it open.
//!
//! ```text
//!   other threads    one table: /dev/fuse, locks, sockets     killed: all are closed, and the request below fails
//!   [`apart`]        a table of its own: 0 1 2                waits for the request, and ends with it
//! ```

use std::thread::Builder;

/// Does `work` on a new thread that has the first three descriptors of the process and no other, and waits for it. `work`
/// must bring none along, nor wake tasks: a loop is woken through a descriptor. On kernels before 5.9 the thread has all of
/// them, as any other.
///
/// # Panics
/// When `work` does, or there can be no thread.
#[allow(unsafe_code)]
pub fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let own = move || {
        let (first, last) = (3u32, u32::MAX);
        // SAFETY: it changes the table of this thread alone, which has no descriptor yet that is used through it.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_UNSHARE) };
        work()
    };
    let thread = Builder::new().name("apart".into()).spawn(own).expect("there is room for a thread");
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptors() -> Vec<u32> {
        let listed = std::fs::read_dir("/proc/thread-self/fd").unwrap();
        listed.map(|entry| entry.unwrap().file_name().into_string().unwrap().parse().unwrap()).collect()
    }

    /// A daemon that was killed while it made a directory below its own mount was never gone: it could not be started again,
    /// and its clients waited for ever.
    #[test]
    fn a_thread_apart_has_no_descriptor_of_the_process_and_the_process_keeps_its_own() {
        let held = std::fs::File::open("/dev/null").unwrap();
        let before = descriptors();
        let there = apart(descriptors);
        // The directory that is listed is one.
        assert!(there.iter().filter(|fd| **fd > 2).count() == 1, "{there:?} of {before:?}");
        assert!(before.iter().filter(|fd| **fd > 2).count() >= 2, "{before:?}");
        assert!(held.metadata().is_ok());
    }

    #[test]
    #[should_panic(expected = "as it is")]
    fn a_panic_apart_is_that_of_the_caller() {
        apart(|| panic!("as it is"));
    }
}
