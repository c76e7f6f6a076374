//! dmu.
