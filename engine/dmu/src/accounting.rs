//! Who is told that blocks come and go.

use ondisk::BlockPointer;
use std::fmt::Debug;

/// The owner of an object set: it charges its dataset for blocks born, and decides what becomes of those killed (a
/// snapshot may still need them).
pub trait Ledger: Send + Sync + Debug {
    fn born(&self, bp: &BlockPointer);
    fn killed(&self, bp: &BlockPointer);
}

/// For object sets that nobody is charged for.
#[derive(Clone, Copy, Debug)]
pub struct NoLedger;

impl Ledger for NoLedger {
    fn born(&self, _: &BlockPointer) {}
    fn killed(&self, _: &BlockPointer) {}
}
