//! `cenote up`: a first pool and a first volume for whoever has none, and what to do next.

use crate::report;
use api::{Call, Caller, NewDataset, NewKind, NewPool, PoolChoice, PoolImport, Reply, Request, Service};
use appliance::{Appliance, Home};
use cli::args::Up;
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::pretty_size;
use world::sync::oneshot;

const POOL: &str = "tank";
pub const VOLUME: &str = "tank/vol1";

/// How large the first things are.
#[derive(Clone, Copy, Debug)]
pub struct First {
    pool: u64,
    volume: u64,
}

impl First {
    pub fn of(args: &Up) -> First {
        First { pool: args.size, volume: args.volume }
    }
}

/// Makes sure that there is a pool: one that the home knows, one that lies among its disks, or a new one.
pub async fn prepare(appliance: &Appliance, home: &Home, first: &First) -> Result<(), String> {
    if !pools(appliance).await?.is_empty() || import_all(appliance, home).await? {
        return Ok(());
    }
    let disk = make_disk(home, first.pool)?;
    let line = format!("zpool create {POOL} {}", disk.display());
    ask(appliance, &line, Request::PoolCreate(new_pool(&disk))).await?;
    let line = format!("zfs create -s -V {} {VOLUME}", pretty_size(first.volume));
    let volume = NewDataset {
        name: VOLUME.into(),
        kind: NewKind::Volume { size: first.volume, sparse: true },
        properties: Vec::new(),
        parents: false,
        dry_run: false,
        unmounted: false,
    };
    ask(appliance, &line, Request::DatasetCreate(volume)).await.map(drop)
}

async fn ask(appliance: &Appliance, command: &str, request: Request) -> Result<Reply, String> {
    let uid = u64::from(rustix::process::getuid().as_raw());
    appliance.call(Call { command: command.into(), uid, request }).await.map_err(|e| e.message)
}

/// A home whose list of pools was lost still has its disks.
async fn import_all(appliance: &Appliance, home: &Home) -> Result<bool, String> {
    if !home.disks().is_dir() {
        return Ok(false);
    }
    let search = vec![home.disks().to_string_lossy().into_owned()];
    let request = Request::PoolImportable { search: search.clone(), destroyed: false };
    let Reply::Importable(found) = ask(appliance, "", request).await? else { return Ok(false) };
    for pool in &found {
        let request = Request::PoolImport(PoolImport {
            pool: PoolChoice::Guid(pool.guid),
            new_name: None,
            temporary: false,
            search: search.clone(),
            destroyed: false,
            force: false,
            missing_log: false,
            no_mount: false,
            rewind: None,
            properties: Vec::new(),
        });
        ask(appliance, &format!("zpool import {}", pool.name), request).await?;
    }
    Ok(!found.is_empty())
}

fn make_disk(home: &Home, size: u64) -> Result<PathBuf, String> {
    let path = home.disks().join(format!("{POOL}.img"));
    let failed = |e: std::io::Error| format!("cannot make {}: {e}", path.display());
    std::fs::create_dir_all(home.disks()).map_err(failed)?;
    // It is sparse: it takes what is written to it. Whatever was there before stays.
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
    file.set_len(size).map_err(failed)?;
    Ok(path)
}

fn new_pool(disk: &Path) -> NewPool {
    NewPool::of(POOL, api::Layout::Stripe, &[&disk.to_string_lossy()])
}

/// Does what a first client would, through its own socket: asks for the daemon and its pools, and syncs each. Answers
/// what is wrong with pools, one line each.
///
/// # Errors
/// The daemon does not answer.
async fn ask_itself(home: &Home) -> Result<Vec<String>, String> {
    let (send, receive) = oneshot::channel();
    let socket = home.socket();
    // A thread of its own: what does not answer may keep all others busy, and must be said all the same.
    std::thread::spawn(move || {
        let (done, watched) = std::sync::mpsc::channel::<()>();
        std::thread::spawn(move || {
            if watched.recv_timeout(PATIENCE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                report::complain(&format!(
                    "the daemon has not answered itself for {} s; {SAFE}",
                    PATIENCE.as_secs()
                ));
            }
        });
        let answered = ask_through(&socket);
        drop(done);
        // The receiver is gone when the daemon was told to end meanwhile.
        let _ = send.send(answered);
    });
    receive.await.unwrap_or_else(|_| Err("the daemon did not ask itself".into()))
}

/// How long the daemon may take to answer itself before that is worth a line.
const PATIENCE: Duration = Duration::from_secs(30);
const SAFE: &str = "if a tunable that was set is the reason, 'cenote up --safe' starts with the defaults";

fn ask_through(socket: &Path) -> Result<Vec<String>, String> {
    let failed = |why: String| format!("the daemon does not answer itself: {why}; {SAFE}");
    let connected = client::Client::connect(socket).map_err(|e| failed(e.to_string()))?;
    let mut client = connected.ok_or_else(|| failed("nothing listens at its socket".into()))?;
    let mut call = |request| {
        let uid = u64::from(rustix::process::getuid().as_raw());
        Caller::call(&mut client, Call { command: String::new(), uid, request }).map_err(|e| e.message)
    };
    call(Request::Daemon).map_err(failed)?;
    let Reply::Pools(pools) = call(Request::Pools { names: Vec::new() }).map_err(failed)? else {
        return Err(failed("it does not say which pools there are".into()));
    };
    let mut wrong = Vec::new();
    for pool in pools.into_iter().filter(|pool| pool.problem.is_none()) {
        if let Err(why) = call(Request::PoolSync { names: vec![pool.name] }) {
            wrong.push(why);
        }
    }
    Ok(wrong)
}

/// What is said when the daemon is up: complaints, one line each, then what there is and what to type next. Asks the daemon
/// as a first client would before that.
///
/// # Errors
/// The daemon does not answer: then it is not up.
pub async fn announce(
    appliance: &Appliance,
    home: &Home,
    page: Option<String>,
) -> Result<(Vec<String>, String), String> {
    let wrong = ask_itself(home).await?;
    Ok((wrong, welcome(appliance, home, page).await?))
}

/// What there is, and the commands that a new user types next.
async fn welcome(appliance: &Appliance, home: &Home, page: Option<String>) -> Result<String, String> {
    let mut things = cli::status::Things::default();
    for request in cli::status::Things::requests() {
        things.take(ask(appliance, "", request).await?);
    }
    let (pools, nbd) = (&things.pools, &things.nbd);
    let mut text = format!("cenote is up, with its home in {}\n\n", home.dir().display());
    text += &cli::status::things(&things);
    if let Some(page) = page {
        text += &format!("\nIn a browser:\n  {page}\n");
    }
    text += "\nTry, in another terminal:\n";
    let own = own_command(home);
    if let Some(uri) = easiest(nbd) {
        text += &client_command(&uri);
    }
    text += &format!("  {own} zpool status\n");
    if let Some(pool) = pools.iter().find(|p| p.problem.is_none()) {
        let name = free_name(&pool.name, &nbd.exports);
        text += &format!("  {own} zfs create -s -V 2G {}/{name}\n", pool.name);
    }
    text += "\nCtrl-C stops it; what was flushed stays.";
    Ok(text)
}

/// A URI of a volume: over TCP, where there is one.
fn easiest(nbd: &api::Nbd) -> Option<String> {
    let uris: Vec<String> = nbd.exports.iter().flat_map(|export| nbd.uris(&export.name)).collect();
    uris.iter().find(|uri| !uri.starts_with("nbd+unix://")).or(uris.first()).cloned()
}

async fn pools(appliance: &Appliance) -> Result<Vec<api::Pool>, String> {
    match ask(appliance, "", Request::Pools { names: Vec::new() }).await? {
        Reply::Pools(pools) => Ok(pools),
        _ => Err("the appliance does not say which pools there are".into()),
    }
}

/// What is wrong with the pools of a daemon that starts, one line each.
pub async fn unusable(appliance: &Appliance) -> Result<Vec<String>, String> {
    let of_pool = |pool: &api::Pool| {
        let why = pool.problem.iter().map(|why| format!("cannot open '{}': {why}", pool.name));
        let devices = pool.unusable.iter().map(|line| format!("pool '{}': {line}", pool.name));
        why.chain(devices).collect::<Vec<String>>()
    };
    Ok(pools(appliance).await?.iter().flat_map(of_pool).collect())
}

/// What `--export` named and is not there, one line each: it is offered as soon as it is.
pub async fn missing(appliance: &Appliance) -> Result<Vec<String>, String> {
    let Reply::Nbd(nbd) = ask(appliance, "", Request::NbdExports).await? else {
        return Err("the appliance does not say which volumes there are".into());
    };
    let line = |name: &String| {
        format!(
            "WARNING: --export {name}: there is no such volume, and none below it; 'zfs list -t volume' has all names"
        )
    };
    Ok(nbd.missing.iter().map(line).collect())
}

/// A client that is installed here.
fn client_command(uri: &str) -> String {
    [("nbdinfo", ""), ("qemu-img", " info")]
        .iter()
        .find(|(program, _)| in_path(program))
        .map_or_else(String::new, |(program, verb)| format!("  {program}{verb} {}\n", as_word(uri)))
}

/// The text as one word of a shell: quoted where it has to be.
fn as_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

fn free_name(pool: &str, exports: &[api::NbdExport]) -> String {
    let is_free = |n: &u32| !exports.iter().any(|e| e.name == format!("{pool}/vol{n}"));
    let n = (1..=u32::MAX).find(is_free).unwrap_or(1);
    format!("vol{n}")
}

/// How this program is called from where the person is, with this home.
fn own_command(home: &Home) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let program = match std::env::current_exe() {
        Ok(exe) if in_path("cenote") && exe.parent().is_some_and(is_in_path) => {
            exe.file_name().unwrap_or_default().to_string_lossy().into_owned()
        }
        Ok(exe) => as_word(&exe.strip_prefix(&here).unwrap_or(&exe).display().to_string()),
        Err(_) => "cenote".into(),
    };
    let usual = Home::find(std::env::var_os("CENOTE_HOME").as_deref().map(Path::new));
    match usual {
        Ok(usual) if usual == *home => program,
        _ => format!("{program} --home {}", as_word(&home.dir().display().to_string())),
    }
}

fn is_in_path(dir: &Path) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).any(|d| d == dir)
}

#[cfg(test)]
mod tests {
    use super::{announce, as_word};
    use appliance::{Appliance, Config, Home};

    /// "cenote is up" was said of a daemon that answered no request.
    #[test]
    fn it_is_not_said_to_be_up_before_the_daemon_has_answered_itself() {
        let dir = std::env::temp_dir().join(format!("cenote-announce-{}", std::process::id()));
        let home = Home::find(Some(&dir)).unwrap();
        home.prepare().unwrap();
        let config =
            Config { home: home.clone(), is_daemon: true, mounts: false, system: Vec::new(), is_safe: false };
        let said = linux::block_on(async move {
            let appliance = Appliance::start(config).await.unwrap();
            // Nothing listens at its socket.
            let said = announce(&appliance, &home, None).await;
            appliance.stop().await.unwrap();
            said
        });
        std::fs::remove_dir_all(&dir).unwrap();
        let why = said.unwrap_err();
        assert!(
            why.starts_with("the daemon does not answer itself: nothing listens at its socket; "),
            "{why}"
        );
    }

    #[test]
    fn what_is_printed_to_be_typed_is_one_word_of_a_shell() {
        for plain in ["/tmp/tour", "nbd://127.0.0.1/tank/vol1", "target/release/cenote"] {
            assert_eq!(as_word(plain), plain);
        }
        for text in ["/srv/my disks", "nbd+unix:///t/v?socket=/s", "it's", "", "$(id)", "ü"] {
            let script = format!("printf %s {}", as_word(text));
            let printed = std::process::Command::new("sh").args(["-c", &script]).output().unwrap().stdout;
            assert_eq!(String::from_utf8(printed).unwrap(), text);
        }
    }
}
