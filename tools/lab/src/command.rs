//! The words after `cenote lab`, and what is printed.
//!
//! ```text
//!   list                                   the experiments, and what each document says
//!   run NAME.. | --all [--seed N] [--scale S] [--sensitivity] [-j]
//! ```
//!
//! Text is Markdown: `docs/lab.md` holds what this prints.

use crate::experiment::{Ask, Better, Experiment, Row, Said, Verdict};
use crate::experiments;
use crate::hardware::operations;
use crate::parameters::show;
use crate::sensitivity::{self, Sensitivity};
use serde_json::{Value, json};
use std::time::Instant;
use units::{Error, Result};

/// What is to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Empty: all.
    pub names: Vec<String>,
    pub ask: Ask,
    /// Instead of all figures: the chief one, with each doubtful parameter at both of its ends.
    pub sensitivity: bool,
    pub json: bool,
}

/// Told what comes next.
pub type Progress<'a> = &'a dyn Fn(&str);

/// The experiments there are.
pub fn list(as_json: bool) -> String {
    if as_json {
        let all = experiments::ALL.iter().map(|one| {
            json!({ "name": one.name, "about": one.about, "modelled": one.modelled, "remark": one.remark })
        });
        return pretty(&Value::Array(all.collect()));
    }
    let width = experiments::ALL.iter().map(|one| one.name.len()).max().unwrap_or(0);
    experiments::ALL.iter().map(|one| format!("{:width$}  {}\n", one.name, one.about)).collect()
}

/// Runs what is wanted, and answers what is to be printed. Not to be called from within a world.
///
/// # Errors
/// A name that is not there; a scale at which nothing is left to measure.
pub fn run(wanted: &Wanted, progress: Progress<'_>) -> Result<String> {
    let chosen: Vec<&Experiment> = match wanted.names.is_empty() {
        true => experiments::ALL.iter().collect(),
        false => wanted.names.iter().map(|name| named(name)).collect::<Result<_>>()?,
    };
    let mut text = String::new();
    let mut all = Vec::new();
    for one in chosen {
        progress(one.name);
        let (begun, before) = (Instant::now(), operations());
        let mut rows = Vec::new();
        let hangs = match wanted.sensitivity {
            true => Some(sensitivity::run(one, &wanted.ask, progress)?),
            false => None,
        };
        if hangs.is_none() {
            rows = (one.run)(&(one.parameters)(), &wanted.ask)?;
        }
        let (seconds, done) = (begun.elapsed().as_secs_f64(), operations() - before);
        progress(&format!(
            "{}: {done} operations of devices in {seconds:.1} s, {:.0} a second",
            one.name,
            done as f64 / seconds.max(1e-3)
        ));
        match (wanted.json, &hangs) {
            (true, _) => all.push(as_json(one, &rows, hangs.as_ref(), &wanted.ask)),
            (false, Some(hangs)) => text += &format!("{}\n", hangs.text(one, show3)),
            (false, None) => text += &as_text(one, &rows, &wanted.ask),
        }
    }
    Ok(if wanted.json { pretty(&Value::Array(all)) } else { text })
}

fn named(name: &str) -> Result<&'static Experiment> {
    experiments::find(name).ok_or_else(|| {
        let names: Vec<&str> = experiments::ALL.iter().map(|one| one.name).collect();
        Error::invalid(format!("there is no experiment '{name}'; there are: {}", names.join(", ")))
    })
}

fn as_text(one: &Experiment, rows: &[Row], ask: &Ask) -> String {
    let mut text = format!("### {}\n\n{}.\n\n", one.name, one.about);
    text += &format!("Modelled: {}.\n", one.modelled);
    if ask.scale != 1.0 {
        text += &format!("At {} of the experiment's size.\n", show(ask.scale));
    }
    text += &format!(
        "\n| {} | document | lab | baseline off by | document's ratio | lab's ratio | off by | counts |\n\
         |---|---:|---:|---:|---:|---:|---:|---|\n",
        one.name
    );
    for row in rows {
        let (from, to) = (show3(row.lab.before), show3(row.lab.after));
        text += &format!(
            "| {} | {} | {from} → {to} {} | {} | {} | {}x | {} | {} |\n",
            row.case,
            said(row),
            row.unit,
            percent(row.baseline_error()),
            row.said_ratio().map_or("–".into(), |ratio| format!("{}x", show3(ratio))),
            show3(row.ratio()),
            percent(row.ratio_error()),
            verdict(row.verdict()),
        );
    }
    text + &format!("\n{}\n\n", one.remark)
}

/// The parameters of all experiments, each once.
pub fn parameters() -> String {
    let mut seen = std::collections::BTreeSet::new();
    let mut text = "| parameter | value | if in doubt | source |\n|---|---:|---:|---|\n".to_string();
    for one in experiments::ALL {
        for parameter in (one.parameters)().iter() {
            // The same key may stand for other hardware in another experiment.
            if !seen.insert((parameter.key, parameter.source)) {
                continue;
            }
            let range = match parameter.is_doubtful() {
                true => format!("{} to {}", show(parameter.low), show(parameter.high)),
                false => String::new(),
            };
            let (value, unit) = (show(parameter.value), parameter.unit);
            let (basis, source) = (parameter.basis.word(), parameter.source);
            text += &format!("| {} | {value} {unit} | {range} | {basis}: {source} |\n", parameter.key);
        }
    }
    text
}

fn said(row: &Row) -> String {
    match row.said {
        Said::Both(pair) => format!("{} → {} {}", show3(pair.before), show3(pair.after), row.unit),
        Said::Ratio(_) | Said::Nothing => "–".into(),
    }
}

fn percent(error: Option<f64>) -> String {
    error.map_or("–".into(), |error| format!("{:+.0} %", error * 100.0))
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Counts => "yes",
        Verdict::BaselineOff => "no: the baseline is off by more than a quarter",
        Verdict::NoBaseline => "no baseline is given",
        Verdict::Beside => "beside it",
    }
}

/// Three digits, as much as a model knows.
fn show3(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn as_json(one: &Experiment, rows: &[Row], hangs: Option<&Sensitivity>, ask: &Ask) -> Value {
    let row = |row: &Row| {
        let document = match row.said {
            Said::Both(pair) => json!({ "before": pair.before, "after": pair.after }),
            Said::Ratio(_) | Said::Nothing => Value::Null,
        };
        json!({
            "case": row.case,
            "unit": row.unit,
            "less_is_better": row.better == Better::Less,
            "before": row.lab.before,
            "after": row.lab.after,
            "ratio": row.ratio(),
            "document": document,
            "document_ratio": row.said_ratio(),
            "baseline_error": row.baseline_error(),
            "ratio_error": row.ratio_error(),
            "verdict": verdict(row.verdict()),
        })
    };
    let parameter = |p: &crate::parameters::Parameter| {
        json!({
            "key": p.key, "value": p.value, "low": p.low, "high": p.high, "unit": p.unit,
            "basis": p.basis.word(), "source": p.source,
        })
    };
    json!({
        "name": one.name,
        "about": one.about,
        "modelled": one.modelled,
        "remark": one.remark,
        "seed": ask.seed,
        "scale": ask.scale,
        "figures": rows.iter().map(row).collect::<Vec<_>>(),
        "parameters": (one.parameters)().iter().map(parameter).collect::<Vec<_>>(),
        "sensitivity": hangs.map(|hangs| hangs.json(row)),
    })
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Pair;

    #[test]
    fn the_table_says_whether_a_ratio_counts() {
        let one = &experiments::ALL[0];
        let row = |before, said| Row {
            case: "c".into(),
            unit: "s",
            better: Better::Less,
            lab: Pair { before, after: 7.0 },
            said,
        };
        let document = Said::Both(Pair { before: 56.0, after: 8.0 });
        let text = as_text(one, &[row(49.0, document), row(20.0, document)], &Ask::default());
        assert!(
            text.contains("| c | 56.0 → 8.00 s | 49.0 → 7.00 s | -12 % | 7.00x | 7.00x | +0 % | yes |"),
            "{text}"
        );
        assert!(text.contains("no: the baseline is off by more than a quarter"), "{text}");
    }

    #[test]
    fn a_name_that_is_not_there_is_told_with_those_that_are() {
        let wanted = Wanted { names: vec!["x".into()], ask: Ask::default(), sensitivity: false, json: false };
        let error = run(&wanted, &|_| ()).unwrap_err().to_string();
        assert!(error.contains("'x'") && error.contains("filesync"), "{error}");
    }

    #[test]
    fn each_experiment_has_its_parameters_with_sources() {
        for one in experiments::ALL {
            for parameter in (one.parameters)().iter() {
                assert!(
                    !parameter.source.is_empty() && parameter.low <= parameter.value,
                    "{}",
                    parameter.key
                );
                assert!(parameter.value <= parameter.high, "{}", parameter.key);
            }
        }
        assert!(list(false).lines().count() == experiments::ALL.len());
        assert!(parameters().contains("Constellation ES.3"));
    }

    /// The same seed gives the same digits, and another one gives others: the run is drawn from it.
    #[test]
    fn a_run_is_the_same_for_the_same_seed() {
        let run = |seed| {
            let ask = Ask { seed, scale: 0.02, only: None };
            let wanted = Wanted { names: vec!["elevator".into()], ask, sensitivity: false, json: true };
            run(&wanted, &|_| ()).unwrap()
        };
        let first = run(3);
        assert_eq!(first, run(3));
        assert_ne!(first, run(4));
    }
}
