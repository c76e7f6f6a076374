//! `cenote changes`: settings that were changed, what the statistics say came of each, and the way back.

use crate::args::changes::{Changes, Deed};
use crate::session::{Failure, Outcome, Session};
use crate::text::table::{Column, render};
use crate::text::{date, json, number};
use api::analytics::{Analytics, Told};
use api::changes::{self, Change, Figure, MOMENTS_WANTED, Verdict};
use api::{Reply, Request};
use serde_json::{Map, json};
use std::fmt::Write;

/// What is shown where no number is said: the last ones.
const SHOWN: usize = 20;
/// What is seen of a value in a list.
const VALUE_MAX: usize = 24;

pub fn run(session: &mut Session<'_>, args: &Changes) -> Outcome {
    match &args.deed {
        Some(Deed::Undo { number }) => undo(session, *number),
        None => show(session, args),
    }
}

fn all(session: &mut Session<'_>) -> Outcome<Vec<Change>> {
    match session.ask(Request::Analytics(Analytics::Changes))? {
        Reply::Analytics(Told::Changes(all)) => Ok(all),
        _ => Err(Failure::Failed("the appliance answered something else".into())),
    }
}

fn find(all: &[Change], number: u64) -> Outcome<&Change> {
    let missing = || Failure::Failed(format!("there is no change {number}: 'cenote changes' lists them"));
    all.iter().find(|change| change.number == number).ok_or_else(missing)
}

fn show(session: &mut Session<'_>, args: &Changes) -> Outcome {
    let all = all(session)?;
    let chosen: Vec<&Change> = match args.number {
        Some(number) => vec![find(&all, number)?],
        None if args.all => all.iter().collect(),
        None => all.iter().skip(all.len().saturating_sub(SHOWN)).collect(),
    };
    let text = if args.json {
        document(&chosen)
    } else if args.number.is_some() {
        chosen.iter().map(|change| told(change)).collect()
    } else {
        list(&chosen, all.len() - chosen.len())
    };
    if args.json { session.print(&text) } else { session.show(&text) }
}

fn document(chosen: &[&Change]) -> String {
    let told = |change: &&Change| {
        let mut told = json!(change);
        told["way_back"] = change.way_back_command().into();
        told
    };
    let mut content = Map::new();
    content.insert("changes".into(), chosen.iter().map(told).collect());
    json::document("changes", "ledger", content)
}

fn undo(session: &mut Session<'_>, number: u64) -> Outcome {
    let all = all(session)?;
    let (change, request) = changes::way_back(&all, number).map_err(Failure::Failed)?;
    let command = change.way_back_command();
    session.command.clone_from(&command);
    session.ask(request)?;
    session.show(&format!("{command}\n"))
}

/// Exact in JSON; here as people say it.
fn value(text: Option<&str>) -> String {
    let Some(text) = text else { return "-".into() };
    match text.parse::<u64>() {
        Ok(n) if n >= 1_024 && n.is_multiple_of(1_024) => number::bytes(n, false),
        _ if text.chars().count() > VALUE_MAX => {
            text.chars().take(VALUE_MAX - 1).collect::<String>() + "\u{2026}"
        }
        _ => text.into(),
    }
}

fn subject(change: &Change) -> &str {
    if change.subject.is_empty() { change.kind.word() } else { &change.subject }
}

/// `-25.0 %`.
fn gain(figure: &Figure) -> String {
    figure.gain().map_or_else(|| "-".into(), |tenths| format!("{:+.1} %", tenths as f64 / 10.0))
}

/// In a few words, for a list.
fn brief(change: &Change) -> String {
    match change.verdict {
        Verdict::Waiting => format!("judged at {}", date::sortable(change.until)),
        Verdict::Mixed => format!("mixed with change {}", change.with),
        Verdict::Short => "too short a past to compare with".into(),
        Verdict::Idle => "nothing was done".into(),
        Verdict::Compared => {
            let mut effects: Vec<&Figure> = change.effects().collect();
            effects.sort_by_key(|figure| std::cmp::Reverse(figure.gain().map(i64::unsigned_abs)));
            match effects.first() {
                None => "none seen".into(),
                Some(first) => {
                    let more = effects.len() - 1;
                    let more = if more > 0 { format!(", {more} more") } else { String::new() };
                    format!("{} {}{more}", first.dataset, gain(first))
                }
            }
        }
    }
}

fn list(chosen: &[&Change], left_out: usize) -> String {
    if chosen.is_empty() {
        return "no setting was changed\n".into();
    }
    let column = |heading: &str, right| Column { heading: heading.into(), right, min: 0 };
    let columns = [
        column("CHANGE", true),
        column("TIME", false),
        column("OF", false),
        column("SETTING", false),
        column("BEFORE", false),
        column("AFTER", false),
        column("EFFECT", false),
    ];
    let row = |change: &&Change| {
        vec![
            change.number.to_string(),
            date::sortable(change.time),
            subject(change).into(),
            change.setting.clone(),
            value(change.before.as_deref()),
            value(change.after.as_deref()),
            brief(change),
        ]
    };
    let rows: Vec<Vec<String>> = chosen.iter().map(row).collect();
    let mut text = render(&columns, &rows, false);
    if left_out > 0 {
        let _ = writeln!(text, "{left_out} earlier: -a shows them");
    }
    text
}

fn told(change: &Change) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:>10}: {value}");
    };
    line("change", &change.number.to_string());
    line("time", &date::sortable(change.time));
    line("of", subject(change));
    line("setting", &change.setting);
    let before = value(change.before.as_deref());
    line("before", &if change.inherited { format!("{before} (not set here)") } else { before });
    line("after", &value(change.after.as_deref()));
    line("command", if change.command.is_empty() { "-" } else { &change.command });
    line(
        "way back",
        &change.way_back().map_or_else(|why| format!("none: {why}"), |_| change.way_back_command()),
    );
    line("effect", &sentence(change));
    if !change.figures.is_empty() {
        text.push('\n');
        text.push_str(&figures(change));
    }
    text
}

/// What is known of its effect, and how sure that is.
fn sentence(change: &Change) -> String {
    match change.verdict {
        Verdict::Waiting => {
            format!(
                "the time after it that is compared has not passed: look again at {}",
                date::sortable(change.until)
            )
        }
        Verdict::Mixed => {
            format!("it cannot be told from that of change {}, made in the same minute", change.with)
        }
        Verdict::Short => format!(
            "not known: the load was there at {} moments without a change before it; {MOMENTS_WANTED} are wanted, some ten \
             minutes",
            change.moments
        ),
        Verdict::Idle => {
            "not known: nothing was under way before it and after, or no statistic was open".into()
        }
        Verdict::Compared => match change.effects().count() {
            0 => format!(
                "none seen: at {} moments without a change the figures differed by themselves as much as now",
                change.moments
            ),
            _ => format!(
                "seen where marked: at {} moments without a change hardly one such difference came by itself",
                change.moments
            ),
        },
    }
}

fn figures(change: &Change) -> String {
    let column = |heading: &str, right| Column { heading: heading.into(), right, min: 0 };
    let columns = [
        column("STATISTIC", false),
        column("BEFORE", true),
        column("AFTER", true),
        column("DIFFERENCE", true),
        column("RIVALS", true),
        column("", false),
    ];
    let row = |figure: &Figure| {
        vec![
            figure.dataset.clone(),
            amount(figure.before, &figure.unit),
            amount(figure.after, &figure.unit),
            gain(figure),
            format!("{} of {}", figure.rivals, change.moments),
            if figure.is_effect { "*".into() } else { String::new() },
        ]
    };
    let rows: Vec<Vec<String>> = change.figures.iter().map(row).collect();
    let text = render(&columns, &rows, false);
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn amount(value: u64, unit: &str) -> String {
    match unit {
        "bytes" | "bytes/s" => {
            let per = if unit.ends_with("/s") { "/s" } else { "" };
            format!("{}{per}", number::bytes(value, false))
        }
        "nanoseconds" => api::analytics::time(value),
        "percent" => format!("{value} %"),
        "operations/s" => format!("{value}/s"),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::changes::Kind;

    fn change(verdict: Verdict, figures: Vec<Figure>) -> Change {
        Change {
            number: 7,
            time: 1_795_563_064,
            kind: Kind::Dataset,
            subject: "tank/db".into(),
            setting: "recordsize".into(),
            before: Some("131072".into()),
            inherited: true,
            after: Some("16384".into()),
            command: "zfs set recordsize=16K tank/db".into(),
            uid: 0,
            verdict,
            until: 1_795_563_099,
            with: 6,
            moments: 340,
            figures,
        }
    }

    fn figure(dataset: &str, unit: &str, before: u64, after: u64, is_effect: bool) -> Figure {
        Figure {
            dataset: dataset.into(),
            unit: unit.into(),
            before,
            after,
            rivals: if is_effect { 0 } else { 120 },
            is_effect,
        }
    }

    #[test]
    fn a_list_has_a_line_for_each_change() {
        let figures = vec![
            figure("nbd.ops", "operations/s", 1_200, 1_900, true),
            figure("io.bytes", "bytes/s", 64 << 20, 8 << 20, true),
        ];
        let (seen, waits) = (change(Verdict::Compared, figures), change(Verdict::Waiting, Vec::new()));
        let expected = "\
CHANGE  TIME                 OF       SETTING     BEFORE  AFTER  EFFECT
     7  2026-11-24.23:31:04  tank/db  recordsize  128K    16K    io.bytes -87.5 %, 1 more
     7  2026-11-24.23:31:04  tank/db  recordsize  128K    16K    judged at 2026-11-24.23:31:39
3 earlier: -a shows them
";
        assert_eq!(list(&[&seen, &waits], 3), expected);
    }

    #[test]
    fn one_is_told_with_its_figures_and_its_way_back() {
        let figures = vec![
            figure("nbd.ops[latency]", "nanoseconds", 2_000_000, 300_000, true),
            figure("io.ops[size]", "bytes", 131_072, 131_072, false),
        ];
        let expected = "    change: 7
      time: 2026-11-24.23:31:04
        of: tank/db
   setting: recordsize
    before: 128K (not set here)
     after: 16K
   command: zfs set recordsize=16K tank/db
  way back: cenote zfs inherit recordsize tank/db
    effect: seen where marked: at 340 moments without a change hardly one such difference came by itself

STATISTIC         BEFORE  AFTER  DIFFERENCE      RIVALS
nbd.ops[latency]     2ms  300us     -85.0 %    0 of 340  *
io.ops[size]        128K   128K      +0.0 %  120 of 340
";
        assert_eq!(told(&change(Verdict::Compared, figures)), expected);
        assert!(told(&change(Verdict::Mixed, Vec::new())).contains("change 6"));
    }
}
