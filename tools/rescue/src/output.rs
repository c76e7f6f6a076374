//! Where results, complaints and progress go.

use crate::text;
use std::fmt::{self, Display};
use std::io::Write;
use units::{Error, Kind, Result};

/// How many bytes are read between two lines of progress.
const PROGRESS_STEP: u64 = 16 << 20;

/// See the module.
pub struct Output {
    pub out: Box<dyn Write + Send>,
    pub err: Box<dyn Write + Send>,
    /// Whether a person watches `err`: only then is progress shown.
    pub is_watched: bool,
    complaints: u64,
    files: u64,
    bytes: u64,
    shown: u64,
}

impl Output {
    pub fn new(out: Box<dyn Write + Send>, err: Box<dyn Write + Send>, is_watched: bool) -> Output {
        Output { out, err, is_watched, complaints: 0, files: 0, bytes: 0, shown: 0 }
    }

    /// Nothing was complained about.
    pub fn is_whole(&self) -> bool {
        self.complaints == 0
    }

    /// Says what could not be done, and goes on.
    pub fn complain(&mut self, message: impl Display) {
        self.complaints += 1;
        self.note(message);
    }

    /// Says something that is no fault.
    pub fn note(&mut self, message: impl Display) {
        self.clear();
        // Errors have names from the pool in them: here nothing gets past.
        let line = text::path(message.to_string().as_bytes());
        // An error means that the reader is gone, and with it the place to report this.
        let _ = writeln!(self.err, "{line}");
    }

    pub fn print(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(written)
    }

    pub fn line(&mut self, text: &[u8]) -> Result<()> {
        self.print(text)?;
        self.print(b"\n")
    }

    pub fn file_done(&mut self) {
        self.files += 1;
    }

    pub fn bytes_done(&mut self, bytes: u64) {
        self.bytes += bytes;
        if self.is_watched && self.bytes >= self.shown + PROGRESS_STEP {
            self.shown = self.bytes;
            let (files, size) = (self.files, units::pretty_size(self.bytes));
            let _ = write!(self.err, "\r{files} files, {size} read\x1b[K");
            let _ = self.err.flush();
        }
    }

    /// Takes the line of progress away.
    pub fn clear(&mut self) {
        if self.is_watched && self.shown > 0 {
            let _ = write!(self.err, "\r\x1b[K");
        }
    }
}

/// The output cannot be written: nothing more can be done, and a closed pipe needs no message.
fn written(e: std::io::Error) -> Error {
    let kind = if e.kind() == std::io::ErrorKind::BrokenPipe { Kind::Cancelled } else { Kind::Io };
    Error::new(kind, "write output").because(e)
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Output({} complaints)", self.complaints)
    }
}
