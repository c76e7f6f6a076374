//! Serves a volume in memory, to measure this front without a disk behind it:
//!
//! ```text
//! nbd_memory 10909 1G 16K &
//! fio --name=x --ioengine=nbd --uri=nbd://127.0.0.1:10909/ --rw=randread --bs=4k --iodepth=32 --runtime=5 --time_based
//! nbdkit -f -p 10911 memory 1G          to compare with, in turns, by CPU time: /proc/PID/stat
//! ```

#![allow(clippy::disallowed_macros, reason = "a program of its own, with a terminal")]

use nbd::memory::{MemoryExports, MemoryVolume};
use nbd::{Config, Server};
use std::process::ExitCode;
use std::sync::Arc;
use units::{Error, Result, parse_size};
use world::Address;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match linux::block_on(serve(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("nbd_memory: {e}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(args: Vec<String>) -> Result<()> {
    let [port, size, block_size] = args.as_slice() else {
        return Err(Error::invalid("usage: nbd_memory PORT SIZE BLOCKSIZE"));
    };
    let port: u16 = port.parse().map_err(|e| Error::invalid("a port is a number").because(e))?;
    let size = parse_size(size).map_err(Error::invalid)?;
    let block_size = parse_size(block_size).map_err(Error::invalid)?;
    let volume = MemoryVolume::new(size, block_size as u32);
    let server = Server::new(
        Arc::new(MemoryExports::default().with("disk", volume)),
        Default::default(),
        Config::default(),
    );
    let address = server.listen(&Address::Tcp(([127, 0, 0, 1], port).into()))?;
    println!("serving {address}");
    std::future::pending().await
}
