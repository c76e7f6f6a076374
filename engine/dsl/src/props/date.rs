//! Dates as `zfs get creation` writes them, in UTC.

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const SECONDS_PER_DAY: u64 = 86400;

/// `Sat Nov 21  5:37 2026`, from seconds since 1970; the hour is padded with a blank.
pub fn show_date(seconds: u64, with_seconds: bool) -> String {
    let days = seconds / SECONDS_PER_DAY;
    let (year, month, day) = civil(days);
    let of_day = seconds % SECONDS_PER_DAY;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let weekday = DAYS[(days % 7) as usize];
    let month = MONTHS[month as usize - 1];
    if with_seconds {
        format!("{weekday} {month} {day:2} {hour:2}:{minute:02}:{second:02} {year}")
    } else {
        format!("{weekday} {month} {day:2} {hour:2}:{minute:02} {year}")
    }
}

/// Year, month and day of the Gregorian calendar. Counts in eras of 400 years whose years begin in March, so that
/// the leap day is the last day of its year and needs no case of its own.
pub(crate) fn civil(days_since_1970: u64) -> (u64, u64, u64) {
    // 719468 days lie between 0000-03-01 and 1970-01-01. The limit keeps nonsense from disk from overflowing.
    let days = days_since_1970.min(1 << 40) + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}
