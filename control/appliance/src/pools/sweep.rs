//! `zpool trim` and `zpool initialize`.

use crate::appliance::{Appliance, By};
use crate::error_text::{About, cannot};
use crate::pools::{Access, handle_device};
use api::{ApiError, Reply, Result, SweepAction, SweepKind, Swept, Vdev};
use pool::{Pool, Sweep, SweepState};
use units::Guid;

impl Appliance {
    /// Of some devices of a pool, or of all. Those that can be swept are, also when others cannot.
    pub(crate) async fn sweep_pool(
        &self,
        name: &str,
        devices: &[String],
        (kind, action): (SweepKind, SweepAction),
        by: &By,
    ) -> Result<Reply> {
        let open = self.pool(name, Access::Change).await?;
        let pool = &open.pool;
        let (kind, word) = match kind {
            SweepKind::Trim => (Sweep::Trim, "trim"),
            SweepKind::Initialize => (Sweep::Initialize, "initialize"),
        };
        let failed = |device: &str, e: &units::Error| cannot(About::Pool, &format!("{word} '{device}'"), e);
        let mut wanted = Vec::new();
        for device in devices {
            wanted.push(handle_device::find(pool, device, false).map_err(|e| failed(device, &e))?);
        }
        if devices.is_empty() {
            wanted = pool.tree().leaves().iter().map(|leaf| leaf.guid()).collect();
        }
        let mut failures: Vec<ApiError> = Vec::new();
        for guid in &wanted {
            let done = match action {
                SweepAction::Start { rate } => pool.sweep_start(*guid, kind, rate).await,
                SweepAction::Suspend => pool.sweep_suspend(*guid, kind).await,
                SweepAction::Cancel => pool.sweep_cancel(*guid, kind).await,
                SweepAction::Forget => pool.sweep_forget(*guid, kind).await,
            };
            if let Err(e) = done {
                let spec = pool.tree().spec();
                let shown = spec.find(*guid).map_or_else(|| guid.to_string(), |spec| spec.name());
                failures.push(failed(&shown, &e));
            }
        }
        if failures.len() < wanted.len() {
            self.record(pool, by).await.map_err(|e| failed(name, &e))?;
        }
        match failures.into_iter().next() {
            Some(first) => Err(first),
            None => Ok(Reply::Done),
        }
    }
}

/// Adds how far each device has come.
pub(crate) fn add_sweeps(vdev: &mut Vdev, pool: &Pool) {
    let kinds = [(SweepKind::Trim, Sweep::Trim), (SweepKind::Initialize, Sweep::Initialize)];
    vdev.swept =
        kinds.iter().filter_map(|(kind, own)| swept(*kind, pool.sweep(Guid(vdev.guid), *own))).collect();
    vdev.children.iter_mut().for_each(|child| add_sweeps(child, pool));
}

fn swept(kind: SweepKind, status: pool::SweepStatus) -> Option<Swept> {
    let state = match status.state {
        SweepState::None => return None,
        SweepState::Active => api::SweepState::Active,
        SweepState::Canceled => api::SweepState::Canceled,
        SweepState::Suspended => api::SweepState::Suspended,
        SweepState::Complete => api::SweepState::Complete,
    };
    Some(Swept { kind, state, since: status.since, done: status.position })
}
