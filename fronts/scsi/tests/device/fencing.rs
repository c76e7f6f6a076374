//! Nodes of a cluster that fence each other: service actions of persistent reservations and task management functions,
//! in every order and at random, each of which ends.

use crate::common::{SIZE, good, nexus, prout, write};
use scsi::memory::MemoryUnit;
use scsi::{
    Device, Execution, Identity, Options, Outcome, Path, PortGroup, PortState, ReservationStore, Status,
};
use sim::Rng;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use world::{Buf, Instant, Pending, Task};

/// Nothing here takes as long as a tenth of this.
const BOUND: Duration = Duration::from_secs(1);
const SLOW: Duration = Duration::from_millis(50);

/// A store that takes its time, in milliseconds.
#[derive(Debug)]
struct Store(u64);

impl ReservationStore for Store {
    fn save(&self, _: String, _: Option<String>) -> Pending<units::Result<()>> {
        let time = Duration::from_millis(self.0);
        Box::pin(async move {
            if !time.is_zero() {
                world::sleep(time).await;
            }
            Ok(())
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Register,
    Unregister,
    Reserve,
    Release,
    Clear,
    Preempt,
    PreemptAndAbort,
    RegisterIgnoring,
    RegisterAndMove,
    AbortTaskSet,
    Reset,
    /// The path ends; what it began goes on.
    Leave,
}

const STEPS: [Step; 12] = [
    Step::Register,
    Step::Unregister,
    Step::Reserve,
    Step::Release,
    Step::Clear,
    Step::Preempt,
    Step::PreemptAndAbort,
    Step::RegisterIgnoring,
    Step::RegisterAndMove,
    Step::AbortTaskSet,
    Step::Reset,
    Step::Leave,
];

/// How a step ended; a function has no status.
type Ended = Option<Outcome>;

#[derive(Clone)]
struct Node {
    number: usize,
    path: Arc<Mutex<Option<Arc<Path>>>>,
}

fn key(number: usize) -> u64 {
    0xa + number as u64
}

impl Node {
    fn path(&self) -> Option<Arc<Path>> {
        self.path.lock().unwrap().clone()
    }

    /// Begins `step`, against `victim`; what is returned is its end.
    fn begin(&self, step: Step, victim: usize) -> Pending<Ended> {
        let Some(path) = self.path() else { return Box::pin(std::future::ready(None)) };
        let (own, other) = (key(self.number), key(victim));
        let (action, kind, first, second) = match step {
            Step::Register => (0, 0, own, own),
            Step::Unregister => (0, 0, own, 0),
            Step::Reserve => (1, 5, own, 0),
            Step::Release => (2, 5, own, 0),
            Step::Clear => (3, 0, own, 0),
            Step::Preempt => (4, 5, own, other),
            Step::PreemptAndAbort => (5, 5, own, other),
            Step::RegisterIgnoring => (6, 0, 0, own),
            Step::RegisterAndMove => return command(&path, &moving(own, victim).0, &moving(own, victim).1),
            Step::AbortTaskSet => return function(path.abort_all()),
            Step::Reset => return function(path.reset()),
            Step::Leave => {
                *self.path.lock().unwrap() = None;
                return Box::pin(std::future::ready(None));
            }
        };
        let (cdb, list) = prout(action, kind, first, second, 0);
        command(&path, &cdb, &list)
    }
}

fn function(work: Pending<()>) -> Pending<Ended> {
    Box::pin(async move {
        work.await;
        None
    })
}

fn command(path: &Path, cdb: &[u8], list: &[u8]) -> Pending<Ended> {
    let outcome = match path.admit(cdb, list.len() as u64) {
        Err(outcome) => outcome,
        Ok(admission) => match path.execute(admission, vec![Buf::copy_from(list)]) {
            Execution::Done(outcome) => outcome,
            Execution::Pending(work) => return Box::pin(async move { Some(work.await) }),
        },
    };
    Box::pin(std::future::ready(Some(outcome)))
}

/// REGISTER AND MOVE to node `victim`.
fn moving(own: u64, victim: usize) -> ([u8; 10], Vec<u8>) {
    let mut text = format!("iqn.x:{},i,0x1", name_of(victim)).into_bytes();
    text.resize(text.len() + 4 - text.len() % 4, 0);
    let mut id = vec![0x45, 0];
    id.extend((text.len() as u16).to_be_bytes());
    id.extend(text);
    let mut list = [own.to_be_bytes(), key(victim).to_be_bytes()].concat();
    list.extend([0, 0, 0, 1]);
    list.extend((id.len() as u32).to_be_bytes());
    list.extend(id);
    ([0x5f, 7, 0, 0, 0, 0, 0, 0, list.len() as u8, 0], list)
}

fn name_of(number: usize) -> String {
    char::from(b'a' + number as u8).to_string()
}

struct Cluster {
    unit: Arc<MemoryUnit>,
    device: Arc<Device>,
    nodes: Vec<Node>,
}

/// `count` nodes, all registered; the first holds "write exclusive, registrants only".
async fn cluster(count: usize, store: u64) -> Cluster {
    let unit = Arc::new(MemoryUnit::new(SIZE, 4096));
    let device =
        Device::new(unit.clone(), Identity::new([0x60; 16]), Options::default(), Arc::new(Store(store)), "");
    device.set_groups(vec![PortGroup {
        id: 1,
        state: PortState::Optimized,
        preferred: true,
        ports: vec![1, 2],
    }]);
    let mut nodes = Vec::new();
    for number in 0..count {
        let path = joined(&device, number).await;
        let (cdb, list) = prout(0, 0, 0, key(number), 0);
        good(&path, &cdb, &list).await;
        nodes.push(Node { number, path: Arc::new(Mutex::new(Some(Arc::new(path)))) });
    }
    let (cdb, list) = prout(1, 5, key(0), 0, 0);
    good(&nodes[0].path().unwrap(), &cdb, &list).await;
    Cluster { unit, device, nodes }
}

/// A path that has nothing to be told.
async fn joined(device: &Arc<Device>, number: usize) -> Path {
    let path = device.attach(nexus(&name_of(number), 1));
    let _ = crate::common::ask(&path, &[0; 6], &[]).await;
    path
}

/// A write that takes [`SLOW`]; the flag is set when it has ended.
fn slow_write(path: &Path, lba: u8) -> (Task<Ended>, Arc<AtomicBool>) {
    let ended = Arc::new(AtomicBool::new(false));
    let (work, flag) = (command(path, &write(lba, 8), &[0x5a; 4096]), ended.clone());
    let task = world::spawn(async move {
        let outcome = work.await;
        flag.store(true, Ordering::SeqCst);
        outcome
    });
    (task, ended)
}

/// `work`, which must end in time.
async fn ends<T>(what: &(dyn std::fmt::Debug + Sync), work: impl Future<Output = T>) -> T {
    let ended = world::timeout(BOUND, work).await;
    ended.unwrap_or_else(|| panic!("{what:?}: not ended after {BOUND:?}"))
}

/// What a step may end with, beside the end of a function.
fn is_legal(step: Step, ended: &Ended) -> bool {
    let Some(outcome) = ended else {
        return matches!(step, Step::AbortTaskSet | Step::Reset | Step::Leave);
    };
    match outcome.status {
        Status::Good | Status::ReservationConflict => true,
        // By an abort of another node, or of its own.
        Status::TaskAborted => outcome.silent,
        // To be told of what others did; no registration there to release from or to move to.
        Status::CheckCondition => matches!(outcome.sense[2], 5 | 6),
        _ => false,
    }
}

fn is_good(ended: &Ended) -> bool {
    ended.as_ref().is_some_and(|outcome| outcome.status == Status::Good)
}

/// Whatever was done to a unit, a node that comes then can register, fence and reset.
async fn is_usable(what: &(dyn std::fmt::Debug + Sync), cluster: &Cluster) {
    let path = joined(&cluster.device, 9).await;
    for (action, first, second) in [(6, 0, 0x77), (3, 0x77, 0)] {
        let (cdb, list) = prout(action, 0, first, second, 0);
        let outcome = ends(what, command(&path, &cdb, &list)).await.unwrap();
        assert_eq!(outcome.status, Status::Good, "{what:?}");
    }
    ends(what, path.reset()).await;
}

/// Two nodes that fence each other at the same moment: what every cluster does whose network was cut. Each waited for the
/// other's command, which is one of those that the first aborts, for ever; neither a reset nor a farewell helped.
#[test]
fn of_two_nodes_that_fence_each_other_one_wins_and_the_other_is_told() {
    for store in [0, 2] {
        crate::common::run(async move {
            let cluster = cluster(2, store).await;
            let [a, b] = &cluster.nodes[..] else { unreachable!() };
            let first = world::spawn(a.begin(Step::PreemptAndAbort, 1));
            let second = world::spawn(b.begin(Step::PreemptAndAbort, 0));
            let ended = [ends(&"A", first).await.unwrap(), ends(&"B", second).await.unwrap()];
            let told = |status| ended.iter().filter(|outcome| outcome.status == status).count();
            assert_eq!((told(Status::Good), told(Status::ReservationConflict)), (1, 1), "{ended:?}");
            is_usable(&"two", &cluster).await;
        });
    }
}

/// A waits for a slow write of D that it aborted, and had the turn of all changes meanwhile; B and C, which fence each
/// other, stood behind it and in front of each other. A reset ended none of them.
#[test]
fn nodes_that_fence_each_other_behind_one_that_waits_end_and_so_does_a_reset() {
    crate::common::run(async {
        let cluster = cluster(4, 0).await;
        let nodes = cluster.nodes.clone();
        cluster.unit.set_delay(SLOW);
        let (_write, written) = slow_write(&nodes[3].path().unwrap(), 0);
        let before = world::now();
        let mut under_way = Vec::new();
        for (by, victim) in [(0, 3), (1, 2), (2, 1)] {
            world::sleep(Duration::from_millis(1)).await;
            let fencing = nodes[by].begin(Step::PreemptAndAbort, victim);
            let written = written.clone();
            under_way.push(world::spawn(async move {
                let ended = fencing.await;
                (by, ended, world::now().since(before), written.load(Ordering::SeqCst))
            }));
        }
        for task in under_way {
            let (by, ended, took, written) = ends(&"a fencing", task).await;
            match by {
                0 => assert!(is_good(&ended) && written, "{ended:?}: it is answered when the write is done"),
                1 => assert!(is_good(&ended) && took < SLOW, "{ended:?} after {took:?}"),
                _ => assert!(!is_good(&ended) && took < SLOW, "{ended:?} after {took:?}"),
            }
        }
        ends(&"a reset", nodes[0].path().unwrap().reset()).await;
        is_usable(&"three", &cluster).await;
    });
}

/// A LUN RESET that came when the tasks of a node had been aborted already found none of them, and was answered while
/// their writes were still under way.
#[test]
fn a_reset_waits_also_for_what_was_aborted_before() {
    crate::common::run(async {
        let cluster = cluster(3, 0).await;
        let nodes = cluster.nodes.clone();
        cluster.unit.set_delay(SLOW);
        let (_write, written) = slow_write(&nodes[2].path().unwrap(), 0);
        let fencing = world::spawn(nodes[0].begin(Step::PreemptAndAbort, 2));
        world::sleep(Duration::from_millis(1)).await;
        ends(&"a reset", nodes[1].path().unwrap().reset()).await;
        assert!(written.load(Ordering::SeqCst), "the reset was answered before the write had ended");
        ends(&"the fencing", fencing).await;
    });
}

/// When, in milliseconds, both steps begin.
const ORDERS: [(u64, u64); 5] = [(0, 0), (0, 1), (1, 0), (0, 5), (5, 0)];

async fn pair(one: (usize, Step), two: (usize, Step), at: (u64, u64), store: u64, slow: usize) {
    let what = (one, two, at, store, slow);
    let cluster = cluster(3, store).await;
    let nodes = cluster.nodes.clone();
    cluster.unit.set_delay(SLOW);
    // Node `slow` and the one beside it write.
    let writes: Vec<(usize, Arc<AtomicBool>)> = [slow, (slow + 1) % 3]
        .into_iter()
        .map(|n| (n, slow_write(&nodes[n].path().unwrap(), 8 * n as u8).1))
        .collect();
    let begun = |(by, step): (usize, Step), at: u64| {
        let (node, writes) = (nodes[by].clone(), writes.clone());
        world::spawn(async move {
            world::sleep(Duration::from_millis(at)).await;
            let victim = if by == 0 { 1 } else { 0 };
            let was_there = node.path().is_some();
            let ended = node.begin(step, victim).await;
            // What is left of the writes that it concerns.
            let left = writes.iter().filter(|(n, done)| {
                !done.load(Ordering::SeqCst)
                    && match step {
                        Step::PreemptAndAbort => is_good(&ended) && *n == victim,
                        Step::AbortTaskSet => was_there && *n == by,
                        Step::Reset => was_there,
                        _ => false,
                    }
            });
            let left: Vec<usize> = left.map(|(n, _)| *n).collect();
            (ended, left, was_there)
        })
    };
    let (first, second) = (begun(one, at.0), begun(two, at.1));
    for ((_, step), task) in [(one, first), (two, second)] {
        let (ended, left, was_there) = ends(&what, task).await;
        assert!(!was_there || is_legal(step, &ended), "{what:?}: {step:?} ended with {ended:?}");
        assert!(left.is_empty(), "{what:?}: {step:?} ended before the writes of {left:?}");
    }
    is_usable(&what, &cluster).await;
}

/// Only pairs of fencings of two nodes were never tried, and those are what a cluster does.
#[test]
fn each_pair_of_service_actions_and_functions_ends_in_every_order() {
    crate::common::run(async {
        for one in STEPS {
            for two in STEPS {
                for by in [0, 1] {
                    for at in ORDERS {
                        for store in [0, 2] {
                            for slow in 0..3 {
                                pair((0, one), (by, two), at, store, slow).await;
                            }
                        }
                    }
                }
            }
        }
    });
}

struct Write {
    by: usize,
    begun: Instant,
    ended: Arc<Mutex<Option<Instant>>>,
}

/// Steps of four nodes at random moments, while all of them write: whatever is answered as fenced writes no more.
async fn random_cluster(seed: u64) {
    let mut random = Rng::new(seed);
    let store = random.below(3);
    let cluster = cluster(4, store).await;
    let nodes = cluster.nodes.clone();
    let writes: Arc<Mutex<Vec<Write>>> = Arc::default();
    let mut tasks = Vec::new();
    for _ in 0..40 {
        let node = nodes[random.below(4) as usize].clone();
        let victim = (node.number + 1 + random.below(3) as usize) % 4;
        let at = Duration::from_micros(random.below(60_000));
        let took = Duration::from_millis(random.below(30));
        // Fencings and their undoing most of all.
        let step = match random.below(5) {
            0 => STEPS[random.below(STEPS.len() as u64) as usize],
            1 => Step::PreemptAndAbort,
            2 => Step::RegisterIgnoring,
            _ => Step::Leave,
        };
        let (unit, writes) = (cluster.unit.clone(), writes.clone());
        let device = cluster.device.clone();
        tasks.push(world::spawn(async move {
            world::sleep(at).await;
            if node.path().is_none() {
                let path = Arc::new(joined(&device, node.number).await);
                *node.path.lock().unwrap() = Some(path);
            }
            let (begun, was_there) = (world::now(), node.path().is_some());
            if step == Step::Leave && took.as_millis() < 28 {
                // In place of it, mostly, a write.
                let Some(path) = node.path() else { return };
                unit.set_delay(took);
                let ended: Arc<Mutex<Option<Instant>>> = Arc::default();
                writes.lock().unwrap().push(Write { by: node.number, begun, ended: ended.clone() });
                ends(&seed, command(&path, &write(node.number as u8 * 8, 8), &[1; 4096])).await;
                *ended.lock().unwrap() = Some(world::now());
                return;
            }
            let ended = ends(&(seed, step, node.number), node.begin(step, victim)).await;
            let concerns = |by: usize| match step {
                Step::PreemptAndAbort => is_good(&ended) && by == victim,
                Step::Reset => was_there,
                _ => false,
            };
            for write in writes.lock().unwrap().iter().filter(|w| concerns(w.by) && w.begun < begun) {
                let done = write.ended.lock().unwrap().is_some_and(|at| at <= world::now());
                assert!(
                    done,
                    "seed {seed}: {step:?} of {} ended before a write of {}",
                    node.number, write.by
                );
            }
        }));
    }
    for task in tasks {
        ends(&seed, task).await;
    }
    is_usable(&seed, &cluster).await;
}

#[test]
fn nodes_that_fence_at_random_all_end_and_a_fenced_one_writes_no_more() {
    for seed in 0..300 {
        sim::run(seed, sim::Config::default(), random_cluster(seed));
    }
}
