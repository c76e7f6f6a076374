//! A device without moving parts: channels that work side by side behind one port.
//!
//! ```text
//!   read   each page on its channel (by its place): read time ─▶ port
//!   write  port ─▶ answered from the buffer; each page then occupies its channel for
//!          program time × write amplification (+ its share of an erase), and a write waits when the buffer is full
//! ```
//!
//! Write amplification of uniform random writes follows from the spare room alone: with α = 1 + spare, the share u of pages
//! still valid in the block that is erased solves u = e^(−α(1−u)), and each written page costs 1/(1−u).

use super::contents::Contents;
use super::modelled::{Model, Modelled};
use super::spindle::{instant, seconds};
use crate::parameters::Parameters;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use world::{Buf, DiskKind, Pending};

/// See the module.
pub type Flash = Modelled<Inner>;

#[derive(Debug)]
pub struct Inner {
    path: PathBuf,
    size: u64,
    page: u64,
    overhead: f64,
    read: f64,
    /// Of a page, amplification and erasing included.
    program: f64,
    /// Seconds of programming that the buffer hides.
    buffered: f64,
    port: f64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    contents: Contents,
    channels: Vec<f64>,
    port_free: f64,
}

/// Pages written for each page that a host writes, at random all over a device with this much spare room.
pub fn write_amplification(spare: f64) -> f64 {
    let alpha = 1.0 + spare;
    let mut valid: f64 = 0.5;
    for _ in 0..500 {
        valid = (-alpha * (1.0 - valid)).exp();
    }
    1.0 / (1.0 - valid)
}

impl Flash {
    /// From the parameters whose keys begin with `prefix`.
    pub fn new(path: &Path, size: u64, parameters: &Parameters, prefix: &str) -> Flash {
        let get = |key: &str| parameters.get(&format!("{prefix}{key}"));
        let (page, channels) = (get("page") * 1024.0, get("channels"));
        let erase = get("erase") / 1e3 / get("pages-per-block");
        let amplification = if get("random-writes") > 0.0 { write_amplification(get("spare")) } else { 1.0 };
        let program = (get("program") / 1e6 + erase) * amplification;
        Modelled(Arc::new(Inner {
            path: path.into(),
            size,
            page: page as u64,
            overhead: get("overhead") / 1e6,
            read: get("read") / 1e6,
            program,
            buffered: get("buffer") * 1048576.0 / page / channels * program,
            port: get("port") * 1e6,
            state: Mutex::new(State {
                contents: Contents::default(),
                channels: vec![0.0; channels as usize],
                port_free: 0.0,
            }),
        }))
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Occupies the channels of all pages of a range for `each`; answers when the last is done.
    fn occupy(&self, state: &mut State, now: f64, offset: u64, len: u64, each: f64) -> f64 {
        let mut done = now;
        for page in offset / self.page..(offset + len).div_ceil(self.page) {
            // Pages of one request lie on different channels; distant ones on any.
            let spread = (page / 256).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let channel = ((page + spread) % state.channels.len() as u64) as usize;
            let free = &mut state.channels[channel];
            *free = free.max(now) + each;
            done = done.max(*free);
        }
        done
    }

    fn read_until(&self, offset: u64, len: u64) -> f64 {
        let now = seconds(world::now()) + self.overhead;
        let mut state = self.lock();
        let done = self.occupy(&mut state, now, offset, len, self.read);
        state.port_free = state.port_free.max(done) + len as f64 / self.port;
        state.port_free
    }

    fn write_until(&self, offset: u64, len: u64) -> f64 {
        let now = seconds(world::now()) + self.overhead;
        let mut state = self.lock();
        state.port_free = state.port_free.max(now) + len as f64 / self.port;
        let arrived = state.port_free;
        let programmed = self.occupy(&mut state, arrived, offset, len, self.program);
        arrived.max(programmed - self.buffered)
    }

    /// The buffer has capacitors: it need not be emptied.
    fn flush_until(&self) -> f64 {
        seconds(world::now()) + self.overhead
    }
}

impl Model for Inner {
    fn path(&self) -> &Path {
        &self.path
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn kind(&self) -> (u32, DiskKind) {
        (4096, DiskKind::Block { rotational: false, volatile_cache: true })
    }

    fn copy(&self, offset: u64, into: &mut [u8]) {
        self.lock().contents.read(offset, into);
    }

    fn read(self: Arc<Self>, offset: u64, len: u64) -> Pending<()> {
        Box::pin(world::sleep_until(instant(self.read_until(offset, len))))
    }

    fn write(self: Arc<Self>, offset: u64, len: u64, parts: Vec<Buf>) -> Pending<()> {
        let done = self.write_until(offset, len);
        Box::pin(async move {
            world::sleep_until(instant(done)).await;
            self.lock().contents.write_parts(offset, &parts);
        })
    }

    fn flush(self: Arc<Self>) -> Pending<()> {
        Box::pin(world::sleep_until(instant(self.flush_until())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::SSD_SATA;
    use futures_util::future::join_all;
    use world::{Disk, IoBuf};

    #[test]
    fn amplification_is_that_of_the_literature() {
        for (spare, published) in [(0.07, 7.8), (0.28, 2.5), (0.3, 2.36)] {
            let found = write_amplification(spare);
            assert!((found - published).abs() < 0.1, "{spare}: {found}");
        }
    }

    #[test]
    fn one_read_takes_a_read_and_many_fill_the_port() {
        let (one, rate) = sim::run(1, sim::Config { shuffle: false, ..Default::default() }, async {
            let parameters = Parameters::of(&[SSD_SATA]);
            let flash = Flash::new(Path::new("/lab/f"), 1 << 34, &parameters, "ssd-");
            let began = world::now();
            Disk::read(&flash, 4096, IoBuf::zeroed(4096)).await.1.unwrap();
            let one = world::now().since(began);
            let began = world::now();
            join_all((0..256u64).map(|i| Disk::read(&flash, i << 20, IoBuf::zeroed(1 << 20)))).await;
            (one, 256.0 * 1.048_576 / world::now().since(began).as_secs_f64())
        });
        assert!((60..200).contains(&one.as_micros()), "{one:?}");
        assert!((400.0..560.0).contains(&rate), "{rate} MB/s");
    }

    #[test]
    fn random_writes_fall_to_what_erasing_leaves() {
        let rate = |spare: f64| {
            sim::run(1, sim::Config { shuffle: false, ..Default::default() }, async move {
                let parameters = Parameters::of(&[SSD_SATA]).with("ssd-spare", spare);
                let flash = Flash::new(Path::new("/lab/f"), 1 << 34, &parameters, "ssd-");
                let mut rng = sim::Rng::new(1);
                let began = world::now();
                for _ in 0..400 {
                    let many = (0..32).map(|_| (rng.below(1 << 20) * 16384) % (1 << 34));
                    let writes = many.map(|at| Disk::write(&flash, at, vec![Buf::zeroed(16384)]));
                    join_all(writes.collect::<Vec<_>>()).await;
                }
                400.0 * 32.0 / world::now().since(began).as_secs_f64()
            })
        };
        let (little, much) = (rate(0.07), rate(0.28));
        assert!(much > 1.8 * little, "{little} {much}");
    }
}
