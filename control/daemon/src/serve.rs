//! `cenote up` and `cenote serve`: an appliance that goes on until it is told to end.
//!
//! ```text
//!   lock the home ─▶ open its pools ─▶ (up: a first one) ─▶ NBD ─▶ command socket ─▶ API ─▶ wait ─▶ clients, pools, sockets
//!                                                                                 SIGINT, SIGTERM, or asked to
//! ```

use crate::{log, manager, report, socket, up, web};
use api::{Call, Caller, Nbd, Reply, Request};
use appliance::{Appliance, Config, Exported, Home, Iscsi};
use cli::Failure;
use cli::args::{Files, Listen, Portals, System, Up, Web};
use futures_util::future::select;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use world::Address;

/// A daemon that ends, or was killed, gives its home up within this time.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where NBD clients come in.
#[derive(Clone, Debug)]
pub struct Doors {
    pub tcp: Option<SocketAddr>,
    pub unix: Option<std::path::PathBuf>,
}

pub fn run(
    home: &Home,
    (listen, portals, web): (&Listen, &Portals, &Web),
    (system, files): (&System, &Files),
    first: Option<&Up>,
) -> Result<(), Failure> {
    log::start(web.log);
    if let Some(daemon) = crate::running(home)? {
        return Err(runs_already(home, daemon));
    }
    let _lock = home
        .lock(PATIENCE)
        .map_err(|e| report::cannot(&format!("open home {}", home.dir().display()), &e))?;
    let config = Config { home: home.clone(), is_daemon: true, mounts: files.mount, system: system.read()? };
    let (listen, portals, web) = (listen.clone(), portals.clone(), web.clone());
    let first = first.map(up::First::of);
    linux::block_on(serve(config, listen, portals, web, first)).map_err(Failure::Failed)
}

fn runs_already(home: &Home, mut daemon: client::Client) -> Failure {
    let call = Call { command: String::new(), uid: 0, request: Request::Daemon };
    let who = match daemon.call(call) {
        Ok(Reply::Daemon(daemon)) => format!(" (process {})", daemon.pid),
        _ => String::new(),
    };
    Failure::Failed(format!(
        "cannot serve {}: a daemon{who} serves it already; 'cenote status' shows it, 'cenote down' ends it",
        home.dir().display()
    ))
}

async fn serve(
    config: Config,
    listen: Listen,
    portals: Portals,
    web: Web,
    first: Option<up::First>,
) -> Result<(), String> {
    // Whoever asks for the end while pools are opened gets it as soon as they can be closed.
    linux::expect_shutdown();
    let home = config.home.clone();
    let appliance = Appliance::start(config).await.map_err(|e| e.message)?;
    report::warn(&appliance);
    let outcome = serve_with(&appliance, &home, (&listen, &portals, &web), first).await;
    // Whatever went wrong, what is open is closed.
    let closed = appliance.stop().await.map_err(|e| e.message);
    outcome.and(closed)
}

async fn serve_with(
    appliance: &Appliance,
    home: &Home,
    (listen, portals, web): (&Listen, &Portals, &Web),
    first: Option<up::First>,
) -> Result<(), String> {
    let is_up = first.is_some();
    if let Some(first) = first {
        up::prepare(appliance, home, &first).await?;
    }
    appliance.begin_to_mount().await.iter().for_each(|line| report::complain(line));
    let server = nbd::Server::new(Arc::new(Exported::all(appliance)), Arc::default(), nbd::Config::default());
    let doors = open_doors(&server, listen, Some(&home.nbd_socket()))?;
    appliance.set_nbd(server.clone(), doors.addresses());
    let iscsi = open_portals(appliance, portals).await?;
    socket::listen(appliance, &home.socket()).map_err(|e| e.to_string())?;
    let api = web::start(appliance, home, web)?;
    match is_up {
        true => report::say(&up::welcome(appliance, home).await?),
        false => {
            report::say(&format!(
                "cenote serves {} on {}",
                home.dir().display(),
                doors.addresses().join(" and ")
            ));
            // Who did not say where finds it at the usual place, or asks the Unix socket.
            if !web.https.is_empty() {
                report::say(&format!("its API is at {}", api.addresses.join(" and ")));
            }
            up::unusable(appliance).await?.iter().for_each(|line| report::complain(line));
        }
    }
    appliance.begin_schedules();
    manager::notify("READY=1");
    // Which of them it was makes no difference.
    let _ = select(pin!(linux::shutdown_signal()), pin!(appliance.ended())).await;
    manager::notify("STOPPING=1");
    report::say("closing: clients are ended, pools synced and closed");
    api.stop().await;
    iscsi.stop().await;
    server.stop().await;
    for path in [home.socket()].iter().chain(&doors.unix) {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Lets iSCSI clients in where it was asked for; without that at the usual port of this machine alone, or another if
/// somebody has it.
async fn open_portals(appliance: &Appliance, portals: &Portals) -> Result<Iscsi, String> {
    let iscsi = Iscsi::start(appliance).await;
    for portal in &portals.iscsi {
        iscsi.listen(*portal).map_err(|e| e.to_string())?;
    }
    if portals.iscsi.is_empty() {
        let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let opened = iscsi.listen(local(::iscsi::DEFAULT_PORT)).or_else(|_| iscsi.listen(local(0)));
        opened.map_err(|e| e.to_string())?;
    }
    Ok(iscsi)
}

/// Lets NBD clients in where it was asked for; without that at the usual port, or another if somebody has it.
pub fn open_doors(
    server: &nbd::Server,
    listen: &Listen,
    usual_socket: Option<&Path>,
) -> Result<Doors, String> {
    let unix = listen.socket.as_deref().or(usual_socket);
    let only_unix = listen.socket.is_some() && listen.listen.is_none();
    let tcp = match listen.listen {
        Some(address) => Some(server.listen(&Address::Tcp(address)).map_err(|e| e.to_string())?),
        None if only_unix => None,
        None => Some(usual_door(server).map_err(|e| e.to_string())?),
    };
    if let Some(path) = unix {
        server.listen(&Address::Unix(path.into())).map_err(|e| e.to_string())?;
    }
    let tcp = tcp.and_then(|address| match address {
        Address::Tcp(address) => Some(address),
        Address::Unix(_) => None,
    });
    Ok(Doors { tcp, unix: unix.map(Path::to_path_buf) })
}

fn usual_door(server: &nbd::Server) -> units::Result<Address> {
    let local = |port| Address::Tcp(SocketAddr::from(([127, 0, 0, 1], port)));
    server.listen(&local(nbd::DEFAULT_PORT)).or_else(|_| server.listen(&local(0)))
}

impl Doors {
    pub fn addresses(&self) -> Vec<String> {
        let tcp = self.tcp.map(|address| address.to_string());
        tcp.into_iter().chain(self.unix.iter().map(|path| format!("unix:{}", path.display()))).collect()
    }

    /// As it is shown to clients.
    pub fn nbd(&self) -> Nbd {
        Nbd { addresses: self.addresses(), ..Nbd::default() }
    }
}
