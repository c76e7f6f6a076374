//! Warm reads by a reader on one loop, and by one on each of two.

use super::{Ran, median};
use crate::Progress;
use crate::rig::{Rig, VOLUME};
use sim::Rng;
use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;
use units::{Result, pretty_size};
use workload::tally::cpu_time;
use zvol::Volume;

/// Reads between two looks at the clock.
const TURN: u64 = 64;
const CORES: usize = 2;
const SECOND: &str = "bench/second";

/// One size, by the engine or by what stands beside it.
#[derive(Clone, Debug)]
pub struct Row {
    what: String,
    one: Vec<Ran>,
    two: Vec<Ran>,
}

pub async fn measure(rig: &Rig, progress: Progress) -> Result<Vec<Row>> {
    let pool = rig.create().await?;
    rig.add_volume(&pool, SECOND).await?;
    let mut volumes = Vec::new();
    for name in [VOLUME, SECOND] {
        for read_percent in [0, 100] {
            workload::run(rig.target(&pool, name).await?, &rig.spec(read_percent)).await?;
        }
        volumes.push(pool.open_volume(name).await?);
    }
    let count = rig.options.size / rig.block;
    let shared: Arc<Vec<Arc<Vec<u8>>>> =
        Arc::new((0..count).map(|n| Arc::new(vec![n as u8; rig.block as usize])).collect());
    let of_volumes = |what: &str, size: u64| (format!("{} of {what}", pretty_size(size)), Some(size));
    let rows = [
        (of_volumes("one volume", 4 << 10), [0, 0]),
        (of_volumes("one volume", rig.block), [0, 0]),
        (of_volumes("a volume each", 4 << 10), [0, 1]),
        (of_volumes("a volume each", rig.block), [0, 1]),
        (("a shared buffer".to_string(), None), [0, 0]),
    ];
    let mut rows: Vec<_> = rows
        .into_iter()
        .map(|((what, size), volumes)| (Row { what, one: Vec::new(), two: Vec::new() }, size, volumes))
        .collect();
    let lasts = Duration::from_secs(rig.options.seconds);
    for round in 0..rig.options.rounds {
        progress(&format!("  warm reads, round {}", round + 1));
        for (row, size, whose) in &mut rows {
            let size = *size;
            for readers in [1, CORES] {
                let one = |n: usize| {
                    let (volume, shared) = (volumes[whose[n]].clone(), shared.clone());
                    let rng = Rng::new((round * CORES + n) as u64);
                    world::spawn_on(n, async move {
                        match size {
                            Some(size) => read(volume, size, count, lasts, rng).await,
                            None => Ok(touch(&shared, lasts, rng).await),
                        }
                    })
                };
                let (begun, cpu) = (world::now(), cpu_time());
                let tasks: Vec<_> = (0..readers).map(one).collect();
                let mut ran = Ran::default();
                for task in tasks {
                    ran.reads += task.await?;
                }
                ran.elapsed = world::now().since(begun);
                ran.cpu = cpu_time().saturating_sub(cpu);
                if readers == 1 { &mut row.one } else { &mut row.two }.push(ran);
            }
        }
    }
    drop(volumes);
    pool.export().await?;
    Ok(rows.into_iter().map(|(row, ..)| row).collect())
}

/// Reads at random until the time is over; returns how many.
async fn read(volume: Volume, size: u64, blocks: u64, lasts: Duration, mut rng: Rng) -> Result<u64> {
    let span = volume.size() / blocks;
    let (until, mut reads) = (world::now().after(lasts), 0);
    while world::now() < until {
        for _ in 0..TURN {
            let inside = rng.below(span / size) * size;
            black_box(volume.read(rng.below(blocks) * span + inside, size).await?);
        }
        reads += TURN;
        world::yield_now().await;
    }
    Ok(reads)
}

/// What any cache must do that hands out shared buffers: finds one, counts a reference, looks at it, lets it go.
async fn touch(shared: &[Arc<Vec<u8>>], lasts: Duration, mut rng: Rng) -> u64 {
    let (until, mut reads) = (world::now().after(lasts), 0);
    while world::now() < until {
        for _ in 0..TURN {
            let held = shared[rng.below(shared.len() as u64) as usize].clone();
            black_box(held[0]);
        }
        reads += TURN;
        world::yield_now().await;
    }
    reads
}

pub fn render(rows: &[Row]) -> String {
    let mut text = String::from(
        "| read of | one core, /s | two, /s | x | cores had | CPU ns, one | two | x | two free cores, x |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for Row { what, one, two } in rows {
        let [slow, fast] = [one, two].map(|runs| median(runs, Ran::per_second));
        let had = [one, two].map(|runs| median(runs, Ran::cores));
        let [little, much] = [one, two].map(|runs| median(runs, Ran::cpu_per_read) * 1e9);
        let _ = writeln!(
            text,
            "| {what} | {slow:.0} | {fast:.0} | {:.2} | {:.2}, {:.2} | {little:.0} | {much:.0} | {:.2} | {:.2} |",
            fast / slow,
            had[0],
            had[1],
            much / little,
            CORES as f64 * little / much,
        );
    }
    text
}
