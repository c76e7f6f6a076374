//! inspect.
