//! zvol.
