//! The dataset and snapshot layer: what the objects of the MOS mean as a tree of named datasets.

pub mod history;
pub mod name;
pub mod pool_props;
pub mod props;
pub mod space;
pub mod thick;

#[cfg(test)]
mod testing;
