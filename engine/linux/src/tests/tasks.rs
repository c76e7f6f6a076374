use super::both;
use crate::{Config, block_on, run};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use world::sync::{Event, Group, Semaphore, channel};

#[test]
fn run_returns_the_result_and_passes_a_panic_on() {
    assert_eq!(block_on(async { 6 * 7 }), 42);
    let outcome = std::panic::catch_unwind(|| block_on(async { panic!("on purpose") }));
    assert_eq!(*outcome.unwrap_err().downcast::<&str>().unwrap(), "on purpose");
}

#[test]
fn sleepers_wake_in_the_order_of_their_deadlines() {
    both(|| async {
        let began = world::now();
        let (tx, mut rx) = channel(8);
        for ms in [30u64, 10, 20] {
            let tx = tx.clone();
            drop(world::spawn(async move {
                world::sleep(Duration::from_millis(ms)).await;
                tx.try_send(ms).unwrap();
            }));
        }
        drop(tx);
        let mut order = Vec::new();
        while let Some(ms) = rx.recv().await {
            order.push(ms);
        }
        assert_eq!(order, [10, 20, 30]);
        assert!(world::now().since(began) >= Duration::from_millis(30));
    });
}

#[test]
fn a_timeout_drops_what_took_too_long() {
    both(|| async {
        let never = Event::new();
        assert_eq!(world::timeout(Duration::from_millis(5), never.wait()).await, None);
        assert_eq!(world::timeout(Duration::from_secs(60), async { 1 }).await, Some(1));
    });
}

#[test]
fn tasks_on_two_loops_wake_each_other() {
    both(|| async {
        assert_eq!(world::cores(), 2);
        let (there, mut ours) = channel::<u32>(1);
        let (back, mut theirs) = channel::<u32>(1);
        let echo = world::spawn_on(1, async move {
            let name = std::thread::current().name().map(str::to_string);
            while let Some(n) = ours.recv().await {
                back.send(n + 1).await.unwrap();
            }
            name
        });
        for n in 0..2000 {
            there.send(n).await.unwrap();
            assert_eq!(theirs.recv().await, Some(n + 1));
        }
        drop(there);
        assert_eq!(echo.await.as_deref(), Some("loop-1"));
    });
}

#[test]
fn a_sleeping_loop_hears_its_bell() {
    both(|| async {
        let event = Arc::new(Event::new());
        let waiter = {
            let event = event.clone();
            world::spawn_on(1, async move { event.wait().await })
        };
        for _ in 0..20 {
            world::sleep(Duration::from_millis(1)).await;
        }
        event.set();
        waiter.await;
    });
}

#[test]
fn computations_run_beside_the_loops_and_bring_their_results() {
    both(|| async {
        let jobs: Vec<_> = (0..100u64)
            .map(|i| {
                world::compute(move || {
                    assert!(std::thread::current().name().unwrap().starts_with("compute-"));
                    let _ = (world::now(), world::random_u64());
                    i * i
                })
            })
            .collect();
        for (i, job) in jobs.into_iter().enumerate() {
            assert_eq!(job.await, (i * i) as u64);
        }
    });
}

#[test]
fn a_group_bounds_its_tasks_and_reports_the_first_error() {
    both(|| async {
        let running = Arc::new(AtomicUsize::new(0));
        let group = Group::new(3);
        for i in 0..20 {
            let running = running.clone();
            group
                .spawn(async move {
                    assert!(running.fetch_add(1, Ordering::SeqCst) < 3);
                    world::sleep(Duration::from_micros(100)).await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    if i == 13 { Err(i) } else { Ok(()) }
                })
                .await;
        }
        assert_eq!(group.finish().await, Err(13));
        assert_eq!(running.load(Ordering::SeqCst), 0);
        assert_eq!(Group::<()>::new(1).finish().await, Ok(()));
    });
}

/// Two tasks that hold each other's channel would never be freed by reference counts alone.
#[test]
fn tasks_alive_at_the_end_are_dropped() {
    struct Mark(Arc<AtomicUsize>);
    impl Drop for Mark {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    for io_uring in [true, false] {
        let dropped = Arc::new(AtomicUsize::new(0));
        let count = dropped.clone();
        run(Config { cores: Some(2), io_uring }, async move {
            let started = Arc::new(Semaphore::new(0));
            for core in [0, 1, 1] {
                let (mark, started) = (Mark(count.clone()), started.clone());
                drop(world::spawn_on(core, async move {
                    let (tx, mut rx) = channel::<()>(1);
                    started.release(1);
                    rx.recv().await;
                    drop((tx, mark));
                }));
            }
            started.acquire(3).await.unwrap().forget();
        });
        assert_eq!(dropped.load(Ordering::SeqCst), 3);
    }
}

#[test]
fn a_task_that_panics_takes_nobody_along() {
    both(|| async {
        let done = Arc::new(AtomicBool::new(false));
        let seen = done.clone();
        let failing = world::spawn(async { panic!("on purpose") });
        world::spawn(async move { seen.store(true, Ordering::SeqCst) }).await;
        assert!(done.load(Ordering::SeqCst));
        drop(failing);
    });
}

#[test]
fn random_numbers_differ() {
    block_on(async {
        let mut seen: Vec<u64> = (0..1000).map(|_| world::random_u64()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 1000);
    });
}

#[test]
fn a_signal_to_end_is_heard() {
    both(|| async {
        let waiting = world::spawn(crate::shutdown_signal());
        world::yield_now().await;
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM).unwrap();
        waiting.await;
        // Caught once only; the next run of this test must not kill the test program.
        crate::signal::handle_again();
    });
}
