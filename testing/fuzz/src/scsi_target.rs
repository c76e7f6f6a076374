//! Commands and their parameters, straight into a device: `[announced][cdb 16][data …]`, again and again.

use scsi::memory::MemoryUnit;
use scsi::{
    Device, Execution, Identity, Nexus, Options, Path, PortGroup, PortState, Reach, ReservationStore,
    TargetPort,
};
use std::sync::Arc;
use std::time::Duration;
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
async fn command(path: &Path, announced: u64, cdb: &[u8], data: &[u8]) {
    // What a transport does with a command before it knows anything of it.
    let _ = scsi::intake(cdb);
    let Ok(admission) = path.admit(cdb, announced) else { return };
    assert!(admission.intake() as u64 <= announced, "no more is fetched than was announced");
    let mut bytes = data[..data.len().min(admission.intake())].to_vec();
    bytes.resize(admission.intake(), 0);
    if let Execution::Pending(work) = path.execute(admission, vec![Buf::copy_from(&bytes)]) {
        // A unit in memory completes at once: no time passes.
        assert!(world::timeout(Duration::from_secs(1), work).await.is_some(), "a command hangs: {cdb:x?}");
    }
}

/// # Panics
/// When the device does not stand it.
pub fn scsi_command(bytes: &[u8]) {
    let bytes = bytes.to_vec();
    // Some commands go on after they were answered.
    sim::run(1, sim::Config::default(), async move { commands(&bytes).await });
}

fn device(number: u8) -> Arc<Device> {
    let mut naa = [0x60; 16];
    naa[15] = number;
    let unit = Arc::new(MemoryUnit::new(SIZE, 4096));
    let device = Device::new(unit, Identity::new(naa), Options::default(), Arc::new(Nowhere), "");
    device.set_groups(vec![PortGroup {
        id: 1,
        state: PortState::Optimized,
        preferred: true,
        ports: vec![1],
    }]);
    device
}

/// The parameters of a copy from the first unit to the second, of a token of eight blocks, and of a write of zeros by
/// one.
fn copies() -> [(u8, Vec<u8>); 3] {
    let target = |number: u8| {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&[0xe4, 0, 0, 0, 1, 3, 0, 16]);
        bytes[8..24].fill(0x60);
        (bytes[23], bytes[30]) = (number, 2);
        bytes
    };
    let mut segment = [0; 28];
    segment[..8].copy_from_slice(&[0x02, 0, 0, 0x18, 0, 0, 0, 1]);
    (segment[11], segment[19]) = (64, 8);
    let mut copy = vec![1, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0, 0];
    copy.extend([target(1), target(2)].concat());
    copy.extend(segment);
    let range = [0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 0];
    let mut populate = vec![0; 16];
    (populate[1], populate[15]) = (30, 16);
    populate.extend(range);
    let mut using = vec![0; 536];
    using[..2].copy_from_slice(&550u16.to_be_bytes());
    using[16..24].copy_from_slice(&[0xff, 0xff, 0, 1, 0, 0, 1, 0xf8]);
    using[535] = 16;
    using.extend(range);
    [(0x00, copy), (0x10, populate), (0x11, using)]
}

async fn commands(mut bytes: &[u8]) {
    let (device, second) = (device(1), device(2));
    // One initiator has both units, so it may copy.
    let reach = Reach::default();
    let path = device.attach_within(nexus("a"), &reach);
    let (other, _second) = (device.attach(nexus("b")), second.attach_within(nexus("a"), &reach));
    for number in 0..COMMANDS {
        let (announced, rest) = crate::split(bytes);
        let Some((cdb, rest)) = rest.split_at_checked(CDB) else { break };
        let (data, rest) = rest.split_at(announced.min(rest.len()));
        command(if number % 3 == 2 { &other } else { &path }, announced as u64, cdb, data).await;
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
        (&[0x12, 1, 0x8f, 1, 0, 0], 0),
        (&[0x84, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], 0),
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
    for (action, list) in copies() {
        let mut cdb = [0; CDB];
        (cdb[0], cdb[1], cdb[9]) = (0x83, action, 1);
        cdb[10..14].copy_from_slice(&(list.len() as u32).to_be_bytes());
        let asked = [0x84, if action == 0 { 0 } else { 7 }, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0];
        seeds.push([after(&cdb, &list), ready.clone(), one(&asked, &[])].concat());
    }
    let register = one(&[0x5f, 0, 0, 0, 0, 0, 0, 0, 24, 0], &list);
    let reserve = one(&[0x5f, 1, 5, 0, 0, 0, 0, 0, 24, 0], &list);
    seeds.push([ready.clone(), register, reserve].concat());
    seeds.push(after(&[0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0], &unmap));
    seeds
}
