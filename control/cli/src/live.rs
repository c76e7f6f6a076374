//! Statistics as they come, second by second.
//!
//! They are opened as temporary datasets, which end by themselves some minutes after their last reader.

use crate::session::{Failure, Outcome, Session};
use api::analytics::{Analytics, Data, DataQuery, Granularity, Start, Told};
use api::{ApiError, Call, ErrorKind, Reply, Request};

fn ask(session: &mut Session<'_>, asked: Analytics) -> api::Result<Reply> {
    let call =
        Call { command: session.command.clone(), uid: session.uid, request: Request::Analytics(asked) };
    session.caller.call(call)
}

fn strange() -> ApiError {
    ApiError::new(ErrorKind::Unsupported, "the appliance answered something else")
}

/// Opens a statistic; its name from now on.
pub(crate) fn open(session: &mut Session<'_>, statistic: &str) -> Outcome<String> {
    Ok(try_open(session, statistic)?)
}

/// As [`open`]; the error tells its kind.
pub(crate) fn try_open(session: &mut Session<'_>, statistic: &str) -> api::Result<String> {
    match ask(session, Analytics::Open { statistic: statistic.into() })? {
        Reply::Named { name } => Ok(name),
        _ => Err(strange()),
    }
}

fn data(session: &mut Session<'_>, name: &str, start: Start, seconds: u64) -> api::Result<Data> {
    let query = DataQuery { name: name.into(), start, seconds, granularity: Granularity::Second };
    match ask(session, Analytics::Data(query))? {
        Reply::Analytics(Told::Data(data)) => Ok(data),
        _ => Err(strange()),
    }
}

/// Its samples of so many seconds. Waits for those that are not over.
pub(crate) fn samples(session: &mut Session<'_>, name: &str, start: Start, seconds: u64) -> Outcome<Data> {
    Ok(data(session, name, start, seconds)?)
}

/// Its newest samples, of so many seconds. Waits for none.
pub(crate) fn newest(session: &mut Session<'_>, name: &str, seconds: u64) -> api::Result<Data> {
    data(session, name, Start::Ago(seconds), seconds)
}

/// When the first of the samples is from.
pub(crate) fn moment(data: Option<&Data>) -> String {
    let point = data.and_then(|data| data.points.first());
    point.map_or("-".into(), |point| api::http::date(point.sample))
}

/// Writes a screen, over the last one where it is watched.
pub(crate) fn show(session: &mut Session<'_>, text: String) -> Outcome {
    let screen = if session.is_watched { format!("\u{1b}[H\u{1b}[2J{text}") } else { text };
    let shown = session.out.write_all(screen.as_bytes()).and_then(|()| session.out.flush());
    shown.map_err(|_| Failure::Told)
}
