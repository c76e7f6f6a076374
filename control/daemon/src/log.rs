//! The log of a daemon: lines on the standard error, from a level on.

use cli::args::LogLevel;
use tracing::Level;

pub fn start(level: LogLevel) {
    let level = match level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
    };
    let lines =
        tracing_subscriber::fmt().with_max_level(level).with_target(false).with_writer(std::io::stderr);
    // The journal knows the time. A log that was started before stays.
    let _ = match std::env::var_os("JOURNAL_STREAM") {
        Some(_) => lines.without_time().try_init(),
        None => lines.try_init(),
    };
}
