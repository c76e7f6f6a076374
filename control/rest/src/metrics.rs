//! What Prometheus reads: the appliance's own statistics, in its text format.

use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest};
use api::analytics::{Analytics, Told};
use api::{Reply, Request};
use metrics::Facts;
use serde_json::Value;
use std::sync::Arc;

pub(crate) async fn answer(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let unexpected = || Fault::internal("the appliance does not say how it is");
    let Reply::Pools(pools) = rest.call(&asked, Request::Pools { names: Vec::new() }).await? else {
        return Err(unexpected());
    };
    let Reply::Daemon(daemon) = rest.call(&asked, Request::Daemon).await? else { return Err(unexpected()) };
    let Reply::Nbd(nbd) = rest.call(&asked, Request::NbdExports).await? else { return Err(unexpected()) };
    let fronts = match rest.call(&asked, Request::Analytics(Analytics::Histograms)).await {
        Ok(Reply::Analytics(Told::Histograms(all))) => all,
        // Where no statistics are kept, the rest is told all the same.
        _ => Vec::new(),
    };
    let own = rest.counted();
    let facts = Facts { pools: &pools, daemon: &daemon, nbd: &nbd, fronts: &fronts, own };
    Ok(Value::from(metrics::text(&metrics::families(&facts))).into())
}
