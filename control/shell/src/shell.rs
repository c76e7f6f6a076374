//! The state of a shell: the stack of contexts, what was printed, and the way to the appliance.
//!
//! ```text
//!   vocabulary ◀── shell ◀── shares  san  said ...     ◀── dispatch ◀── help  complete ◀── commands
//!   the words      state     one file for each family      which file      words and        what is understood
//!                            of contexts                   answers where   their help       in all contexts
//! ```

use crate::context::{self, Context};
use crate::vocabulary::Result;
use api::{Call, Caller, Reply, Request};

/// See the crate.
pub struct Shell<'a> {
    caller: &'a mut dyn Caller,
    /// In whose name it asks.
    uid: u64,
    host: String,
    /// The root, and what was entered from there; each with the depth to which one returns from it.
    pub(crate) stack: Vec<Context>,
    pub(crate) origins: Vec<usize>,
    pub(crate) pool: Option<String>,
    output: String,
    /// Asks a person whether to go on; without a person the answer is no.
    confirm: Option<fn(&str) -> bool>,
    pub(crate) is_confirmed: bool,
    pub(crate) has_ended: bool,
}

impl std::fmt::Debug for Shell<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shell({})", self.prompt())
    }
}

impl<'a> Shell<'a> {
    pub fn new(host: &str, uid: u64, caller: &'a mut dyn Caller) -> Shell<'a> {
        Shell {
            caller,
            uid,
            host: host.into(),
            stack: vec![Context::Root],
            origins: vec![1],
            pool: None,
            output: String::new(),
            confirm: None,
            is_confirmed: false,
            has_ended: false,
        }
    }

    /// A person is there to be asked.
    pub fn set_confirm(&mut self, confirm: fn(&str) -> bool) {
        self.confirm = Some(confirm);
    }

    pub fn prompt(&self) -> String {
        context::prompt(&self.host, &self.stack)
    }

    /// What was printed since the last time.
    pub fn take_output(&mut self) -> String {
        std::mem::take(&mut self.output)
    }

    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    pub(crate) fn here(&self) -> &Context {
        self.stack.last().expect("the root is always there")
    }

    pub(crate) fn here_mut(&mut self) -> &mut Context {
        self.stack.last_mut().expect("the root is always there")
    }

    pub(crate) fn push(&mut self, context: Context) {
        self.stack.push(context);
    }

    pub(crate) fn cut(&mut self, depth: usize) {
        self.stack.truncate(depth.max(1));
        self.origins.truncate(depth.max(1));
    }

    /// Back to where the line began that led here.
    pub(crate) fn leave(&mut self) {
        let to = self.origins.last().copied().unwrap_or(1).min(self.stack.len() - 1);
        self.cut(to);
    }

    pub(crate) fn print(&mut self, text: &str) {
        self.output.push_str(text);
    }

    /// Waits for the reply. `line` is what a person would have typed, for the history of the pools that it changes.
    pub(crate) fn ask(&mut self, line: &str, request: Request) -> Result<Reply> {
        let call = Call { command: line.into(), uid: self.uid, request };
        self.caller.call(call).map_err(|e| e.message)
    }

    /// Whether to go on with what cannot be undone.
    pub(crate) fn must_confirm(&mut self, what: &str, command: &str) -> Result {
        if self.is_confirmed || self.confirm.is_some_and(|ask| ask(&format!("{what} Are you sure? (Y/N) "))) {
            return Ok(());
        }
        match self.confirm {
            Some(_) => Err("it was not confirmed, and nothing was done".into()),
            None => Err(format!("{what} To go on, say \"confirm {command}\"")),
        }
    }
}
