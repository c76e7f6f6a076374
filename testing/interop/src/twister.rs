//! The random numbers of Python, to the bit: the golden trees were filled from them.
//!
//! The generator is MT19937 (Matsumoto and Nishimura, 1998): 624 words of state, of which a block is drawn and
//! tempered, then the whole state turns. Python seeds it with the words of an integer, and takes bytes from it as
//! little-endian words. Known answers in the tests are from Python itself.

const WORDS: usize = 624;
const MIDDLE: usize = 397;

#[derive(Debug)]
pub struct Twister {
    state: Box<[u32; WORDS]>,
    next: usize,
}

impl Twister {
    /// As `random.Random(seed)`.
    pub fn new(seed: u64) -> Twister {
        let key = [seed as u32, (seed >> 32) as u32];
        let key = if key[1] == 0 { &key[..1] } else { &key[..] };
        let mut twister = Twister { state: Box::new(seeded_by_number(19_650_218)), next: WORDS };
        twister.stir(key);
        twister
    }

    /// Mixes a key of several words into the state.
    fn stir(&mut self, key: &[u32]) {
        let state = &mut self.state;
        let mut i = 1;
        let previous = |state: &[u32; WORDS], i: usize| state[i - 1] ^ (state[i - 1] >> 30);
        for (j, word) in key.iter().enumerate().cycle().take(WORDS) {
            let mixed = state[i] ^ previous(state, i).wrapping_mul(1_664_525);
            state[i] = mixed.wrapping_add(*word).wrapping_add(j as u32);
            i = following(state, i);
        }
        for _ in 1..WORDS {
            let mixed = state[i] ^ previous(state, i).wrapping_mul(1_566_083_941);
            state[i] = mixed.wrapping_sub(i as u32);
            i = following(state, i);
        }
        state[0] = 0x8000_0000;
    }

    fn turn(&mut self) {
        for i in 0..WORDS {
            let joined = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % WORDS] & 0x7fff_ffff);
            let odd = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + MIDDLE) % WORDS] ^ (joined >> 1) ^ odd;
        }
        self.next = 0;
    }

    pub fn word(&mut self) -> u32 {
        if self.next == WORDS {
            self.turn();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// As `randbytes` of a length that is a multiple of four.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_exact_mut(4) {
            chunk.copy_from_slice(&self.word().to_le_bytes());
        }
    }

    /// As `_randbelow`: draws bits until they are less than the bound.
    fn below(&mut self, bound: usize) -> usize {
        let bits = usize::BITS - bound.leading_zeros();
        loop {
            let drawn = (self.word() >> (32 - bits)) as usize;
            if drawn < bound {
                return drawn;
            }
        }
    }

    /// As `shuffle`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

fn seeded_by_number(seed: u32) -> [u32; WORDS] {
    let mut state = [seed; WORDS];
    for i in 1..WORDS {
        let previous = state[i - 1] ^ (state[i - 1] >> 30);
        state[i] = previous.wrapping_mul(1_812_433_253).wrapping_add(i as u32);
    }
    state
}

/// The next place to stir. Past the end it is the second word, and the first takes over the last.
fn following(state: &mut [u32; WORDS], i: usize) -> usize {
    if i + 1 < WORDS {
        return i + 1;
    }
    state[0] = state[WORDS - 1];
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(seed: u64, length: usize, shown: usize) -> String {
        let mut bytes = vec![0; length];
        Twister::new(seed).fill(&mut bytes);
        bytes[length - shown..].iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn bytes_are_pythons() {
        assert_eq!(hex(7, 16, 16), "38b4e652e44da7f2370d9e260e271365");
        assert_eq!(hex(4_000_000_000, 8, 8), "cb03d368dfcb0aa8");
        assert_eq!(hex(1, 5000, 4), "917da71d", "the state has turned twice by then");
    }

    #[test]
    fn shuffles_are_pythons() {
        let mut items: Vec<usize> = (0..20).collect();
        let mut twister = Twister::new(3);
        twister.shuffle(&mut items);
        assert_eq!(items, [8, 3, 6, 5, 15, 16, 2, 12, 0, 1, 13, 10, 19, 9, 14, 11, 4, 17, 18, 7]);
        let mut after = [0; 4];
        twister.fill(&mut after);
        assert_eq!(after, [181, 67, 125, 138], "as many words were drawn");
    }
}
