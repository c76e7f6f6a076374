//! Questions to a file system that io_uring is not asked: opening a file, listing a directory.
//!
//! ```text
//!   a task ── aside(path, question) ──▶ a thread of its own ──▶ the kernel ──▶ a file system, which may be gone
//!      ▲                                      │
//!      ├── the answer ◀───────────────────────┤
//!      └── or, after PATIENCE, TimedOut       └── waits on, and no second thread asks for the path meanwhile
//! ```
//!
//! A server of NFS or FUSE that is gone does not answer, and a loop that waited for it would hold up every pool. What comes
//! too late is dropped: a file is closed again.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;
use world::sync::oneshot;
use world::{Instant, Pending};

/// How long a file system may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was asked and is not answered yet: since when, and for which path.
static ASKED: Mutex<Vec<(Instant, PathBuf)>> = Mutex::new(Vec::new());

fn asked() -> MutexGuard<'static, Vec<(Instant, PathBuf)>> {
    ASKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// On the list for as long as it lives.
struct Question(Instant, PathBuf);

impl Question {
    /// # Errors
    /// `TimedOut` when one for the same path has waited too long already.
    fn new(path: &Path) -> io::Result<Question> {
        let (now, mut all) = (world::now(), asked());
        if all.iter().any(|(since, of)| of == path && now.since(*since) >= PATIENCE) {
            return Err(unanswered());
        }
        all.push((now, path.into()));
        Ok(Question(now, path.into()))
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        let mut all = asked();
        if let Some(at) = all.iter().position(|(since, of)| *since == self.0 && *of == self.1) {
            all.swap_remove(at);
        }
    }
}

fn unanswered() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the file system that it is in does not answer")
}

/// Has `question` answered by another thread, and waits for [`PATIENCE`] at most.
pub(crate) fn aside<T: Send + 'static>(
    path: &Path,
    question: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> Pending<io::Result<T>> {
    let (reply, answer) = oneshot::channel();
    let begun = Question::new(path).and_then(|asked| {
        let work = move || {
            let answer = question(&asked.1);
            drop(asked);
            let _ = reply.send(answer);
        };
        Builder::new().name("aside".into()).spawn(work).map(drop)
    });
    Box::pin(async move {
        begun?;
        match world::timeout(PATIENCE, answer).await {
            Some(answer) => answer.unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into())),
            None => Err(unanswered()),
        }
    })
}
