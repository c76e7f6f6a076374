//! Copying files out of a pool without mounting it.
//!
//! ```text
//!   ls  stat  find  cat  cp  tar     what is asked      ls.rs stat.rs find.rs cat.rs copy.rs archive.rs
//!        │
//!      Walk ── names, one directory after the other, loops noticed       walk.rs
//!        │
//!     salvage ── data, range by range, around what is damaged            salvage.rs
//!        │
//!     Session ── a pool opened for reading only, now or at an older txg  session.rs
//! ```
//!
//! Nothing is written to the pool's devices, which are opened for reading only. Whatever cannot be read is said in a line
//! of its own, with the range that is missing, and the work goes on with the rest: a damaged block costs its own bytes,
//! which are zeros in the copy, a damaged block of a directory the names in it. [`run`] answers whether everything was
//! there.
//!
//! Names come from untrusted disks: one with a slash in it, or `..`, is never made on this machine, no file
//! that is there is written over, removed or linked to, and no symbolic link is followed on the way to where a copy goes.
//! No name that is printed acts on the terminal.
//!
//! Not here: words on a command line (`cli`), and where the pools of a home are (the program).

mod archive;
mod cat;
mod copy;
mod find;
mod half;
mod ls;
mod output;
mod place;
mod salvage;
mod session;
mod stat;
mod text;
mod walk;

#[cfg(test)]
mod tests;

pub use find::Search;
pub use output::Output;
pub use session::Origin;

use session::Session;
use std::path::PathBuf;
use units::{Result, Txg};

/// What is to be done with the files of each place.
#[derive(Clone, Debug)]
pub enum What {
    List {
        long: bool,
        recursive: bool,
    },
    Stat,
    Find(Search),
    Cat,
    /// To a file that is not there yet, or into a directory that is.
    Copy {
        target: PathBuf,
        recursive: bool,
    },
    /// To this file, or to the output.
    Archive {
        file: Option<PathBuf>,
    },
}

/// A command.
#[derive(Clone, Debug)]
pub struct Command {
    pub what: What,
    /// Each `DATASET[:PATH]`.
    pub places: Vec<String>,
    /// Go back to the newest state that is not newer than this.
    pub txg: Option<Txg>,
}

/// Does it. The answer is whether all that was asked for could be read; what could not was said to `output`.
pub async fn run(command: Command, origin: Origin, output: Output) -> Result<bool> {
    let mut session = Session::new(origin, command.txg, output);
    let done = match &command.what {
        What::List { long, recursive } => ls::run(&mut session, &command.places, *long, *recursive).await,
        What::Stat => stat::run(&mut session, &command.places).await,
        What::Find(search) => find::run(&mut session, &command.places, search).await,
        What::Cat => cat::run(&mut session, &command.places).await,
        What::Copy { target, recursive } => {
            copy::run(&mut session, &command.places, target, *recursive).await
        }
        What::Archive { file } => archive::run(&mut session, &command.places, file.as_deref()).await,
    };
    session.close().await;
    done.map(|()| session.output.is_whole())
}
