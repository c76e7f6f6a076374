//! A server in this process, on real sockets, and client programs to run against it.

use interop::programs;
use nbd::memory::MemoryExports;
use nbd::{Config, Server};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use world::Address;

pub struct Real {
    pub port: u16,
    pub dir: PathBuf,
    end: Option<world::sync::oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Real {
    /// Serves `exports` over TCP and over a socket in a directory of its own, until dropped.
    pub fn serve(name: &str, exports: MemoryExports) -> Real {
        Real::serve_in(linux::Config { cores: Some(2), io_uring: true }, name, exports)
    }

    pub fn serve_in(world: linux::Config, name: &str, exports: MemoryExports) -> Real {
        Real::serve_with(world, name, exports, None)
    }

    /// With an identity, over TCP inside TLS alone.
    pub fn serve_with(
        world: linux::Config,
        name: &str,
        exports: MemoryExports,
        identity: Option<tls::Identity>,
    ) -> Real {
        let dir = std::env::temp_dir().join(format!("nbd-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a temporary directory can be made");
        let socket = dir.join("socket");
        let _ = std::fs::remove_file(&socket);
        let (tell, told) = mpsc::channel();
        let (end, ended) = world::sync::oneshot::channel();
        let thread = thread::spawn(move || {
            linux::run(world, async move {
                let server = Server::new(Arc::new(exports), Default::default(), Config::default());
                identity.into_iter().for_each(|identity| server.require_tls(identity));
                let any = Address::Tcp(([127, 0, 0, 1], 0).into());
                let tcp = server.listen(&any).expect("the server listens");
                server.listen(&Address::Unix(socket)).expect("the server listens");
                tell.send(tcp).expect("the test waits for the address");
                let _ = ended.await;
                server.stop().await;
            });
        });
        let Address::Tcp(address) = told.recv().expect("the server begins") else { panic!("a TCP address") };
        Real { port: address.port(), dir, end: Some(end), thread: Some(thread) }
    }

    pub fn tcp(&self, export: &str) -> String {
        format!("nbd://127.0.0.1:{}/{export}", self.port)
    }

    pub fn unix(&self, export: &str) -> String {
        format!("nbd+unix:///{export}?socket={}", self.dir.join("socket").display())
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
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

/// The system's own directories first: the Python modules of libnbd are those of the system's Python.
pub fn command(program: &str) -> Command {
    let mut command = programs::command(program);
    let path = format!("/usr/bin:{}", std::env::var("PATH").unwrap_or_default());
    command.env("PATH", path).stdin(Stdio::null());
    command
}

/// Runs a program to its end and returns what it printed; it must succeed.
pub fn output(program: &str, args: &[&str], dir: &Path) -> String {
    let output = command(program).args(args).current_dir(dir).output().expect("the program starts");
    assert!(output.status.success(), "{program} {args:?}: {}", text(&output));
    text(&output)
}

pub fn text(output: &Output) -> String {
    [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat()
}
