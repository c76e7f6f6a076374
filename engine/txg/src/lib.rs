//! txg.
