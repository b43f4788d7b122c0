//! The effects of a panic, by the kind of task; with simulated time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;

use super::*;

#[test]
fn every_task_has_its_own_place_and_name() {
    for (place, task) in Task::ALL.into_iter().enumerate() {
        assert_eq!(task as usize, place, "{task:?}");
        assert_eq!(Task::from_name(task.as_str()), Some(task));
    }
}

/// The name of the thread that a task runs on.
async fn thread_of(supervisor: &Supervisor, task: Task) -> Option<String> {
    let named = supervisor.keep_state(task, None, |name| {
        Box::pin(async move { *name = std::thread::current().name().map(str::to_owned) })
    });
    named.await.unwrap()
}

#[test]
fn what_no_call_waits_for_runs_on_threads_of_its_own() {
    let runtime = |name: &str| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).thread_name(name).build().unwrap()
    };
    let (switch, background) = (runtime("switch"), runtime("background"));
    let supervisor = Supervisor::new(Some(background.handle().clone()));
    for (task, expected) in [
        (Task::RecordWriter, "background"),
        (Task::Http, "background"),
        (Task::Names, "switch"),
        (Task::Sip, "switch"),
    ] {
        let name = switch.block_on(thread_of(&supervisor, task));
        assert_eq!(name.as_deref(), Some(expected), "{task:?}");
    }
    // Without such threads all share the same ones.
    let name = switch.block_on(thread_of(&Supervisor::default(), Task::RecordWriter));
    assert_eq!(name.as_deref(), Some("switch"));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_goes_on_with_what_waited() {
    let supervisor = Supervisor::default();
    let (sender, receiver) = mpsc::channel::<u32>(8);
    let seen: Vec<u32> = Vec::new();
    let running = supervisor.keep_state(Task::NoteWriter, (receiver, seen), |(receiver, seen)| {
        Box::pin(async move {
            while let Some(number) = receiver.recv().await {
                seen.push(number);
                assert_ne!(number, 2, "it does not like this one");
            }
        })
    });
    for number in 1..=4 {
        sender.send(number).await.unwrap();
    }
    drop(sender);
    let (_, seen) = running.await.unwrap();
    assert_eq!(seen, [1, 2, 3, 4]);
    assert_eq!(supervisor.panics(Task::NoteWriter), 1);
    assert_eq!(supervisor.condition(Task::NoteWriter), Condition::Ended);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_always_panics_pauses_longer_and_is_named() {
    let supervisor = Supervisor::default();
    let starts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&starts);
    let running = supervisor.keep(Task::Sweep, counted, |starts| {
        Box::pin(async move {
            starts.fetch_add(1, Ordering::Relaxed);
            panic!("always");
        })
    });
    tokio::time::sleep(Duration::from_secs(60)).await;
    let starts_in_a_minute = starts.load(Ordering::Relaxed);
    assert!((15..=20).contains(&starts_in_a_minute), "{starts_in_a_minute}");
    assert_eq!(supervisor.troubles(), ["sweep: starts again after a panic"]);
    supervisor.stopping();
    running.await.unwrap();
    assert!(starts.load(Ordering::Relaxed) <= starts_in_a_minute + 4);
}

#[tokio::test(start_paused = true)]
async fn a_vital_task_saves_what_it_has_and_asks_for_the_end() {
    let supervisor = Supervisor::default();
    let records = Arc::new(parking_lot::Mutex::new(vec!["a record"]));
    let running = supervisor.vital(
        Task::Sip,
        Arc::clone(&records),
        |_| Box::pin(async { panic!("broken") }),
        |records| Box::pin(async { records.lock().push("saved") }),
    );
    assert_eq!(supervisor.failed().await, Task::Sip);
    running.await.unwrap();
    assert_eq!(*records.lock(), ["a record", "saved"]);
    assert_eq!(supervisor.troubles(), ["sip: failed after a panic, the process ends"]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_saved_does_not_keep_the_process_from_its_end() {
    let supervisor = Supervisor::default();
    let _running = supervisor.vital(
        Task::Sip,
        (),
        |()| Box::pin(async { panic!("broken") }),
        |()| Box::pin(std::future::pending()),
    );
    assert_eq!(supervisor.failed().await, Task::Sip);
}

#[tokio::test]
async fn one_unit_of_work_is_lost_alone() {
    let supervisor = Supervisor::default();
    let lost = supervisor.once(Task::Names, async { panic!("one") });
    let done = supervisor.once(Task::Names, async { 7 });
    assert_eq!(lost.await.unwrap(), None::<()>);
    assert_eq!(done.await.unwrap(), Some(7));
    assert_eq!(supervisor.panics(Task::Names), 1);
    assert_eq!(supervisor.troubles(), Vec::<String>::new());
}

#[test]
fn a_thread_starts_again_and_a_vital_one_saves() {
    let supervisor = Supervisor::default();
    let thread = supervisor
        .keep_thread(Task::Recorder, 0, |turns, _| {
            *turns += 1;
            assert!(*turns > 2, "the first two turns fail");
        })
        .unwrap();
    assert_eq!(thread.join().unwrap(), 3);
    assert_eq!(supervisor.panics(Task::Recorder), 2);
    let vital = supervisor
        .vital_thread(Task::Journal, Vec::new(), |_, _| panic!("broken"), |saved| saved.push(1))
        .unwrap();
    assert_eq!(vital.join().unwrap(), [1]);
    assert_eq!(supervisor.condition(Task::Journal), Condition::Failed);
}

/// A panic that a test requests happens at an await of the task, once.
#[tokio::test]
async fn an_injected_panic_comes_once() {
    let supervisor = Supervisor::default();
    let (sender, receiver) = mpsc::channel::<u32>(1);
    let running = supervisor.keep(Task::Events, receiver, |receiver| {
        Box::pin(async move { while receiver.recv().await.is_some() {} })
    });
    tokio::task::yield_now().await;
    supervisor.inject(Task::Events);
    while supervisor.panics(Task::Events) == 0 {
        tokio::task::yield_now().await;
    }
    sender.send(1).await.unwrap();
    drop(sender);
    running.await.unwrap();
    assert_eq!(supervisor.panics(Task::Events), 1);
}

/// P10: panics at random awaits of a writer, with random interleavings of its senders: no passed item is lost, and
/// each unfinished batch is written again completely.
#[test]
fn seeded_interleavings_of_panics_lose_nothing() {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    /// The state of a writer: its queue, the work in hand, the written items.
    struct Writer {
        queue: mpsc::Receiver<u32>,
        in_hand: Vec<u32>,
        written: Vec<u32>,
        rng: StdRng,
    }

    async fn yields(rng: &mut StdRng) {
        for _ in 0..rng.random_range(0..4) {
            tokio::task::yield_now().await;
        }
    }

    impl Writer {
        async fn run(&mut self) {
            loop {
                if self.in_hand.is_empty() && self.queue.recv_many(&mut self.in_hand, 8).await == 0 {
                    return;
                }
                yields(&mut self.rng).await;
                assert!(!self.rng.random_bool(0.2), "the database driver has a bug");
                self.written.append(&mut self.in_hand);
                yields(&mut self.rng).await;
                assert!(!self.rng.random_bool(0.1), "so has what follows the commit");
            }
        }
    }

    const SEEDS: u64 = 300;
    const EACH: u32 = 20;
    let mut panics = 0;
    for seed in 0..SEEDS {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let written = runtime.block_on(async {
            let supervisor = Supervisor::default();
            let (sender, queue) = mpsc::channel(4);
            let rng = StdRng::seed_from_u64(seed);
            let writer = Writer { queue, in_hand: Vec::new(), written: Vec::new(), rng };
            let running = supervisor.keep_state(Task::NoteWriter, writer, |writer| Box::pin(writer.run()));
            let givers: Vec<_> = (0..3)
                .map(|giver| {
                    let (sender, mut rng) = (sender.clone(), StdRng::seed_from_u64(seed * 7 + giver));
                    tokio::spawn(async move {
                        for number in 0..EACH {
                            yields(&mut rng).await;
                            let giver = u32::try_from(giver).unwrap();
                            sender.send(giver * EACH + number).await.unwrap();
                        }
                    })
                })
                .collect();
            drop(sender);
            for giver in givers {
                giver.await.unwrap();
            }
            let writer = running.await.unwrap();
            panics += supervisor.panics(Task::NoteWriter);
            writer.written
        });
        let mut sorted = written.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..3 * EACH).collect::<Vec<_>>(), "seed {seed}");
    }
    assert!(panics > SEEDS, "the interleavings hit panics: {panics}");
}
