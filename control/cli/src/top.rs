//! `top`: what goes on now, by layer: a page that is drilled down into, or lines, a screen a second.
//!
//! ```text
//!   watch ─┬─ page      what is shown and what keys mean; pure ── history, menu, law, layers
//!          ├─ draw      on a terminal of any size ── strokes, visible
//!          └─ terminal  taken and given back; keys
//!   plain              lines: for a count, for -j, and where there is no terminal
//! ```

mod draw;
mod history;
mod law;
mod layers;
mod menu;
mod page;
mod plain;
mod strokes;
mod terminal;
#[cfg(test)]
mod tests;
mod watch;

use crate::args::calc::Top;
use crate::session::{Outcome, Session};
use std::io::IsTerminal;

/// Shows the page, or prints lines where there is a count, JSON is asked for, or no terminal that can be drawn on.
pub fn run(session: &mut Session<'_>, args: &Top) -> Outcome {
    let is_dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    let has_keys = session.is_watched && std::io::stdin().is_terminal() && !is_dumb;
    match has_keys && args.count.is_none() && !args.json {
        true => watch::run(session, &args.statistics),
        false => plain::run(session, args),
    }
}
