//! arc.
