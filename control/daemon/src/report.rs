//! Printing, by whom nothing is awaited: a terminal that is gone ends no daemon.

use std::io::Write;

/// What went wrong, for a person.
pub fn complain(message: &str) {
    let _ = writeln!(std::io::stderr(), "{message}");
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

/// An error of the engine as one line about what was wanted.
pub fn cannot(doing: &str, e: &units::Error) -> cli::Failure {
    let why = std::error::Error::source(e).map_or_else(|| e.to_string(), ToString::to_string);
    cli::Failure::Failed(format!("cannot {doing}: {why}"))
}
