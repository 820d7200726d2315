//! The source of [`super::super::swap`], compiled with `shuttle` and run under many schedules.

mod sync {
    pub(super) use shuttle::sync::{Arc, Mutex, RwLock};
    pub(super) use std::sync::PoisonError;
}

#[path = "../swap.rs"]
#[allow(clippy::duplicate_mod, reason = "the model checks the code that ships")]
mod swap;

use shuttle::thread;
use swap::Swap;
use sync::Arc;

/// A value whose two halves must always agree.
struct Pair(u64, u64);

type Model = Swap<Pair, u64>;

fn schedules() -> usize {
    let set = std::env::var("GARLIC_SCHEDULES").ok();
    set.and_then(|n| n.parse().ok()).unwrap_or(1000)
}

/// Adds one. Returns the number of the published value.
fn increment(model: &Model) -> u64 {
    let done: Result<u64, ()> = model
        .write(|before, count| {
            assert_eq!(before.0, *count, "a writer sees what the last one wrote");
            *count += 1;
            Ok((Some(Pair(before.0 + 1, before.1 + 1)), *count))
        })
        .unwrap();
    done.unwrap()
}

fn writers_and_readers() {
    let model = Arc::new(Model::new(Pair(0, 0), 0));
    let acknowledged = Arc::new(shuttle::sync::atomic::AtomicU64::new(0));
    let mut threads = Vec::new();
    for _ in 0..2 {
        let (model, acknowledged) = (model.clone(), acknowledged.clone());
        threads.push(thread::spawn(move || {
            for _ in 0..2 {
                let number = increment(&model);
                assert!(
                    model.snapshot().0 >= number,
                    "a writer sees its own write at once"
                );
                acknowledged.fetch_max(number, std::sync::atomic::Ordering::SeqCst);
            }
        }));
    }
    for _ in 0..2 {
        let (model, acknowledged) = (model.clone(), acknowledged.clone());
        threads.push(thread::spawn(move || {
            let mut last = 0;
            for _ in 0..3 {
                let promised = acknowledged.load(std::sync::atomic::Ordering::SeqCst);
                let seen = model.snapshot();
                assert_eq!(seen.0, seen.1, "a snapshot is whole");
                assert!(seen.0 >= last, "snapshots do not go back");
                assert!(seen.0 >= promised, "an acknowledged write is seen");
                last = seen.0;
            }
        }));
    }
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(model.snapshot().0, 4, "no write is lost");
}

#[test]
fn snapshots_are_whole_and_monotone_under_random_schedules() {
    shuttle::check_random(writers_and_readers, schedules());
}

#[test]
fn snapshots_are_whole_and_monotone_under_adversarial_schedules() {
    shuttle::check_pct(writers_and_readers, schedules(), 3);
}

#[test]
fn an_error_publishes_nothing_and_a_snapshot_is_taken_inside_a_write() {
    shuttle::check_random(
        || {
            let model = Arc::new(Model::new(Pair(0, 0), 0));
            let other = model.clone();
            let writer = thread::spawn(move || {
                let failed: Result<(), u8> = other
                    .write(|_, _| {
                        // A reader on the same thread would deadlock if a write held the readers' lock.
                        assert_eq!(other.snapshot().0, 0);
                        thread::yield_now();
                        Err(7)
                    })
                    .unwrap();
                assert_eq!(failed, Err(7));
            });
            assert_eq!(model.snapshot().0, 0);
            assert_eq!(model.with_writer(|count| *count).unwrap(), 0);
            writer.join().unwrap();
            assert_eq!(model.snapshot().0, 0);
        },
        schedules(),
    );
}
