//! Clients over NBD that will not go: one that reads nothing of what it asked for, and some that are back at once.

use crate::home::Home;
use interop::harness::{Trial, trial};
use std::io::{Read, Result, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;

pub fn trials() -> Vec<Trial> {
    vec![trial("clients_that_will_not_go_get_no_other_volume_and_keep_none", &[], will_not_go)]
}

/// A connection over NBD, with simple replies.
struct Client(UnixStream);

impl Client {
    fn open(socket: &Path, export: &str) -> Result<Client> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.read_exact(&mut [0; 18])?;
        let mut hello = 3u32.to_be_bytes().to_vec();
        hello.extend(b"IHAVEOPT");
        hello.extend(1u32.to_be_bytes());
        hello.extend((export.len() as u32).to_be_bytes());
        hello.extend(export.as_bytes());
        stream.write_all(&hello)?;
        stream.read_exact(&mut [0; 10])?;
        Ok(Client(stream))
    }

    fn ask(&mut self, command: u16, (offset, len): (u64, usize), data: &[u8]) -> Result<()> {
        let mut bytes = 0x2560_9513u32.to_be_bytes().to_vec();
        bytes.extend(0u16.to_be_bytes());
        bytes.extend(command.to_be_bytes());
        bytes.extend(offset.to_be_bytes());
        bytes.extend(offset.to_be_bytes());
        bytes.extend((len as u32).to_be_bytes());
        bytes.extend(data);
        self.0.write_all(&bytes)
    }

    /// Waits for a reply, which must be no error.
    fn answer(&mut self) -> Result<()> {
        let mut reply = [0; 16];
        self.0.read_exact(&mut reply)?;
        assert_eq!(reply[4..8], [0; 4], "errno");
        Ok(())
    }

    fn first(&mut self) -> u8 {
        self.ask(0, (0, 512), &[]).unwrap();
        self.answer().unwrap();
        let mut data = [0; 512];
        self.0.read_exact(&mut data).unwrap();
        data[0]
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        self.ask(1, (offset, data.len()), data).unwrap();
        self.answer().unwrap();
    }

    fn flush(&mut self) {
        self.ask(3, (0, 0), &[]).unwrap();
        self.answer().unwrap();
    }
}

/// Volumes were renamed, and pools exported, under a client that had not gone within 15 seconds. It kept its volume under
/// the old name, and whatever opened that name next had the same: another volume's data, or those of a closed pool.
fn will_not_go() {
    let home = Home::new();
    let disk = home.disk("disk0");
    let (daemon, _) = home.start("serve --arc-max 64M");
    home.run(&format!("zpool create tank {disk}"));
    let socket = home.dir().join("nbd.sock");
    let open = |export: &str| Client::open(&socket, export).unwrap();
    let make = |name: &str| home.run(&format!("zfs create -s -V 128M -o compression=off {name}"));
    make("tank/x");
    let mut writer = open("tank/x");
    (0..16).for_each(|at| writer.write(at * MIB as u64, &vec![b'A'; MIB]));
    writer.flush();
    drop(writer);
    let stuck = |export: &str| {
        let mut client = open(export);
        (0..16).for_each(|at| client.ask(0, (at * MIB as u64, MIB), &[]).unwrap());
        std::thread::sleep(Duration::from_millis(300));
        client
    };
    let soon = |command: &str| {
        let began = Instant::now();
        home.run(command);
        assert!(began.elapsed() < Duration::from_secs(14), "{command}: {:?}", began.elapsed());
    };
    let old = stuck("tank/x");
    soon("zfs rename -f tank/x tank/y");
    make("tank/x");
    let mut new = open("tank/x");
    assert_eq!(new.first(), 0, "it is a new volume");
    new.write(0, &[b'N'; 4096]);
    new.flush();
    assert_eq!(open("tank/y").first(), b'A');
    drop((new, old));

    let old = stuck("tank/y");
    soon("zpool export -f tank");
    home.run(&format!("zpool import -d {disk} tank"));
    let mut new = open("tank/y");
    assert_eq!(new.first(), b'A');
    new.write(0, &[b'M'; 4096]);
    new.flush();
    assert_eq!((open("tank/y").first(), open("tank/x").first()), (b'M', b'N'));
    drop((new, old));

    // As a program that connects again whenever it is hung up on.
    let (is_over, came_in) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    if let Ok(mut client) = Client::open(&socket, "tank/x") {
                        came_in.fetch_add(1, Ordering::Relaxed);
                        let mut asks =
                            || client.ask(0, (0, 512), &[]).and_then(|()| client.0.read_exact(&mut [0; 528]));
                        while !is_over.load(Ordering::Relaxed) {
                            if asks().is_err() {
                                break;
                            }
                        }
                    }
                }
            });
        }
        for round in 0..3 {
            home.run(&format!("zfs snapshot tank/x@s{round}"));
            soon(&format!("zfs rollback -f tank/x@s{round}"));
            soon("zfs rename -f tank/x tank/z");
            soon("zfs rename -f tank/z tank/x");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(came_in.load(Ordering::Relaxed) > 4, "they came back");
    assert_eq!((open("tank/y").first(), open("tank/x").first()), (b'M', b'N'));
    daemon.end();
}
