//! Connections within the simulated world.
//!
//! ```text
//!   connect(address) ──▶ the listener's queue ──▶ accept
//!        │                                          │
//!        └── Pipe ──────────────────────────────────┘      and another Pipe the other way
//! ```
//!
//! A pipe holds a bounded number of bytes, delivers them after a latency, and, as TCP may, in pieces that have
//! nothing to do with how they were sent: how many bytes a receive gets is drawn from the seed.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use world::sync::Notify;
use world::{Address, Buf, Instant, IoBuf, Listener, Pending, Stream};

/// Bytes on their way in one direction before a sender waits.
const PIPE_BYTES: usize = 256 << 10;
const LATENCY: Duration = Duration::from_micros(20);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One direction of a connection.
#[derive(Default)]
struct Pipe {
    state: Mutex<PipeState>,
    changed: Notify,
}

#[derive(Default)]
struct PipeState {
    /// What was sent, with the time of its arrival.
    queue: VecDeque<(Instant, Buf)>,
    bytes: usize,
    closed: bool,
}

/// What a receiver finds.
enum Found {
    Bytes(usize),
    End,
    NotBefore(Instant),
}

impl Pipe {
    fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_all();
    }

    async fn send(&self, part: Buf) -> io::Result<()> {
        let mut rest = part;
        while !rest.is_empty() {
            let room = self.changed.until(|| self.room()).await?;
            let now_sent = room.min(rest.len());
            {
                let mut state = lock(&self.state);
                state.bytes += now_sent;
                state.queue.push_back((world::now().after(LATENCY), rest.slice(0..now_sent)));
            }
            rest = rest.slice(now_sent..rest.len());
            self.changed.notify_all();
        }
        Ok(())
    }

    fn room(&self) -> Option<io::Result<usize>> {
        let state = lock(&self.state);
        if state.closed {
            return Some(Err(io::ErrorKind::BrokenPipe.into()));
        }
        Some(PIPE_BYTES - state.bytes).filter(|&room| room > 0).map(Ok)
    }

    async fn recv(&self, target: &mut [u8]) -> usize {
        loop {
            match self.changed.until(|| self.take(target)).await {
                Found::Bytes(n) => {
                    self.changed.notify_all();
                    return n;
                }
                Found::End => return 0,
                Found::NotBefore(when) => world::sleep_until(when).await,
            }
        }
    }

    fn take(&self, target: &mut [u8]) -> Option<Found> {
        let mut state = lock(&self.state);
        let Some((arrival, front)) = state.queue.front().cloned() else {
            return state.closed.then_some(Found::End);
        };
        if arrival > world::now() {
            return Some(Found::NotBefore(arrival));
        }
        let most = front.len().min(target.len());
        // A quarter of all receives get less than there is.
        let draw = world::random_u64();
        let n = if draw.is_multiple_of(4) { 1 + (draw >> 2) as usize % most } else { most };
        target[..n].copy_from_slice(&front[..n]);
        state.bytes -= n;
        state.queue.pop_front();
        if n < front.len() {
            state.queue.push_front((arrival, front.slice(n..front.len())));
        }
        Some(Found::Bytes(n))
    }
}

struct Connection {
    incoming: Arc<Pipe>,
    outgoing: Arc<Pipe>,
}

/// Two ends of one connection.
pub fn stream_pair() -> (Box<dyn Stream>, Box<dyn Stream>) {
    let (there, back) = (Arc::<Pipe>::default(), Arc::<Pipe>::default());
    (
        Box::new(Connection { incoming: back.clone(), outgoing: there.clone() }),
        Box::new(Connection { incoming: there, outgoing: back }),
    )
}

impl Stream for Connection {
    fn recv(&self, mut buf: IoBuf, range: Range<usize>) -> Pending<(IoBuf, io::Result<usize>)> {
        assert!(!range.is_empty() && range.end <= buf.len(), "a receive needs a place within its buffer");
        let pipe = self.incoming.clone();
        Box::pin(async move {
            let n = pipe.recv(&mut buf[range]).await;
            (buf, Ok(n))
        })
    }

    fn send(&self, parts: Vec<Buf>) -> Pending<io::Result<()>> {
        let pipe = self.outgoing.clone();
        Box::pin(async move {
            for part in parts {
                pipe.send(part).await?;
            }
            Ok(())
        })
    }

    fn shutdown(&self) {
        self.incoming.close();
        self.outgoing.close();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sim::Connection")
    }
}

/// The listeners of one run, by address.
#[derive(Default)]
pub(crate) struct Network {
    listeners: Mutex<BTreeMap<String, Arc<Queue>>>,
    next_port: Mutex<u16>,
}

#[derive(Default)]
struct Queue {
    arrived: Mutex<VecDeque<Box<dyn Stream>>>,
    changed: Notify,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Network>>> = const { RefCell::new(None) };
}

/// Makes `network` the one of this thread's run until the guard is dropped.
pub(crate) fn enter(network: Arc<Network>) -> impl Drop {
    struct Leave(Option<Arc<Network>>);
    impl Drop for Leave {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    Leave(CURRENT.replace(Some(network)))
}

/// Connects to a listener of this run.
///
/// # Panics
/// Outside of a run.
pub fn connect(address: &Address) -> io::Result<Box<dyn Stream>> {
    let network = CURRENT.with_borrow(Clone::clone).expect("called from a task of a simulation");
    let queue = lock(&network.listeners).get(&address.to_string()).cloned();
    let queue = queue.ok_or(io::ErrorKind::ConnectionRefused)?;
    let (ours, theirs) = stream_pair();
    lock(&queue.arrived).push_back(theirs);
    queue.changed.notify_all();
    Ok(ours)
}

pub(crate) fn listen(network: &Arc<Network>, address: &Address) -> io::Result<Box<dyn Listener>> {
    let local = match address {
        Address::Tcp(a) if a.port() == 0 => {
            let mut next = lock(&network.next_port);
            *next += 1;
            Address::Tcp(SocketAddr::new(a.ip(), 49_151 + *next))
        }
        _ => address.clone(),
    };
    let mut listeners = lock(&network.listeners);
    if listeners.contains_key(&local.to_string()) {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    let queue = Arc::new(Queue::default());
    listeners.insert(local.to_string(), queue.clone());
    Ok(Box::new(Listening { local, queue, network: network.clone() }))
}

struct Listening {
    local: Address,
    queue: Arc<Queue>,
    network: Arc<Network>,
}

impl Listener for Listening {
    fn local(&self) -> Address {
        self.local.clone()
    }

    fn accept(&self) -> Pending<io::Result<(Box<dyn Stream>, Address)>> {
        let (queue, local) = (self.queue.clone(), self.local.clone());
        Box::pin(async move {
            let stream = queue.changed.until(|| lock(&queue.arrived).pop_front()).await;
            Ok((stream, local))
        })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        lock(&self.network.listeners).remove(&self.local.to_string());
        // Connections that were not accepted are closed.
        let refused = std::mem::take(&mut *lock(&self.queue.arrived));
        drop(refused);
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sim::Listening({})", self.local)
    }
}
