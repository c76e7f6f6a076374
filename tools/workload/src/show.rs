//! How figures are shown: tables for people ([`table`]), JSON ([`json`]), and logs of histograms ([`hdr`]).

pub mod hdr;
pub mod json;
pub mod table;
