//! `cenote nbd DATASET`: one volume, served until told to end.

use crate::serve::nbd_doors;
use crate::{nbd_tls, report};
use api::{Call, Caller, Nbd, Reply, Request};
use appliance::{Appliance, Config, Doors, Exported, Front, Home};
use cli::Failure;
use cli::args::{self, Listen};
use std::sync::Arc;
use std::time::Duration;
use tls::Identity;
use world::Address;

const PATIENCE: Duration = Duration::from_secs(10);

pub fn run(home: &Home, args: &args::Nbd) -> Result<(), Failure> {
    if let Some(mut daemon) = crate::running(home)? {
        return served_already(&mut daemon, args);
    }
    let identity = nbd_tls::identity(&args.listen)?;
    let _lock = home
        .lock(PATIENCE)
        .map_err(|e| report::cannot(&format!("open home {}", home.dir().display()), &e))?;
    let config = Config {
        home: home.clone(),
        is_daemon: false,
        mounts: false,
        system: args.system.read(report::complain)?,
        is_safe: args.system.safe,
    };
    let (dataset, listen, read_only) = (args.dataset.clone(), args.listen.clone(), args.read_only);
    linux::block_on(serve(config, dataset, (listen, identity), read_only)).map_err(Failure::Failed)
}

/// The daemon has the pool, and serves all its volumes: that is where to go.
fn served_already(daemon: &mut dyn Caller, args: &args::Nbd) -> Result<(), Failure> {
    let call = Call { command: String::new(), uid: 0, request: Request::NbdExports };
    let Reply::Nbd(Nbd { exports, .. }) = daemon.call(call)? else {
        return Err(Failure::Failed("the daemon does not say what it serves".into()));
    };
    let name = &args.dataset;
    let Some(export) = exports.into_iter().find(|e| e.name == *name) else {
        return Err(Failure::Failed(format!(
            "cannot open '{name}': dataset does not exist, or is no volume"
        )));
    };
    let addresses = export.addresses;
    if addresses.is_empty() {
        return Err(Failure::Failed(format!(
            "cannot serve '{name}': the daemon has its pool and does not offer it over NBD; 'cenote zfs set \
             cenote:nbd=on {name}' makes it"
        )));
    }
    if args.read_only
        || args.listen.listen.is_some()
        || args.listen.socket.is_some()
        || args.listen.nbd_tls.is_some()
    {
        return Err(Failure::Failed(format!(
            "cannot serve '{name}': the daemon has its pool and serves it already, on {}",
            addresses.join(" and ")
        )));
    }
    report::say(&format!("the daemon serves {name} already, on {}", addresses.join(" and ")));
    Ok(())
}

async fn serve(
    config: Config,
    dataset: String,
    (listen, identity): (Listen, Option<Identity>),
    read_only: bool,
) -> Result<(), String> {
    linux::expect_shutdown();
    let appliance = Appliance::start(config).await.map_err(|e| e.message)?;
    report::warn(&appliance);
    let outcome = serve_with(&appliance, &dataset, (&listen, identity), read_only).await;
    let closed = appliance.stop().await.map_err(|e| e.message);
    outcome.and(closed)
}

async fn serve_with(
    appliance: &Appliance,
    dataset: &str,
    (listen, identity): (&Listen, Option<Identity>),
    read_only: bool,
) -> Result<(), String> {
    let exports = Exported::one(appliance, dataset, read_only);
    exports.check().await.map_err(|e| format!("cannot serve '{dataset}': {e}"))?;
    let config = nbd::Config { total_bytes: appliance.request_bytes(), ..nbd::Config::default() };
    let server = nbd::Server::new(Arc::new(exports), appliance.hub().clone(), config);
    identity.into_iter().for_each(|identity| server.require_tls(identity));
    appliance.set_nbd(server.clone());
    let doors = nbd_doors(listen, None, true);
    let addresses = open(&server, &doors).map_err(|e| e.to_string())?;
    report::say(&Nbd { addresses, tls: server.requires_tls(), ..Nbd::default() }.uris(dataset).join("\n"));
    linux::shutdown_signal().await;
    server.stop().await;
    if let Some(path) = &doors.unix {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Opens all doors, whether the service is on or not: this is not the service.
fn open(server: &nbd::Server, doors: &Doors) -> units::Result<Vec<String>> {
    let listen =
        |address: &Address| server.listen(address).map_err(|e| Front::Nbd.cannot_listen(address, true, e));
    let mut addresses = Vec::new();
    for door in &doors.tcp {
        let mut opened = Err(units::Error::invalid("there is no address"));
        for address in door {
            opened = opened.or_else(|_| listen(&Address::Tcp(*address)));
        }
        addresses.push(opened?.to_string());
    }
    if let Some(path) = &doors.unix {
        listen(&Address::Unix(path.clone()))?;
        addresses.push(format!("unix:{}", path.display()));
    }
    Ok(addresses)
}
