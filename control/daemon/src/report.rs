//! Printing, by whom nothing is awaited: a terminal that is gone ends no daemon.

use cli::text::visible::visible_lines;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// What went wrong, for a person.
pub fn complain(message: &str) {
    let _ = writeln!(std::io::stderr(), "{}", visible_lines(message));
}

/// What is at stake with settings that were made once and may be forgotten.
pub fn warn(appliance: &appliance::Appliance) {
    appliance.warnings().iter().for_each(|warning| complain(&format!("WARNING: {warning}")));
}

pub fn say(message: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{message}");
    let _ = out.flush();
}

/// A bar that is drawn again whenever another thousandth is done, for whoever watches the terminal.
pub fn progress(what: &'static str) -> impl Fn(u64, u64) + Send + Sync {
    const WIDTH: u64 = 30;
    let is_watched = std::io::stderr().is_terminal();
    let shown = AtomicU64::new(u64::MAX);
    move |done, of| {
        let thousandths = (u128::from(done) * 1000 / u128::from(of.max(1))).min(1000) as u64;
        if is_watched && shown.swap(thousandths, Ordering::Relaxed) != thousandths {
            let full = thousandths * WIDTH / 1000;
            let bar = "#".repeat(full as usize) + &".".repeat((WIDTH - full) as usize);
            // Without the end of line: the next one is written over it.
            let line = format!("\r{what} [{bar}] {}.{}%\x1b[K", thousandths / 10, thousandths % 10);
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }
}

/// What was progress is gone.
pub fn end_progress() {
    if std::io::stderr().is_terminal() {
        let _ = std::io::stderr().write_all(b"\r\x1b[K");
    }
}

/// An error of the engine as one line about what was wanted.
pub fn cannot(doing: &str, e: &units::Error) -> cli::Failure {
    let why = e.cause().map_or_else(|| e.to_string(), ToString::to_string);
    cli::Failure::Failed(format!("cannot {doing}: {why}"))
}
