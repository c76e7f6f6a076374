//! `cenote shell`: where its lines come from, and whom it asks.

use api::{ApiError, Call, Caller, Reply, Request};
use appliance::Home;
use cli::Failure;
use cli::args::shell::Shell as Args;
use shell::{Ask, Shell};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, IsTerminal};

struct ByCaller<'a> {
    caller: &'a mut dyn Caller,
    uid: u64,
}

impl Ask for ByCaller<'_> {
    fn ask(&mut self, line: &str, request: Request) -> Result<Reply, ApiError> {
        self.caller.call(Call { command: line.into(), uid: self.uid, request })
    }
}

pub fn run(home: &Home, caller: &mut dyn Caller, args: &Args) -> Result<(), Failure> {
    let uid = u64::from(rustix::process::getuid().as_raw());
    let mut by_caller = ByCaller { caller, uid };
    let host = match &args.prompt_host {
        Some(host) => host.clone(),
        None => rustix::system::uname().nodename().to_string_lossy().into_owned(),
    };
    let mut shell = Shell::new(&host, &mut by_caller);
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
        // Nobody reads any more.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Failure::Told),
        Err(e) => Err(failed(e)),
    }
}
