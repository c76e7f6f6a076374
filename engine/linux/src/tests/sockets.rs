use super::both;
use std::io::{Read, Write};
use std::time::Duration;
use world::{Address, Buf, IoBuf};

fn unix_path(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("cenote-linux-{name}-{}", std::process::id()))
}

/// Echoes until the peer closes.
async fn echo(stream: Box<dyn world::Stream>) {
    let mut buf = IoBuf::scratch(100_000);
    loop {
        let range = 5..buf.len();
        let (filled, outcome) = stream.recv(buf, range).await;
        let n = outcome.unwrap();
        if n == 0 {
            return;
        }
        let filled = filled.freeze();
        let middle = 5 + n / 2;
        stream.send(vec![filled.slice(5..middle), Buf::empty(), filled.slice(middle..5 + n)]).await.unwrap();
        buf = filled.into_mut();
    }
}

/// Sends from one thread and receives on another, more than the sockets can hold.
fn client<S: Read + Write + Send>(mut reader: S, mut writer: S, close: impl Fn(&S)) {
    let data: Vec<u8> = (0..3_000_000u32).map(|i| (i / 7) as u8).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| writer.write_all(&data).unwrap());
        let mut back = vec![0; data.len()];
        reader.read_exact(&mut back).unwrap();
        assert!(back == data);
    });
    close(&writer);
    assert_eq!(reader.read(&mut [0; 1]).unwrap(), 0);
}

/// Receives `len` bytes into many small buffers, however they arrive.
async fn gather(stream: &dyn world::Stream, len: usize) -> Vec<u8> {
    let mut parts: Vec<IoBuf> = Vec::new();
    let mut left = len;
    while left > 0 {
        parts.push(IoBuf::scratch(left.min(1 + parts.len() % 700)));
        left -= parts[parts.len() - 1].len();
    }
    let mut filled = 0;
    while filled < len {
        let (back, received) = stream.recv_parts(parts, filled).await;
        parts = back;
        filled += received.unwrap();
    }
    parts.iter().flat_map(|p| p.to_vec()).collect()
}

#[test]
fn what_is_received_into_many_buffers_lies_there_in_order() {
    both(|| async {
        let listener = world::listen(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let Address::Tcp(addr) = listener.local() else { panic!("a TCP listener has a TCP address") };
        let data: Vec<u8> = (0..3_000_000u32).map(|i| (i / 7) as u8).collect();
        let sent = data.clone();
        let thread = std::thread::spawn(move || {
            let mut stream = std::net::TcpStream::connect(addr).unwrap();
            sent.chunks(70_001).for_each(|part| stream.write_all(part).unwrap());
        });
        let (stream, _) = listener.accept().await.unwrap();
        assert!(gather(&*stream, data.len()).await == data, "more buffers than one call takes");
        let (_, received) = stream.recv_parts(vec![IoBuf::scratch(10)], 3).await;
        assert_eq!(received.unwrap(), 0, "the peer has closed");
        thread.join().unwrap();
    });
}

#[test]
fn a_tcp_client_gets_back_what_it_sent() {
    both(|| async {
        let listener = world::listen(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let Address::Tcp(addr) = listener.local() else { panic!("a TCP listener has a TCP address") };
        assert_ne!(addr.port(), 0);
        let thread = std::thread::spawn(move || {
            let stream = std::net::TcpStream::connect(addr).unwrap();
            client(stream.try_clone().unwrap(), stream, |s| s.shutdown(std::net::Shutdown::Write).unwrap());
        });
        let (stream, peer) = listener.accept().await.unwrap();
        assert!(matches!(peer, Address::Tcp(a) if a.ip().is_loopback()));
        world::spawn_on(1, echo(stream)).await;
        thread.join().unwrap();
    });
}

#[test]
fn a_unix_client_gets_back_what_it_sent_and_the_socket_is_removed() {
    both(|| async {
        let path = unix_path("echo");
        // Left behind by a process that was killed.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let listener = world::listen(&Address::Unix(path.clone())).unwrap();
        assert!(world::listen(&Address::Unix(path.clone())).is_err(), "it is served already");
        let to = path.clone();
        let thread = std::thread::spawn(move || {
            let stream = std::os::unix::net::UnixStream::connect(to).unwrap();
            client(stream.try_clone().unwrap(), stream, |s| s.shutdown(std::net::Shutdown::Write).unwrap());
        });
        // The probe of the second listen comes first, and has gone.
        let (first, _) = listener.accept().await.unwrap();
        echo(first).await;
        let (stream, _) = listener.accept().await.unwrap();
        echo(stream).await;
        thread.join().unwrap();
        drop(listener);
        assert!(!path.exists());
    });
}

#[test]
fn an_accept_that_is_given_up_loses_no_connection() {
    both(|| async {
        let listener = world::listen(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let Address::Tcp(addr) = listener.local() else { panic!("a TCP listener has a TCP address") };
        assert!(world::timeout(Duration::from_millis(5), listener.accept()).await.is_none());
        let mut socket = std::net::TcpStream::connect(addr).unwrap();
        socket.write_all(b"hello").unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let (buf, n) = stream.recv(IoBuf::scratch(10), 0..10).await;
        assert_eq!(&buf[..n.unwrap()], b"hello");
    });
}

#[test]
fn shutdown_ends_a_receive_under_way_and_dropping_tells_the_peer() {
    both(|| async {
        let listener = world::listen(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let Address::Tcp(addr) = listener.local() else { panic!("a TCP listener has a TCP address") };
        let mut socket = std::net::TcpStream::connect(addr).unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let receive = stream.recv(IoBuf::scratch(10), 0..10);
        world::sleep(Duration::from_millis(2)).await;
        stream.shutdown();
        assert_eq!(receive.await.1.unwrap(), 0);
        let abandoned = stream.recv(IoBuf::scratch(10), 0..10);
        drop((abandoned, stream));
        assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0);
    });
}

#[test]
fn sending_to_a_peer_that_is_gone_is_an_error_not_a_signal() {
    both(|| async {
        let listener = world::listen(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let Address::Tcp(addr) = listener.local() else { panic!("a TCP listener has a TCP address") };
        drop(std::net::TcpStream::connect(addr).unwrap());
        let (stream, _) = listener.accept().await.unwrap();
        let mut failed = false;
        for _ in 0..100 {
            failed |= stream.send(vec![Buf::zeroed(1000)]).await.is_err();
            world::sleep(Duration::from_millis(1)).await;
            if failed {
                break;
            }
        }
        assert!(failed);
    });
}
