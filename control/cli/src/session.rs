//! One command under way: whom it asks, and where it prints.

use crate::text::visible::visible_lines;
use api::{ApiError, Call, Caller, Reply, Request};
use std::fmt;
use std::io::Write;

/// Why a command ends without success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The words make no sense: exit code 2.
    Usage(String),
    /// It could not be done: exit code 1. The message is the whole line.
    Failed(String),
    /// It was said already what went wrong: exit code 1.
    Told,
}

pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub fn code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Failed(_) | Failure::Told => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(message) | Failure::Failed(message) => f.write_str(message),
            Failure::Told => Ok(()),
        }
    }
}

impl From<ApiError> for Failure {
    fn from(e: ApiError) -> Failure {
        Failure::Failed(e.message)
    }
}

/// See the module.
pub struct Session<'a> {
    pub caller: &'a mut dyn Caller,
    pub out: &'a mut dyn Write,
    pub err: &'a mut dyn Write,
    /// Whether a person watches `err`: only then is progress shown.
    pub is_watched: bool,
    /// Something that was asked for was not there; the rest was shown all the same, and the exit code is 1.
    pub has_failed: bool,
    /// The command line, as a pool's history records it.
    pub command: String,
    pub uid: u64,
}

impl fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({})", self.command)
    }
}

impl Session<'_> {
    pub fn ask(&mut self, request: Request) -> Outcome<Reply> {
        Ok(self.caller.call(Call { command: self.command.clone(), uid: self.uid, request })?)
    }

    /// Asks for something that has no answer but that it was done.
    pub fn order(&mut self, request: Request) -> Outcome {
        self.ask(request).map(drop)
    }

    /// Prints, and ends the command quietly when the reader is gone.
    pub fn print(&mut self, text: &str) -> Outcome {
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        written.map_err(|_| Failure::Told)
    }

    /// Prints lines for a person, in which others may have chosen words.
    pub fn show(&mut self, text: &str) -> Outcome {
        self.print(&visible_lines(text))
    }

    pub fn complain(&mut self, message: impl fmt::Display) {
        // No reader is left to be told.
        let _ = writeln!(self.err, "{}", visible_lines(&message.to_string()));
    }

    /// Asks the same of each name, so that one that is not there hides only itself; of everything when there is none.
    pub fn ask_each<T>(
        &mut self,
        names: &[String],
        mut ask: impl FnMut(&mut Self, Vec<String>) -> Outcome<Vec<T>>,
    ) -> Outcome<Vec<T>> {
        if names.len() < 2 {
            return ask(self, names.to_vec());
        }
        let mut all = Vec::new();
        for name in names {
            match ask(self, vec![name.clone()]) {
                Ok(some) => all.extend(some),
                Err(Failure::Failed(message)) => {
                    self.complain(message);
                    self.has_failed = true;
                }
                Err(other) => return Err(other),
            }
        }
        Ok(all)
    }

    /// Does the same for each of `names`, whatever becomes of the others.
    pub fn for_each(
        &mut self,
        names: &[String],
        mut what: impl FnMut(&mut Self, &str) -> Outcome,
    ) -> Outcome {
        let mut outcome = Ok(());
        for name in names {
            match what(self, name) {
                Ok(()) => {}
                Err(Failure::Failed(message)) => {
                    self.complain(message);
                    outcome = Err(Failure::Told);
                }
                Err(other) => outcome = Err(other),
            }
        }
        outcome
    }
}

/// The reply that was asked for; any other is a service of another version.
#[macro_export]
macro_rules! expect_reply {
    ($reply:expr, $pattern:pat => $value:expr) => {
        match $reply {
            $pattern => $value,
            other => {
                return Err($crate::Failure::Failed(format!(
                    "the daemon gave an unexpected answer: {other:?}"
                )));
            }
        }
    };
}
