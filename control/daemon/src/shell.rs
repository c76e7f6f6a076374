//! `cenote shell`: where its lines come from, and whom it asks.

use api::Caller;
use appliance::Home;
use cli::Failure;
use cli::args::shell::Shell as Args;
use shell::Shell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, IsTerminal, Read};

/// The longest line that a password is.
const PASSWORD_MAX: u64 = 1024;

/// As a user of an appliance that may be anywhere.
pub fn run_remote(home: &Home, args: &Args) -> Result<(), Failure> {
    let (url, user) = (args.url.as_deref().unwrap_or_default(), args.user.as_deref().unwrap_or_default());
    let trusted = args.cacert.clone().unwrap_or_else(|| home.dir().join("tls/cert.pem"));
    let password = match &args.password_file {
        Some(file) => {
            let cannot = |e: io::Error| Failure::Failed(format!("cannot read '{}': {e}", file.display()));
            let mut line = String::new();
            let file = File::open(file).map_err(cannot)?;
            BufReader::new(file.take(PASSWORD_MAX)).read_line(&mut line).map_err(cannot)?;
            line.trim_end_matches(['\r', '\n']).to_string()
        }
        None if io::stdin().is_terminal() => {
            let typed = crate::password::read(&format!("Password of {user}: "));
            let typed = typed.map_err(|e| Failure::Failed(format!("cannot read a password: {e}")))?;
            typed.reveal().to_string()
        }
        None => return Err(Failure::Usage("--password-file says where the password is".into())),
    };
    let mut remote = client::Remote::log_in(url, &trusted, user, api::Secret::new(password))?;
    let host = remote.nodename()?;
    run(home, &mut remote, args, Some(host))
}

/// `host`: what the appliance calls itself, where it is not this machine.
pub fn run(home: &Home, caller: &mut dyn Caller, args: &Args, host: Option<String>) -> Result<(), Failure> {
    let uid = u64::from(rustix::process::getuid().as_raw());
    let host = match args.prompt_host.clone().or(host) {
        Some(host) => host,
        None => rustix::system::uname().nodename().to_string_lossy().into_owned(),
    };
    let mut shell = Shell::new(&host, uid, caller);
    let failed = |e: io::Error| Failure::Failed(format!("cannot run the shell: {e}"));
    let script: Box<dyn BufRead> = match (&args.commands[..], &args.file) {
        ([], Some(file)) => {
            let open = File::open(file)
                .map_err(|e| Failure::Failed(format!("cannot read '{}': {e}", file.display())))?;
            Box::new(BufReader::new(open))
        }
        ([], None) if io::stdin().is_terminal() => {
            return shell::interact(&mut shell, &home.dir().join("shell_history")).map_err(failed);
        }
        ([], None) => Box::new(io::stdin().lock()),
        (commands, _) => Box::new(Cursor::new(commands.join("\n"))),
    };
    let (out, err) = (&mut io::stdout(), &mut io::stderr());
    match shell::run_script(&mut shell, script, args.transcript, out, err) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::Told),
        // The reader is gone.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Failure::Told),
        Err(e) => Err(failed(e)),
    }
}
