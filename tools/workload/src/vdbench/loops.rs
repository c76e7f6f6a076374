//! The lists of a run: what `for…=` goes through, and the rates of `iorate=`.
//!
//! ```text
//!   (1,2,4)      these          (1-64,d)     1, 2, 4 … 64          (64-1,d)   halved
//!   4            this           (10-100,10)  10, 20 … 100
//! ```

use super::lines::Key;
use crate::words::Parsed;

/// The most values of one list, and the most runs of a file.
pub const RUNS_MAX: usize = 10_000;

/// Whole numbers, sizes allowed: (1-64,d), (4k-1m,d), (1,2,4).
pub fn numbers(key: &Key) -> Parsed<Vec<u64>> {
    let place = &key.place;
    if let [range, step] = key.values.as_slice()
        && let Some((from, to)) = range.split_once('-')
    {
        let (from, to) = (place.size(from)?, place.size(to)?);
        return match step.as_str() {
            "d" | "D" => doubled(from, to).ok_or_else(|| place.complaint("doubling begins above 0")),
            step => stepped(from, to, place.size(step)?)
                .ok_or_else(|| place.complaint("the step of a range is above 0, and its list not endless")),
        };
    }
    key.values.iter().map(|value| place.size(value)).collect()
}

/// Percentages: (0-100,10), (0,50,100).
pub fn percents(key: &Key) -> Parsed<Vec<f64>> {
    let found = numbers(key)?;
    match found.iter().find(|p| **p > 100) {
        Some(wrong) => key.place.complain(format!("'{wrong}' is not a percentage from 0 to 100")),
        None => Ok(found.into_iter().map(|p| p as f64).collect()),
    }
}

fn doubled(from: u64, to: u64) -> Option<Vec<u64>> {
    if from == 0 || to == 0 {
        return None;
    }
    let next = |at: &u64| if from <= to { at.checked_mul(2) } else { Some(at / 2) };
    let is_in = |at: &u64| (from.min(to)..=from.max(to)).contains(at);
    Some(std::iter::successors(Some(from), next).take_while(is_in).collect())
}

fn stepped(from: u64, to: u64, step: u64) -> Option<Vec<u64>> {
    if step == 0 || from.abs_diff(to) / step >= RUNS_MAX as u64 {
        return None;
    }
    let next = |at: &u64| if from <= to { at.checked_add(step) } else { at.checked_sub(step) };
    let is_in = |at: &u64| (from.min(to)..=from.max(to)).contains(at);
    Some(std::iter::successors(Some(from), next).take_while(is_in).collect())
}

/// Every combination, the first list outermost, as the keys stood in the file.
pub fn combinations<T: Clone>(lists: &[Vec<T>]) -> Option<Vec<Vec<T>>> {
    let count = lists.iter().try_fold(1usize, |n, list| n.checked_mul(list.len()))?;
    if count > RUNS_MAX {
        return None;
    }
    let mut all = vec![Vec::new()];
    for list in lists {
        let longer = |head: Vec<T>| {
            list.iter()
                .map(move |value| head.iter().cloned().chain([value.clone()]).collect())
                .collect::<Vec<_>>()
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Place;

    fn key(values: &[&str]) -> Key {
        let values = values.iter().map(|v| v.to_string()).collect();
        Key { name: "forthreads".into(), place: Place::new("f", 1, "forthreads"), values }
    }

    #[test]
    fn lists_double_and_step_and_end() {
        assert_eq!(numbers(&key(&["1-64", "d"])).unwrap(), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(numbers(&key(&["64-16", "d"])).unwrap(), [64, 32, 16]);
        assert_eq!(numbers(&key(&["10-40", "10"])).unwrap(), [10, 20, 30, 40]);
        assert_eq!(numbers(&key(&["3-1", "1"])).unwrap(), [3, 2, 1]);
        assert_eq!(numbers(&key(&["4k", "1m"])).unwrap(), [4096, 1 << 20]);
        assert_eq!(percents(&key(&["0-100", "50"])).unwrap(), [0.0, 50.0, 100.0]);
        for wrong in [["0-8", "d"], ["1-8", "0"], ["0-99999999", "1"], ["x-8", "d"]] {
            assert!(numbers(&key(&wrong)).is_err(), "{wrong:?}");
        }
        assert!(percents(&key(&["50", "101"])).is_err());
        assert_eq!(numbers(&key(&["16E-1", "d"])).unwrap_err().key, "forthreads");
    }

    #[test]
    fn the_first_list_is_outermost_and_too_many_are_refused() {
        let all = combinations(&[vec![1, 2], vec![3, 4, 5]]).unwrap();
        assert_eq!(all, [[1, 3], [1, 4], [1, 5], [2, 3], [2, 4], [2, 5]]);
        assert_eq!(combinations::<u8>(&[]).unwrap(), [Vec::<u8>::new()]);
        assert_eq!(combinations(&vec![vec![0; 100]; 20]), None);
    }
}
