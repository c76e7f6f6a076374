//! The recorder of samples, and the task that it takes them in.

use analytics::Recorder;
use std::sync::{Mutex, MutexGuard, PoisonError};
use world::Task;

/// Nothing, where no daemon has begun.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<Option<(Recorder, Option<Task<()>>)>>);

impl Kept {
    fn lock(&self) -> MutexGuard<'_, Option<(Recorder, Option<Task<()>>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn recorder(&self) -> Option<Recorder> {
        self.lock().as_ref().map(|(recorder, _)| recorder.clone())
    }

    pub(super) fn set(&self, recorder: Recorder, task: Task<()>) {
        *self.lock() = Some((recorder, Some(task)));
    }

    pub(super) fn take_task(&self) -> Option<Task<()>> {
        self.lock().as_mut().and_then(|(_, task)| task.take())
    }
}
