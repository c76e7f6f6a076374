//! `[pool] ... [interval [count]]`: numbers at the end of the words are not names.

use std::time::Duration;

/// How often a listing is repeated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeat {
    pub every: Duration,
    /// `None`: until interrupted.
    pub count: Option<u64>,
}

/// Splits the words into names and repetition.
pub fn split(words: &[String]) -> Result<(Vec<String>, Option<Repeat>), String> {
    let numbers = words.iter().rev().take(2).take_while(|w| w.parse::<f64>().is_ok()).count();
    let (names, tail) = words.split_at(words.len() - numbers);
    let names = names.to_vec();
    match tail {
        [] => Ok((names, None)),
        [every] => Ok((names, Some(Repeat { every: interval(every)?, count: None }))),
        [every, count] => {
            let count = count.parse().ok().filter(|n| *n > 0);
            let count = count.ok_or("count must be a whole number, at least 1")?;
            Ok((names, Some(Repeat { every: interval(every)?, count: Some(count) })))
        }
        _ => unreachable!("at most two words were taken"),
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("interval '{text}' is not a number"))?;
    if seconds <= 0.0 {
        return Err("interval cannot be zero".into());
    }
    Duration::try_from_secs_f64(seconds).map_err(|e| format!("interval '{text}': {e}"))
}
