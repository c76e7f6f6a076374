//! The live page, watched: samples in, keys in, drawings out, until it is ended.

use super::draw::draw;
use super::history::SECONDS_MAX;
use super::page::{Page, Press};
use super::terminal::{Screen, keys};
use crate::live;
use crate::session::{Failure, Outcome, Session};
use api::analytics::Data;
use api::{ApiError, ErrorKind, Request};
use probe::Query;
use std::collections::BTreeMap;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// Twice for each sample, so that none is shown late.
const EACH: Duration = Duration::from_millis(500);
/// What is asked of a statistic that was not shown before: as much as is drawn.
const BACK: u64 = 240;

/// # Errors
/// A statistic that cannot be opened; a terminal that cannot be used; a daemon that does not answer any more.
pub fn run(session: &mut Session<'_>, statistics: &[String]) -> Outcome {
    let mut queries = Vec::new();
    for name in statistics {
        // The daemon says what is wrong with it.
        let name = live::open(session, name)?;
        queries.push(name.parse::<Query>().map_err(|e| Failure::Failed(e.to_string()))?);
    }
    let failed = |e: std::io::Error| {
        Failure::Failed(format!("cannot use this terminal: {e}; 'cenote top -n 1' needs none"))
    };
    let mut page = Page::new(queries);
    let mut feed = Feed::default();
    let mut screen = Screen::take().map_err(failed)?;
    let pressed = keys().map_err(failed)?;
    let mut due = Instant::now();
    while !page.has_ended() {
        if Instant::now() >= due {
            feed.refresh(session, &mut page)?;
            due = Instant::now() + EACH;
        }
        screen.draw(|buffer| draw(buffer, &mut page)).map_err(failed)?;
        let wanted = page.wanted();
        match pressed.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(key) => page.press(key),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => page.press(Press::Interrupt),
        }
        // Keys that were typed meanwhile, before it is drawn once more.
        while let Ok(key) = pressed.try_recv() {
            page.press(key);
        }
        if page.wanted() != wanted {
            due = Instant::now();
        }
    }
    Ok(())
}

/// What is known of the daemon's statistics.
#[derive(Default)]
struct Feed {
    /// Their names with the daemon, and when they were told last.
    open: BTreeMap<String, (String, Option<Instant>)>,
}

impl Feed {
    fn refresh(&mut self, session: &mut Session<'_>, page: &mut Page) -> Outcome {
        for name in page.wanted() {
            let is_new = !page.series.contains_key(&name);
            let told = self.ask(session, &name, is_new);
            if let Err(e) = &told
                && e.kind == ErrorKind::Io
            {
                // Else it is one statistic that cannot be read.
                session.ask(Request::Ping)?;
            }
            page.take(&name, told.map_err(|e| e.message));
        }
        Ok(())
    }

    /// Opens it where it is not open, or was closed since no one asked for it.
    fn ask(&mut self, session: &mut Session<'_>, name: &str, is_new: bool) -> Result<Data, ApiError> {
        if !self.open.contains_key(name) {
            let opened = live::try_open(session, name)?;
            self.open.insert(name.into(), (opened, None));
        }
        let Some((opened, last)) = self.open.get_mut(name) else {
            return Err(ApiError::new(ErrorKind::NotFound, format!("'{name}' is not open")));
        };
        let missing = last.filter(|_| !is_new).map_or(BACK, |last| last.elapsed().as_secs() + 3);
        let told = live::newest(session, opened, missing.min(SECONDS_MAX as u64));
        match &told {
            Ok(_) => *last = Some(Instant::now()),
            Err(_) => drop(self.open.remove(name)),
        }
        told
    }
}
