//! How values are laid out for a screen: pure functions from data to text.
//!
//! Widths, alignment and words are those of OpenZFS, since scripts and eyes are used to them.

pub mod date;
pub mod json;
pub mod number;
pub mod property;
pub mod table;
pub mod vdev_name;
pub mod visible;
