//! Short forms of the trials in the simulated world, and every case that failed once.

mod crash;
mod devices;
mod full_hosts;
mod power;
mod power_files;
mod suspended;
