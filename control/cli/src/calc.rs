//! The arithmetic of performance: three numbers and one law.
//!
//! ```text
//!   bandwidth = operations × size                  outstanding = operations × response time      (Little's law)
//! ```
//!
//! What is given is taken as it is, what follows is reckoned, and what contradicts is refused.

use crate::args::calc::Calc;
use crate::session::{Failure, Outcome};
use std::io::Write;

/// How far two ways to the same number may be apart: people round.
const CLOSE: f64 = 0.02;
const DECIMAL: [(&str, f64); 4] = [("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)];
const TIMES: [(&str, f64); 4] = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];

/// In bytes, operations and seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Numbers {
    pub bandwidth: Option<f64>,
    pub size: Option<f64>,
    pub iops: Option<f64>,
    pub latency: Option<f64>,
    pub outstanding: Option<f64>,
}

pub fn run(out: &mut dyn Write, args: &Calc) -> Outcome {
    let numbers = read(args).and_then(solve).map_err(Failure::Usage)?;
    out.write_all(text(&numbers).as_bytes()).map_err(|_| Failure::Told)
}

fn read(args: &Calc) -> Result<Numbers, String> {
    let positive = |name: &str, number: f64| match number.is_finite() && number > 0.0 {
        true => Ok(number),
        false => Err(format!("{name} is a number above zero, not {number}")),
    };
    let of = |name: &'static str, text: &Option<String>, parse: fn(&str) -> Option<f64>| {
        let parsed = text.as_deref().map(|text| {
            parse(text)
                .ok_or_else(|| format!("'{text}' is no {name}"))
                .and_then(|number| positive(name, number))
        });
        parsed.transpose()
    };
    Ok(Numbers {
        bandwidth: of("bandwidth", &args.bandwidth, bytes)?,
        size: of("size", &args.size, bytes)?,
        iops: args.iops.map(|iops| positive("iops", iops)).transpose()?,
        latency: of("latency", &args.latency, time)?,
        outstanding: args.outstanding.map(|n| positive("outstanding", n)).transpose()?,
    })
}

/// `100MB` as data sheets of networks and disks mean it; everything else as `zfs` does.
fn bytes(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches("/s");
    let decimal = DECIMAL
        .iter()
        .find_map(|(unit, size)| Some(text.strip_suffix(unit)?.trim().parse::<f64>().ok()? * size));
    decimal.or_else(|| units::parse_size(text).ok().map(|bytes| bytes as f64))
}

fn time(text: &str) -> Option<f64> {
    TIMES
        .iter()
        .find_map(|(unit, size)| Some(text.trim().strip_suffix(unit)?.trim().parse::<f64>().ok()? * size))
}

/// All that follows from what is given.
pub fn solve(given: Numbers) -> Result<Numbers, String> {
    let Numbers { mut bandwidth, mut size, mut iops, mut latency, mut outstanding } = given;
    // Each law may give what the other needs: twice is enough for two.
    for _ in 0..2 {
        product(
            &mut bandwidth,
            &mut iops,
            &mut size,
            "bandwidth is operations per second times transfer size",
        )?;
        product(
            &mut outstanding,
            &mut iops,
            &mut latency,
            "what is outstanding is operations per second times response time",
        )?;
    }
    let solved = Numbers { bandwidth, size, iops, latency, outstanding };
    let is_checked = |all: [Option<f64>; 3]| all.iter().all(Option::is_some);
    let checked = is_checked([bandwidth, size, iops]) || is_checked([iops, latency, outstanding]);
    match solved == given && !checked {
        true => Err("nothing follows from that: give two of --bandwidth, --size and --iops, or two of --iops, --latency \
                     and --outstanding"
            .into()),
        false => Ok(solved),
    }
}

/// `whole = a × b`: gives the one that is missing, and objects to three that disagree.
fn product(
    whole: &mut Option<f64>,
    a: &mut Option<f64>,
    b: &mut Option<f64>,
    law: &str,
) -> Result<(), String> {
    match (*whole, *a, *b) {
        (None, Some(a), Some(b)) => *whole = Some(a * b),
        (Some(whole), None, Some(b)) => *a = Some(whole / b),
        (Some(whole), Some(a), None) => *b = Some(whole / a),
        (Some(whole), Some(a), Some(b)) if (whole - a * b).abs() > CLOSE * whole.max(a * b) => {
            return Err(format!("these contradict one another: {law}"));
        }
        _ => {}
    }
    Ok(())
}

fn text(numbers: &Numbers) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text.push_str(&format!("{name:<16}{value}\n"));
        }
    };
    let megabytes = |b: f64| format!("{} MB/s ({} MiB/s)", digits(b / 1e6), digits(b / 1_048_576.0));
    line("bandwidth", numbers.bandwidth.map(megabytes));
    line("transfer size", numbers.size.map(|bytes| format!("{} KiB", digits(bytes / 1024.0))));
    line("operations", numbers.iops.map(|iops| format!("{} per second", digits(iops))));
    line("response time", numbers.latency.map(shown_time));
    line("outstanding", numbers.outstanding.map(digits));
    text
}

pub fn shown_time(seconds: f64) -> String {
    let (unit, size) = TIMES.into_iter().rev().find(|(_, size)| seconds >= *size).unwrap_or(TIMES[0]);
    format!("{} {unit}", digits(seconds / size))
}

/// As many digits as tell something, and thousands apart.
pub fn digits(number: f64) -> String {
    if number < 100.0 && (number - number.round()).abs() > 1e-9 {
        let decimals = if number < 10.0 { 2 } else { 1 };
        return format!("{number:.decimals$}");
    }
    let whole = format!("{:.0}", number);
    let grouped: Vec<&str> = {
        let first = whole.len() % 3;
        let (head, tail) = whole.split_at(first);
        let tail = tail.as_bytes().chunks(3).filter_map(|chunk| std::str::from_utf8(chunk).ok());
        std::iter::once(head).filter(|head| !head.is_empty()).chain(tail).collect()
    };
    grouped.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calc(words: [&str; 5]) -> Result<String, String> {
        let text_of = |word: &str| (!word.is_empty()).then(|| word.to_string());
        let number = |word: &str| word.parse().ok();
        let [bandwidth, size, iops, latency, outstanding] = words;
        let args = Calc {
            bandwidth: text_of(bandwidth),
            size: text_of(size),
            iops: number(iops),
            latency: text_of(latency),
            outstanding: number(outstanding),
        };
        read(&args).and_then(solve).map(|numbers| text(&numbers))
    }

    #[test]
    fn the_arithmetic_of_the_documents_comes_out() {
        let given = calc(["100MB", "64K", "", "", ""]).unwrap();
        assert_eq!(
            given,
            "bandwidth       100 MB/s (95.4 MiB/s)\ntransfer size   64 KiB\noperations      1,526 per second\n"
        );
        let little = calc(["", "8K", "", "4ms", "128"]).unwrap();
        assert_eq!(
            little,
            "bandwidth       262 MB/s (250 MiB/s)\ntransfer size   8 KiB\noperations      32,000 per second\n\
             response time   4 ms\noutstanding     128\n"
        );
        assert!(calc(["10.9GB/s", "1M", "", "", "2048"]).unwrap().contains("response time   197 ms"));
        assert!(calc(["100MB", "64K", "1526", "", ""]).is_ok(), "people round");
    }

    #[test]
    fn what_contradicts_or_says_nothing_is_refused() {
        for (words, why) in [
            (["100MB", "64K", "3000", "", ""], "contradict"),
            (["", "", "100", "1s", "5"], "contradict"),
            (["", "", "", "", ""], "nothing follows"),
            (["100MB", "", "", "4ms", ""], "nothing follows"),
            (["fast", "64K", "", "", ""], "'fast' is no bandwidth"),
            (["0", "64K", "", "", ""], "above zero"),
            (["", "", "5", "4", ""], "'4' is no latency"),
        ] {
            let e = calc(words).unwrap_err();
            assert!(e.contains(why), "{words:?}: {e}");
        }
    }
}
