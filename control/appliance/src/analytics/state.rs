//! The recorder of samples, and the task that it takes them in.

use analytics::Recorder;
use probe::Registration;
use std::sync::{Mutex, MutexGuard, PoisonError};
use world::Task;

#[derive(Debug)]
struct Running {
    recorder: Recorder,
    task: Option<Task<()>>,
    /// Of the machine and the appliance; they are asked as long as this is kept.
    _sources: Vec<Registration>,
}

/// Nothing, where no daemon has begun.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<Option<Running>>);

impl Kept {
    fn lock(&self) -> MutexGuard<'_, Option<Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn recorder(&self) -> Option<Recorder> {
        self.lock().as_ref().map(|running| running.recorder.clone())
    }

    pub(super) fn set(&self, recorder: Recorder, task: Task<()>, sources: Vec<Registration>) {
        *self.lock() = Some(Running { recorder, task: Some(task), _sources: sources });
    }

    pub(super) fn take_task(&self) -> Option<Task<()>> {
        self.lock().as_mut().and_then(|running| running.task.take())
    }
}
