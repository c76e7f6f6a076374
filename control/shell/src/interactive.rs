//! A person at a terminal: line editing, completion and history.

use crate::{Shell, complete, words};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use std::cell::RefCell;
use std::io::{self, Write};
use std::path::Path;

/// Lines that are remembered.
const HISTORY: usize = 1000;

/// The editor asks the shell while a line is typed.
struct Words<'s, 'a>(RefCell<&'s mut Shell<'a>>);

impl Completer for Words<'_, '_> {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(complete::at(&mut self.0.borrow_mut(), line.get(..at).unwrap_or(line)))
    }
}

impl Hinter for Words<'_, '_> {
    type Hint = String;
}

impl Highlighter for Words<'_, '_> {}
impl Validator for Words<'_, '_> {}
impl Helper for Words<'_, '_> {}

/// Reads lines from the terminal until there are no more, or somebody says `exit`. What is typed is remembered in
/// `history`, but for lines with secrets.
pub fn interact(shell: &mut Shell<'_>, history: &Path) -> io::Result<()> {
    let failed = |e: ReadlineError| io::Error::other(e.to_string());
    let mut editor: Editor<Words<'_, '_>, FileHistory> =
        Editor::with_config(config().map_err(failed)?).map_err(failed)?;
    // There is none the first time.
    let _ = editor.load_history(history);
    shell.set_confirm(confirm);
    editor.set_helper(Some(Words(RefCell::new(shell))));
    loop {
        let prompt = match editor.helper().map(|words| words.0.borrow()) {
            Some(shell) if !shell.has_ended() => shell.prompt(),
            _ => break,
        };
        let line = match editor.readline(&prompt) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(e) => return Err(failed(e)),
        };
        if is_remembered(&line) {
            let _ = editor.add_history_entry(&line);
        }
        let Some(mut shell) = editor.helper().map(|words| words.0.borrow_mut()) else { break };
        for command in words::commands(&line) {
            let result = shell.run(&command);
            let mut out = io::stdout().lock();
            out.write_all(shell.take_output().as_bytes())?;
            if let Err(e) = result {
                writeln!(out, "error: {e}")?;
                break;
            }
        }
    }
    // Without history the shell is as good.
    let _ = editor.save_history(history);
    Ok(())
}

/// Of several words that could be meant all are listed: to step through them shows one at a time.
fn config() -> rustyline::Result<Config> {
    let config = Config::builder().max_history_size(HISTORY)?.auto_add_history(false);
    Ok(config.completion_type(CompletionType::List).build())
}

fn is_remembered(line: &str) -> bool {
    !line.trim().is_empty() && !line.contains("secret")
}

fn confirm(question: &str) -> bool {
    let mut out = io::stdout().lock();
    let asked = out.write_all(question.as_bytes()).and_then(|()| out.flush());
    let mut answer = String::new();
    asked.is_ok()
        && io::stdin().read_line(&mut answer).is_ok()
        && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first that fitted was put in, and the others came one by one.
    #[test]
    fn what_could_be_meant_is_listed() {
        let config = config().unwrap();
        assert_eq!(config.completion_type(), CompletionType::List);
    }

    #[test]
    fn secrets_are_not_remembered() {
        assert!(
            is_remembered("set alias=x")
                && !is_remembered("set chapsecret=correct-horse")
                && !is_remembered(" ")
        );
    }
}
