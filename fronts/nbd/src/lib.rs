//! nbd.
