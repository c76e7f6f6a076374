use super::*;
use ::iscsi::memory::{MemoryDirectory, device};
use ::iscsi::{Config, Server};
use scsi::memory::MemoryUnit;
use std::net::{Ipv4Addr, TcpListener};

const TARGET: &str = "iqn.2026-11.org.example:unit";

#[test]
fn what_was_written_is_read_with_many_commands_under_way() {
    linux::block_on(async {
        let unit = Arc::new(MemoryUnit::new(8 << 20, 4096));
        let directory = MemoryDirectory::default().with(TARGET, 1, device(unit, 1));
        let server = Server::new(Arc::new(directory), Default::default(), Config::default());
        let portal = Address::Tcp((Ipv4Addr::LOCALHOST, 0).into());
        let portal = server.listen(&portal).unwrap();
        for (is_durable, len) in [(false, 4096u32), (true, 65_536), (false, 512 << 10)] {
            let disk = connect(&portal, TARGET, 1, is_durable).await.unwrap();
            assert_eq!(disk.size(), 8 << 20);
            let count = (8u64 << 20) / u64::from(len);
            let block =
                |i: u64| Buf::copy_from(&vec![(i as u8).wrapping_add(len.ilog2() as u8); len as usize]);
            let writes = (0..count).map(|i| world::spawn(disk.write(i * u64::from(len), block(i))));
            for write in writes.collect::<Vec<_>>() {
                write.await.unwrap();
            }
            disk.flush().await.unwrap();
            let reads = (0..count).map(|i| world::spawn(disk.read(i * u64::from(len), len)));
            for (i, read) in reads.collect::<Vec<_>>().into_iter().enumerate() {
                assert!(*read.await.unwrap()[0] == *block(i as u64), "{len}: {i}");
            }
            let refused = disk.read(8 << 20, 4096).await.unwrap_err().to_string();
            assert!(refused.contains("status 0x02, sense 5/21/00"), "{refused}");
        }
        let refused =
            connect(&portal, "iqn.2026-11.org.example:none", 1, false).await.unwrap_err().to_string();
        assert!(refused.contains("login refused, status 0203: there is no such target"), "{refused}");
        let refused = connect(&portal, TARGET, 7, false).await.unwrap_err().to_string();
        assert!(
            refused.contains("LUN 7: ") && refused.contains("the target has no LUN of this number"),
            "{refused}"
        );
        server.stop().await;
    });
}

#[test]
fn a_target_that_makes_no_sense_is_left() {
    use std::io::{Read, Write};
    let mut login = vec![0; HEADER];
    (login[0], login[1]) = (0x23, 0x87);
    login[32..36].copy_from_slice(&64u32.to_be_bytes());
    let pdu = |opcode: u8, tag: u32, len: u32| {
        let mut bytes = vec![0; HEADER];
        bytes[0] = opcode;
        bytes[5..8].copy_from_slice(&len.to_be_bytes()[1..]);
        bytes[16..20].copy_from_slice(&tag.to_be_bytes());
        bytes
    };
    for (says, why) in [
        (vec![], "closed the connection"),
        (vec![0xff; HEADER], "login makes no sense"),
        ([login.clone(), pdu(RESPONSE, 77, 0)].concat(), "an answer to no command"),
        ([login.clone(), pdu(DATA_IN, 0, 4)].concat(), "data of no read"),
        ([login.clone(), pdu(READY, 0, 0)].concat(), "ready for data of no write"),
        ([login.clone(), pdu(DATA_IN, 0, 0xff_ffff)].concat(), "longer than was agreed"),
        ([login.clone(), pdu(0x3f, 0, 0)].concat(), "a PDU 0x3f"),
        ([login.clone(), pdu(ASYNC, 0, 0)].concat(), "an end of the session"),
    ] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let portal = Address::Tcp(listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let _ = stream.write_all(&says);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let outcome = linux::block_on(async move { connect(&portal, TARGET, 0, false).await.map(drop) });
        let said = outcome.unwrap_err().to_string();
        assert!(said.contains(why), "{why}: {said}");
    }
}
