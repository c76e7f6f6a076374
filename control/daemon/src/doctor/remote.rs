//! The script of `doctor host`, run on a client over ssh.
//!
//! ```text
//!   script ──stdin──▶ COMMAND.. HOST '/bin/sh -s' ──stdout──▶ facts, of bounded size, within a bounded time
//!                                  └─ stderr and the terminal are the user's: ssh asks for what it needs there
//! ```
//!
//! What comes back is from a stranger: here it is only counted; [`::doctor::Facts::parse`] judges every line of it.

use cli::Failure;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// More than any host says.
const FACTS_MAX: u64 = 16 << 20;
/// The script watches disks for ten seconds; the rest is for a user that types a password, and a slow host.
const PATIENCE: Duration = Duration::from_secs(300);

/// What the script prints on `host`, which `command` reaches. Waits until it has ended, five minutes at most.
pub fn gather(host: &str, command: &str) -> Result<Vec<u8>, Failure> {
    gather_within(host, command, PATIENCE)
}

fn gather_within(host: &str, command: &str, patience: Duration) -> Result<Vec<u8>, Failure> {
    let is_word = |c: char| !c.is_whitespace() && !c.is_control();
    if host.is_empty() || host.starts_with('-') || !host.chars().all(is_word) {
        return Err(Failure::Usage(format!("doctor: '{}' is no name of a host", host.escape_default())));
    }
    let failed = |why: String| Failure::Failed(format!("cannot gather facts of {host}: {why}"));
    let mut words = command.split_whitespace();
    let program = words.next().ok_or_else(|| Failure::Usage("doctor: --ssh-command is empty".into()))?;
    let mut child = Command::new(program)
        .args(words)
        .args([host, "/bin/sh -s"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| failed(format!("'{program}' does not start: {e}")))?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let child = Arc::new(Mutex::new(child));
    let (over, is_over) = channel::<()>();
    let watched = child.clone();
    let watch = std::thread::spawn(move || {
        let is_late = is_over.recv_timeout(patience) == Err(RecvTimeoutError::Timeout);
        if is_late {
            // It may have ended just now.
            let _ = lock(&watched).kill();
        }
        is_late
    });
    let feed = std::thread::spawn(move || {
        // A client that does not read it ends with a status of its own.
        stdin.map(|mut stdin| stdin.write_all(::doctor::HOST_SCRIPT.as_bytes()))
    });
    let mut bytes = Vec::new();
    let read = stdout.map(|stdout| stdout.take(FACTS_MAX + 1).read_to_end(&mut bytes));
    let is_large = bytes.len() as u64 > FACTS_MAX;
    if is_large {
        let _ = lock(&child).kill();
    }
    drop(over);
    let is_late = watch.join().unwrap_or(false);
    let status = lock(&child).wait();
    let _ = feed.join();
    if is_late {
        return Err(failed(format!("there was no answer in {} s", patience.as_secs())));
    }
    if is_large {
        return Err(failed(format!("it says more than the {FACTS_MAX} bytes of the largest host")));
    }
    read.transpose().map_err(|e| failed(e.to_string()))?;
    match status {
        Ok(status) if status.success() => Ok(bytes),
        Ok(status) => Err(failed(format!("'{command}' ended with {status}"))),
        Err(e) => Err(failed(e.to_string())),
    }
}

fn lock(child: &Mutex<Child>) -> std::sync::MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A program that stands for ssh: it runs what it is told on this machine, with a root of its own.
    struct Fake(PathBuf);

    impl Fake {
        fn new(name: &str, body: &str) -> Fake {
            let dir = std::env::temp_dir().join(format!("cenote-ssh-{}-{name}", std::process::id()));
            std::fs::create_dir_all(dir.join("root/proc/sys/kernel")).unwrap();
            std::fs::write(dir.join("root/proc/sys/kernel/ostype"), "Linux\n").unwrap();
            std::fs::write(dir.join("ssh"), body).unwrap();
            Fake(dir)
        }

        fn gather(&self, patience: u64) -> Result<Vec<u8>, String> {
            let command = format!("/bin/sh {}", self.0.join("ssh").display());
            gather_within("client", &command, Duration::from_secs(patience)).map_err(|e| e.to_string())
        }
    }

    impl Drop for Fake {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_script_runs_there_and_its_facts_come_back() {
        let body = "export FACTS_ROOT=\"$(dirname \"$0\")/root\" FACTS_SECONDS=0\n\
                    [ \"$1\" = client ] || exit 9\nexec /bin/sh -c \"$2\"\n";
        let bytes = Fake::new("good", body).gather(60).unwrap();
        let facts = ::doctor::Facts::parse(&bytes).unwrap();
        assert_eq!(
            facts.text("/proc/sys/kernel/ostype"),
            Some("Linux"),
            "{}",
            String::from_utf8_lossy(&bytes)
        );
    }

    #[test]
    fn an_answer_that_is_none_is_refused_with_what_is_wrong() {
        let refused = |name, body, patience| Fake::new(name, body).gather(patience).unwrap_err();
        assert!(refused("status", "cat >/dev/null; exit 255", 60).contains("exit status: 255"));
        assert!(refused("silent", "exec sleep 600", 1).contains("no answer in 1 s"));
        let endless =
            "while :; do printf 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx%4096s'; done";
        assert!(refused("endless", endless, 60).contains("more than the"));
        let nonsense = Fake::new("nonsense", "cat >/dev/null; printf 'Welcome\\ncenote facts 1\\nend\\n'");
        let error = ::doctor::Facts::parse(&nonsense.gather(60).unwrap()).unwrap_err();
        assert!(error.contains("line 1 is 'Welcome'"), "{error}");
        for host in ["", "-oProxyCommand=x", "a b", "a\u{1b}[2J"] {
            let error = gather(host, "ssh").unwrap_err().to_string();
            assert!(error.contains("is no name of a host"), "{error}");
        }
        assert!(gather("client", "/nonexistent/ssh").unwrap_err().to_string().contains("does not start"));
    }
}
