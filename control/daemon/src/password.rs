//! `cenote password [USER]`: sets a password for the API, by who has the home.
//!
//! With a daemon it goes through the Unix socket, whose other end is root by being there; without one, into the home.

use crate::web::{Kernel, open_access};
use crate::{Holder, report};
use access::{Access, Entropy, ROOT, Secret};
use appliance::Home;
use cli::Failure;
use cli::args::Password;
use rustix::termios::{LocalModes, OptionalActions, isatty, tcgetattr, tcsetattr};
use std::io::{BufRead, Read, Write};
use std::os::unix::net::UnixStream;

/// 120 bits, in letters that nobody mistakes.
const GENERATED: usize = 24;
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

pub fn run(home: &Home, args: &Password) -> Result<(), Failure> {
    let password = match args.generate {
        true => generate(),
        false => {
            read("New password: ").map_err(|e| Failure::Failed(format!("cannot read a password: {e}")))?
        }
    };
    match crate::reach(home)? {
        Holder::Daemon(_) => over_the_socket(home, &args.user, &password)?,
        Holder::Own(_lock) => in_the_home(home, &args.user, &password)?,
    }
    if args.generate {
        report::say(password.reveal());
    }
    Ok(())
}

fn generate() -> Secret {
    let mut bytes = [0; GENERATED];
    Kernel.fill(&mut bytes);
    Secret::new(bytes.iter().map(|b| char::from(LETTERS[usize::from(b % 32)])).collect::<String>())
}

/// A line of the standard input; a terminal does not show it.
pub fn read(prompt: &str) -> std::io::Result<Secret> {
    let stdin = std::io::stdin();
    let shown = if isatty(&stdin) { Some(tcgetattr(&stdin)?) } else { None };
    if let Some(shown) = &shown {
        let mut hidden = shown.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&stdin, OptionalActions::Flush, &hidden)?;
        let _ = write!(std::io::stderr(), "{prompt}");
    }
    let mut line = String::new();
    let outcome = stdin.lock().read_line(&mut line);
    if let Some(shown) = &shown {
        tcsetattr(&stdin, OptionalActions::Flush, shown)?;
        let _ = writeln!(std::io::stderr());
    }
    outcome?;
    Ok(Secret::new(line.trim_end_matches(['\r', '\n'])))
}

fn in_the_home(home: &Home, user: &str, password: &Secret) -> Result<(), Failure> {
    let failed =
        |e: access::AccessError| Failure::Failed(format!("cannot set the password of '{user}': {e}"));
    let configuration =
        store::Store::open(&home.configuration()).map_err(|e| Failure::Failed(e.to_string()))?;
    let mut access = open_access(home, configuration).map_err(Failure::Failed)?;
    let hash = Access::hash(access.salt(), password).map_err(failed)?;
    access.change(|state| state.set_password(ROOT, user, hash)).map_err(failed)
}

fn over_the_socket(home: &Home, user: &str, password: &Secret) -> Result<(), Failure> {
    let failed = |why: String| Failure::Failed(format!("cannot set the password of '{user}': {why}"));
    if !user.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
        return Err(failed("there is no such user".into()));
    }
    let body = serde_json::json!({ "initial_password": password.reveal() }).to_string();
    let path = format!("/api/user/v1/users/{user}");
    let (status, answer) = ask(home, "PUT", &path, &body).map_err(|e| failed(e.to_string()))?;
    if status == 202 {
        return Ok(());
    }
    let fault: serde_json::Value = serde_json::from_str(&answer).unwrap_or_default();
    Err(failed(fault["fault"]["message"].as_str().unwrap_or("the daemon refuses").into()))
}

/// One request through the Unix socket, and its status and body.
pub fn ask(home: &Home, method: &str, path: &str, body: &str) -> std::io::Result<(u16, String)> {
    let mut stream = UnixStream::connect(home.dir().join("rest.sock"))?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Ok((status, body.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_passwords_are_long_and_differ() {
        let (a, b) = (generate(), generate());
        assert_ne!(a.reveal(), b.reveal());
        assert!(a.reveal().len() == GENERATED && a.reveal().bytes().all(|c| LETTERS.contains(&c)));
    }
}
