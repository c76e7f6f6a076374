//! metaslab.
