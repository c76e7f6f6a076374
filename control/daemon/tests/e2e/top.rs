//! `cenote top` in a terminal: keys are pressed, and the screen is read.
//!
//! The terminal is tmux's, which draws what the program writes as any other does, and says what there is.

use crate::home::Home;
use interop::harness::{Need, Trial, trial};
use interop::programs::{command, run, said};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(180);

pub fn trials() -> Vec<Trial> {
    let needs = [Need::Program("tmux"), Need::Program("bash"), Need::Program("stty")];
    vec![
        trial("top_is_drilled_down_by_keys_and_gives_the_terminal_back", &needs, drilled),
        trial("top_prints_lines_for_a_count_for_json_and_without_a_terminal", &[], plain),
    ]
}

/// A terminal with a shell in it.
struct Terminal {
    socket: String,
}

impl Terminal {
    fn new(home: &Home) -> Terminal {
        let terminal = Terminal { socket: home.scratch.join("tmux").display().to_string() };
        let words =
            ["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "bash --norc --noprofile"];
        run(command("tmux").args(["-S", &terminal.socket]).args(words).env("LC_ALL", "C.UTF-8"));
        terminal
    }

    fn tmux(&self, words: &[&str]) -> String {
        run(command("tmux").args(["-S", &self.socket]).args(words))
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// By their names: `Enter`, `Escape`, `C-c`; other words are typed.
    fn press(&self, keys: &[&str]) {
        keys.iter().for_each(|key| drop(self.tmux(&["send-keys", key])));
    }

    fn write(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Waits for a screen on which all of this is: it.
    fn until(&self, parts: &[&str]) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if parts.iter().all(|part| screen.contains(part)) {
                return screen;
            }
            assert!(begun.elapsed() < PATIENCE, "no {parts:?} on the screen:\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Whether a program has the other screen, and whether the cursor is shown.
    fn state(&self) -> String {
        self.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]).trim().to_string()
    }

    fn until_state(&self, state: &str) {
        let begun = Instant::now();
        while self.state() != state {
            assert!(begun.elapsed() < PATIENCE, "{} is not {state}:\n{}", self.state(), self.screen());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = command("tmux").args(["-S", &self.socket, "kill-server"]).output();
    }
}

/// Reads of a client, until it is dropped.
struct Load(Child);

impl Load {
    fn on(home: &Home, uri: &str) -> Load {
        let file = home.scratch.join("load.parm");
        let load = "sd=sd1,lun=x,size=16m,threads=4\nwd=wd1,sd=sd1,xfersize=16k,readpct=100,seekpct=100\n\
                    rd=run1,wd=wd1,iorate=500,elapsed=9h,interval=1\n";
        std::fs::write(&file, load).unwrap();
        let lun = format!("sd1={uri}");
        let words = ["work", &file.display().to_string(), "--lun", &lun];
        Load(home.cenote(&words).stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn drilled() {
    let home = Home::new();
    let (daemon, uri) = home.up("64M");
    let _load = Load::on(&home, &uri);
    let terminal = Terminal::new(&home);
    terminal.write(&format!(
        "export PS1='ready> '; CENOTE='{} --home {}'",
        crate::home::CENOTE,
        home.dir().display()
    ));
    terminal.press(&["Enter"]);
    let begin = |words: &str| {
        terminal.write(&format!("clear; before=$(stty -g); $CENOTE top {words}; echo \"code $?\"; test \"$before\" = \"$(stty -g)\" && echo as-before"));
        terminal.press(&["Enter"]);
        terminal.until_state("1 0");
    };

    // By layer, with what the law makes of it.
    begin("");
    let layers = terminal.until(&["cenote top", "LAYER", "UNDER WAY", "16K", "q end"]);
    let nbd = layers.lines().find(|line| line.starts_with("NBD")).unwrap();
    assert!(nbd.contains("16K") && nbd.contains("us"), "{layers}");
    // Into the clients of NBD, and into what one of them asks for by size.
    terminal.press(&["Down", "Enter"]);
    terminal.until(&["search:", "NBD operations by client"]);
    terminal.write("operations by client");
    terminal.press(&["Enter"]);
    terminal.until(&["layers ▸ nbd.ops[client]", "100.0 %", "under way by Little's law"]);
    terminal.press(&["Down", "Enter"]);
    terminal.until(&["client: ", "only this, by size"]);
    terminal.write("by size");
    terminal.press(&["Enter"]);
    let sizes = terminal.until(&["[size]", "16K", "100.0 %", "NBD operations of client"]);
    println!("{sizes}");
    // It stands still, and goes on. A view knows the seconds since it was opened.
    let time = |screen: &str| screen.lines().next().unwrap().split_whitespace().nth(2).unwrap().to_string();
    let mut seconds = std::collections::BTreeSet::new();
    let begun = Instant::now();
    while seconds.len() < 4 {
        seconds.insert(time(&terminal.screen()));
        assert!(begun.elapsed() < PATIENCE, "{seconds:?}");
    }
    terminal.press(&["Space"]);
    let paused = terminal.until(&["  paused"]);
    terminal.press(&["Left", "Left"]);
    let begun = Instant::now();
    while time(&terminal.screen()) >= time(&paused) {
        assert!(begun.elapsed() < PATIENCE, "{}", terminal.screen());
    }
    terminal.press(&["Space"]);
    terminal.until(&["Z  live"]);
    // Another size of the terminal.
    terminal.tmux(&["resize-window", "-x", "40", "-y", "10"]);
    let narrow = terminal.until(&["16K", "cenote top", "q end"]);
    assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
    terminal.tmux(&["resize-window", "-x", "100", "-y", "30"]);
    terminal.until(&["layers ▸ nbd.ops[client] ▸ ", "space pause"]);
    // Back to the layers, and out.
    terminal.press(&["Escape"]);
    terminal.until(&["NBD operations broken down by client"]);
    terminal.press(&["Escape"]);
    terminal.until(&["UNDER WAY"]);
    terminal.press(&["q"]);
    terminal.until(&["code 0", "as-before"]);
    assert_eq!(terminal.state(), "0 1");

    // Ctrl-C, a signal, and a daemon that stops answering.
    begin("'nbd.ops[op]' 'io.ops[disk]'");
    terminal.until(&[
        "NBD operations broken down by type of operation",
        "read",
        "I/O operations broken down by disk",
    ]);
    terminal.press(&["C-c"]);
    terminal.until(&["code 0", "as-before"]);
    assert_eq!(terminal.state(), "0 1");

    begin("");
    terminal.until(&["UNDER WAY"]);
    let shell = terminal.tmux(&["display-message", "-p", "#{pane_pid}"]);
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", shell.trim())).unwrap();
    let top = Pid::from_raw(children.trim().parse().unwrap()).unwrap();
    kill_process(top, Signal::TERM).unwrap();
    terminal.until(&["code 0", "as-before"]);

    begin("");
    terminal.until(&["UNDER WAY"]);
    let held = Pid::from_raw(i32::try_from(daemon.pid()).unwrap()).unwrap();
    kill_process(held, Signal::STOP).unwrap();
    terminal.press(&["C-c"]);
    let said = terminal.until(&["as-before"]);
    kill_process(held, Signal::CONT).unwrap();
    assert!(said.contains("code 0") || said.contains("code 130"), "{said}");
    assert_eq!(terminal.state(), "0 1");

    // A statistic that there is not, and a daemon that ends: the screen that says so is the shell's.
    terminal.write("clear; $CENOTE top 'nbd.ops[colour]'; echo \"code $?\"");
    terminal.press(&["Enter"]);
    terminal.until(&["colour", "code 1"]);
    begin("");
    terminal.until(&["UNDER WAY"]);
    daemon.end();
    terminal.until(&["cannot talk to the daemon", "code 1", "as-before"]);
    assert_eq!(terminal.state(), "0 1");
}

fn plain() {
    let home = Home::new();
    let (daemon, _) = home.up("64M");
    let output = home.cenote(&["top", "-n", "1"]).output().unwrap();
    let text = said(&output);
    assert!(output.status.success() && text.contains("LAYER") && !text.contains('\u{1b}'), "{text}");
    let output = home.cenote(&["top", "-j", "-n", "2", "nbd.ops[op]", "arc.size"]).output().unwrap();
    let lines: Vec<serde_json::Value> =
        said(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    for line in &lines {
        assert_eq!(line["output_version"]["command"], "top");
        let of = &line["statistics"]["arc.size"];
        assert!(of["value"].is_u64() && of["unit"] == "bytes", "{line}");
    }
    assert_ne!(lines[0]["statistics"]["arc.size"]["time"], lines[1]["statistics"]["arc.size"]["time"]);
    daemon.end();
}
