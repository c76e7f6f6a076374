//! A unit in memory, and how to ask it.

use scsi::memory::MemoryUnit;
use scsi::{
    Device, Execution, Identity, Nexus, Options, Outcome, Path, Piece, PortGroup, PortState,
    ReservationStore, Status, TargetPort,
};
use std::sync::{Arc, Mutex};
use world::{Buf, Pending};

pub const SIZE: u64 = 1 << 20;

#[derive(Debug, Default)]
pub struct Kept(pub Mutex<String>);

impl ReservationStore for Kept {
    fn save(&self, _text: String, lasting: Option<String>) -> Pending<units::Result<()>> {
        if let Some(text) = lasting {
            *self.0.lock().unwrap() = text;
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

pub struct Bench {
    pub unit: Arc<MemoryUnit>,
    pub kept: Arc<Kept>,
    pub device: Arc<Device>,
}

pub fn bench() -> Bench {
    let (unit, kept) = (Arc::new(MemoryUnit::new(SIZE, 4096)), Arc::new(Kept::default()));
    let device = Device::new(unit.clone(), Identity::new([0x60; 16]), Options::default(), kept.clone(), "");
    device.set_groups(vec![PortGroup {
        id: 1,
        state: PortState::Optimized,
        preferred: true,
        ports: vec![1, 2],
    }]);
    Bench { unit, kept, device }
}

pub fn nexus(name: &str, port: u16) -> Nexus {
    let port = TargetPort { relative: port, group: 1, name: format!("iqn.x:t,t,0x{port:04x}").into() };
    Nexus { initiator: format!("iqn.x:{name},i,0x1").into(), port }
}

/// A path that has been told that the unit is on.
pub async fn path(bench: &Bench, name: &str) -> Path {
    let path = bench.device.attach(nexus(name, 1));
    assert_eq!(code(&ask(&path, &[0; 6], &[]).await), (6, 0x29, 0x00));
    path
}

pub async fn ask(path: &Path, cdb: &[u8], data: &[u8]) -> Outcome {
    match path.admit(cdb, data.len() as u64) {
        Err(outcome) => outcome,
        Ok(admission) => {
            let data = vec![Buf::copy_from(&data[..admission.intake()])];
            match path.execute(admission, data) {
                Execution::Done(outcome) => outcome,
                Execution::Pending(work) => work.await,
            }
        }
    }
}

pub async fn good(path: &Path, cdb: &[u8], data: &[u8]) -> Vec<u8> {
    let outcome = ask(path, cdb, data).await;
    assert_eq!(outcome.status, Status::Good, "{cdb:x?}: {:x?}", outcome.sense);
    let bytes = outcome.data.iter().flat_map(|piece| match piece {
        Piece::Data(buf) => buf.to_vec(),
        Piece::Hole(len) => vec![0; *len as usize],
    });
    bytes.collect()
}

/// Sense key and code.
pub fn code(outcome: &Outcome) -> (u8, u8, u8) {
    assert_eq!(outcome.status, Status::CheckCondition);
    (outcome.sense[2], outcome.sense[12], outcome.sense[13])
}

pub fn read(lba: u8, count: u8) -> [u8; 10] {
    [0x28, 0, 0, 0, 0, lba, 0, 0, count, 0]
}

pub fn write(lba: u8, count: u8) -> [u8; 10] {
    [0x2a, 0, 0, 0, 0, lba, 0, 0, count, 0]
}

pub fn prout(action: u8, kind: u8, key: u64, second: u64, flags: u8) -> ([u8; 10], Vec<u8>) {
    let mut list = [key.to_be_bytes(), second.to_be_bytes()].concat();
    list.extend([0, 0, 0, 0, flags, 0, 0, 0]);
    ([0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0], list)
}

pub fn run(test: impl Future<Output = ()> + Send + 'static) {
    sim::run(1, sim::Config::default(), test);
}
