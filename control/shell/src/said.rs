//! Words that are declared with their requests, see `api::http::Spoken`: all of them, in all contexts.

use crate::context;
use crate::shell::Shell;
use crate::show;
use crate::vocabulary::Result;
use api::declared;
use api::http::Method;

impl Shell<'_> {
    /// Says a declared word, where this context has it; whether it has.
    pub(crate) fn command_said(&mut self, words: &[String]) -> Result<bool> {
        let Some((place, things)) = self.here().place() else { return Ok(false) };
        let mut here = declared::said_at(place);
        let Some((declared, spoken)) = here.find(|(_, spoken)| spoken.word() == words[0]) else {
            return Ok(false);
        };
        let request = declared.say(spoken, &things, &words[1..]).map_err(|wrong| wrong.to_string())?;
        let typed = words.join(" ");
        if let Some(sure) = spoken.sure {
            self.must_confirm(sure, &typed)?;
        }
        let reply = self.ask(&format!("shell: {} {typed}", context::path(&self.stack)), request)?;
        if let Some(told) = declared.told.and_then(|tell| tell(&reply)) {
            self.print(&show::answer(declared.face.reply, &told));
        }
        if declared.face.method == Method::Delete && spoken.is_of_one() {
            // What one was in is gone.
            self.stack.pop();
        }
        Ok(true)
    }
}
