//! `cenote up` and `cenote serve`: an appliance that goes on until it is told to end.
//!
//! ```text
//!   lock the home ─▶ open its pools ─▶ (up: a first one) ─▶ NBD ─▶ command socket ─▶ API ─▶ wait
//!                                                  (up: asks itself, then says that it is up) │
//!             clients, pools, sockets ◀── SIGINT, SIGTERM, or asked to ────────────────────────┘
//! ```

use crate::{log, manager, nbd_tls, report, socket, up, web};
use api::{Call, Caller, Reply, Request};
use appliance::{Appliance, Config, Doors, Exported, Front, Home, Offers};
use cli::Failure;
use cli::args::{Files, Listen, Offered, Portals, System, Up, Web};
use futures_util::future::{Either, select};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tls::Identity;
use world::sync::Event;

/// How long the end may take, from the signal on. The help of `down` and docs/operating.md name it.
const END: Duration = Duration::from_secs(60);

/// A daemon that ends, or was killed, gives its home up within this time.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where clients come in, and what of NBD they find there.
#[derive(Clone, Debug)]
pub struct Places {
    pub listen: Listen,
    pub offered: Offered,
    pub portals: Portals,
    pub web: Web,
}

pub fn run(
    home: &Home,
    places: Places,
    (system, files): (&System, &Files),
    first: Option<&Up>,
) -> Result<(), Failure> {
    log::start(places.web.log);
    if let Some(daemon) = crate::running(home)? {
        return Err(runs_already(home, daemon));
    }
    let identity = nbd_tls::identity(&places.listen)?;
    let _lock = home
        .lock(PATIENCE)
        .map_err(|e| report::cannot(&format!("open home {}", home.dir().display()), &e))?;
    let config = Config {
        home: home.clone(),
        is_daemon: true,
        mounts: files.mount,
        system: system.read(report::complain)?,
        is_safe: system.safe,
    };
    let first = first.map(up::First::of);
    linux::block_on(serve(config, places, identity, first)).map_err(Failure::Failed)
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

/// A shell gives a process 1,024 descriptors, and lets it have many more. A limit that stays is no reason not to serve.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

async fn serve(
    config: Config,
    places: Places,
    identity: Option<Identity>,
    first: Option<up::First>,
) -> Result<(), String> {
    // An end that is asked for while pools are opened comes as soon as they can be closed.
    linux::expect_shutdown();
    raise_descriptors();
    let home = config.home.clone();
    let appliance = Appliance::start(config).await.map_err(|e| e.message)?;
    report::warn(&appliance);
    appliance.begin_alerts();
    appliance.begin_journal();
    world::spawn(linux::keep_house());
    world::spawn(appliance.clone().follow_memory());
    let (ending, end) = (Arc::new(Event::new()), Arc::new(socket::End::default()));
    let serving = async {
        let outcome = serve_with(&appliance, &home, &places, (identity, first), (&ending, &end)).await;
        ending.set();
        // Whatever went wrong, what is open is closed.
        let closed = appliance.stop().await.map_err(|e| e.message);
        outcome.and(closed)
    };
    let late = async {
        ending.wait().await;
        world::sleep(END).await;
    };
    match select(pin!(serving), pin!(late)).await {
        Either::Left((outcome, _)) => {
            end.tell(&outcome).await;
            outcome
        }
        Either::Right(_) => {
            let why = format!(
                "not all pools could be closed within {} seconds: a device does not answer. What was flushed is in their logs",
                END.as_secs()
            );
            report::complain(&why);
            end.tell(&Err(why)).await;
            // The threads that wait for the device would keep the program.
            std::process::exit(1)
        }
    }
}

async fn serve_with(
    appliance: &Appliance,
    home: &Home,
    Places { listen, offered, portals, web }: &Places,
    (identity, first): (Option<Identity>, Option<up::First>),
    (ending, end): (&Event, &Arc<socket::End>),
) -> Result<(), String> {
    let is_up = first.is_some();
    if let Some(first) = first {
        up::prepare(appliance, home, &first).await?;
    }
    appliance.begin_to_mount().await.iter().for_each(|line| report::complain(line));
    let socket = Arc::new(Exported::at(appliance, None));
    let config = nbd::Config { total_bytes: appliance.request_bytes(), ..nbd::Config::default() };
    let server = nbd::Server::new(socket, appliance.hub().clone(), config);
    identity.into_iter().for_each(|identity| server.require_tls(identity));
    let first = is_up.then(|| up::VOLUME.into());
    appliance.set_offers(Offers { named: offered.export.clone(), first }).map_err(|e| e.to_string())?;
    appliance.set_nbd(server.clone());
    world::spawn(appliance.clone().follow_offers());
    let iscsi = appliance.start_iscsi().await;
    let doors = nbd_doors(listen, Some(&home.nbd_socket()), is_up);
    let unix = doors.unix.clone();
    for (front, doors) in [(Front::Nbd, doors), (Front::Iscsi, portals_of(portals))] {
        let warnings = appliance.open_doors(front, doors).await.map_err(|e| e.to_string())?;
        warnings.iter().for_each(|line| report::complain(line));
    }
    socket::listen(appliance, &home.socket(), end).map_err(|e| e.to_string())?;
    appliance.begin_analytics().await;
    let api = web::start(appliance, home, web, is_up)?;
    appliance.set_api(api.addresses.clone());
    match is_up {
        true => {
            let (wrong, text) = up::announce(appliance, home, api.invitation()).await?;
            wrong.iter().for_each(|line| report::complain(line));
            report::say(&text);
        }
        false => {
            let nbd = api::Nbd { tls: server.requires_tls(), ..api::Nbd::default() };
            let nbd = appliance.addresses(Front::Nbd).iter().map(|address| nbd.door(address)).collect();
            let doors = [("iSCSI", appliance.addresses(Front::Iscsi)), ("NBD", nbd)].map(said);
            let (home, api) = (home.dir().display(), api.addresses.join(" and "));
            report::say(&format!("cenote serves {home}: {}, the API on {api}", doors.join(", ")));
            up::unusable(appliance).await?.iter().for_each(|line| report::complain(line));
        }
    }
    up::missing(appliance).await?.iter().for_each(|line| report::complain(line));
    appliance.begin_schedules();
    manager::notify("READY=1");
    // Which of them it was makes no difference.
    let _ = select(pin!(linux::shutdown_signal()), pin!(appliance.ended())).await;
    ending.set();
    manager::notify("STOPPING=1");
    report::say("closing: clients are ended, pools synced and closed");
    appliance.hurry().await;
    appliance.end_analytics().await;
    api.stop().await;
    iscsi.stop().await;
    server.stop().await;
    for path in [home.socket()].iter().chain(&unix) {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Where clients of a front come in, as it is said at the start.
fn said((front, addresses): (&str, Vec<String>)) -> String {
    match &addresses[..] {
        [] => format!("{front} nowhere"),
        addresses => format!("{front} on {}", addresses.join(" and ")),
    }
}

/// Where iSCSI clients come in: where it was asked for; else at the usual port of this machine alone, or another if
/// it is taken.
fn portals_of(portals: &Portals) -> Doors {
    let said = portals.iscsi.iter().map(|portal| vec![*portal]).collect::<Vec<_>>();
    match said.is_empty() {
        true => Doors { tcp: vec![usual(::iscsi::DEFAULT_PORT)], ..Doors::default() },
        false => Doors { tcp: said, unix: None, said: true },
    }
}

/// Where NBD clients come in: where it was asked for, and at the usual socket. Unasked, at the usual port of this machine
/// too, or another if it is taken: by TCP every user of the machine comes in.
pub fn nbd_doors(listen: &Listen, usual_socket: Option<&Path>, unasked: bool) -> Doors {
    let unix = listen.socket.as_deref().or(usual_socket).map(Path::to_path_buf);
    let tcp = match listen.listen {
        Some(address) => vec![vec![address]],
        None if listen.socket.is_some() || !unasked => Vec::new(),
        None => vec![usual(nbd::DEFAULT_PORT)],
    };
    Doors { tcp, unix, said: listen.listen.is_some() || listen.socket.is_some() }
}

fn usual(port: u16) -> Vec<SocketAddr> {
    [port, 0].map(|port| SocketAddr::from(([127, 0, 0, 1], port))).into()
}
