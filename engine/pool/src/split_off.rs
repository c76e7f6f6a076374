//! What a pool that is split off is, before it has a state of its own: its tree and name, and what of the old pool's devices
//! its MOS still has.

use units::Guid;
use vdev::Spec;
use vdev::label::config::PoolConfig;

/// What the new pool is, rather than what its MOS says of the old one.
#[derive(Clone, Debug)]
pub(crate) struct SplitOff {
    pub name: String,
    pub spec: Spec,
    pub left_behind: LeftBehind,
}

/// Vdevs of the old pool that the new one has not: what its MOS holds for them is to be freed.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeftBehind {
    pub logs: Vec<Spec>,
    pub sides: Vec<Spec>,
}

impl SplitOff {
    pub fn put_on(&self, config: &mut PoolConfig, spec: &mut Spec) {
        (config.name, config.guid) = (self.name.clone(), self.spec.guid);
        *spec = self.spec.clone();
    }
}

impl LeftBehind {
    pub fn of(tree: &Spec, chosen: &[Guid]) -> LeftBehind {
        let (logs, mirrors): (Vec<&Spec>, Vec<&Spec>) = tree.children.iter().partition(|top| top.is_log());
        let sides = mirrors.iter().flat_map(|mirror| &mirror.children);
        LeftBehind {
            logs: logs.into_iter().cloned().collect(),
            sides: sides.filter(|side| !chosen.contains(&side.guid)).cloned().collect(),
        }
    }
}
