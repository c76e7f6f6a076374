//! `cenote lab`: experiments on modelled hardware. Nothing of this machine is used but its processor.

use crate::{report, trace_file};
use cli::Failure;
use cli::args::lab::{Lab, LabWhat};
use cli::args::trace::Changes;
use lab::command::{self, Wanted};
use lab::experiment::Ask;
use lab::replay::{self, Asked};
use std::io::Write;

pub fn run(args: Lab) -> Result<(), Failure> {
    let text = match args.what {
        LabWhat::List { json } => command::list(json),
        LabWhat::Parameters => command::parameters(),
        LabWhat::Replay { file, set, present, as_fast_as_possible, warm, seed, json } => {
            let trace = trace_file::contents(&file)?;
            let (change, present) = (Changes::all(set), Changes::all(present));
            let asked = Asked { change, present, fast: as_fast_as_possible, warm, seed };
            let outcome = replay::run(&trace, &asked, &report::complain)
                .map_err(|e| Failure::Failed(format!("cannot replay {}: {e}", file.display())))?;
            if json { format!("{:#}\n", outcome.json(&asked)) } else { outcome.text() }
        }
        LabWhat::Run { names, all: _, seed, scale, sensitivity, json } => {
            let wanted = Wanted { names, ask: Ask { seed, scale, only: None }, sensitivity, json };
            command::run(&wanted, &report::complain)
                .map_err(|e| Failure::Failed(format!("cannot run the lab: {e}")))?
        }
    };
    // A reader that is gone ends it quietly.
    std::io::stdout().write_all(text.as_bytes()).map_err(|_| Failure::Told)
}
