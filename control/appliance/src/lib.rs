//! appliance.
