//! Alerts: which events a person should know of, and how they get there.
//!
//! ```text
//!   event ─▶ Judge::note: is it news? how bad? in plain words ─▶ Alert ─▶ Outbox::offer ─┬▶ queue ─▶ thread ─▶ syslog
//!                      └ the same of one device once a minute                            ├▶ queue ─▶ thread ─▶ webhook
//!                                                                                        └▶ queue ─▶ thread ─▶ mail
//! ```
//!
//! [`Judge`] is a plain function of what it has seen. Each receiver has a queue of its own, bounded, and a thread that sends
//! and tries again, so that a receiver that does not answer holds up neither the others nor what tells of the event.
//!
//! Invariants: `offer` never waits; a queue that is full gives up its oldest alert, and counts it; a secret is in no alert,
//! no error and no log line.
//!
//! [`post`] is HTTP towards receivers, of alerts and of figures.
//!
//! Not here: what happens to pools (`appliance`), which receivers there are (its configuration).

mod judge;
mod mail;
mod outbox;
pub mod post;
mod syslog;
mod tls;
mod webhook;

pub use judge::{Alert, Judge};
pub use outbox::{Outbox, Receiver, State};

use api::alerts::Handler;
use std::time::Duration;

/// For a connection, and for each answer on it.
const PATIENCE: Duration = Duration::from_secs(15);

/// Sends one alert, once. Waits: for a name to be found, a connection, an answer, each for [`PATIENCE`] at most.
///
/// # Errors
/// A sentence that says what went wrong.
fn send(receiver: &Receiver, host: &str, alert: &Alert) -> Result<(), String> {
    match receiver.handler {
        Handler::Syslog => syslog::send(&receiver.to, host, alert),
        Handler::Webhook => webhook::send(receiver, host, alert),
        Handler::Mail => mail::send(receiver, host, alert),
    }
}

/// What is wrong with where a receiver sends to; nothing is asked of the network.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn check(receiver: &Receiver) -> Result<(), String> {
    match receiver.handler {
        Handler::Syslog => syslog::Place::parse(&receiver.to).map(drop),
        Handler::Webhook => webhook::url(&receiver.to).map(drop),
        Handler::Mail => mail::Letterbox::of(receiver).map(drop),
    }
}
