//! The same requests by the same client to three servers, and what each used for them.
//!
//! ```text
//!   round ── row ─┬─ cenote     a volume of 16K blocks in a pool on one file ┐
//!                 ├─ nbdkit     its plugin `file`, on a file                 ├─▶ requests done, CPU time of the server
//!                 └─ qemu-nbd   on a file                                    ┘
//! ```
//!
//! The client is [`Client`], which sends many requests and takes many replies in one system call, so that the servers need
//! few of them too. In rows "by fio" it is [`fio`], which sends and takes each by itself, as do most clients: these are the
//! rows to compare with what was measured elsewhere.
//!
//! Every file is as large as the volume and was written once. Writes end with a flush, and what Cenote put off until its
//! next transaction group is waited for: it is in the account of those writes, and not in that of the next row.

mod client;
mod fio;
mod row;
mod server;

pub(crate) use client::Client;
pub use server::Served;
pub(crate) use server::{Server, cpu_of};

use crate::{Options, Progress};
use row::{Row, Side};
use std::path::Path;
use std::time::{Duration, Instant};
use units::{Error, Kind, Result};

/// What is asked of every server.
#[derive(Clone, Copy, Debug)]
struct Load {
    name: &'static str,
    reads: bool,
    /// Bytes of a request.
    block: u32,
    /// Requests under way.
    depth: usize,
    /// The client is fio.
    by_fio: bool,
    /// Goes on through many txgs: what is put off in one of them is done in the next.
    is_sustained: bool,
}

const fn read(name: &'static str, block: u32, depth: usize) -> Load {
    Load { name, reads: true, block, depth, by_fio: false, is_sustained: false }
}

const fn write(name: &'static str, block: u32, depth: usize) -> Load {
    Load { name, reads: false, block, depth, by_fio: false, is_sustained: false }
}

impl Load {
    const fn by_fio(self) -> Load {
        Load { by_fio: true, ..self }
    }

    const fn sustained(self) -> Load {
        Load { is_sustained: true, ..self }
    }
}

const LOADS: [Load; 12] = [
    read("4K read, qd1", 4 << 10, 1),
    read("4K read, qd32", 4 << 10, 32),
    write("4K write, qd32", 4 << 10, 32),
    write("16K write, qd32", 16 << 10, 32),
    read("1M read, qd8", 1 << 20, 8),
    write("1M write, qd8", 1 << 20, 8),
    write("4K write, qd32, sustained", 4 << 10, 32).sustained(),
    write("16K write, qd32, sustained", 16 << 10, 32).sustained(),
    read("4K read, qd32, by fio", 4 << 10, 32).by_fio(),
    read("1M read, qd8, by fio", 1 << 20, 8).by_fio(),
    write("4K write, qd32, by fio, sustained", 4 << 10, 32).by_fio().sustained(),
    write("16K write, qd32, by fio, sustained", 16 << 10, 32).by_fio().sustained(),
];

pub use row::render;

/// Every row, with files and sockets in `dir`.
pub fn measure(dir: &Path, options: &Options, own: &[&str], progress: Progress) -> Result<Vec<Row>> {
    let failed = |doing: &str| {
        let doing = doing.to_string();
        move |e: std::io::Error| Error::new(Kind::Io, doing).because(e)
    };
    let dir = Scratch::make(dir, "nbd").map_err(failed("make a directory for the servers"))?;
    let mut servers = Vec::new();
    for server in server::all(&dir.0, options.size, own) {
        servers.push(match server.map_err(failed("start a server"))? {
            Some(mut server) => {
                progress(&format!("  filling {}", server.name));
                let mut client =
                    server.take_connection().and_then(Client::new).map_err(failed(server.name))?;
                client.fill().map_err(failed(server.name))?;
                Some((server, client))
            }
            None => None,
        });
    }
    let lack = fio::lack();
    if let Some(lack) = &lack {
        progress(&format!("  no rows by fio: {lack}"));
    }
    let loads = wanted(options.sustained.is_some(), lack.is_none());
    let mut rows: Vec<Row> = loads.iter().map(|load| Row::new(load.name, load.block)).collect();
    for round in 0..options.rounds {
        for (row, load) in rows.iter_mut().zip(&loads) {
            progress(&format!("  {}, round {}", load.name, round + 1));
            let seconds = options.sustained.filter(|_| load.is_sustained).unwrap_or(options.seconds);
            for (place, server) in servers.iter_mut().enumerate() {
                let Some((server, client)) = server else { continue };
                let side = one(server, client, *load, Duration::from_secs(seconds));
                row.add(place, side.map_err(failed(server.name))?);
            }
        }
    }
    Ok(rows)
}

/// The rows of a table, in their order.
fn wanted(sustained: bool, by_fio: bool) -> Vec<Load> {
    let is_wanted = |load: &Load| (sustained || !load.is_sustained) && (by_fio || !load.by_fio);
    LOADS.into_iter().filter(is_wanted).collect()
}

fn one(server: &Server, client: &mut Client, load: Load, limit: Duration) -> std::io::Result<Side> {
    let (cpu, begun) = (server.cpu()?, Instant::now());
    let (requests, taken) = if load.by_fio {
        // Starting it is not in the time that it took.
        fio::run(&server.socket, load, limit)?
    } else {
        let requests = client.run(load.reads, load.block, load.depth, limit)?;
        (requests, begun.elapsed())
    };
    let flushing = Instant::now();
    if !load.reads {
        client.flush()?;
    }
    let elapsed = taken + flushing.elapsed();
    if !load.reads {
        std::thread::sleep(server.puts_off());
    }
    Ok(Side { requests, elapsed, cpu: server.cpu()?.saturating_sub(cpu) })
}

/// A directory that goes when the measuring is over; after the servers, which have files there.
pub(crate) struct Scratch(pub std::path::PathBuf);

impl Scratch {
    pub fn make(dir: &Path, what: &str) -> std::io::Result<Scratch> {
        let scratch = Scratch(dir.join(format!("cenote-bench-{what}-{}", std::process::id())));
        std::fs::create_dir_all(&scratch.0)?;
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_rows_of_which_there_is_the_time_and_the_program() {
        let names = |sustained, by_fio| {
            wanted(sustained, by_fio).iter().map(|load| load.name).collect::<Vec<_>>().join("; ")
        };
        let has = |names: String| (names.contains("sustained"), names.contains("fio"));
        for wanted in [(false, false), (false, true), (true, false), (true, true)] {
            assert_eq!(has(names(wanted.0, wanted.1)), wanted);
        }
    }

    /// Names are of the columns that are compared: they must not say other than what is done.
    #[test]
    fn a_load_is_what_its_name_says() {
        for load in LOADS {
            let (kind, block) = (if load.reads { "read" } else { "write" }, u64::from(load.block));
            let mut name = format!("{} {kind}, qd{}", units::pretty_size(block), load.depth);
            name += if load.by_fio { ", by fio" } else { "" };
            name += if load.is_sustained { ", sustained" } else { "" };
            assert_eq!(load.name, name);
        }
    }
}
