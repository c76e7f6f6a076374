//! `cenote up` and `cenote serve`: an appliance that goes on until it is told to end.
//!
//! ```text
//!   lock the home ─▶ open its pools ─▶ (up: a first one) ─▶ NBD ─▶ command socket ─▶ API ─▶ wait ─▶ clients, pools, sockets
//!                                                  (up: asks itself, then says that it is up)    SIGINT, SIGTERM, or asked to
//! ```

use crate::{log, manager, report, socket, up, web};
use api::{Call, Caller, Reply, Request};
use appliance::{Appliance, Config, Doors, Exported, Front, Home, Iscsi};
use cli::Failure;
use cli::args::{Files, Listen, Portals, System, Up, Web};
use futures_util::future::select;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// A daemon that ends, or was killed, gives its home up within this time.
const PATIENCE: Duration = Duration::from_secs(10);

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
    let config = Config {
        home: home.clone(),
        is_daemon: true,
        mounts: files.mount,
        system: system.read()?,
        is_safe: system.safe,
    };
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
    appliance.set_nbd(server.clone());
    let iscsi = Iscsi::start(appliance).await;
    let doors = nbd_doors(listen, Some(&home.nbd_socket()));
    let unix = doors.unix.clone();
    for (front, doors) in [(Front::Nbd, doors), (Front::Iscsi, portals_of(portals))] {
        let warnings = appliance.open_doors(front, doors).await.map_err(|e| e.to_string())?;
        warnings.iter().for_each(|line| report::complain(line));
    }
    socket::listen(appliance, &home.socket()).map_err(|e| e.to_string())?;
    let api = web::start(appliance, home, web)?;
    match is_up {
        true => {
            up::ask_itself(home).await?.iter().for_each(|line| report::complain(line));
            report::say(&up::welcome(appliance, home).await?);
        }
        false => {
            let home = home.dir().display();
            match &appliance.addresses(Front::Nbd)[..] {
                [] => report::say(&format!("cenote serves {home}; its service nbd is disabled")),
                addresses => report::say(&format!("cenote serves {home} on {}", addresses.join(" and "))),
            }
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
    for path in [home.socket()].iter().chain(&unix) {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Where iSCSI clients come in: where it was asked for; else at the usual port of this machine alone, or another if
/// somebody has it.
fn portals_of(portals: &Portals) -> Doors {
    let said = portals.iscsi.iter().map(|portal| vec![*portal]).collect::<Vec<_>>();
    match said.is_empty() {
        true => Doors { tcp: vec![usual(::iscsi::DEFAULT_PORT)], ..Doors::default() },
        false => Doors { tcp: said, unix: None, said: true },
    }
}

/// Where NBD clients come in: where it was asked for; else at the usual port, or another if somebody has it.
pub fn nbd_doors(listen: &Listen, usual_socket: Option<&Path>) -> Doors {
    let unix = listen.socket.as_deref().or(usual_socket).map(Path::to_path_buf);
    let tcp = match listen.listen {
        Some(address) => vec![vec![address]],
        None if listen.socket.is_some() => Vec::new(),
        None => vec![usual(nbd::DEFAULT_PORT)],
    };
    Doors { tcp, unix, said: listen.listen.is_some() || listen.socket.is_some() }
}

fn usual(port: u16) -> Vec<SocketAddr> {
    [port, 0].map(|port| SocketAddr::from(([127, 0, 0, 1], port))).into()
}
