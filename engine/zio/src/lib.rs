//! zio.
