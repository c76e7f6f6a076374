//! Measures a file or a block device as it is: the floor for everything that is built on it.
//!
//! ```text
//! disk FILE randread 4K 32 5        pattern, block size, queue depth, seconds
//! ```

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use units::{Error, Result, parse_size};
use workload::{Limit, Pattern, Report, Spec, open, run};
use world::OpenMode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let measured = parse(&args).and_then(|(path, spec)| linux::block_on(measure(path, spec)));
    match measured {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("disk: {e}");
            ExitCode::FAILURE
        }
    }
}

fn parse(args: &[String]) -> Result<(PathBuf, Spec)> {
    let [path, pattern, block_size, queue_depth, seconds] = args else {
        return Err(Error::invalid(
            "usage: disk FILE read|write|randread|randwrite|randrw BLOCKSIZE DEPTH SECONDS",
        ));
    };
    let (pattern, read_percent) = match pattern.as_str() {
        "read" => (Pattern::Sequential, 100),
        "write" => (Pattern::Sequential, 0),
        "randread" => (Pattern::Random, 100),
        "randwrite" => (Pattern::Random, 0),
        "randrw" => (Pattern::Random, 50),
        other => return Err(Error::invalid(format!("'{other}' is no pattern"))),
    };
    let number = |text: &str| text.parse::<u64>().map_err(|e| Error::invalid(format!("'{text}'")).because(e));
    let spec = Spec {
        pattern,
        read_percent,
        block_size: parse_size(block_size).map_err(Error::invalid)? as u32,
        queue_depth: number(queue_depth)? as usize,
        limit: Limit::Time(Duration::from_secs(number(seconds)?)),
        ..Spec::default()
    };
    Ok((path.into(), spec))
}

async fn measure(path: PathBuf, spec: Spec) -> Result<Report> {
    let mode = if spec.read_percent == 100 { OpenMode::ReadOnly } else { OpenMode::ReadWrite };
    run(open(&path, mode)?, &spec).await
}
