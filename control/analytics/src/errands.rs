//! Work that waits for the disk, done one after another where waiting is no harm: on a thread of its own.

use std::fmt;
use std::sync::mpsc;
use world::sync::oneshot;

type Errand = Box<dyn FnOnce() + Send>;

/// The thread that does them. Dropped, it ends when all are done.
#[derive(Clone)]
pub struct Errands(Option<mpsc::Sender<Errand>>);

impl fmt::Debug for Errands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Errands(..)")
    }
}

impl Errands {
    /// On a thread of its own.
    pub fn aside() -> std::io::Result<Errands> {
        let (errands, todo) = mpsc::channel::<Errand>();
        std::thread::Builder::new().name("analytics".into()).spawn(move || {
            while let Ok(errand) = todo.recv() {
                errand();
            }
        })?;
        Ok(Errands(Some(errands)))
    }

    /// Where they are asked for: in a simulated world, whose time stands still meanwhile.
    pub fn here() -> Errands {
        Errands(None)
    }

    /// Does it, and waits for what came of it. `None`: it panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let work = move || std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).ok();
        let Some(errands) = &self.0 else { return work() };
        let (done, wait) = oneshot::channel();
        let errand = move || {
            let _ = done.send(work());
        };
        errands.send(Box::new(errand)).ok()?;
        wait.await.ok().flatten()
    }
}
