//! What iSCSI costs, beside `tgtd` with the same client, and beside NBD from the same server.
//!
//! ```text
//!   round ── row ─┬─ cenote   a volume of 16K blocks in a pool on one file ┐  reads: iscsi-perf    operations, and
//!                 ├─ nbd      the same volume of the same server           ├▶ writes: qemu-img  ─▶ the server's CPU
//!                 └─ tgtd     a file                                       ┘
//! ```
//!
//! A session is a process of the client, which is what limits small requests: so the CPU time of the server for each of
//! them tells more than their number. In rows of "many at a time" the client is [`Session::read_many`], which costs little
//! itself and asks for all that it may in one system call. Everything was written once with noise, and is read from memory.
//! `iscsi-perf` only reads, and only over iSCSI; `qemu-img bench` writes at a stride, which spreads requests as if they
//! were random.

use crate::latency::Session;
use crate::rig::{Files, Rig, VOLUME};
use crate::{Options, Progress};
use ::iscsi::memory::{MemoryDirectory, device};
use ::iscsi::{Config, Server};
use disk::{Lun, NbdVolume};
use std::io::{self, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use units::{Error, Kind, Result, parse_size};
use world::{Address, Buf};

pub const USAGE: &str = "usage: cenote bench iscsi [DIR] [--seconds S] [--rounds R] [--size BYTES]";

/// The client of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// Reads.
    IscsiPerf,
    /// Reads in one session, of this process.
    ReadMany,
    /// Writes.
    QemuImg,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    name: &'static str,
    by: By,
    /// In a request, of 512 bytes.
    blocks: u64,
    /// Requests under way in a session.
    depth: u32,
    sessions: usize,
    random: bool,
}

const fn read(name: &'static str, blocks: u64, depth: u32, sessions: usize, random: bool) -> Row {
    Row { name, by: By::IscsiPerf, blocks, depth, sessions, random }
}

const fn read_many(name: &'static str, blocks: u64, depth: u32) -> Row {
    Row { name, by: By::ReadMany, blocks, depth, sessions: 1, random: true }
}

const fn write(name: &'static str, blocks: u64, depth: u32, sessions: usize, random: bool) -> Row {
    Row { name, by: By::QemuImg, blocks, depth, sessions, random }
}

const ROWS: [Row; 22] = [
    read("4K random, qd1", 8, 1, 1, true),
    read("4K random, qd32", 8, 32, 1, true),
    read("4K random, qd128", 8, 128, 1, true),
    read("16K random, qd32", 32, 32, 1, true),
    read("4K random, qd32, 8 sessions", 8, 32, 8, true),
    read("128K sequential, qd8", 256, 8, 1, false),
    read("1M sequential, qd4", 2048, 4, 1, false),
    read("1M sequential, qd4, 8 sessions", 2048, 4, 8, false),
    read_many("4K random, qd32, many at a time", 8, 32),
    read_many("4K random, qd128, many at a time", 8, 128),
    read_many("16K random, qd32, many at a time", 32, 32),
    write("4K random write, qd1", 8, 1, 1, true),
    write("4K random write, qd32", 8, 32, 1, true),
    write("4K random write, qd128", 8, 128, 1, true),
    write("16K random write, qd1", 32, 1, 1, true),
    write("16K random write, qd32", 32, 32, 1, true),
    write("16K random write, qd128", 32, 128, 1, true),
    write("16K random write, qd32, 8 sessions", 32, 32, 8, true),
    write("128K sequential write, qd8", 256, 8, 1, false),
    write("128K sequential write, qd8, 8 sessions", 256, 8, 8, false),
    write("1M sequential write, qd4", 2048, 4, 1, false),
    write("1M sequential write, qd4, 8 sessions", 2048, 4, 8, false),
];

const NAMES: [&str; 3] = ["cenote", "cenote by NBD", "tgtd"];
/// Requests of 4K go on by as many of them, those of 16K too: far, and to every place before one comes again.
const STRIDE: u64 = 1021;
pub(crate) const TARGET: &str = "iqn.2026-11.org.example:bench";
const EXPORT: &str = "bench";
/// volblocksize of the volume.
const BLOCK: u64 = 16 << 10;
/// Until a server must listen: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// The kernel counts a process's time in hundredths of a second (`USER_HZ`).
const TICK: Duration = Duration::from_millis(10);
const STEP: usize = 1 << 20;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    Table {
        dir: PathBuf,
        seconds: u64,
        rounds: usize,
        size: u64,
    },
    /// For the table: our own server, until it is told to end.
    Serve {
        port: u16,
        nbd: u16,
        dir: PathBuf,
        size: u64,
    },
}

fn parse(words: &[&str]) -> Option<Wanted> {
    if let ["serve", port, nbd, dir, size] = words {
        return Some(Wanted::Serve {
            port: port.parse().ok()?,
            nbd: nbd.parse().ok()?,
            dir: dir.into(),
            size: parse_size(size).ok()?,
        });
    }
    let (mut dir, mut seconds, mut rounds, mut size) = (None, 2, 2, 256 << 20);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--seconds" => seconds = words.next()?.parse().ok().filter(|&n| n > 0)?,
            "--rounds" => rounds = words.next()?.parse().ok().filter(|&n| n > 0)?,
            "--size" => size = parse_size(words.next()?).ok()?,
            other if other.starts_with("--") || dir.is_some() => return None,
            other => dir = Some(other.into()),
        }
    }
    Some(Wanted::Table { dir: dir.unwrap_or_else(std::env::temp_dir), seconds, rounds, size })
}

/// Does what the words ask for, and returns what is to be printed; `None` when they make no sense: then [`USAGE`] does.
/// `own` are the words that make this program come here.
pub fn run(words: &[&str], own: &[&str], progress: Progress) -> Option<Result<String>> {
    Some(match parse(words)? {
        Wanted::Serve { port, nbd, dir, size } => {
            linux::block_on(serve(port, nbd, dir, size)).map(|()| String::new())
        }
        Wanted::Table { dir, seconds, rounds, size } => {
            let measured = measure(&dir, (seconds, rounds, size), own, progress);
            measured.map_err(|e| Error::new(Kind::Io, "measure iSCSI").because(e))
        }
    })
}

/// Our own server, in the process that is measured: a new pool with one volume, full of noise.
async fn serve(port: u16, nbd_port: u16, dir: PathBuf, size: u64) -> Result<()> {
    let options = Options { dirs: Vec::new(), size, ..Options::default() };
    let rig = Rig::new(&dir, &options, vdev::Layout::Stripe, BLOCK, "off");
    let _files = Files(&rig);
    let pool = rig.create().await?;
    // Both fronts serve the same open volume.
    let volume = pool.open_volume(VOLUME).await?;
    let unit = Arc::new(Lun::alone(volume.clone()));
    let exports = nbd::memory::MemoryExports::default().with(EXPORT, NbdVolume::new(volume));
    for offset in (0..size).step_by(STEP) {
        scsi::LogicalUnit::write(&*unit, offset, vec![Buf::copy_from(&noise(offset))], false).await?;
    }
    scsi::LogicalUnit::flush(&*unit).await?;
    let directory = MemoryDirectory::default().with(TARGET, 1, device(unit, 1));
    let server = Server::new(Arc::new(directory), Default::default(), Config::default());
    let nbd_server = nbd::Server::new(Arc::new(exports), Default::default(), nbd::Config::default());
    nbd_server.listen(&Address::Tcp(([127, 0, 0, 1], nbd_port).into()))?;
    server.listen(&Address::Tcp(([127, 0, 0, 1], port).into()))?;
    linux::shutdown_signal().await;
    server.stop().await;
    nbd_server.stop().await;
    drop((server, nbd_server));
    pool.export().await
}

fn noise(seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut bytes = Vec::with_capacity(STEP);
    while bytes.len() < STEP {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_ne_bytes());
    }
    bytes
}

/// A server, and where it is; it ends with this.
pub(crate) struct Running {
    child: Child,
    pub port: u16,
    /// Where it serves the same by NBD.
    nbd: Option<u16>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // What it has written is of no use to anybody.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// `None` when there is no such program.
    fn start(mut command: Command, port: u16) -> io::Result<Option<Running>> {
        let child = match command.stdin(Stdio::null()).stdout(Stdio::null()).spawn() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            started => started?,
        };
        let mut running = Running { child, port, nbd: None };
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(status) = running.child.try_wait()? {
                return Err(io::Error::other(format!("a server ended: {status}")));
            }
            if Instant::now() > deadline {
                return Err(io::Error::other("a server does not listen"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Some(running))
    }

    /// User and system time of all its threads.
    pub fn cpu(&self) -> io::Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().skip(11).take(2));
        let ticks: Option<u32> = fields.and_then(|f| f.map(|n| n.parse::<u32>().ok()).sum());
        ticks.map(|n| TICK * n).ok_or_else(|| io::Error::other("/proc has no times"))
    }
}

pub(crate) fn free_port() -> io::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

pub(crate) fn start_own(dir: &Path, size: u64, own: &[&str]) -> io::Result<Option<Running>> {
    let (port, nbd) = (free_port()?, free_port()?);
    let mut command = Command::new(std::env::current_exe()?);
    command.args(own).args(["iscsi", "serve", &port.to_string(), &nbd.to_string()]);
    command.arg(dir).arg(size.to_string());
    let mut running = Running::start(command, port)?;
    if let Some(running) = &mut running {
        running.nbd = Some(nbd);
    }
    Ok(running)
}

pub(crate) fn start_tgtd(dir: &Path, size: u64) -> io::Result<Option<Running>> {
    let (port, file) = (free_port()?, dir.join("tgt.raw"));
    let mut out = std::fs::File::create(&file)?;
    for offset in (0..size).step_by(STEP) {
        out.write_all(&noise(offset))?;
    }
    let control = (std::process::id() % 30_000).to_string();
    let mut command = Command::new("tgtd");
    command
        .args(["-f", "-C", &control, "--iscsi", &format!("portal=127.0.0.1:{port}")])
        .stderr(Stdio::null());
    let Some(running) = Running::start(command, port)? else { return Ok(None) };
    let file = file.display().to_string();
    for words in [
        &["--op", "new", "--mode", "target", "--tid", "1", "-T", TARGET][..],
        &["--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "-b", &file],
        &["--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL"],
    ] {
        let done = Command::new("tgtadm").args(["-C", &control, "--lld", "iscsi"]).args(words).output()?;
        if !done.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&done.stderr).into_owned()));
        }
    }
    Ok(Some(running))
}

/// Operations in a second of one session, as `iscsi-perf` prints them at its end.
fn operations(output: &Output) -> Option<f64> {
    let text = String::from_utf8_lossy(&output.stdout).replace('\r', "\n");
    let line = text.lines().rev().find_map(|line| line.trim().strip_prefix("iops average "))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Starts `qemu-img bench`, which makes `count` writes.
fn writer(row: &Row, url: &str, size: u64, (number, count): (usize, u64)) -> io::Result<Child> {
    let bytes = row.blocks * 512;
    let step = if row.random { bytes * STRIDE } else { bytes };
    let offset = size / row.sessions as u64 * number as u64 / bytes * bytes;
    let mut client = Command::new("qemu-img");
    client.args(["bench", "-w", "-f", "raw", "-t", "none", "-c", &count.to_string()]);
    client.args(["-d", &row.depth.to_string(), "-s", &bytes.to_string(), "-S", &step.to_string()]);
    client.args(["-o", &offset.to_string(), url]);
    client.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
}

/// Seconds that `qemu-img bench` took, as it prints them.
fn seconds_taken(output: &Output) -> Option<f64> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.trim().strip_prefix("Run completed in "))?;
    line.split_whitespace().next()?.parse().ok()
}

/// So many writes by each session: all of a second, and CPU microseconds of the server for each.
fn writes(server: &Running, row: &Row, url: &str, size: u64, count: u64) -> io::Result<(f64, f64)> {
    let before = server.cpu()?;
    let clients: Vec<Child> =
        (0..row.sessions).map(|number| writer(row, url, size, (number, count))).collect::<io::Result<_>>()?;
    let mut total = 0.0;
    for client in clients {
        let output = client.wait_with_output()?;
        let taken = seconds_taken(&output).ok_or_else(|| io::Error::other("qemu-img said no figure"))?;
        total += count as f64 / taken.max(1e-3);
    }
    let cpu = server.cpu()?.saturating_sub(before);
    Ok((total, cpu.as_secs_f64() * 1e6 / (count * row.sessions as u64) as f64))
}

/// Operations in a second of all sessions, and CPU microseconds of the server for each; `None` where the client of this
/// row does not go.
fn one(
    server: &Running,
    by_nbd: bool,
    row: &Row,
    (seconds, size): (u64, u64),
) -> io::Result<Option<(f64, f64)>> {
    let url = match (by_nbd, server.nbd) {
        (true, Some(port)) => format!("nbd://127.0.0.1:{port}/{EXPORT}"),
        (true, None) => return Ok(None),
        (false, _) => format!("iscsi://127.0.0.1:{}/{TARGET}/1", server.port),
    };
    if row.by == By::QemuImg {
        // It is told how many, not how long: a few tell how many there are in the time.
        let few = 64 * u64::from(row.depth);
        let (speed, _) = writes(server, row, &url, size, few)?;
        let count = (speed * seconds as f64 / row.sessions as f64) as u64;
        return writes(server, row, &url, size, count.max(few)).map(Some);
    }
    if by_nbd {
        return Ok(None);
    }
    let Row { by, blocks, depth, sessions, random, .. } = *row;
    if by == By::ReadMany {
        let mut session = Session::open(server.port, TARGET, 1, 1)?;
        let (before, begun) = (server.cpu()?, Instant::now());
        let shape = (size, (blocks * 512) as u32);
        let done = session.read_many(shape, depth as usize, Duration::from_secs(seconds))?;
        let (elapsed, cpu) = (begun.elapsed(), server.cpu()?.saturating_sub(before));
        let per = |time: Duration| time.as_secs_f64() / done.max(1) as f64;
        return Ok(Some((1.0 / per(elapsed), per(cpu) * 1e6)));
    }
    let before = server.cpu()?;
    let clients: Vec<Child> = (0..sessions)
        .map(|n| {
            let mut client = Command::new("iscsi-perf");
            client.args(["-i", &format!("iqn.2026-11.org.example:client{n}"), "-b", &blocks.to_string()]);
            client.args(["-m", &depth.to_string(), "-t", &seconds.to_string()]);
            if random {
                client.arg("-r");
            }
            client.arg(&url).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
        })
        .collect::<io::Result<_>>()?;
    let mut total = 0.0;
    for client in clients {
        let output = client.wait_with_output()?;
        total += operations(&output).ok_or_else(|| io::Error::other("iscsi-perf said no figure"))?;
    }
    let cpu = server.cpu()?.saturating_sub(before);
    Ok(Some((total, cpu.as_secs_f64() * 1e6 / (total * seconds as f64).max(1.0))))
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn measure(
    dir: &Path,
    (seconds, rounds, size): (u64, usize, u64),
    own: &[&str],
    progress: Progress,
) -> io::Result<String> {
    let dir = Scratch(dir.join(format!("cenote-bench-iscsi-{}", std::process::id())));
    std::fs::create_dir_all(&dir.0)?;
    progress("  filling");
    let (own, tgtd) = (start_own(&dir.0, size, own)?, start_tgtd(&dir.0, size)?);
    let servers = [(own.as_ref(), false), (own.as_ref(), true), (tgtd.as_ref(), false)];
    let mut figures: Vec<[Vec<(f64, f64)>; NAMES.len()]> = vec![Default::default(); ROWS.len()];
    for round in 0..rounds {
        for (row, figures) in ROWS.iter().zip(&mut figures) {
            progress(&format!("  {}, round {}", row.name, round + 1));
            for ((server, by_nbd), figures) in servers.iter().zip(figures) {
                if let Some(server) = server {
                    figures.extend(one(server, *by_nbd, row, (seconds, size))?);
                }
            }
        }
    }
    Ok(render(&figures))
}

/// First how fast, then CPU microseconds of the server per request.
fn render(figures: &[[Vec<(f64, f64)>; NAMES.len()]]) -> String {
    let heads = |unit: &str| NAMES.map(|name| format!(" {name}{unit} |")).concat();
    let mut text = format!("| what |{}{}\n|---|", heads(""), heads(", CPU µs"));
    text += &"---:|".repeat(2 * NAMES.len());
    for (Row { name, blocks, .. }, runs) in ROWS.iter().zip(figures) {
        text += &format!("\n| {name} |");
        for runs in runs {
            let speed = median(runs.iter().map(|r| r.0).collect()).map(|n| match *blocks {
                0..=128 => format!("{:.1}k/s", n / 1000.0),
                blocks => format!("{:.0} MiB/s", n * blocks as f64 / 2048.0),
            });
            text += &format!(" {} |", speed.unwrap_or_else(|| "–".into()));
        }
        for runs in runs {
            let cpu = median(runs.iter().map(|r| r.1).collect()).map(|cpu| format!("{cpu:.1}"));
            text += &format!(" {} |", cpu.unwrap_or_else(|| "–".into()));
        }
    }
    text + "\n"
}

/// A directory that goes when the measuring is over.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_a_table_or_nothing() {
        let parsed = |line: &str| parse(&line.split_whitespace().collect::<Vec<_>>());
        let table = |seconds, rounds, size| Some(Wanted::Table { dir: "/d".into(), seconds, rounds, size });
        assert_eq!(parsed("/d"), table(2, 2, 256 << 20));
        assert_eq!(parsed("/d --seconds 1 --rounds 3 --size 64M"), table(1, 3, 64 << 20));
        assert!(["/d /e", "--rounds 0", "--what", "--size x"].iter().all(|line| parsed(line).is_none()));
        assert!(matches!(
            parsed("serve 3260 10809 /d 1G"),
            Some(Wanted::Serve { port: 3260, nbd: 10809, .. })
        ));
    }

    #[test]
    fn the_table_has_medians_and_says_who_is_missing() {
        let mut figures: Vec<[Vec<(f64, f64)>; 3]> = vec![Default::default(); ROWS.len()];
        figures[1][0] = vec![(30_000.0, 4.0), (10_000.0, 9.0), (20_000.0, 5.0)];
        let text = render(&figures);
        assert!(text.contains("| 4K random, qd32 | 20.0k/s | – | – | 5.0 | – | – |"), "{text}");
    }
}
