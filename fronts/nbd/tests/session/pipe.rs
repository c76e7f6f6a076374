//! Two ends of a connection in memory. What one end has sent and the other has not received is bounded, as between
//! two sockets.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use world::{Buf, IoBuf, Pending, Stream};

const CAPACITY: usize = 64 << 10;

#[derive(Debug, Default)]
struct Half {
    bytes: VecDeque<u8>,
    closed: bool,
    waiting: Vec<Waker>,
}

impl Half {
    fn wait<T>(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        self.waiting.push(cx.waker().clone());
        Poll::Pending
    }

    fn changed(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

#[derive(Clone, Debug)]
struct Way(Arc<Mutex<Half>>);

impl Way {
    fn half(&self) -> MutexGuard<'_, Half> {
        self.0.lock().unwrap()
    }

    fn poll_recv(&self, into: &mut [u8], cx: &mut Context<'_>) -> Poll<usize> {
        let mut half = self.half();
        let len = half.bytes.len().min(into.len());
        if len == 0 && !half.closed {
            return half.wait(cx);
        }
        for (to, from) in into.iter_mut().zip(half.bytes.drain(..len)) {
            *to = from;
        }
        half.changed();
        Poll::Ready(len)
    }

    /// Takes what there is room for, of what is not closed.
    fn push(&self, from: &[u8]) -> usize {
        let mut half = self.half();
        let len = if half.closed { 0 } else { from.len().min(CAPACITY - half.bytes.len()) };
        half.bytes.extend(&from[..len]);
        half.changed();
        len
    }

    fn poll_send(&self, from: &[u8], cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut half = self.half();
        if half.closed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let len = from.len().min(CAPACITY - half.bytes.len());
        if len == 0 && !from.is_empty() {
            return half.wait(cx);
        }
        half.bytes.extend(&from[..len]);
        half.changed();
        Poll::Ready(Ok(len))
    }

    fn close(&self) {
        let mut half = self.half();
        half.closed = true;
        half.changed();
    }
}

#[derive(Debug)]
pub struct End {
    incoming: Way,
    outgoing: Way,
}

pub fn pair() -> (End, End) {
    let (a, b) = (Way(Arc::default()), Way(Arc::default()));
    (End { incoming: a.clone(), outgoing: b.clone() }, End { incoming: b, outgoing: a })
}

impl Stream for End {
    fn recv(&self, mut buf: IoBuf, range: Range<usize>) -> Pending<(IoBuf, io::Result<usize>)> {
        assert!(!range.is_empty() && range.end <= buf.len());
        let way = self.incoming.clone();
        Box::pin(async move {
            let received = poll_fn(|cx| way.poll_recv(&mut buf[range.clone()], cx)).await;
            (buf, Ok(received))
        })
    }

    fn send(&self, parts: Vec<Buf>) -> Pending<io::Result<()>> {
        let way = self.outgoing.clone();
        // As a socket does, it takes at once what it has room for.
        let took: Vec<usize> = parts.iter().map(|part| way.push(part)).collect();
        Box::pin(async move {
            for (part, mut sent) in parts.into_iter().zip(took) {
                while sent < part.len() {
                    sent += poll_fn(|cx| way.poll_send(&part[sent..], cx)).await?;
                }
            }
            Ok(())
        })
    }

    fn shutdown(&self) {
        self.incoming.close();
        self.outgoing.close();
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.shutdown();
    }
}
