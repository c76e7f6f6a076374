//! `cenote doctor`: where its facts come from.
//!
//! What is said of pools needs them open: the daemon's, or the home's. What a client's script printed is judged
//! without any; LUNs of a daemon that runs are known by name then.

mod remote;

use crate::{running, with_caller, with_session};
use appliance::Home;
use cli::Failure;
use cli::args::doctor::{Doctor, What};
use std::io::{IsTerminal, Read, Write};
use std::path::Path;

/// More than any host says; the rest is not read.
const FACTS_MAX: u64 = 32 << 20;

pub fn run(home: &Home, args: Doctor, line: String) -> Result<(), Failure> {
    match args.what {
        None if args.apply => {
            if !args.yes && !std::io::stdin().is_terminal() {
                let why = "doctor: --apply asks before each change, and there is no terminal: --yes carries out all";
                return Err(Failure::Usage(why.into()));
            }
            with_session(home, line, |session| {
                cli::doctor::apply(session, |question| if args.yes { Ok(true) } else { confirms(question) })
            })
        }
        None => with_session(home, line, |session| cli::doctor::here(session, args.json)),
        Some(What::Host { facts, ssh, ssh_command, json }) => {
            let bytes = match (facts, ssh) {
                (_, Some(host)) => remote::gather(&host, &ssh_command)?,
                (Some(file), None) => read(&file)?,
                (None, None) => return print(::doctor::HOST_SCRIPT),
            };
            let mut text = String::new();
            match running(home)? {
                Some(mut daemon) => with_caller(&mut daemon, line, |session| {
                    text = cli::doctor::host(Some(session), &bytes, json)?;
                    Ok(())
                })?,
                None => text = cli::doctor::host(None, &bytes, json)?,
            }
            print(&text)
        }
        Some(What::Blocksize { share }) => {
            with_session(home, line, |session| cli::doctor::blocksize(session, &share))
        }
        Some(What::Generate { file }) => print(&cli::doctor::generate(&file)?),
    }
}

/// Whether a person at the terminal says yes.
fn confirms(question: &str) -> Result<bool, Failure> {
    let failed = |e: std::io::Error| Failure::Failed(format!("cannot ask '{question}': {e}"));
    print(&format!("{question} [y/N] "))?;
    std::io::stdout().flush().map_err(failed)?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(failed)?;
    Ok(matches!(answer.trim(), "y" | "yes"))
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let done = match file == Path::new("-") {
        true => std::io::stdin().lock().take(FACTS_MAX).read_to_end(&mut bytes),
        false => std::fs::File::open(file).and_then(|opened| opened.take(FACTS_MAX).read_to_end(&mut bytes)),
    };
    done.map_err(|e| Failure::Failed(format!("cannot read the facts in '{}': {e}", file.display())))?;
    Ok(bytes)
}

/// Prints, and ends quietly when its output is read no more.
fn print(text: &str) -> Result<(), Failure> {
    std::io::stdout().write_all(text.as_bytes()).map_err(|_| Failure::Told)
}
