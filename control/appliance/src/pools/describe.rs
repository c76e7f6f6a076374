//! Everything there is to say of a pool: its properties, vdevs and errors.

use crate::appliance::Appliance;
use crate::error_text::{About, cannot};
use crate::home::Known;
use crate::pools::{Access, Failed, Open};
use crate::pools::{sweep, vdevs};
use crate::values;
use api::{ErrorScrub, Pool, Property, Reply, Result, Scan, ScanState, Source, Value};
use dsl::pool_props::PoolProp;
use pool::{ErrorScrubStatus, PoolProperty, ScanStatus};
use std::time::Duration;

impl Appliance {
    pub(crate) async fn describe_pools(&self, names: &[String]) -> Result<Reply> {
        let mut pools = Vec::new();
        for name in self.names_or_all(names).await {
            pools.push(self.describe_pool(&name).await?);
        }
        Ok(Reply::Pools(pools))
    }

    async fn describe_pool(&self, name: &str) -> Result<Pool> {
        match self.pool(name, Access::Look).await {
            Ok(open) => {
                let mut pool = describe(&open, self.data_errors(&open.pool).await)
                    .await
                    .map_err(|e| cannot(About::Pool, &format!("open '{name}'"), &e))?;
                let here = self.pools_now().await;
                let guid = open.pool.guid();
                if let Some(root) = &mut pool.vdevs {
                    let others: Vec<&pool::Pool> = here.opened().filter(|pool| pool.guid() != guid).collect();
                    vdevs::add_users(root, &others);
                }
                Ok(pool)
            }
            // One that cannot be opened is still imported.
            Err(e) => match self.known(name).await {
                Some((known, failed)) => Ok(unavailable(
                    &known,
                    failed.unwrap_or_else(|| Failed { why: e.message, ..Failed::default() }),
                )),
                None => Err(e),
            },
        }
    }
}

fn unavailable(known: &Known, failed: Failed) -> Pool {
    Pool {
        name: known.name.clone(),
        guid: known.guid,
        txg: 0,
        health: "UNAVAIL".into(),
        properties: vec![
            Property::computed("health", "UNAVAIL"),
            Property::computed("guid", known.guid),
            Property::new("altroot", known.altroot.clone().map(Value::Text), Source::Default),
        ],
        vdevs: failed.vdevs,
        scan: None,
        error_scrub: None,
        errors: api::DataErrors::default(),
        unusable: failed.unusable,
        suspended: None,
        problem: Some(failed.why),
        logs: Vec::new(),
        clock_ns: 0,
    }
}

/// How long a request for the properties of a suspended pool may wait.
const LOOK: Duration = Duration::from_millis(250);
/// After so long it is asked whether the pool has been suspended meanwhile.
const LOOK_PATIENTLY: Duration = Duration::from_secs(10);

async fn describe(open: &Open, errors: api::DataErrors) -> units::Result<Pool> {
    let properties = properties(&open.pool).await?;
    let report = open.pool.report();
    let mut vdevs = vdevs::of_report(&report);
    vdevs::add_properties(&mut vdevs, &open.pool.vdev_properties());
    vdevs::add_wear(&mut vdevs, &super::cache_state::wear_of(&open.pool));
    sweep::add_sweeps(&mut vdevs, &open.pool);
    Ok(Pool {
        name: report.name.clone(),
        guid: report.guid.0,
        txg: report.txg.0,
        health: if report.suspended.is_some() { "SUSPENDED" } else { report.health.word() }.into(),
        properties: properties.into_iter().map(|p| property(p, &open.known)).collect(),
        vdevs: Some(vdevs),
        scan: report.scan.as_ref().map(scan),
        error_scrub: report.error_scrub.as_ref().map(error_scrub),
        errors,
        unusable: report.vdevs.complaints(),
        suspended: report.suspended,
        logs: open.pool.waiting_logs().iter().map(ToString::to_string).collect(),
        problem: None,
        clock_ns: u64::try_from(world::now().since(open.since).as_nanos()).unwrap_or(u64::MAX),
    })
}

/// As far as they can be had: of a suspended pool the devices that have them may be gone, or a change stands half-way.
async fn properties(pool: &pool::Pool) -> units::Result<Vec<PoolProperty>> {
    loop {
        let read = async {
            let _reading = pool.reading().await;
            pool.properties().await
        };
        let limit = if pool.suspended().is_some() { LOOK } else { LOOK_PATIENTLY };
        match (world::timeout(limit, read).await, pool.suspended()) {
            (Some(Ok(properties)), _) => return Ok(properties),
            (_, Some(_)) => return Ok(Vec::new()),
            (Some(Err(e)), None) => return Err(e),
            (None, None) => {}
        }
    }
}

/// What the pool says, and of what is only so while it is imported here, what we say.
fn property(property: PoolProperty, known: &Known) -> Property {
    let PoolProperty { name, value, source } = property;
    let local = |text: Option<&str>| {
        let source = if text.is_some() { Source::Local } else { Source::Default };
        Property::new(&name, text.map(Value::from), source)
    };
    match PoolProp::by_name(&name) {
        Some(PoolProp::AltRoot) => local(known.altroot.as_deref()),
        Some(PoolProp::CacheFile) => local(known.passing.then_some("none")),
        // Opened read-only to answer a question, it is none that is imported read-only.
        Some(PoolProp::ReadOnly) => Property::computed(&name, if known.read_only { "on" } else { "off" }),
        Some(prop) => {
            let value = value.map(|v| values::travelling(prop.row(), &v));
            Property::new(&name, value, values::source(&source))
        }
        None => Property::new(&name, value.as_ref().map(values::plain), values::source(&source)),
    }
}

fn scan(status: &ScanStatus) -> Scan {
    Scan {
        is_resilver: status.func == ondisk::dsl::ScanFunc::Resilver,
        state: state(status.state),
        started: status.start_time,
        ended: status.end_time,
        paused: status.paused,
        to_examine: status.to_examine,
        examined: status.examined,
        issued: status.examined,
        repaired: status.repaired,
        errors: status.errors,
        elapsed: status.pass_elapsed,
        pass_examined: status.pass_examined,
    }
}

fn error_scrub(status: &ErrorScrubStatus) -> ErrorScrub {
    ErrorScrub {
        state: state(status.state),
        started: status.start_time,
        ended: status.end_time,
        paused: status.paused,
        to_examine: status.to_examine,
        examined: status.examined,
        errors: status.errors,
    }
}

fn state(state: ondisk::dsl::ScanState) -> ScanState {
    match state {
        ondisk::dsl::ScanState::Finished => ScanState::Finished,
        ondisk::dsl::ScanState::Canceled => ScanState::Canceled,
        _ => ScanState::Running,
    }
}

#[cfg(test)]
mod tests;
