//! `cenote bench filesync` and `cenote bench sync`: what it costs to keep promises.

use crate::report;
use appliance::{Appliance, Config, Exported, Home};
use bench::args::{self, Place};
use bench::filesync::{self, Options, Outcome};
use cli::Failure;
use nbd::Exports;
use std::time::Duration;

/// How long a command waits for the home of another.
const PATIENCE: Duration = Duration::from_secs(10);

/// Answers what is to be printed.
pub fn filesync(home: &Home, words: &[&str]) -> Result<String, Failure> {
    let asked = args::filesync(words).ok_or_else(|| Failure::Usage(args::FILESYNC_USAGE.into()))?;
    let failed = |e: units::Error| Failure::Failed(format!("filesync: {e}"));
    match asked.place {
        Place::Path(dir) => {
            filesync::files::run(&dir, asked.options).map(|o| filesync::render(&o)).map_err(failed)
        }
        Place::Array => {
            filesync::array::run(asked.options).map(|p| filesync::array::render(&p)).map_err(failed)
        }
        Place::Volume(volume) => on_volume(home, volume, asked.options).map(|o| filesync::render(&o)),
    }
}

pub fn sync(words: &[&str]) -> Result<String, Failure> {
    let asked = args::sync(words).ok_or_else(|| Failure::Usage(args::SYNC_USAGE.into()))?;
    let run =
        linux::block_on(async move { bench::sync::run(&asked.dir, asked.options, report::complain).await });
    let (rows, loops) = run.map_err(|e| Failure::Failed(e.to_string()))?;
    Ok(bench::sync::render(&rows, &loops))
}

/// In this process, so no daemon may have the pool.
fn on_volume(home: &Home, volume: String, options: Options) -> Result<Outcome, Failure> {
    let failed = |e: std::io::Error| Failure::Failed(format!("cannot talk to the daemon: {e}"));
    if client::Client::connect(&home.socket()).map_err(failed)?.is_some() {
        return Err(Failure::Failed(format!(
            "cannot open '{volume}': the daemon has its pool; end the daemon, or use a home of its own (--home)"
        )));
    }
    let _lock = home
        .lock(PATIENCE)
        .map_err(|e| report::cannot(&format!("open home {}", home.dir().display()), &e))?;
    let config =
        Config { home: home.clone(), is_daemon: false, mounts: false, system: Vec::new(), is_safe: false };
    linux::block_on(async move {
        let appliance = Appliance::start(config).await.map_err(|e| Failure::Failed(e.message))?;
        let outcome = with_volume(&appliance, &volume, options).await;
        let closed = appliance.stop().await.map_err(|e| Failure::Failed(e.message));
        outcome.and_then(|outcome| closed.map(|()| outcome))
    })
}

async fn with_volume(appliance: &Appliance, name: &str, options: Options) -> Result<Outcome, Failure> {
    let failed = |e: units::Error| Failure::Failed(format!("cannot run filesync on '{name}': {e}"));
    let volume = Exported::one(appliance, name, false).find(name).await.map_err(failed)?;
    filesync::volume::run(volume, options).await.map_err(failed)
}
