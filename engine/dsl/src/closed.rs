//! Datasets that are closed to openers, since they are about to go.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::ObjectId;

/// How many hold each dataset closed. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closed(Arc<Mutex<BTreeMap<ObjectId, usize>>>);

impl Closed {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectId, usize>> {
        // Under this lock a count is changed or read.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn close(&self, ids: Vec<ObjectId>) -> ClosedToOpeners {
        let mut all = self.lock();
        ids.iter().for_each(|id| *all.entry(*id).or_default() += 1);
        drop(all);
        ClosedToOpeners { closed: self.clone(), ids }
    }

    pub fn has(&self, id: ObjectId) -> bool {
        self.lock().contains_key(&id)
    }
}

/// Keeps datasets closed to openers until it is dropped.
#[must_use]
#[derive(Debug)]
pub struct ClosedToOpeners {
    closed: Closed,
    ids: Vec<ObjectId>,
}

impl ClosedToOpeners {
    pub(crate) fn ids(&self) -> &[ObjectId] {
        &self.ids
    }
}

impl Drop for ClosedToOpeners {
    fn drop(&mut self) {
        let mut all = self.closed.lock();
        for id in &self.ids {
            if let Some(count) = all.get_mut(id) {
                *count -= 1;
                if *count == 0 {
                    all.remove(id);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_have_closed_is_closed_until_both_let_go() {
        let (all, id) = (Closed::default(), ObjectId(7));
        let first = all.close(vec![id, ObjectId(8)]);
        let second = all.close(vec![id]);
        drop(first);
        assert_eq!((all.has(id), all.has(ObjectId(8))), (true, false));
        drop(second);
        assert!(!all.has(id));
    }
}
