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
    // Where lines have no place any more, as a pipe has nothing at its other end or a file system is full, the daemon goes
    // on without them: to say so on the same standard error would be a panic of the task that had a line.
    let lines = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        .with_writer(std::io::stderr)
        .log_internal_errors(false);
    // The journal knows the time. A log that was started before stays.
    let _ = match std::env::var_os("JOURNAL_STREAM") {
        Some(_) => lines.without_time().try_init(),
        None => lines.try_init(),
    };
}
