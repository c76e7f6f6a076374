//! A stream to a client that must take what it is sent.
//!
//! A client that asks and never reads would keep its seat for ever: its answers fill the socket, and nothing more happens.
//! So what is written must leave: within [`GRACE`] and a second more for each [`RATE`] bytes that did leave, or the
//! connection ends. A slow line gets its answer; what takes a byte now and then does not.
//!
//! ```text
//!   written ── all taken ──▶ (no time runs) ── written, not all taken ──▶ time runs ── all taken ──▶ (no time runs)
//!                                                                            └─ over: the write fails
//! ```

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

const GRACE: Duration = Duration::from_secs(30);
/// Bytes a second.
const RATE: u64 = 4 << 10;

/// See the module.
pub(crate) struct Draining<S> {
    stream: S,
    grace: Duration,
    /// Bytes a second.
    rate: u64,
    /// Runs while something waits to be taken.
    over: Option<Pin<Box<Sleep>>>,
}

impl<S> Draining<S> {
    pub fn new(stream: S) -> Draining<S> {
        Draining { stream, grace: GRACE, rate: RATE, over: None }
    }

    /// After bytes were taken: so much later is over.
    fn took(&mut self, bytes: usize) {
        if let Some(over) = &mut self.over {
            let more = Duration::from_millis(bytes as u64 * 1000 / self.rate);
            let deadline = over.deadline() + more;
            over.as_mut().reset(deadline);
        }
    }

    /// Something waits to be taken: an error when that has lasted too long.
    fn waits<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let grace = self.grace;
        let over = self.over.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + grace)));
        ready!(over.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not take its answers")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Draining<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Draining<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write(cx, bytes) {
            Poll::Pending => self.waits(cx),
            Poll::Ready(Ok(taken)) => {
                self.took(taken);
                Poll::Ready(Ok(taken))
            }
            failed => failed,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Pending => self.waits(cx),
            done => {
                self.over = None;
                done
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_shutdown(cx) {
            Poll::Pending => self.waits(cx),
            done => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    /// Writes this much into a pipe of 1 KiB, of which `step` bytes are read every 20 ms.
    async fn sent(bytes: usize, step: usize) -> io::Result<()> {
        let (near, mut far) = duplex(1024);
        let reader = tokio::spawn(async move {
            let mut buf = vec![0; step];
            while step > 0 && far.read_exact(&mut buf).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            std::future::pending::<()>().await;
        });
        let grace = Duration::from_millis(300);
        // What is read of 16K in 20 ms is more than a second's.
        let mut stream = Draining { grace, rate: 4 << 10, ..Draining::new(near) };
        let done = async {
            stream.write_all(&vec![7; bytes]).await?;
            stream.flush().await
        };
        let done = done.await;
        reader.abort();
        done
    }

    #[test]
    fn a_slow_client_gets_its_answer_and_one_that_does_not_read_is_left() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.unwrap().block_on(async {
            sent(512, 0).await.unwrap();
            sent(1 << 20, 16 << 10).await.unwrap();
            for step in [0, 1] {
                assert_eq!(sent(1 << 20, step).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
            }
        });
    }
}
