//! For which moment a snapshot is due. Pure.

use api::automatic::{Frequency, When};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;
/// The first Monday after the begin of 1970.
const MONDAY: i64 = 4 * DAY;

/// The latest of its moments that is not after `now`, in seconds since 1970.
pub(crate) fn latest(when: &When, now: u64) -> u64 {
    let now = i64::try_from(now).unwrap_or(i64::MAX / 2);
    let of_day = i64::from(when.hour) * HOUR + i64::from(when.minute) * MINUTE;
    let before = |offset: i64, period: i64| now - (now - offset).rem_euclid(period);
    let moment = match when.frequency {
        Frequency::HalfHour => before(of_day, HOUR / 2),
        Frequency::Hour => before(of_day, HOUR),
        Frequency::Day => before(of_day, DAY),
        Frequency::Week => before(MONDAY + i64::from(when.day) * DAY + of_day, WEEK),
        Frequency::Month => {
            let (year, month) = month_of(now.div_euclid(DAY));
            let there = of_month(year, month, when.day) * DAY + of_day;
            let (year, month) = if month == 1 { (year - 1, 12) } else { (year, month - 1) };
            if there <= now { there } else { of_month(year, month, when.day) * DAY + of_day }
        }
    };
    u64::try_from(moment).unwrap_or(0)
}

/// The day of a month, or its last where it has not so many; in days since 1970.
fn of_month(year: i64, month: i64, day: u8) -> i64 {
    let first = first_of(year, month);
    let next = if month == 12 { first_of(year + 1, 1) } else { first_of(year, month + 1) };
    first + i64::from(day.max(1)).min(next - first) - 1
}

/// Years begin in March here, so that the odd day of a leap year is the last; 400 of them are an era.
fn first_of(year: i64, month: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5 - 719_468
}

/// Year and month of a day since 1970.
fn month_of(days: i64) -> (i64, i64) {
    let (mut year, mut month) = (1970 + days / 366, 1);
    while first_of(year + 1, 1) <= days {
        year += 1;
    }
    while month < 12 && first_of(year, month + 1) <= days {
        month += 1;
    }
    (year, month)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn when(frequency: Frequency, day: u8, hour: u8, minute: u8) -> When {
        When { frequency, day, hour, minute }
    }

    #[test]
    fn moments_are_those_of_the_calendar() {
        // Friday, 2026-05-22T14:20:00Z
        let now = 1_779_459_600;
        for (when, ago) in [
            (when(Frequency::HalfHour, 0, 0, 15), 5 * MINUTE),
            (when(Frequency::HalfHour, 0, 0, 25), 25 * MINUTE),
            (when(Frequency::Hour, 0, 0, 20), 0),
            (when(Frequency::Hour, 0, 0, 21), 59 * MINUTE),
            (when(Frequency::Day, 0, 14, 15), 5 * MINUTE),
            (when(Frequency::Day, 0, 14, 30), DAY - 10 * MINUTE),
            (when(Frequency::Week, 4, 14, 20), 0),
            (when(Frequency::Week, 0, 0, 0), 4 * DAY + 14 * HOUR + 20 * MINUTE),
            (when(Frequency::Week, 5, 14, 20), 6 * DAY),
            (when(Frequency::Month, 22, 14, 20), 0),
            // The 23rd and the last of April, which has no 31st.
            (when(Frequency::Month, 23, 14, 20), 29 * DAY),
            (when(Frequency::Month, 31, 14, 20), 22 * DAY),
        ] {
            assert_eq!(latest(&when, now), now - ago as u64, "{when:?}");
        }
        // 2024-03-01T00:00:00Z: the last of February was the 29th; and 1970 began on a Thursday.
        assert_eq!(latest(&when(Frequency::Month, 31, 0, 0), 1_709_251_200), 1_709_251_200 - DAY as u64);
        assert_eq!(
            latest(&when(Frequency::Month, 1, 0, 0), 1_704_067_199),
            1_701_388_800,
            "December's first"
        );
        assert_eq!(latest(&when(Frequency::Week, 0, 0, 0), 4 * DAY as u64), 4 * DAY as u64);
        assert_eq!(latest(&when(Frequency::Day, 0, 1, 0), 0), 0, "there was nothing before");
    }

    #[test]
    fn no_moment_lies_ahead_and_none_is_passed_over() {
        let all = [
            (when(Frequency::HalfHour, 0, 0, 7), HOUR / 2),
            (when(Frequency::Week, 6, 23, 59), WEEK),
            (when(Frequency::Month, 30, 3, 4), 31 * DAY),
        ];
        for (when, longest) in all {
            let mut last = 0;
            for now in (1_700_000_000..1_700_000_000 + 800 * DAY as u64).step_by(7_193) {
                let found = latest(&when, now);
                assert!(found <= now && now - found <= longest as u64 && found >= last, "{when:?} at {now}");
                last = found;
            }
        }
    }
}
