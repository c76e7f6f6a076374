//! Programs of others: whether the machine has them, and running them so that a failure explains itself.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Where a program is. Some of the needed ones live where the path of many users does not lead.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let directories = path.split(':').chain(["/usr/local/sbin", "/usr/sbin", "/sbin"]);
    directories.map(|directory| PathBuf::from(directory).join(program)).find(|file| file.is_file())
}

/// A command for a program that the test has listed among its needs.
///
/// # Panics
/// When the machine does not have it: then the need was not listed.
pub fn command(program: &str) -> Command {
    let found = find(program);
    Command::new(
        found.unwrap_or_else(|| {
            panic!("this machine has no {program}, and the test does not say it needs it")
        }),
    )
}

/// Runs a command to its end and returns what it printed.
///
/// # Panics
/// When it fails, with all that it said.
pub fn run(command: &mut Command) -> String {
    let output = output(command);
    assert!(output.status.success(), "{command:?} failed: {}\n{}", output.status, said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a command to its end, whatever that is.
///
/// # Panics
/// When it cannot be started.
pub fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|e| panic!("{command:?} cannot be started: {e}"))
}

/// Runs a command to its end with this text as its input. A program that ends before it has read all of it has done so
/// for a reason, which its exit code and its output tell.
///
/// # Panics
/// When it cannot be started, or its input fails for another reason than its end.
pub fn feed(command: &mut Command, text: &str) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?} cannot be started: {e}"));
    let mut input = child.stdin.take().expect("its input is a pipe");
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || input.write_all(text.as_bytes()));
        let output = child.wait_with_output().expect("its output can be read");
        match writer.join().expect("writing does not panic") {
            Err(e) if e.kind() != ErrorKind::BrokenPipe => panic!("{command:?} takes no input: {e}"),
            _ => output,
        }
    })
}

/// Both streams of a command's output.
pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_or_not() {
        assert!(find("sh").is_some());
        assert_eq!(find("no-such-program-anywhere"), None);
        assert_eq!(run(command("sh").args(["-c", "echo hello"])), "hello\n");
    }

    /// The text is more than a pipe holds: the program is gone while it is written.
    #[test]
    fn a_program_that_ends_before_it_has_read_its_input_is_heard() {
        let text = "line\n".repeat(100_000);
        let output = feed(command("sh").args(["-c", "echo no >&2; exit 3"]), &text);
        assert_eq!((output.status.code(), said(&output).as_str()), (Some(3), "no\n"));
        let output = feed(&mut command("cat"), &text);
        assert!(output.status.success() && said(&output) == text);
    }
}
