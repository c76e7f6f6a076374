//! Computation: a thread per core beside the loops, started with the first job.

use crate::executor::Shared;
use crate::workers::{Job, Workers};
use std::sync::Arc;

pub(crate) struct Compute(Workers);

impl Compute {
    pub fn new(cores: usize) -> Compute {
        Compute(Workers::new("compute", cores))
    }

    pub fn submit(&self, shared: &Arc<Shared>, job: Job) {
        let shared = shared.clone();
        // A job may ask for the time or a random number: its thread belongs to the same world.
        self.0.submit(job, move |work| {
            let _world = world::enter(Arc::new(crate::executor::World(shared)));
            work();
        });
    }

    pub fn close(&self) {
        self.0.close();
    }
}
