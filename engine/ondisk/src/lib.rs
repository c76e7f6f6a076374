//! ondisk.
