//! A connection inside TLS.
//!
//! ```text
//!   recv   socket ── one receive ──▶ ciphertext ── a few KiB at a time ──▶ rustls ── decrypted ──▶ the caller's buffers
//!   send   the caller's parts ── as much as ENCRYPTED_MAX ──▶ rustls ── records ──▶ one vectored send; then the rest
//! ```
//!
//! The caller's buffers are filled from all records that are here before the socket is asked for more. Both directions share
//! the state of the protocol under a lock that is held while records are made or opened, and never while waiting. Only
//! sends, and the farewell, write to the socket: what rustls has to say of its own accord meanwhile (an alert, a change of
//! keys) leaves with the next of them.

use rustls::Connection;
use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use world::{Address, Buf, IoBuf, Pending, Stream, place_in};

/// As much ciphertext as one receive may bring, bytes.
const RECEIVED_MAX: usize = 256 << 10;
/// As much as is encrypted ahead of the socket, bytes.
const ENCRYPTED_MAX: usize = 256 << 10;

/// A stream whose bytes are protected on another one.
pub struct Secure(Arc<Inner>);

struct Inner {
    raw: Arc<dyn Stream>,
    state: Mutex<State>,
}

struct State {
    tls: Connection,
    ciphertext: Ciphertext,
    /// Records are with the socket, or were when their send failed or was dropped: the next would not follow them.
    is_sending: bool,
}

/// What was received and not decrypted yet.
#[derive(Debug, Default)]
struct Ciphertext {
    /// None while a receive has it, and for ever after one that failed or was dropped.
    buf: Option<IoBuf>,
    waiting: Range<usize>,
}

impl Ciphertext {
    fn new() -> Ciphertext {
        Ciphertext { buf: Some(IoBuf::scratch(RECEIVED_MAX)), waiting: 0..0 }
    }

    fn lend(&mut self) -> io::Result<IoBuf> {
        assert!(self.waiting.is_empty(), "a receive is started only for want of ciphertext");
        self.buf
            .take()
            .ok_or_else(|| io::Error::other("an earlier receive of this TLS connection did not end"))
    }

    fn put_back(&mut self, buf: IoBuf, received: usize) {
        (self.buf, self.waiting) = (Some(buf), 0..received);
    }

    /// Gives the protocol some of it; `false` when none waits.
    fn feed(&mut self, tls: &mut Connection) -> io::Result<bool> {
        let mut waiting =
            self.buf.as_deref().and_then(|buf| buf.get(self.waiting.clone())).unwrap_or_default();
        if waiting.is_empty() {
            return Ok(false);
        }
        let fed = tls.read_tls(&mut waiting)?;
        if fed == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "there is more after the end of TLS"));
        }
        self.waiting.start += fed;
        tls.process_new_packets().map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        Ok(true)
    }
}

impl State {
    /// Decrypts into `targets`, one after the other, as far as ciphertext is here. Nothing when it brought no byte; 0 when
    /// the peer has said farewell.
    fn decrypt<'a>(&mut self, targets: impl Iterator<Item = &'a mut [u8]>) -> io::Result<Option<usize>> {
        let mut taken = 0;
        for target in targets {
            let mut at = 0;
            while at < target.len() {
                match self.tls.reader().read(&mut target[at..]) {
                    Ok(0) => return Ok(Some(taken)),
                    Ok(count) => {
                        at += count;
                        taken += count;
                    }
                    Err(e) if e.kind() != io::ErrorKind::WouldBlock => return Err(e),
                    Err(_) if self.ciphertext.feed(&mut self.tls)? => {}
                    Err(_) => return Ok((taken > 0).then_some(taken)),
                }
            }
        }
        Ok(Some(taken))
    }

    /// Encrypts what follows the first `done` bytes of `parts`, up to the limit; returns the records.
    fn encrypt(&mut self, parts: &[Buf], done: &mut usize) -> io::Result<Vec<Buf>> {
        let mut skipped = *done;
        let rest = parts.iter().filter_map(|part| {
            let from = skipped.min(part.len());
            skipped -= from;
            (from < part.len()).then(|| IoSlice::new(&part[from..]))
        });
        let rest: Vec<IoSlice<'_>> = rest.collect();
        if rest.is_empty() {
            return Ok(Vec::new());
        }
        let taken = self.tls.writer().write_vectored(&rest)?;
        if taken == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        *done += taken;
        records(&mut self.tls)
    }
}

/// What is to be sent now.
fn records(tls: &mut Connection) -> io::Result<Vec<Buf>> {
    struct Records(Vec<Buf>);
    impl Write for Records {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(Buf::copy_from(bytes));
            Ok(bytes.len())
        }
        fn write_vectored(&mut self, all: &[IoSlice<'_>]) -> io::Result<usize> {
            self.0.extend(all.iter().map(|bytes| Buf::copy_from(bytes)));
            Ok(all.iter().map(|bytes| bytes.len()).sum())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut records = Records(Vec::new());
    while tls.wants_write() {
        tls.write_tls(&mut records)?;
    }
    Ok(records.0)
}

/// Makes the handshake, of either side. When it fails the peer is told why.
pub(crate) async fn shake_hands(mut tls: Connection, raw: Arc<dyn Stream>) -> io::Result<Secure> {
    tls.set_buffer_limit(Some(ENCRYPTED_MAX));
    let mut ciphertext = Ciphertext::new();
    loop {
        let ours = records(&mut tls)?;
        if !ours.is_empty() {
            raw.send(ours).await?;
        }
        if !tls.is_handshaking() {
            let state = Mutex::new(State { tls, ciphertext, is_sending: false });
            return Ok(Secure(Arc::new(Inner { raw, state })));
        }
        if ciphertext.waiting.is_empty() {
            let (buf, received) = receive(&*raw, ciphertext.lend()?).await?;
            ciphertext.put_back(buf, received);
        }
        let fed;
        // Signatures take their time, which the sessions of this core would wait for.
        (tls, ciphertext, fed) = world::compute(move || {
            let fed = ciphertext.feed(&mut tls);
            (tls, ciphertext, fed)
        })
        .await;
        if let Err(e) = fed {
            // The alert; what went wrong counts, and not whether the peer still hears of it.
            if let Ok(alert) = records(&mut tls) {
                let _ = raw.send(alert).await;
            }
            return Err(e);
        }
    }
}

/// One receive; that the peer has closed is an error, since it did not say farewell.
async fn receive(raw: &dyn Stream, buf: IoBuf) -> io::Result<(IoBuf, usize)> {
    let whole = 0..buf.len();
    let (buf, received) = raw.recv(buf, whole).await;
    match received? {
        0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the peer has closed within TLS")),
        count => Ok((buf, count)),
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        // After a panic of rustls its own state says that it failed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives until `decrypt` has something to return.
    async fn receive(
        &self,
        mut decrypt: impl FnMut(&mut State) -> io::Result<Option<usize>> + Send,
    ) -> io::Result<usize> {
        loop {
            let buf = {
                let mut state = self.lock();
                if let Some(count) = decrypt(&mut state)? {
                    return Ok(count);
                }
                state.ciphertext.lend()?
            };
            let (buf, received) = receive(&*self.raw, buf).await?;
            self.lock().ciphertext.put_back(buf, received);
        }
    }

    /// The next records of a send; none when all are sent.
    fn next_records(&self, parts: &[Buf], done: &mut usize) -> io::Result<Vec<Buf>> {
        let mut state = self.lock();
        if state.is_sending {
            return Err(io::Error::other("an earlier send of this TLS connection did not end"));
        }
        let records = state.encrypt(parts, done)?;
        state.is_sending = !records.is_empty();
        Ok(records)
    }

    async fn send(&self, parts: Vec<Buf>) -> io::Result<()> {
        let mut done = 0;
        loop {
            let records = self.next_records(&parts, &mut done)?;
            if records.is_empty() {
                return Ok(());
            }
            self.raw.send(records).await?;
            self.lock().is_sending = false;
        }
    }
}

impl Secure {
    /// As a client, which expects the server of this name: for tests.
    pub async fn connect(
        raw: Arc<dyn Stream>,
        config: Arc<rustls::ClientConfig>,
        name: rustls::pki_types::ServerName<'static>,
    ) -> io::Result<Secure> {
        let connection = rustls::ClientConnection::new(config, name).map_err(io::Error::other)?;
        shake_hands(connection.into(), raw).await
    }

    /// Says farewell (`close_notify`), unless a send did not end; nothing can be sent any more. Waits for the socket to take
    /// it. The connection itself stays open.
    pub async fn close(&self) {
        let farewell = {
            let mut state = self.0.lock();
            if std::mem::replace(&mut state.is_sending, true) {
                return;
            }
            state.tls.send_close_notify();
            records(&mut state.tls).unwrap_or_default()
        };
        // A peer that is gone does not need it.
        let _ = self.0.raw.send(farewell).await;
    }
}

impl Stream for Secure {
    fn recv(&self, mut buf: IoBuf, range: Range<usize>) -> Pending<(IoBuf, io::Result<usize>)> {
        assert!(!range.is_empty() && range.end <= buf.len(), "a receive needs a place within its buffer");
        let inner = self.0.clone();
        Box::pin(async move {
            let target = &mut buf[range];
            let received = inner.receive(|state| state.decrypt(std::iter::once(&mut *target))).await;
            (buf, received)
        })
    }

    fn recv_parts(&self, mut parts: Vec<IoBuf>, filled: usize) -> Pending<(Vec<IoBuf>, io::Result<usize>)> {
        let (first, start) = place_in(&parts, filled);
        let inner = self.0.clone();
        Box::pin(async move {
            let received = inner
                .receive(|state| {
                    let targets = parts[first..].iter_mut().enumerate();
                    state.decrypt(
                        targets.map(|(i, part)| if i == 0 { &mut part[start..] } else { &mut part[..] }),
                    )
                })
                .await;
            (parts, received)
        })
    }

    fn send(&self, parts: Vec<Buf>) -> Pending<io::Result<()>> {
        let inner = self.0.clone();
        Box::pin(async move { inner.send(parts).await })
    }

    fn shutdown(&self) {
        self.0.raw.shutdown();
    }

    fn local(&self) -> Option<Address> {
        self.0.raw.local()
    }
}

impl fmt::Debug for Secure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secure({:?})", self.0.raw)
    }
}
