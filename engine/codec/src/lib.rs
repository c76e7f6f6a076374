//! codec.
