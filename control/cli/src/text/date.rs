//! Times of day. All are in UTC: the program knows no time zones.

/// As ctime(3) writes it: `Sat Nov 21 05:37:00 2026`.
pub fn ctime(seconds: u64) -> String {
    // The calendar's own form pads the hour with a blank where ctime has a zero.
    let date = dsl::props::show_date(seconds, true);
    let (day, rest) = date.split_at(11);
    format!("{day}{}", rest.replacen(' ', "0", usize::from(rest.starts_with(' '))))
}

/// As the history has it: `2026-11-21.05:37:00`.
pub fn sortable(seconds: u64) -> String {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let date = ctime(seconds);
    let words: Vec<&str> = date.split_whitespace().collect();
    let month = MONTHS.find(words[1]).map_or(0, |at| at / 3 + 1);
    let day: u32 = words[2].parse().unwrap_or(0);
    format!("{}-{month:02}-{day:02}.{}", words[4], words[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_ctime_and_as_the_history_write_it() {
        assert_eq!(ctime(1_795_215_611), "Fri Nov 20 23:00:11 2026");
        assert_eq!(ctime(1_795_219_200), "Sat Nov 21 00:00:00 2026");
        assert_eq!(ctime(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(sortable(1_795_215_611), "2026-11-20.23:00:11");
        assert_eq!(sortable(0), "1970-01-01.00:00:00");
    }
}
