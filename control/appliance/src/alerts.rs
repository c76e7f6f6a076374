//! Alerts: where they are sent, from where on something is one, and what is looked at for them.
//!
//! ```text
//!   Events::post ─▶ Desk::note ─▶ alerts::Judge ─▶ alerts::Outbox ─▶ receivers
//!     ▲       ▲
//!     │       └ what the journal sees of pools; logins that fail
//!     └ Watch, every LOOK: health, space, transaction groups that took long ─▶ events of their own
//! ```
//!
//! Receivers and thresholds are in the configuration. A receiver's secret is told to no request; a backup, which is sealed,
//! has it.

pub(crate) mod records;
pub(crate) mod state;
mod watch;

use crate::appliance::Appliance;
use ::alerts::Alert;
use api::alerts::{
    Alerts, AlertsTold, Handler, Receiver, ReceiverChange, Severity, Thresholds, ThresholdsChange,
};
use api::{ApiError, ErrorKind, Reply, Result};
use futures_util::future::select;
use records::{RECEIVERS, RECEIVERS_MAX, Record, THRESHOLDS, THRESHOLDS_KEY};
use std::pin::pin;
use std::time::Duration;
use store::Look;
use units::{Error, Kind};
use watch::Watch;

/// How often pools are looked at.
const LOOK: Duration = Duration::from_secs(5);
/// Of what strangers say, as much as an event takes.
const WORD_MAX: usize = 128;

impl Appliance {
    /// Sends alerts from now on, until the appliance stops.
    pub fn begin_alerts(&self) {
        if let Err(e) = self.follow_alerts() {
            tracing::error!("alerts are not sent: {}", e.message);
        }
        self.0.events.watch_by(self.0.alerts.clone());
        let appliance = self.clone();
        world::spawn(async move {
            let mut watch = Watch::default();
            let ending = &appliance.0.watch.ending;
            while !ending.is_set() {
                appliance.look_for_alerts(&mut watch).await;
                select(pin!(world::sleep(LOOK)), pin!(ending.wait())).await;
            }
        });
    }

    async fn look_for_alerts(&self, watch: &mut Watch) {
        let thresholds = self.0.alerts.thresholds();
        // A pool that is being opened is looked at the next time.
        let pools: Vec<pool::Pool> = match self.0.pools.try_lock() {
            Some(pools) => pools.opened().cloned().collect(),
            None => return,
        };
        let reports: Vec<pool::PoolReport> = pools.iter().map(pool::Pool::report).collect();
        let told = watch.note_pools(&reports, &thresholds).into_iter();
        for (class, fields) in told.chain(watch.note_syncs(self.hub(), &thresholds)) {
            self.0.events.post(&class, fields);
        }
    }

    /// What is configured holds from now on.
    pub(crate) fn follow_alerts(&self) -> Result<()> {
        let kept = self.configuration().and_then(|configuration| {
            configuration
                .look(|reader| Ok((reader.all(&RECEIVERS)?, reader.get(&THRESHOLDS, THRESHOLDS_KEY)?)))
        });
        let (receivers, thresholds) = kept.map_err(|e| ApiError::cannot("read where alerts are sent", &e))?;
        let receivers = receivers.into_iter().map(|(name, record)| record.receiver(&name)).collect();
        self.0.alerts.set(receivers, thresholds.unwrap_or_default());
        Ok(())
    }

    /// A login was refused, at the API or by the iSCSI service.
    pub(crate) fn login_failed(&self, user: &str, address: &str, door: &str) {
        let plain = |text: &str| text.chars().filter(|c| !c.is_control()).take(WORD_MAX).collect::<String>();
        let fields = [("user", plain(user)), ("address", plain(address)), ("door", door.to_string())];
        let fields = fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        self.0.events.post("sysevent.cenote.login_failed", fields);
    }

    pub(crate) async fn ask_alerts(&self, asked: Alerts) -> Result<Reply> {
        match asked {
            Alerts::Receivers => Ok(Reply::Alerts(AlertsTold::Receivers(self.alert_receivers()?))),
            Alerts::Create { name, handler, set } => {
                self.change_receiver(&name, "create", set, Some(handler)).map(|()| Reply::Done)
            }
            Alerts::Change { name, set } => {
                self.change_receiver(&name, "change", set, None).map(|()| Reply::Done)
            }
            Alerts::Destroy { name } => self.destroy_receiver(&name).map(|()| Reply::Done),
            Alerts::Test { name } => self.test_receiver(&name).await.map(|()| Reply::Done),
            Alerts::Thresholds => Ok(Reply::Alerts(AlertsTold::Thresholds(self.alert_thresholds()?))),
            Alerts::SetThresholds(change) => self.set_thresholds(&change).map(|()| Reply::Done),
            Alerts::LoginFailed { user, address } => {
                self.login_failed(&user, &address, "rest");
                Ok(Reply::Done)
            }
        }
    }

    fn alert_receivers(&self) -> Result<Vec<Receiver>> {
        let all = self.configuration().and_then(|c| c.look(|reader| reader.all(&RECEIVERS)));
        let all = all.map_err(|e| ApiError::cannot("list where alerts are sent", &e))?;
        let mut states = self.0.alerts.states();
        Ok(all
            .into_iter()
            .map(|(name, record)| record.told(&name, states.remove(&name).unwrap_or_default()))
            .collect())
    }

    fn alert_thresholds(&self) -> Result<Thresholds> {
        let kept =
            self.configuration().and_then(|c| c.look(|reader| reader.get(&THRESHOLDS, THRESHOLDS_KEY)));
        kept.map(Option::unwrap_or_default).map_err(|e| ApiError::cannot("read the thresholds of alerts", &e))
    }

    fn change_receiver(
        &self,
        name: &str,
        verb: &str,
        set: ReceiverChange,
        new: Option<Handler>,
    ) -> Result<()> {
        let changed = self.configuration().and_then(|configuration| {
            configuration.change(|writer| {
                let mut record = match (new, writer.get(&RECEIVERS, name)?) {
                    (Some(handler), None) => Record::of(handler),
                    (Some(_), Some(_)) => {
                        return Err(Error::new(Kind::Exists, "create").because("there is one of this name"));
                    }
                    (None, Some(record)) => record,
                    (None, None) => return Err(missing()),
                };
                if new.is_some() && writer.all(&RECEIVERS)?.len() >= RECEIVERS_MAX {
                    return Err(Error::invalid(format!("there are {RECEIVERS_MAX} receivers at most")));
                }
                record.change(set)?;
                records::check(name, &record)?;
                writer.put(&RECEIVERS, name, &record)
            })
        });
        changed.map_err(|e| cannot(&format!("{verb} the receiver '{name}'"), &e))?;
        self.follow_alerts()
    }

    fn destroy_receiver(&self, name: &str) -> Result<()> {
        let gone = self.configuration().and_then(|configuration| {
            configuration.change(|writer| match writer.remove(&RECEIVERS, name)? {
                true => Ok(()),
                false => Err(missing()),
            })
        });
        gone.map_err(|e| cannot(&format!("destroy the receiver '{name}'"), &e))?;
        self.follow_alerts()
    }

    async fn test_receiver(&self, name: &str) -> Result<()> {
        let alert = Alert {
            severity: Severity::Error,
            seconds: world::wall_clock().seconds,
            class: "sysevent.cenote.test".into(),
            summary: "this is a test: alerts arrive here".into(),
            fields: Vec::new(),
        };
        let outcome = self.0.alerts.try_now(name, alert).await;
        let outcome = outcome.ok_or_else(|| cannot(&format!("test the receiver '{name}'"), &missing()))?;
        let failed = |why| ApiError::new(ErrorKind::Io, format!("cannot send a test to '{name}': {why}"));
        outcome.map_err(failed)
    }

    fn set_thresholds(&self, change: &ThresholdsChange) -> Result<()> {
        let changed = self.configuration().and_then(|configuration| {
            configuration.change(|writer| {
                let mut all = writer.get(&THRESHOLDS, THRESHOLDS_KEY)?.unwrap_or_default();
                all.space_percent = change.space_percent.unwrap_or(all.space_percent);
                all.sync_seconds = change.sync_seconds.unwrap_or(all.sync_seconds);
                all.failed_logins = change.failed_logins.unwrap_or(all.failed_logins);
                records::check_thresholds(&all)?;
                writer.put(&THRESHOLDS, THRESHOLDS_KEY, &all)
            })
        });
        changed.map_err(|e| cannot("change the thresholds of alerts", &e))?;
        self.follow_alerts()
    }
}

fn missing() -> Error {
    Error::new(Kind::NotFound, "find").because("there is no such receiver")
}

fn cannot(doing: &str, e: &Error) -> ApiError {
    ApiError::new(
        e.kind().into(),
        format!("cannot {doing}: {}", crate::error_text::why(crate::error_text::About::Dataset, e)),
    )
}
