//! Random numbers from the kernel, fetched a page at a time: good enough for keys.

use rustix::rand::{GetRandomFlags, getrandom};
use std::cell::RefCell;

const FETCHED: usize = 512;

struct Pool {
    bytes: [u8; FETCHED],
    used: usize,
}

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; FETCHED], used: FETCHED }) };
}

pub(crate) fn random_u64() -> u64 {
    POOL.with_borrow_mut(|pool| {
        if pool.used == FETCHED {
            pool.refill();
        }
        let word = &mut pool.bytes[pool.used..pool.used + 8];
        pool.used += 8;
        // What was given out is not kept.
        let number = u64::from_ne_bytes(word.try_into().expect("eight bytes"));
        word.fill(0);
        number
    })
}

impl Pool {
    fn refill(&mut self) {
        let mut have = 0;
        while have < FETCHED {
            match getrandom(&mut self.bytes[have..], GetRandomFlags::empty()) {
                Ok(n) => have += n,
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => panic!("the kernel has no random numbers: {e}"),
            }
        }
        self.used = 0;
    }
}
