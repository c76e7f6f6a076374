//! Serves a unit in memory, to measure this front without a disk behind it:
//!
//! ```text
//! iscsi_memory 3299 1G 16K &
//! iscsi-perf -b 8 -r -m 32 -t 5 iscsi://127.0.0.1:3299/iqn.2026-11.org.example:disk/0
//! ```

#![allow(clippy::disallowed_macros, reason = "a program of its own, with a terminal")]

use iscsi::memory::{MemoryDirectory, device};
use iscsi::{Config, Server};
use scsi::memory::MemoryUnit;
use std::process::ExitCode;
use std::sync::Arc;
use units::{Error, Result, parse_size};
use world::Address;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match linux::block_on(serve(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("iscsi_memory: {e}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(args: Vec<String>) -> Result<()> {
    let [port, size, block_size] = args.as_slice() else {
        return Err(Error::invalid("usage: iscsi_memory PORT SIZE BLOCKSIZE"));
    };
    let port: u16 = port.parse().map_err(|e| Error::invalid("a port is a number").because(e))?;
    let size = parse_size(size).map_err(Error::invalid)?;
    let block_size = parse_size(block_size).map_err(Error::invalid)?;
    let unit = Arc::new(MemoryUnit::new(size, block_size as u32));
    let directory = MemoryDirectory::default().with("iqn.2026-11.org.example:disk", 0, device(unit, 1));
    let server = Server::new(Arc::new(directory), Default::default(), Config::default());
    let address = server.listen(&Address::Tcp(([127, 0, 0, 1], port).into()))?;
    println!("serving {address}");
    std::future::pending().await
}
