//! Commands and their parameters, straight into a device: `[announced][cdb 16][data …]`, again and again.

use futures_util::FutureExt;
use scsi::memory::MemoryUnit;
use scsi::{
    Device, Execution, Identity, Nexus, Options, Path, PortGroup, PortState, ReservationStore, TargetPort,
};
use std::sync::Arc;
use units::Result;
use world::{Buf, Pending};

const SIZE: u64 = 1 << 20;
const CDB: usize = 16;
/// One input makes no more of them: it is to be fast.
const COMMANDS: usize = 16;

#[derive(Debug)]
struct Nowhere;

impl ReservationStore for Nowhere {
    fn save(&self, _text: String, _lasting: Option<String>) -> Pending<Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

fn nexus(name: &str) -> Nexus {
    let port = TargetPort { relative: 1, group: 1, name: "iqn.x:t,t,0x0001".into() };
    Nexus { initiator: format!("iqn.x:{name},i,0x1").into(), port }
}

/// Carries out a command if it is admitted.
fn command(path: &Path, announced: u64, cdb: &[u8], data: &[u8]) {
    // What a transport does with a command before it knows anything of it.
    let _ = scsi::intake(cdb);
    let Ok(admission) = path.admit(cdb, announced) else { return };
    assert!(admission.intake() as u64 <= announced, "no more is fetched than was announced");
    let mut bytes = data[..data.len().min(admission.intake())].to_vec();
    bytes.resize(admission.intake(), 0);
    if let Execution::Pending(work) = path.execute(admission, vec![Buf::copy_from(&bytes)]) {
        // A unit in memory lets nobody wait.
        assert!(work.now_or_never().is_some(), "a command hangs: {cdb:x?}");
    }
}

/// # Panics
/// When the device does not stand it.
pub fn scsi_command(bytes: &[u8]) {
    let bytes = bytes.to_vec();
    // Some commands go on after they were answered.
    sim::run(1, sim::Config::default(), async move { commands(&bytes) });
}

fn commands(mut bytes: &[u8]) {
    let unit = Arc::new(MemoryUnit::new(SIZE, 4096));
    let device = Device::new(unit, Identity::new([0x60; 16]), Options::default(), Arc::new(Nowhere), "");
    device.set_groups(vec![PortGroup {
        id: 1,
        state: PortState::Optimized,
        preferred: true,
        ports: vec![1],
    }]);
    let (path, other) = (device.attach(nexus("a")), device.attach(nexus("b")));
    for number in 0..COMMANDS {
        let (announced, rest) = crate::split(bytes);
        let Some((cdb, rest)) = rest.split_at_checked(CDB) else { break };
        let (data, rest) = rest.split_at(announced.min(rest.len()));
        command(if number % 3 == 2 { &other } else { &path }, announced as u64, cdb, data);
        bytes = rest;
    }
    // Whatever was reserved: it still says what it is.
    let asks = [0x12, 0, 0, 0, 96, 0];
    let admission = path.admit(&asks, 0).expect("INQUIRY is always admitted");
    match path.execute(admission, Vec::new()) {
        Execution::Done(outcome) => assert_eq!(outcome.len(), 96),
        Execution::Pending(_) => panic!("INQUIRY waits for nothing"),
    }
}

/// Every kind of command that there is, with parameters that make sense.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let one = |cdb: &[u8], data: &[u8]| {
        let mut bytes = (data.len() as u16).to_be_bytes().to_vec();
        bytes.extend(cdb);
        bytes.resize(2 + CDB, 0);
        bytes.extend(data);
        bytes
    };
    // The attention that each path begins with.
    let ready = one(&[0; 6], &[]);
    let after = |cdb: &[u8], data: &[u8]| [ready.clone(), one(cdb, data)].concat();
    let mut list = vec![0; 24];
    list[8..16].copy_from_slice(&7u64.to_be_bytes());
    let mut unmap = vec![0, 22, 0, 16, 0, 0, 0, 0];
    unmap.extend([0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 0]);
    let ten = |op, count: u8| [op, 0, 0, 0, 0, 8, 0, 0, count, 0];
    let sixteen = |op, count: u8| [op, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, count, 0, 0];
    let mut seeds = vec![ready.clone()];
    for (cdb, data) in [
        (&[0x03, 0, 0, 0, 252, 0][..], 0),
        (&[0x12, 1, 0x83, 0, 255, 0], 0),
        (&[0x12, 1, 0xb0, 0, 64, 0], 0),
        (&[0x1a, 0, 0x3f, 0xff, 255, 0], 0),
        (&[0x5a, 0, 0x0a, 0, 0, 0, 0, 1, 0, 0], 0),
        (&[0x15, 0x10, 0, 0, 24, 0], 24),
        (&[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0),
        (&[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0], 0),
        (&[0x9e, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], 0),
        (&[0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], 0),
        (&[0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], 0),
        (&[0xa3, 0x0c, 0x80, 0, 0, 0, 0, 0, 2, 0, 0, 0], 0),
        (&[0x5e, 0, 0, 0, 0, 0, 0, 1, 0, 0], 0),
        (&ten(0x28, 4), 0),
        (&ten(0x2a, 4), 2048),
        (&ten(0x2e, 1), 512),
        (&ten(0x2f, 2), 0),
        (&ten(0x35, 0), 0),
        (&ten(0x41, 8), 512),
        (&ten(0x16, 0), 0),
        (&sixteen(0x88, 8), 0),
        (&sixteen(0x8a, 8), 4096),
        (&sixteen(0x89, 1), 1024),
        (&sixteen(0x8b, 1), 512),
        (&sixteen(0x8e, 1), 512),
        (&sixteen(0x93, 8), 512),
    ] {
        seeds.push(after(cdb, &vec![7; data]));
    }
    let register = one(&[0x5f, 0, 0, 0, 0, 0, 0, 0, 24, 0], &list);
    let reserve = one(&[0x5f, 1, 5, 0, 0, 0, 0, 0, 24, 0], &list);
    seeds.push([ready.clone(), register, reserve].concat());
    seeds.push(after(&[0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0], &unmap));
    seeds
}
