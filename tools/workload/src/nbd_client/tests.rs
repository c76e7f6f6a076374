use super::*;
use nbd::memory::{MemoryExports, MemoryVolume};
use nbd::{Config, Server};
use std::net::{Ipv4Addr, TcpListener};

/// A server in this process, and what is done with it.
fn with_server<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    work: impl FnOnce(Address) -> F + Send + 'static,
) -> T {
    linux::block_on(async move {
        let exports = MemoryExports::default().with("disk", MemoryVolume::new(8 << 20, 4096));
        let exports = exports.with("fixed", MemoryVolume::new(1 << 20, 4096).as_read_only());
        let server = Server::new(Arc::new(exports), Default::default(), Config::default());
        let address = server.listen(&Address::Tcp((Ipv4Addr::LOCALHOST, 0).into())).unwrap();
        let outcome = work(address).await;
        server.stop().await;
        outcome
    })
}

#[test]
fn what_was_written_is_read_with_many_requests_under_way() {
    with_server(|address| async move {
        for is_durable in [false, true] {
            let disk = connect(&address, "disk", is_durable).await.unwrap();
            assert_eq!(disk.size(), 8 << 20);
            let byte = if is_durable { 7 } else { 3 };
            let block = |i: u64| Buf::copy_from(&vec![byte + i as u8; 65_536]);
            let writes: Vec<_> = (0..32).map(|i| world::spawn(disk.write(i * 65_536, block(i)))).collect();
            for write in writes {
                write.await.unwrap();
            }
            disk.flush().await.unwrap();
            let reads: Vec<_> = (0..32).map(|i| world::spawn(disk.read(i * 65_536, 65_536))).collect();
            for (i, read) in reads.into_iter().enumerate() {
                let pieces = read.await.unwrap();
                assert!(*pieces[0] == *block(i as u64), "{i}");
            }
            let whole = disk.read(0, 2 << 20).await.unwrap().remove(0);
            assert!(whole.chunks(65_536).enumerate().all(|(i, part)| part == &*block(i as u64)));
        }
    });
}

#[test]
fn what_a_server_refuses_is_told() {
    with_server(|address| async move {
        let refused = connect(&address, "none", false).await.unwrap_err().to_string();
        assert!(refused.contains("refused the export"), "{refused}");
        let fixed = connect(&address, "fixed", false).await.unwrap();
        let refused = fixed.write(0, Buf::zeroed(4096)).await.unwrap_err().to_string();
        assert!(refused.contains("read-only"), "{refused}");
        let disk = connect(&address, "disk", false).await.unwrap();
        let refused = disk.read(8 << 20, 4096).await.unwrap_err().to_string();
        assert!(refused.contains("the server said"), "{refused}");
        disk.read(0, 4096).await.unwrap();
    });
}

/// Accepts one connection and says these bytes, then waits until the client has gone.
fn strange_server(says: Vec<u8>) -> Address {
    use std::io::{Read, Write};
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let Ok((mut stream, _)) = listener.accept() else { return };
        let _ = stream.write_all(&says);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    address
}

#[test]
fn a_server_that_makes_no_sense_is_left() {
    let hello = [INIT.as_slice(), &[0, 1]].concat();
    let option = |kind: u32, len: u32| {
        let mut bytes = OPTION_REPLY.to_be_bytes().to_vec();
        [GO, kind, len].iter().for_each(|word| bytes.extend(word.to_be_bytes()));
        bytes
    };
    let export = [
        hello.clone(),
        option(INFO, 12),
        vec![0, 0],
        (1u64 << 20).to_be_bytes().to_vec(),
        vec![0, 5],
        option(ACK, 0),
    ];
    let reply = |cookie: u64, error: u32| {
        [REPLY.to_be_bytes().as_slice(), &error.to_be_bytes(), &cookie.to_be_bytes()].concat()
    };
    for (says, why) in [
        (vec![], "closed the connection"),
        (vec![0; 18], "no NBD server"),
        ([hello.clone(), vec![9; 20]].concat(), "makes no sense"),
        ([hello.clone(), option(INFO, u32::MAX)].concat(), "makes no sense"),
        ([hello.clone(), option(ACK, 0)].concat(), "did not say how large"),
        ([export.concat(), vec![1; 16]].concat(), "makes no sense"),
        ([export.concat(), reply(99, 0)].concat(), "an answer to no request"),
        ([export.concat(), reply(u64::MAX, 0)].concat(), "an answer to no request"),
        ([export.concat(), reply(0, 0), vec![0; 100]].concat(), "closed the connection"),
    ] {
        let address = strange_server(says);
        let outcome = linux::block_on(async move {
            let disk = connect(&address, "disk", false).await?;
            disk.read(0, 4096).await.map(drop)
        });
        let said = outcome.unwrap_err().to_string();
        assert!(said.contains(why), "{why}: {said}");
    }
}
