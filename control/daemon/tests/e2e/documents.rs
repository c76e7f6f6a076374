//! The documents are true: what their consoles say is what the program prints.
//!
//! All consoles of one document are one session, from top to bottom, in a directory of its own that stands for the
//! document's [`PLACES`]. A daemon that is started goes on in the background, as in another terminal.

use crate::console::{Step, matches, steps};
use crate::home::CENOTE;
use interop::harness::{Need, Trial, trial};
use interop::{Scratch, golden, programs, root};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Where documents put things; here each is a directory of the test.
const PLACES: [&str; 2] = ["/tmp/tour", "/srv"];
/// Where documents have the disks of another machine: here pools that OpenZFS made, the first without its middle disk.
const EVIDENCE: &str = "/srv/evidence";
const FOREIGN: [&str; 2] = ["rz1", "gpt"];
/// What the commands in documents need besides the program.
const PROGRAMS: [&str; 7] = ["bash", "nbdinfo", "nbdcopy", "zdb", "truncate", "fio", "curl"];
/// How long a daemon may take until it has said what the document says.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn trials() -> Vec<Trial> {
    let docs = root().join("docs");
    let listed = std::fs::read_dir(&docs).unwrap().map(|entry| entry.unwrap().path());
    let mut documents: Vec<PathBuf> = listed.filter(|p| p.extension().is_some_and(|e| e == "md")).collect();
    documents.push(root().join("README.md"));
    documents.sort();
    let with_consoles = documents.into_iter().map(|path| (std::fs::read_to_string(&path).unwrap(), path));
    with_consoles
        .filter(|(text, _)| !steps(text).is_empty())
        .map(|(text, path)| of_document(&path, text))
        .collect()
}

fn of_document(path: &Path, text: String) -> Trial {
    let name = path.file_name().unwrap().to_string_lossy().replace('.', "_");
    let steps = steps(&text);
    let is_used = |program: &&str| steps.iter().any(|s| s.command.split_whitespace().any(|w| w == *program));
    let needs: Vec<Need> =
        PROGRAMS.into_iter().filter(|p| *p == "bash" || is_used(p)).map(Need::Program).collect();
    let shows_evidence = text.contains(EVIDENCE);
    let mounts = steps.iter().any(|step| step.command.starts_with("zfs mount "));
    let needs =
        if mounts { [needs, vec![crate::files::FUSE, interop::harness::ROOT]].concat() } else { needs };
    let needs = if shows_evidence { [needs, FOREIGN.map(Need::Golden).to_vec()].concat() } else { needs };
    let path = path.to_owned();
    trial(format!("what_{name}_shows_is_what_the_program_prints"), &needs, move || {
        let mut session = Session::new();
        if shows_evidence {
            session.place_evidence();
        }
        steps.iter().for_each(|step| session.run(&path, step));
        session.end();
    })
}

struct Session {
    scratch: Scratch,
    environment: BTreeMap<String, String>,
    /// Words of the document, and what they are here: the longest first.
    meanings: Vec<(String, String)>,
    daemons: Vec<Background>,
}

struct Background {
    child: Child,
    printed: Arc<Mutex<Vec<String>>>,
}

impl Session {
    fn new() -> Session {
        let scratch = Scratch::new();
        let names = scratch.join("bin");
        std::fs::create_dir(&names).unwrap();
        for name in ["zpool", "zfs"] {
            std::os::unix::fs::symlink(CENOTE, names.join(name)).unwrap();
        }
        let own = Path::new(CENOTE).parent().unwrap().display();
        // The programs that the tests need stand where the path of many users does not lead.
        let rest = std::env::var("PATH").unwrap_or_default();
        let path = format!("{own}:{}:{rest}:/usr/local/sbin:/usr/sbin:/sbin", names.display());
        let here = |place: &&str| scratch.path().display().to_string() + place;
        let meanings: Vec<(String, String)> = PLACES.iter().map(|p| (p.to_string(), here(p))).collect();
        meanings.iter().for_each(|(_, dir)| std::fs::create_dir_all(dir).unwrap());
        Session {
            environment: BTreeMap::from([("PATH".into(), path)]),
            meanings,
            scratch,
            daemons: Vec::new(),
        }
    }

    fn place_evidence(&self) {
        let place = PathBuf::from(self.translate(EVIDENCE));
        std::fs::create_dir_all(&place).unwrap();
        let images = FOREIGN.into_iter().flat_map(|pool| golden::pool(pool).images);
        for image in images.filter(|image| !image.ends_with("rz1-1.img")) {
            std::os::unix::fs::symlink(&image, place.join(image.file_name().unwrap())).unwrap();
        }
    }

    fn translate(&self, text: &str) -> String {
        self.meanings.iter().fold(text.to_string(), |text, (word, here)| text.replace(word, here))
    }

    fn run(&mut self, document: &Path, step: &Step) {
        let command = self.translate(&step.command);
        let expected: Vec<String> = step.expected.iter().map(|line| self.translate(line)).collect();
        let place = format!("{}:{}", document.display(), step.line);
        if let Some((name, value)) = command.strip_prefix("export ").and_then(|rest| rest.split_once('=')) {
            self.environment.insert(name.into(), value.into());
            return;
        }
        println!("{place}: {command}");
        if stays(&command) {
            return self.start(&command, &expected, &place);
        }
        let output = self.shell(&command).output().unwrap();
        let printed = lines(&programs::said(&output));
        assert_eq!(output.status.code(), Some(step.code), "{place}: {command}: {printed:#?}");
        compare(&expected, &printed, &place);
    }

    fn shell(&self, command: &str) -> Command {
        let mut shell = Command::new("bash");
        shell.arg("-c").arg(command).current_dir(self.scratch.path()).envs(&self.environment);
        shell.env_remove("CENOTE_HOME").envs(&self.environment).stdin(Stdio::null());
        shell
    }

    fn start(&mut self, command: &str, expected: &[String], place: &str) {
        let mut shell = self.shell(&format!("exec {command}"));
        let mut child = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let printed: Arc<Mutex<Vec<String>>> = Arc::default();
        listen(child.stdout.take().unwrap(), printed.clone());
        listen(child.stderr.take().unwrap(), printed.clone());
        let until = Instant::now() + PATIENCE;
        let now = || printed.lock().unwrap().clone();
        while !matches(expected, &now()) && Instant::now() < until && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(20));
        }
        compare(expected, &now(), place);
        self.learn_ports(&now());
        self.daemons.push(Background { child, printed });
    }

    /// The usual port may be taken on this machine: then `nbd://127.0.0.1/` means another.
    fn learn_ports(&mut self, printed: &[String]) {
        let mut words = printed.iter().flat_map(|line| line.split_whitespace());
        let address = words.find_map(|word| {
            let word = word.strip_prefix("nbd://")?;
            word.starts_with("127.0.0.1").then(|| word.split('/').next().unwrap_or(word).to_string())
        });
        let uri = address.map(|address| format!("nbd://{address}/"));
        self.meanings.extend(uri.map(|uri| ("nbd://127.0.0.1/".to_string(), uri)));
    }

    /// Whatever still runs ends when it is told to, and in peace.
    fn end(mut self) {
        for daemon in &mut self.daemons {
            if daemon.child.try_wait().unwrap().is_none() {
                kill_process(Pid::from_child(&daemon.child), Signal::INT).unwrap();
            }
            let status = daemon.child.wait().unwrap();
            assert!(status.success(), "{status}: {:#?}", daemon.printed.lock().unwrap());
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether it is one of the commands that go on until they are told to end.
fn stays(command: &str) -> bool {
    let mut words = command.split_whitespace().skip_while(|w| w.contains('='));
    words.next() == Some("cenote")
        && words
            .find(|w| {
                ["up", "serve", "nbd", "zpool", "zfs", "down", "status", "inspect", "shell", "help"]
                    .contains(w)
            })
            .is_some_and(|w| ["up", "serve", "nbd"].contains(&w))
}

fn listen(stream: impl Read + Send + 'static, printed: Arc<Mutex<Vec<String>>>) {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            // Daemons of other tests have the usual ports.
            if line.contains("is taken by another program") {
                continue;
            }
            printed.lock().unwrap().push(line);
        }
    });
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(String::from).collect()
}

fn compare(expected: &[String], printed: &[String], place: &str) {
    assert!(
        matches(expected, printed),
        "{place}: the document says\n{}\nand the program prints\n{}",
        expected.join("\n"),
        printed.join("\n")
    );
}
