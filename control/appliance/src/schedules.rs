//! Snapshots that are taken by themselves.
//!
//! ```text
//!   each minute ─▶ the schedules of the configuration ─▶ moments: what is due? ─▶ take ─▶ note it ─▶ prune
//!                  by the guid of their dataset           the latest moment alone         more than `keep`: the oldest go,
//!                                                                                         but held and cloned ones
//! ```
//!
//! A schedule belongs to a dataset, whatever that is called: it is kept by its guid, with the name under which it was
//! last seen. What takes the dataset's place under its name, as a volume with other blocks does, takes its schedules too;
//! with the dataset they go. A snapshot says by a user property of which schedule it is, so that several of one share do
//! not count each other's, and none that was taken by hand.
//!
//! Of the moments that passed while no daemon ran, one snapshot is made. One that could not be taken is tried again
//! each minute, and the schedule says why.
//!
//! Invariants: no snapshot goes that this schedule did not take, that is held, or that was cloned; one that a crash left
//! without its note is not taken twice.

mod edit;
mod keeper;
mod moments;
mod records;
mod state;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use records::check_records;
pub(crate) use state::Keeper;
