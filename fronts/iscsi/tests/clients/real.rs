//! A server in this process, on real sockets, and client programs to run against it.

use interop::programs;
use iscsi::memory::MemoryDirectory;
use iscsi::{Config, Places, Server};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use world::Address;

pub struct Real {
    pub ports: Vec<u16>,
    pub dir: PathBuf,
    end: Option<world::sync::oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Real {
    /// Serves what `make` makes, at so many portals, until dropped.
    pub fn serve(
        name: &str,
        portals: usize,
        make: impl FnOnce() -> MemoryDirectory + Send + 'static,
    ) -> Real {
        let dir = std::env::temp_dir().join(format!("iscsi-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a temporary directory can be made");
        let (tell, told) = mpsc::channel();
        let (end, ended) = world::sync::oneshot::channel();
        let thread = thread::spawn(move || {
            linux::run(linux::Config { cores: Some(2), io_uring: true }, async move {
                // All clients of these tests are at one address.
                let usual = Config::default();
                let places = Places { of_address: usual.places.all, ..usual.places };
                let config = Config { places, ..usual };
                let server = Server::new(Arc::new(make()), Default::default(), config);
                let any = Address::Tcp(([127, 0, 0, 1], 0).into());
                let listening = (0..portals).map(|_| server.listen(&any).expect("the server listens"));
                tell.send(listening.collect::<Vec<_>>()).expect("the test waits for the addresses");
                let _ = ended.await;
                server.stop().await;
            });
        });
        let port = |address| match address {
            Address::Tcp(address) => address.port(),
            Address::Unix(_) => panic!("a TCP address"),
        };
        let ports = told.recv().expect("the server begins").into_iter().map(port).collect();
        Real { ports, dir, end: Some(end), thread: Some(thread) }
    }

    pub fn portal(&self) -> String {
        format!("iscsi://127.0.0.1:{}", self.ports[0])
    }

    pub fn unit(&self, target: &str, lun: u16) -> String {
        format!("{}/{target}/{lun}", self.portal())
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            let _ = end.send(());
        }
        let ended = self.thread.take().map(thread::JoinHandle::join);
        let _ = std::fs::remove_dir_all(&self.dir);
        if !thread::panicking() {
            assert!(ended.is_none_or(|e| e.is_ok()), "the server ended well");
        }
    }
}

/// A client, which is ended when it takes longer than so many seconds.
pub fn limited(seconds: u32, program: &str, args: &[&str], dir: &Path) -> Output {
    let path = programs::find(program).expect("the test says that it needs it");
    let mut command = Command::new("timeout");
    command.arg(seconds.to_string()).arg(path).args(args).current_dir(dir).stdin(Stdio::null());
    command.output().expect("the program starts")
}

/// Runs a program to its end and returns what it printed; it must succeed.
pub fn output(program: &str, args: &[&str], dir: &Path) -> String {
    let output = limited(120, program, args, dir);
    assert!(output.status.success(), "{program} {args:?}: {}", programs::said(&output));
    programs::said(&output)
}
