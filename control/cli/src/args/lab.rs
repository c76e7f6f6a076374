//! `lab`: what a change would bring, on modelled hardware.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub struct Lab {
    #[command(subcommand)]
    pub what: LabWhat,
}

#[derive(Debug, Subcommand)]
pub enum LabWhat {
    /// List the experiments: what was measured, by which document
    List {
        /// As JSON
        #[arg(short, long)]
        json: bool,
    },
    /// Print every parameter of the models, with its source
    Parameters,
    /// Run experiments, and print what the documents measured beside what comes out here
    ///
    /// A ratio counts only where the figure before the change is within a quarter of the document's; the table says where it
    /// is not. The same seed gives the same figures.
    Run {
        /// Which
        #[arg(value_name = "NAME", required_unless_present = "all")]
        names: Vec<String>,
        /// All of them
        #[arg(long, conflicts_with = "names")]
        all: bool,
        /// What chance is drawn from
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How large, as a part of the experiment's own size: 0.1 is done in a tenth of the time, and less exact
        #[arg(long, default_value_t = 1.0, value_parser = scale)]
        scale: f64,
        /// Run the first figure again with each parameter that is not known at both ends of its range
        #[arg(long)]
        sensitivity: bool,
        /// As JSON, with all parameters
        #[arg(short, long)]
        json: bool,
    },
}

fn scale(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("'{text}' is not a number"))?;
    if (0.01..=4.0).contains(&value) { Ok(value) } else { Err("it is between 0.01 and 4".into()) }
}
