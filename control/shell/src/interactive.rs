//! A person at a terminal: line editing, completion and history.

use crate::complete::{Candidates, complete};
use crate::{Shell, help, words};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, Helper};
use std::io::{self, Write};
use std::path::Path;

/// Lines that are remembered.
const HISTORY: usize = 1000;

#[derive(Default)]
struct Words(Candidates);

impl Completer for Words {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(complete(line.get(..at).unwrap_or(line), &self.0))
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}
impl Validator for Words {}
impl Helper for Words {}

/// Reads lines from the terminal until there are no more, or somebody says `exit`. What is typed is remembered in
/// `history`, but for lines with secrets.
pub fn interact(shell: &mut Shell<'_>, history: &Path) -> io::Result<()> {
    let failed = |e: ReadlineError| io::Error::other(e.to_string());
    let config = Config::builder().max_history_size(HISTORY).map_err(failed)?.auto_add_history(false).build();
    let mut editor: Editor<Words, FileHistory> = Editor::with_config(config).map_err(failed)?;
    // There is none the first time.
    let _ = editor.load_history(history);
    shell.set_confirm(confirm);
    while !shell.has_ended() {
        editor.set_helper(Some(Words(candidates(shell))));
        let line = match editor.readline(&shell.prompt()) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(e) => return Err(failed(e)),
        };
        if is_remembered(&line) {
            let _ = editor.add_history_entry(&line);
        }
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

/// What can be typed next.
fn candidates(shell: &mut Shell<'_>) -> Candidates {
    let first = help::first_words(shell.here());
    let settable: Vec<String> = shell.settable().into_iter().map(|s| s.name).collect();
    let names = shell.names();
    let mut candidates = Candidates { first, ..Candidates::default() };
    candidates.after.insert("set".into(), settable.iter().map(|name| format!("{name}=")).collect());
    candidates.after.insert("get".into(), settable.clone());
    candidates.after.insert("unset".into(), settable);
    for verb in ["select", "destroy", "rename", "move"] {
        candidates.after.insert(verb.into(), names.clone());
    }
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_remembered() {
        assert!(
            is_remembered("set alias=x")
                && !is_remembered("set chapsecret=correct-horse")
                && !is_remembered(" ")
        );
    }
}
