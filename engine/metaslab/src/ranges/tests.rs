use super::*;

/// The obvious set: one flag for each unit.
struct Bitmap([bool; 64]);

impl Bitmap {
    fn all(&self, s: Segment, value: bool) -> bool {
        (s.start..s.end).all(|i| self.0[i as usize] == value)
    }

    fn set(&mut self, s: Segment, value: bool) {
        (s.start..s.end).for_each(|i| self.0[i as usize] = value);
    }

    fn segments(&self) -> Vec<Segment> {
        let at = |i: usize| self.0.get(i).copied().unwrap_or(false);
        let starts = (0..64).filter(|&i| at(i) && (i == 0 || !at(i - 1)));
        starts
            .map(|start| {
                let end = (start..65).find(|&i| !at(i)).unwrap();
                Segment { start: start as u64, end: end as u64 }
            })
            .collect()
    }
}

/// Keeps its own copy of what it was told.
#[derive(Default)]
struct Mirror(std::collections::BTreeSet<Segment>);

impl Watch for Mirror {
    fn added(&mut self, segment: Segment) {
        assert!(self.0.insert(segment));
    }
    fn removed(&mut self, segment: Segment) {
        assert!(self.0.remove(&segment));
    }
}

fn some_segment(dice: &mut crate::tests::Dice) -> Segment {
    let start = dice.roll(63);
    Segment::new(start, 1 + dice.roll((64 - start).min(9)))
}

#[test]
fn a_set_agrees_with_a_bitmap_and_tells_its_watch_all() {
    let mut dice = crate::tests::Dice(3);
    let mut ranges: Ranges<Mirror> = Ranges::default();
    let mut bitmap = Bitmap([false; 64]);
    for _ in 0..50_000 {
        let s = some_segment(&mut dice);
        match dice.roll(3) {
            0 => {
                let free = bitmap.all(s, false);
                let added = ranges.add(s);
                assert_eq!(added.is_ok(), free, "{s:?}");
                if free {
                    bitmap.set(s, true);
                    assert!(added.unwrap().contains(s));
                }
            }
            1 => {
                let there = bitmap.all(s, true);
                assert_eq!(ranges.remove(s), there.then_some(()).ok_or(Missing), "{s:?}");
                if there {
                    bitmap.set(s, false);
                }
            }
            _ => {
                let first = ranges.behind(s.start).next();
                if let Some(first) = first {
                    let len = 1 + dice.roll(first.len());
                    ranges.take_front(first, len);
                    bitmap.set(Segment::new(first.start, len), false);
                }
            }
        }
        let expected = bitmap.segments();
        assert_eq!(ranges.iter().collect::<Vec<_>>(), expected);
        assert_eq!(ranges.watch().0.iter().copied().collect::<Vec<_>>(), expected);
        assert_eq!(ranges.space(), expected.iter().map(Segment::len).sum::<u64>());
        let overlap = expected.iter().find(|e| e.start < s.end && s.start < e.end);
        assert_eq!(ranges.overlapping(s), overlap.copied());
    }
}

#[test]
fn what_cancels_is_taken_out_and_the_rest_is_added() {
    let mut dice = crate::tests::Dice(4);
    for _ in 0..5_000 {
        let (mut from, mut to): (Ranges, Ranges) = Default::default();
        let (mut from_bits, mut to_bits) = (Bitmap([false; 64]), Bitmap([false; 64]));
        for _ in 0..8 {
            let s = some_segment(&mut dice);
            if dice.roll(2) == 0 && from.add(s).is_ok() {
                from_bits.set(s, true);
            }
            let s = some_segment(&mut dice);
            if dice.roll(2) == 0 && from_bits.all(s, false) && to.add(s).is_ok() {
                to_bits.set(s, true);
            }
        }
        let s = some_segment(&mut dice);
        let contradicts = (s.start..s.end).any(|i| !from_bits.0[i as usize] && to_bits.0[i as usize]);
        assert_eq!(from.cancel_or_add(s, &mut to).is_err(), contradicts);
        if !contradicts {
            for i in s.start..s.end {
                to_bits.0[i as usize] |= !from_bits.0[i as usize];
                from_bits.0[i as usize] = false;
            }
        }
        assert_eq!(from.iter().collect::<Vec<_>>(), from_bits.segments());
        assert_eq!(to.iter().collect::<Vec<_>>(), to_bits.segments());
    }
}
