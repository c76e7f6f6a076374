//! vdev.
