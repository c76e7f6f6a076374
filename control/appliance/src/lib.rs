//! appliance.

mod lun;

pub use lun::Lun;
