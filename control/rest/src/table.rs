//! The table of endpoints: everything that can be asked over HTTP, each said once.
//!
//! Paths are templates: `/api/storage/v1/pools/{pool}`. Where a template says `v1` a request may say `v2`: answers differ
//! in their hrefs alone, since they are in the form that scripts like best in both.
//!
//! ```text
//!   endpoint ◀── resources::* ◀── table ──▶ Rest::new: the server is given it, and imports no resource
//! ```

use crate::endpoint::{Endpoint, Reply, get, plain, run};
use crate::metrics;
use crate::resources::*;
use crate::server::{About, Rest};
use access::Access;
use api::Service;
use api::http::Declared;
use std::sync::{Arc, LazyLock};

static METRICS: &[Endpoint] =
    &[get("/metrics", "Counters and gauges, for Prometheus", Reply::Text, run!(metrics::answer))];

/// Endpoints with a handler: one list for each service.
static TABLE: &[&[Endpoint]] = &[
    devices::ENDPOINTS,
    analytics::ENDPOINTS,
    logins::ENDPOINTS,
    logs::ENDPOINTS,
    roles::ENDPOINTS,
    san::ENDPOINTS,
    fc::ENDPOINTS,
    schema::ENDPOINTS,
    services::ENDPOINTS,
    pools::ENDPOINTS,
    shares::OF_PROJECTS,
    shares::OF_FILESYSTEMS,
    shares::OF_LUNS,
    snapshots::OF_SHARES,
    snapshots::OF_PROJECTS,
    snapshots::OF_FILESYSTEMS,
    snapshots::OF_LUNS,
    automatic::OF_PROJECTS,
    automatic::OF_FILESYSTEMS,
    automatic::OF_LUNS,
    system::ENDPOINTS,
    users::ENDPOINTS,
    METRICS,
];

/// Those that are declared and have no handler: they are plain.
static PLAIN: LazyLock<Vec<Endpoint>> = LazyLock::new(|| {
    let listed = || TABLE.iter().copied().flatten();
    let is_listed = |d: &Declared| listed().any(|e| e.method == d.face.method && e.path == d.face.path);
    let declared = api::declared::TABLE.iter().copied().flatten().copied();
    declared.filter(|declared| !is_listed(declared)).map(plain).collect()
});

pub fn all() -> impl Iterator<Item = &'static Endpoint> {
    TABLE.iter().copied().flatten().chain(PLAIN.iter())
}

impl Rest {
    pub fn new(access: Access, service: Arc<dyn Service>, about: About) -> Arc<Rest> {
        Rest::over(all().collect(), access, service, about)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_declaration_has_one_endpoint_and_what_is_plain_can_be_told() {
        for declared in api::declared::TABLE.iter().copied().flatten() {
            let face = &declared.face;
            let found: Vec<_> = all().filter(|e| e.method == face.method && e.path == face.path).collect();
            let [endpoint] = found[..] else { panic!("{face:?}: {found:?}") };
            assert!(endpoint.declared.is_some(), "{endpoint:?} is handled by what it declares");
        }
        for endpoint in PLAIN.iter() {
            let is_told = endpoint.declared.is_some_and(|d| d.told.is_some());
            assert_eq!(is_told, !matches!(endpoint.reply, Reply::Nothing), "{endpoint:?}");
        }
    }
}
