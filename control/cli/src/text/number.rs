//! Numbers in at most five characters.

use units::pretty_size;

/// A count: `0`, `999`, `1K`, `20.4M`.
pub fn count(n: u64, exact: bool) -> String {
    if exact { n.to_string() } else { pretty_size(n).trim_end_matches('B').to_string() }
}

/// A size: `0B`, `512B`, `1.50K`.
pub fn bytes(n: u64, exact: bool) -> String {
    if exact { n.to_string() } else { pretty_size(n) }
}

/// A latency: whole numbers only; zero means that nothing was measured.
pub fn time(ns: u64, exact: bool) -> String {
    if ns == 0 {
        return "-".into();
    }
    if exact {
        return ns.to_string();
    }
    let units = ["ns", "us", "ms", "s"];
    let (mut n, mut unit) = (ns, 0);
    while n >= 1000 && unit < units.len() - 1 {
        n /= 1000;
        unit += 1;
    }
    format!("{n}{}", units[unit])
}

/// A duration in seconds: `00:03:12`, `2 days 01:00:00`.
pub fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60);
    let clock = format!("{hours:02}:{minutes:02}:{:02}", seconds % 60);
    if days > 0 { format!("{days} days {clock}") } else { clock }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_openzfs_writes_them() {
        for (n, text) in [
            (0, "0"),
            (512, "512"),
            (1023, "1023"),
            (1024, "1K"),
            (1536, "1.50K"),
            (10239, "10.0K"),
            (21_390_950, "20.4M"),
        ] {
            assert_eq!(count(n, false), text);
        }
        assert_eq!(bytes(512, false), "512B");
        assert_eq!(bytes(1536, true), "1536");
        for (ns, text) in [
            (0, "-"),
            (999, "999ns"),
            (1000, "1us"),
            (999_999, "999us"),
            (1_500_000, "1ms"),
            (68_719_476_735, "68s"),
            (3_000_000_000_000, "3000s"),
        ] {
            assert_eq!(time(ns, false), text);
        }
        assert_eq!(duration(192), "00:03:12");
        assert_eq!(duration(2 * 86400 + 3600), "2 days 01:00:00");
    }
}
