//! The same requests by the same client to three servers, and what each used for them.
//!
//! ```text
//!   round ── row ─┬─ cenote     a volume of 16K blocks in a pool on one file ┐
//!                 ├─ nbdkit     its plugin `file`, on a file                 ├─▶ requests done, CPU time of the server
//!                 └─ qemu-nbd   on a file                                    ┘
//! ```
//!
//! Every file is as large as the volume and was written once. Writes end with a flush, and what Cenote put off until its
//! next transaction group is waited for: it is in the account of those writes, and not in that of the next row.

mod client;
mod row;
mod server;

pub(crate) use client::Client;
pub use server::Served;
pub(crate) use server::{Server, cpu_of};

use crate::{Options, Progress};
use row::{Row, Side};
use std::path::Path;
use std::time::Duration;
use units::{Error, Kind, Result};

/// A row: its name, whether it reads, the bytes and the number of requests under way.
const ROWS: [(&str, bool, u32, usize); 6] = [
    ("4K read, qd1", true, 4 << 10, 1),
    ("4K read, qd32", true, 4 << 10, 32),
    ("4K write, qd32", false, 4 << 10, 32),
    ("16K write, qd32", false, 16 << 10, 32),
    ("1M read, qd8", true, 1 << 20, 8),
    ("1M write, qd8", false, 1 << 20, 8),
];

/// Rows of writes at random that go on through many txgs: what is put off in one of them is done in the next.
const SUSTAINED: [(&str, bool, u32, usize); 2] =
    [("4K write, qd32, sustained", false, 4 << 10, 32), ("16K write, qd32, sustained", false, 16 << 10, 32)];

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
    let brief = ROWS.map(|row| (row, options.seconds));
    let sustained = options.sustained.map(|seconds| SUSTAINED.map(|row| (row, seconds)));
    let wanted: Vec<_> = brief.into_iter().chain(sustained.into_iter().flatten()).collect();
    let mut rows: Vec<Row> = wanted.iter().map(|((name, _, block, _), _)| Row::new(name, *block)).collect();
    for round in 0..options.rounds {
        for (row, ((name, reads, block, depth), seconds)) in rows.iter_mut().zip(&wanted) {
            progress(&format!("  {name}, round {}", round + 1));
            let (reads, block, depth, limit) = (*reads, *block, *depth, Duration::from_secs(*seconds));
            for (place, server) in servers.iter_mut().enumerate() {
                let Some((server, client)) = server else { continue };
                row.add(place, one(server, client, reads, block, depth, limit).map_err(failed(server.name))?);
            }
        }
    }
    Ok(rows)
}

fn one(
    server: &Server,
    client: &mut Client,
    reads: bool,
    block: u32,
    depth: usize,
    limit: Duration,
) -> std::io::Result<Side> {
    let (cpu, begun) = (server.cpu()?, std::time::Instant::now());
    let requests = client.run(reads, block, depth, limit)?;
    if !reads {
        client.flush()?;
    }
    let elapsed = begun.elapsed();
    if !reads {
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
