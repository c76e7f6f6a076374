//! What is kept of figures that are sent: the queue to the collector, and since when what is counted.

use metrics::{Exporter, Metric, Moment, Series};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use world::sync::Watch;

type OfApi = Arc<dyn Fn() -> metrics::Api + Send + Sync>;

/// See the module.
pub(crate) struct Exporting {
    pub exporter: Exporter,
    /// Counts changes of the settings.
    pub changes: Watch<u64>,
    series: Mutex<Series>,
    api: Mutex<Option<OfApi>>,
}

impl Default for Exporting {
    fn default() -> Exporting {
        Exporting {
            exporter: Exporter::default(),
            changes: Watch::new(0),
            series: Mutex::new(Series::new(Moment::default())),
            api: Mutex::default(),
        }
    }
}

impl fmt::Debug for Exporting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.exporter)
    }
}

impl Exporting {
    /// What is counted is counted from now on.
    pub fn begin(&self, now: Moment) {
        *self.series.lock().unwrap_or_else(PoisonError::into_inner) = Series::new(now);
    }

    pub fn document(&self, all: &[Metric], resource: &[(String, String)], now: Moment) -> String {
        metrics::document(all, resource, &mut self.series.lock().unwrap_or_else(PoisonError::into_inner), now)
    }

    pub fn count_api(&self, counted: OfApi) {
        *self.api.lock().unwrap_or_else(PoisonError::into_inner) = Some(counted);
    }

    /// What the API has counted, once there is one.
    pub fn of_api(&self) -> metrics::Api {
        let counted = self.api.lock().unwrap_or_else(PoisonError::into_inner).clone();
        counted.map(|counted| counted()).unwrap_or_default()
    }
}
