//! `cenote lab`: experiments on modelled hardware. Nothing of this machine is used but its processor.

use crate::report;
use cli::Failure;
use cli::args::lab::{Lab, LabWhat};
use lab::command::{self, Wanted};
use lab::experiment::Ask;
use std::io::Write;

pub fn run(args: Lab) -> Result<(), Failure> {
    let text = match args.what {
        LabWhat::List { json } => command::list(json),
        LabWhat::Parameters => command::parameters(),
        LabWhat::Run { names, all: _, seed, scale, sensitivity, json } => {
            let wanted = Wanted { names, ask: Ask { seed, scale }, sensitivity, json };
            command::run(&wanted, &report::complain)
                .map_err(|e| Failure::Failed(format!("cannot run the lab: {e}")))?
        }
    };
    // A reader that is gone ends it quietly.
    std::io::stdout().write_all(text.as_bytes()).map_err(|_| Failure::Told)
}
