//! dsl.
