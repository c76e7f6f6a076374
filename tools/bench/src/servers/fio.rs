//! fio as the client, with its engine `nbd`: a process for each run.
//!
//! Requests are at random places, a place may come again, and all runs ask for the same places. It writes what does not
//! compress. Its engine has libnbd send each request and take each reply by itself.

use super::Load;
use crate::programs::{self, Stop};
use std::io;
use std::path::Path;
use std::time::Duration;

/// Beyond the time it was given: it starts, measures its clock, and takes the replies that are under way.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where a line of figures ([terse, version 3]) begins to tell of reads, and of writes: KiB, KiB/s, requests in a second,
/// milliseconds, and then latencies.
///
/// [terse, version 3]: https://fio.readthedocs.io/en/latest/fio_doc.html#terse-output
const READS_AT: usize = 5;
const WRITES_AT: usize = 46;

/// Why there can be no rows by fio.
pub(super) fn lack() -> Option<String> {
    programs::said("fio", &["--enghelp=nbd"]).err()
}

/// Requests done with the default export of the server at `socket`, and the time that they took.
pub(super) fn run(socket: &Path, load: Load, limit: Duration) -> io::Result<(u64, Duration)> {
    let arguments = arguments(socket, load, limit);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let said = programs::run(&Stop::after(limit + PATIENCE), "fio", &arguments).map_err(io::Error::other)?;
    figures(&said, load).ok_or_else(|| io::Error::other("fio said no figures"))
}

fn arguments(socket: &Path, load: Load, limit: Duration) -> Vec<String> {
    let pattern = if load.reads { "randread" } else { "randwrite" };
    vec![
        "--name=bench".into(),
        "--ioengine=nbd".into(),
        format!("--uri=nbd+unix:///?socket={}", socket.display()),
        format!("--rw={pattern}"),
        format!("--bs={}", load.block),
        format!("--iodepth={}", load.depth),
        format!("--runtime={}", limit.as_secs()),
        "--time_based".into(),
        "--norandommap".into(),
        "--output-format=terse".into(),
        "--terse-version=3".into(),
    ]
}

/// Requests, and the time that they took; `None` where there are no such figures.
fn figures(said: &str, load: Load) -> Option<(u64, Duration)> {
    let line = said.lines().find(|line| line.starts_with("3;"))?;
    let mut fields = line.split(';').skip(if load.reads { READS_AT } else { WRITES_AT });
    let kib: u64 = fields.next()?.parse().ok()?;
    let milliseconds = fields.nth(2)?.parse().ok().filter(|&n| n > 0)?;
    Some((kib * 1024 / u64::from(load.block), Duration::from_millis(milliseconds)))
}

#[cfg(test)]
mod tests {
    use super::super::{read, write};
    use super::*;

    /// What fio 3.33 printed, without most of the latencies.
    fn line(reads: &str, writes: &str) -> String {
        let latencies = "0;0;0.000000;0.000000;".repeat(9) + "99.000000%=3588";
        format!(
            "fio: connected to NBD server\n3;fio-3.33;bench;0;0;{reads};{latencies};{writes};{latencies};0.0%\n"
        )
    }

    #[test]
    fn figures_are_taken_from_the_side_that_was_asked_for() {
        let reads = line("3276800;3270259;3193;1002", "0;0;0;0");
        let milliseconds = Duration::from_millis;
        assert_eq!(figures(&reads, read("", 1 << 20, 8)), Some((3200, milliseconds(1002))));
        assert_eq!(figures(&reads, write("", 1 << 20, 8)), None);
        let writes = line("0;0;0;0", "300064;299764;74941;1001");
        assert_eq!(figures(&writes, write("", 4096, 32)), Some((75_016, milliseconds(1001))));
        assert_eq!(figures(&writes, read("", 4096, 32)), None);
        for nothing in ["", "fio: connected to NBD server\n", "3;fio-3.33;bench;0;0;1"] {
            assert_eq!(figures(nothing, read("", 4096, 32)), None, "{nothing}");
        }
    }

    #[test]
    fn a_run_is_asked_for_as_its_row_says() {
        let load = write("", 16 << 10, 32);
        let words = arguments(Path::new("/d/a.sock"), load, Duration::from_secs(20)).join(" ");
        let wanted =
            "--uri=nbd+unix:///?socket=/d/a.sock --rw=randwrite --bs=16384 --iodepth=32 --runtime=20 ";
        assert!(words.contains(wanted), "{words}");
        assert!(arguments(Path::new("/d"), read("", 1, 1), PATIENCE).contains(&"--rw=randread".to_string()));
    }
}
