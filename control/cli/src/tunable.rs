//! `tunable`: the values, their table, and what is loud about them.

use crate::args::System;
use crate::args::tunable::{Command, Style};
use crate::expect_reply;
use crate::session::{Failure, Outcome, Session};
use crate::text::table::{Column, render};
use crate::text::{json, number};
use api::{Reply, Request, Tunable};
use serde_json::{Map, Value as Json, json};
use std::path::Path;
use tunables::system::Settings;

pub(crate) fn run(session: &mut Session<'_>, command: &Command) -> Outcome {
    match command {
        Command::Get(args) => show(session, "tunable get", &args.names, args.style),
        Command::List(args) => show(session, "tunable list", &[], args.style),
        Command::Set(args) => set(session, args.settings.clone()),
        Command::Load { file } => {
            let settings = read(file)?;
            settings.skipped.iter().for_each(|line| session.complain(format!("WARNING: {line}")));
            let settings = settings.known;
            let named = |(tunable, value): (tunables::Tunable, u64)| (tunable.to_string(), value.to_string());
            set(session, settings.into_iter().map(named).collect())
        }
    }
}

impl System {
    /// What the file and the command line say; the latter wins. What the file names that is not here, `skipped` is told.
    ///
    /// # Errors
    /// A file that cannot be read, or its first line that makes no sense.
    pub fn read(&self, skipped: impl Fn(&str)) -> Outcome<Vec<(tunables::Tunable, u64)>> {
        let mut settings = self.system.as_deref().map_or_else(|| Ok(Settings::default()), read)?;
        settings.skipped.iter().for_each(|line| skipped(&format!("WARNING: {line}")));
        settings.known.extend(self.arc_max.map(|bytes| (tunables::Tunable::ArcMax, bytes)));
        Ok(settings.known)
    }
}

fn read(file: &Path) -> Outcome<Settings> {
    let name = file.display().to_string();
    let text =
        std::fs::read_to_string(file).map_err(|e| Failure::Failed(format!("cannot read {name}: {e}")))?;
    tunables::system::parse(&name, &text).map_err(|e| Failure::Failed(e.to_string()))
}

fn set(session: &mut Session<'_>, settings: Vec<(String, String)>) -> Outcome {
    let reply = session.ask(Request::TunableSet { settings })?;
    let now = expect_reply!(reply, Reply::Tunables(now) => now);
    for tunable in now {
        if let Some(warning) = tunable.warning {
            session.complain(format!("WARNING: {} is {}: {warning}", tunable.name, tunable.value));
        }
    }
    Ok(())
}

fn show(session: &mut Session<'_>, command: &str, names: &[String], style: Style) -> Outcome {
    let reply = session.ask(Request::Tunables { names: names.to_vec() })?;
    let tunables = expect_reply!(reply, Reply::Tunables(tunables) => tunables);
    let text = if style.json { document(command, &tunables) } else { table(&tunables, style) };
    session.print(&text)
}

fn table(tunables: &[Tunable], style: Style) -> String {
    let column = |heading: &str, right| Column { heading: heading.into(), right, min: 0 };
    let columns =
        [column("NAME", false), column("VALUE", true), column("DEFAULT", true), column("ABOUT", false)];
    let value = |tunable: &Tunable, n: u64| match tunable.unit.as_str() {
        "bytes" => number::bytes(n, style.exact),
        "count" | "switch" => n.to_string(),
        _ if style.exact => n.to_string(),
        unit => format!("{n}{unit}"),
    };
    let row = |t: &Tunable| vec![t.name.clone(), value(t, t.value), value(t, t.default), t.about.clone()];
    render(&columns, &tunables.iter().map(row).collect::<Vec<_>>(), style.scripted)
}

fn document(command: &str, tunables: &[Tunable]) -> String {
    let describe = |t: &Tunable| {
        let Tunable { value, default, min, max, unit, about, warning, .. } = t;
        let item = json!({ "value": value, "default": default, "min": min, "max": max, "unit": unit,
                           "about": about, "warning": warning });
        (t.name.clone(), item)
    };
    json::document(command, "tunables", tunables.iter().map(describe).collect::<Map<String, Json>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tunable(name: &str, value: u64, default: u64, unit: &str, warning: Option<&str>) -> Tunable {
        let about = format!("About {name}.");
        let warning = warning.map(String::from);
        Tunable {
            name: name.into(),
            value,
            default,
            min: 0,
            max: u64::MAX,
            unit: unit.into(),
            about,
            warning,
        }
    }

    fn some() -> Vec<Tunable> {
        vec![
            tunable("zfs_nocacheflush", 1, 0, "switch", Some("beware")),
            tunable("zil_slog_bulk", u64::MAX, 64 << 20, "bytes", None),
            tunable("zfs_txg_timeout", 5, 5, "s", None),
        ]
    }

    #[test]
    fn the_table_is_aligned_and_scripts_get_exact_numbers_between_tabs() {
        let expected = "\
NAME              VALUE  DEFAULT  ABOUT
zfs_nocacheflush      1        0  About zfs_nocacheflush.
zil_slog_bulk     16.0E      64M  About zil_slog_bulk.
zfs_txg_timeout      5s       5s  About zfs_txg_timeout.
";
        assert_eq!(table(&some(), Style::default()), expected);
        let style = Style { scripted: true, exact: true, json: false };
        let lines = table(&some(), style);
        assert_eq!(
            lines.lines().nth(1),
            Some("zil_slog_bulk\t18446744073709551615\t67108864\tAbout zil_slog_bulk.")
        );
    }

    #[test]
    fn json_has_everything_as_numbers() {
        let text = document("tunable list", &some());
        let json: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(json["output_version"]["command"], "tunable list");
        assert_eq!(json["tunables"]["zil_slog_bulk"]["value"], json!(u64::MAX));
        assert_eq!(json["tunables"]["zfs_nocacheflush"]["warning"], "beware");
        assert_eq!(json["tunables"]["zfs_txg_timeout"]["warning"], Json::Null);
    }

    struct Replies(Vec<Tunable>);

    impl api::Caller for Replies {
        fn call(&mut self, call: api::Call) -> api::Result<Reply> {
            let Request::TunableSet { settings } = call.request else { panic!("{:?}", call.request) };
            assert_eq!(settings, [("zfs_nocacheflush".to_string(), "1".to_string())]);
            Ok(Reply::Tunables(self.0[..1].to_vec()))
        }

        fn outlives_us(&self) -> bool {
            true
        }
    }

    /// From the file to the loud warning; and a file with a mistake sets nothing.
    #[test]
    fn a_system_file_is_loaded_whole_or_not_at_all() {
        let file = std::env::temp_dir().join(format!("cenote-system-{}", std::process::id()));
        let load = |text: &str| {
            std::fs::write(&file, text).unwrap();
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut session = Session {
                caller: &mut Replies(some()),
                out: &mut out,
                err: &mut err,
                is_watched: false,
                has_failed: false,
                command: String::new(),
                uid: 0,
            };
            let outcome = run(&mut session, &Command::Load { file: file.clone() });
            (outcome, String::from_utf8(err).unwrap())
        };
        let (outcome, said) = load("* batteries everywhere\nset zfs:zfs_nocacheflush = 1\n");
        assert_eq!(outcome, Ok(()));
        assert_eq!(said, "WARNING: zfs_nocacheflush is 1: beware\n");
        let (outcome, _) = load("set zfs:zfs_nocacheflush = 1\nset zfs:zfs_nocacheflush = 3\n");
        let Err(Failure::Failed(why)) = outcome else { panic!("{outcome:?}") };
        assert!(why.ends_with(":2: bad value '3' for zfs_nocacheflush: it is 0 or 1"), "{why}");
        std::fs::remove_file(&file).unwrap();
    }
}
