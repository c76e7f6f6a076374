//! Which columns to believe damaged when a block does not pass its checksum. Pure.
//!
//! Reading may have failed outright in some columns: those are bad in any case. Others returned wrong bytes without
//! a word. Nothing says which, so every set that parity could replace is tried, smallest first; the block's checksum
//! tells the right one.

/// How many sets are tried at most. A width of 85 with three silent liars needs all of them; a hundred thousand
/// reconstructions of a large block take minutes, and a wider vdev gives up there.
pub(crate) const TRIES_MAX: usize = 100_000;

/// Every set of at most `parity` of `columns` columns that contains all of `failed`, is larger than it, and has at
/// least one data column: sets of parity columns alone would leave the data as it was read.
pub(crate) fn suspects(columns: usize, parity: usize, failed: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let sound: Vec<usize> = (0..columns).filter(|c| !failed.contains(c)).collect();
    let failed = failed.to_vec();
    (1..=parity.saturating_sub(failed.len()))
        .flat_map(move |guesses| {
            let (failed, sound) = (failed.clone(), sound.clone());
            combinations(sound.len(), guesses).map(move |guess| {
                let mut set: Vec<usize> =
                    failed.iter().copied().chain(guess.iter().map(|&i| sound[i])).collect();
                set.sort_unstable();
                set
            })
        })
        .filter(move |set| set.iter().any(|&c| c >= parity))
        .take(TRIES_MAX)
}

/// All ways to choose one of `counts[i]` things for each `i`, as indices; the first of all come first. Of none, 0 is chosen.
pub(crate) fn choices(counts: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let counts = counts.to_vec();
    std::iter::successors(Some(vec![0; counts.len()]), move |now| {
        let mut next = now.clone();
        let movable = (0..counts.len()).find(|&i| next[i] + 1 < counts[i])?;
        next[..movable].fill(0);
        next[movable] += 1;
        Some(next)
    })
}

/// All ways to take `k` of `n`, as increasing indices.
fn combinations(n: usize, k: usize) -> impl Iterator<Item = Vec<usize>> {
    let first = (k <= n).then(|| (0..k).collect::<Vec<_>>());
    std::iter::successors(first, move |now| {
        let mut next = now.clone();
        let movable = (0..k).rev().find(|&i| next[i] < n - k + i)?;
        next[movable] += 1;
        for i in movable + 1..k {
            next[i] = next[i - 1] + 1;
        }
        Some(next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_that_parity_could_replace_is_tried_once() {
        for (columns, parity) in [(2, 1), (5, 1), (5, 2), (7, 3)] {
            for failed in [vec![], vec![1], vec![columns - 1]] {
                let tried: Vec<_> = suspects(columns, parity, &failed).collect();
                let mut expected: Vec<Vec<usize>> = (1u32..1 << columns)
                    .map(|bits| (0..columns).filter(|c| bits >> c & 1 == 1).collect::<Vec<_>>())
                    .filter(|set| set.len() <= parity && set.len() > failed.len())
                    .filter(|set| failed.iter().all(|f| set.contains(f)))
                    .filter(|set| set.iter().any(|&c| c >= parity))
                    .collect();
                assert!(tried.is_sorted_by_key(Vec::len));
                let mut tried = tried;
                tried.sort();
                expected.sort();
                assert_eq!(tried, expected, "{columns} columns, parity {parity}, failed {failed:?}");
            }
        }
    }

    #[test]
    fn every_choice_is_made_once_and_that_of_the_first_first() {
        for counts in [vec![], vec![1, 0, 1], vec![2, 1, 3], vec![3, 3, 0, 2]] {
            let made: Vec<_> = choices(&counts).collect();
            assert!(made[0].iter().all(|&i| i == 0));
            assert_eq!(made.len(), counts.iter().map(|&n| n.max(1)).product::<usize>());
            let mut distinct = made.clone();
            distinct.sort();
            distinct.dedup();
            assert_eq!(distinct.len(), made.len());
            assert!(made.iter().all(|choice| choice.iter().zip(&counts).all(|(&i, &n)| i < n.max(1))));
        }
    }

    #[test]
    fn a_vdev_without_parity_to_spare_has_nothing_to_try() {
        assert_eq!(suspects(5, 2, &[0, 3]).count(), 0);
        assert_eq!(suspects(5, 1, &[4, 3]).count(), 0);
    }
}
