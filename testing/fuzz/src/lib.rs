//! What strangers can send us, as functions of bytes: none of them may panic, hang, or leave something behind.
//!
//! ```text
//!   bytes ──▶ target ──▶ the real server or device, in a simulated world ──▶ it is asked something proper: it answers
//!
//!   tests/run.rs    every input of corpus/, the inputs that are known to be proper, and thousands made of both, in CI
//!   cargo-fuzz/     libFuzzer calls the same functions, for hours: a workspace of its own, which needs nightly
//! ```
//!
//! An input that failed once becomes a file in `corpus/TARGET`, and stays.

mod cache_target;
mod nbd_targets;
mod rest_target;
mod scsi_target;
mod session_targets;

pub use cache_target::cache_device;
pub use nbd_targets::{nbd_options, nbd_requests};
pub use rest_target::rest_body;
pub use scsi_target::scsi_command;
pub use session_targets::{iscsi_login, iscsi_pdus};

/// A function that takes whatever comes, and what proper input for it looks like.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// A session in a world of its own costs much more than a call.
    pub is_slow: bool,
}

pub const TARGETS: &[Target] = &[
    Target { name: "cache_device", run: cache_device, seeds: cache_target::seeds, is_slow: false },
    Target { name: "scsi_command", run: scsi_command, seeds: scsi_target::seeds, is_slow: false },
    Target { name: "iscsi_login", run: iscsi_login, seeds: session_targets::login_seeds, is_slow: true },
    Target { name: "iscsi_pdus", run: iscsi_pdus, seeds: session_targets::pdu_seeds, is_slow: true },
    Target { name: "nbd_options", run: nbd_options, seeds: nbd_targets::option_seeds, is_slow: true },
    Target { name: "nbd_requests", run: nbd_requests, seeds: nbd_targets::request_seeds, is_slow: true },
    Target { name: "rest_body", run: rest_body, seeds: rest_target::seeds, is_slow: false },
];

/// Input that is split in two by its first two bytes, as far as it reaches.
fn split(bytes: &[u8]) -> (usize, &[u8]) {
    match bytes {
        [high, low, rest @ ..] => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        _ => (0, &[]),
    }
}
