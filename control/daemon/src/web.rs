//! The API over HTTPS, beside the appliance: where it listens, and how its requests reach the engine's loops.
//!
//! ```text
//!   rest's thread:  Bridge::call ──▶ requests ──▶ a loop: Appliance::call, each a task
//!                        await   ◀── reply    ◀──┘
//! ```
//!
//! It listens on this machine alone until an administrator says otherwise: on the command line, by a socket that the
//! service manager hands over, or in the service `rest` of the API itself.

use crate::kept::Kept;
use crate::{page, report};
use access::{Access, Entropy};
use api::{ApiError, Call, ErrorKind, Reply, Result, Service};
use appliance::{Appliance, Home};
use cli::args::Web;
use rest::{About, Certificate, Door, Rest, Serving};
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use world::Address;
use world::sync::{Receiver, Sender, TrySendError, channel, oneshot};

/// The appliance's port, and one for who may not have that.
const PORTS: [u16; 3] = [215, 8215, 0];
/// Of the web page without TLS.
const PLAIN_PORTS: [u16; 2] = [8216, 0];
/// Requests on their way to the appliance; each comes from a connection, of which there are not many more.
const REQUESTS_MAX: usize = 256;
/// The appliance's serial number, among what [`access::State::settings`] keeps.
const ASN: &str = "appliance.asn";

type Asked = (Call, oneshot::Sender<Result<Reply>>);

/// The appliance as other threads reach it.
struct Bridge(Sender<Asked>);

impl Service for Bridge {
    fn call(&self, call: Call) -> Pin<Box<dyn Future<Output = Result<Reply>> + Send>> {
        let (reply, answer) = oneshot::channel();
        let gone = || ApiError::new(ErrorKind::Cancelled, "the appliance is closing");
        let sent = match self.0.try_send((call, reply)) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => Err(ApiError::new(ErrorKind::Cancelled, "the appliance is busy")),
            Err(TrySendError::Closed(_)) => Err(gone()),
        };
        Box::pin(async move {
            sent?;
            answer.await.unwrap_or_else(|_| Err(gone()))
        })
    }
}

async fn answer(appliance: Appliance, mut asked: Receiver<Asked>) {
    while let Some((call, reply)) = asked.recv().await {
        let appliance = appliance.clone();
        world::spawn(async move {
            // The client may have hung up; what was asked for is done all the same.
            let _ = reply.send(appliance.call(call).await);
        });
    }
}

/// Randomness of the kernel.
pub struct Kernel;

impl Entropy for Kernel {
    fn fill(&mut self, mut out: &mut [u8]) {
        while !out.is_empty() {
            match rustix::rand::getrandom(&mut *out, rustix::rand::GetRandomFlags::empty()) {
                Ok(n) => out = &mut out[n..],
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => panic!("the kernel has no randomness: {e}"),
            }
        }
    }
}

/// Users and roles of a home, which are part of its configuration.
pub fn open_access(home: &Home, configuration: store::Store) -> Result<Access, String> {
    let kept = Kept::new(configuration, home.dir());
    let mut access = Access::open(Box::new(kept), Box::new(Kernel)).map_err(|e| e.message)?;
    if !access.state().settings.contains_key(ASN) {
        let id = access.salt().map(|byte| format!("{byte:02x}")).concat();
        let asn = format!("{}-{}-{}-{}-{}", &id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]);
        let kept = access.change(|state| {
            state.settings.insert(ASN.into(), asn);
            Ok(())
        });
        kept.map_err(|e| e.message)?;
    }
    Ok(access)
}

/// The API while it is served.
pub struct Running {
    rest: Arc<Rest>,
    serving: Serving,
    socket: PathBuf,
    pub addresses: Vec<String>,
}

impl Running {
    /// Where the web page is, and a code to type there.
    pub fn invitation(&self) -> Option<String> {
        let place = page::place(&self.addresses)?;
        Some(page::invitation(place, self.rest.new_code().reveal()))
    }

    /// Lets requests that are under way end. The loop goes on meanwhile, since they need it.
    pub async fn stop(self) {
        let (stopped, wait) = oneshot::channel();
        std::thread::spawn(move || {
            self.serving.stop();
            let _ = stopped.send(());
        });
        let _ = wait.await;
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// Serves the API of this appliance; `plain`: the page without TLS too, on this machine alone, also where no option asks
/// for it.
pub fn start(appliance: &Appliance, home: &Home, web: &Web, plain: bool) -> Result<Running, String> {
    let configuration = appliance.configuration().map_err(|e| e.to_string())?;
    let access = open_access(home, configuration)?;
    let names = host_names();
    let asn = access.state().settings.get(ASN).cloned().unwrap_or_default();
    let listen = access.state().settings.get(rest::LISTEN).cloned().unwrap_or_default();
    let about = About {
        nodename: names.first().cloned().unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION").into(),
        asn,
        addresses: Vec::new(),
    };
    let (requests, asked) = channel(REQUESTS_MAX);
    let rest = Rest::new(access, Arc::new(Bridge(requests)), about);
    let counting = rest.clone();
    appliance.count_api(move || counting.counted());

    let mut doors = Vec::new();
    let mut addresses = Vec::new();
    for (listener, certificate) in secured(listeners(web, &listen)?, &home.dir().join("tls"), &names) {
        let address = listener.local_addr().map_err(|e| e.to_string())?;
        addresses.push(format!("https://{address}"));
        doors.push(Door::Https(listener, certificate));
    }
    if let Some(listener) = plain_listener(web, plain)? {
        let address = listener.local_addr().map_err(|e| e.to_string())?;
        addresses.push(format!("http://{address}"));
        doors.push(Door::Http(listener));
    }
    let socket = home.dir().join("rest.sock");
    doors.push(Door::Unix(owners_door(&socket)?, rustix::process::geteuid().as_raw()));
    addresses.push(format!("unix:{}", socket.display()));
    rest.set_addresses(addresses.clone());
    world::spawn(answer(appliance.clone(), asked));
    let serving = rest::serve(rest.clone(), doors).map_err(|e| format!("cannot serve the API: {e}"))?;
    Ok(Running { rest, serving, socket, addresses })
}

/// The listeners with their certificate; none when that cannot be used: pools are served all the same, and the owner's
/// socket is open.
fn secured(listeners: Vec<TcpListener>, tls: &Path, names: &[String]) -> Vec<(TcpListener, Certificate)> {
    if listeners.is_empty() {
        return Vec::new();
    }
    match Certificate::load_or_make(tls, names) {
        Ok(certificate) => {
            for remark in certificate.remarks() {
                report::complain(&format!("WARNING: the API's certificate: {}: {remark}", tls.display()));
            }
            listeners.into_iter().map(|listener| (listener, certificate.clone())).collect()
        }
        Err(e) => {
            report::complain(&format!("WARNING: the API is not served over HTTPS: {e}"));
            Vec::new()
        }
    }
}

fn plain_listener(web: &Web, unasked: bool) -> Result<Option<TcpListener>, String> {
    if let Some(address) = web.http {
        if !address.ip().is_loopback() {
            return Err(format!(
                "cannot serve the web page on {address} without TLS: that is for 127.0.0.1 alone; use --https"
            ));
        }
        return bind(address, PATIENCE).map(Some).map_err(|e| refused("the web page", address, &e, "--http"));
    }
    if !unasked || web.no_https || !web.https.is_empty() {
        return Ok(None);
    }
    let local = |port: &u16| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, *port))).ok();
    Ok(PLAIN_PORTS.iter().find_map(local))
}

fn owners_door(socket: &Path) -> Result<UnixListener, String> {
    // We hold the home's lock: the process that left it is gone.
    let _ = std::fs::remove_file(socket);
    let bound = UnixListener::bind(socket).and_then(|listener| {
        std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    });
    bound.map_err(|e| world::cannot_listen("the API", &Address::Unix(socket.into()), &e, "--home"))
}

/// By the command line; else what the service manager hands over; else what an administrator has set; else this machine.
fn listeners(web: &Web, kept: &str) -> Result<Vec<TcpListener>, String> {
    let bind = |address: &SocketAddr, option: &str| {
        bind(*address, PATIENCE).map_err(|e| refused("the API", *address, &e, option))
    };
    if web.no_https {
        return Ok(Vec::new());
    }
    if !web.https.is_empty() {
        return web.https.iter().map(|address| bind(address, "--https")).collect();
    }
    let mut handed = listenfd::ListenFd::from_env();
    let handed: Vec<TcpListener> =
        (0..handed.len()).filter_map(|n| handed.take_tcp_listener(n).ok().flatten()).collect();
    if !handed.is_empty() {
        return Ok(handed);
    }
    let kept: Vec<SocketAddr> = kept.split(',').filter_map(|a| a.parse().ok()).collect();
    let bound = kept.iter().map(|address| bind(address, "the property listen of the service rest"));
    let set: Result<Vec<TcpListener>, String> = bound.collect();
    match set {
        Ok(listeners) if !listeners.is_empty() => return Ok(listeners),
        // It was set over the API: without one it could not be set right.
        Err(e) => report::complain(&format!("WARNING: {e}; it is on this machine alone")),
        Ok(_) => {}
    }
    let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let found = PORTS.iter().find_map(|port| TcpListener::bind(local(*port)).ok());
    found.map(|listener| vec![listener]).ok_or_else(|| "cannot listen for the API on this machine".into())
}

fn refused(clients: &str, address: SocketAddr, why: &std::io::Error, option: &str) -> String {
    world::cannot_listen(clients, &Address::Tcp(address), why, option)
}

/// A daemon that was just killed may have its socket a moment longer: its memory is given back first.
fn bind(address: SocketAddr, patience: std::time::Duration) -> std::io::Result<TcpListener> {
    let until = std::time::Instant::now() + patience;
    loop {
        match TcpListener::bind(address) {
            Err(e) if e.kind() == std::io::ErrorKind::AddrInUse && std::time::Instant::now() < until => {
                std::thread::sleep(RETRY);
            }
            bound => return bound,
        }
    }
}

/// How long an address that is taken is tried again, and how often.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);
const RETRY: std::time::Duration = std::time::Duration::from_millis(20);

/// What clients may call this machine.
fn host_names() -> Vec<String> {
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    // A name that is none would make a certificate that is none.
    let is_name = own.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b)) && !own.is_empty();
    let own = if is_name { own } else { "localhost".into() };
    [own, "localhost".into(), "127.0.0.1".into(), "::1".into()].into()
}

#[cfg(test)]
mod tests {
    use super::bind;
    use std::net::TcpListener;
    use std::time::Duration;

    /// "Address already in use" ended a daemon that was started at once after a kill: its predecessor still had the port.
    #[test]
    fn a_port_that_is_taken_for_a_moment_is_waited_for() {
        let predecessor = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = predecessor.local_addr().unwrap();
        assert!(bind(address, Duration::from_millis(50)).is_err(), "it is taken");
        let ends = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(500));
            drop(predecessor);
        });
        bind(address, Duration::from_secs(300)).unwrap();
        ends.join().unwrap();
    }
}
