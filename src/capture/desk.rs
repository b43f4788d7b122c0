//! The desk between the router and the folders.
//!
//! Without further threads the one folder takes everything at once. With them every folder has a thread of its own, and
//! batches go round: filled by the router, emptied by the folder.

use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use sidetone_media::rtp::Packet;
use sidetone_media::session::AudioSample;
use sidetone_media::time::Micros;

use super::folder::{Folder, Taken};
use super::order::{Batch, ENDS_ONLY, Ends, LegEnd, LegSignal, NONE, Order, Signal, StreamSignal, What};

/// Where the router leaves what happened.
#[derive(Debug)]
pub(super) enum Desk {
    /// One folder, in the router's own thread.
    Here(Box<Folder>),
    Threads(Vec<Worker>),
}

/// A folder in a thread of its own.
#[derive(Debug)]
pub(super) struct Worker {
    /// What is put together for it.
    batch: Batch,
    work: Option<Sender<Work>>,
    emptied: Receiver<Batch>,
    taken: Receiver<Taken>,
    thread: Option<JoinHandle<()>>,
}

enum Work {
    Fold(Batch),
    /// Give up what was reported.
    Give,
}

impl Desk {
    /// A desk for an engine of so many threads, the router's own among them.
    ///
    /// Where a thread cannot be had the work is done without it.
    pub(super) fn new(threads: usize) -> Self {
        let count = threads.min(THREADS_MAX).saturating_sub(1);
        let workers: Option<Vec<Worker>> = (0..count).map(|_| Worker::start(count as u32)).collect();
        match workers {
            Some(workers) if !workers.is_empty() => Desk::Threads(workers),
            _ => Desk::Here(Box::new(Folder::new(1))),
        }
    }

    /// A packet of a known stream, between those `ends`, and what was heard in it.
    #[inline]
    pub(super) fn packet(
        &mut self,
        at: Micros,
        packet: &Packet,
        ends: Ends,
        heard: Option<&AudioSample>,
        stream: u32,
        leg: LegEnd,
    ) {
        match self {
            Desk::Here(folder) => folder.packet(at, packet, ends, heard, stream, leg),
            Desk::Threads(workers) => {
                if let Some(sample) = heard {
                    share(workers, Order { at, what: What::Heard(*sample), stream, leg });
                }
                share(workers, Order { at, what: What::Packet(*packet), stream, leg });
            }
        }
    }

    /// Something that concerns the leg of one call.
    #[cold]
    pub(super) fn leg(&mut self, at: Micros, leg: LegEnd, signal: LegSignal) {
        match self {
            Desk::Here(folder) => folder.leg(at, leg, signal),
            Desk::Threads(workers) => {
                let Some(number) = leg.number() else { return };
                if let Some(worker) = responsible(workers, number) {
                    worker.signal(at, NONE, leg, Signal::Leg(signal));
                }
            }
        }
    }

    /// Something that concerns one stream.
    #[cold]
    pub(super) fn stream(&mut self, at: Micros, stream: u32, signal: StreamSignal) {
        let workers = match self {
            Desk::Here(folder) => return folder.stream(at, stream, signal),
            Desk::Threads(workers) => workers,
        };
        if let StreamSignal::Opened { source, destination, payloads } = &signal {
            let own = stream as usize % workers.len();
            for (_, worker) in workers.iter_mut().enumerate().filter(|(place, _)| *place != own) {
                let (source, destination, payloads) = (*source, *destination, payloads.clone());
                let ends = StreamSignal::Opened { source, destination, payloads };
                worker.signal(at, stream | ENDS_ONLY, LegEnd::NOBODY, Signal::Stream(ends));
            }
        }
        if let Some(worker) = responsible(workers, stream) {
            worker.signal(at, stream, LegEnd::NOBODY, Signal::Stream(signal));
        }
    }

    /// Has every order carried out; [`Desk::receive`] gives up what was reported.
    ///
    /// Folders with threads of their own are at it meanwhile. Nothing may be asked for twice before it was received.
    pub(super) fn ask(&mut self) {
        if let Desk::Threads(workers) = self {
            for worker in workers {
                worker.hand_over();
                worker.send(Work::Give);
            }
        }
    }

    /// What was reported until [`Desk::ask`], by number.
    pub(super) fn receive(&mut self) -> Taken {
        let mut all = match self {
            Desk::Here(folder) => folder.take(),
            Desk::Threads(workers) => {
                let mut all = Taken::default();
                for worker in workers {
                    let Ok(mut taken) = worker.taken.recv() else { worker.fail() };
                    all.outlines.append(&mut taken.outlines);
                    all.streams.append(&mut taken.streams);
                    all.legs.append(&mut taken.legs);
                }
                all
            }
        };
        all.outlines.sort_unstable_by_key(|(number, _)| *number);
        all.streams.sort_unstable_by_key(|(number, _)| *number);
        all.legs.sort_unstable_by_key(|(number, _)| *number);
        all
    }
}

/// The worker of a stream or a leg.
#[inline]
fn responsible(workers: &mut [Worker], number: u32) -> Option<&mut Worker> {
    // Two threads are the rule, and a division costs as much as all the rest.
    let place = if workers.len() == 1 { 0 } else { number as usize % workers.len() };
    workers.get_mut(place)
}

/// Gives a packet to the folder of its leg and to that of its stream.
fn share(workers: &mut [Worker], order: Order) {
    if let [worker] = workers {
        return worker.put(order);
    }
    let folders = workers.len();
    let of_stream = order.stream as usize % folders;
    let of_leg = order.leg.number().map(|number| number as usize % folders);
    let mut put = |place: usize, order| {
        if let Some(worker) = workers.get_mut(place) {
            worker.put(order);
        }
    };
    match of_leg {
        None => put(of_stream, order),
        Some(of_leg) if of_leg == of_stream => put(of_stream, order),
        Some(of_leg) => {
            put(of_stream, Order { leg: LegEnd::NOBODY, ..order });
            put(of_leg, Order { stream: order.stream | ENDS_ONLY, ..order });
        }
    }
}

impl Worker {
    /// Starts one of so many folders; `None` when the system has no thread for it.
    fn start(folders: u32) -> Option<Self> {
        let (work, todo) = bounded(BATCHES_MAX + 1);
        let (empties, emptied) = bounded(BATCHES_MAX);
        let (results, taken) = bounded(1);
        for _ in 0..BATCHES_MAX {
            empties.send(Batch::default()).ok()?;
        }
        let run = move || {
            let mut folder = Folder::new(folders);
            while let Ok(work) = todo.recv() {
                let sent = match work {
                    Work::Fold(mut batch) => {
                        folder.fold(&mut batch);
                        empties.send(batch).is_ok()
                    }
                    Work::Give => results.send(folder.take()).is_ok(),
                };
                if !sent {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("folder".to_owned()).spawn(run).ok()?;
        Some(Worker { batch: Batch::default(), work: Some(work), emptied, taken, thread: Some(thread) })
    }

    /// Leaves something that is too large or too rare for an order.
    fn signal(&mut self, at: Micros, stream: u32, leg: LegEnd, signal: Signal) {
        let what = What::Signal(self.batch.signals.len() as u32);
        self.batch.signals.push(signal);
        self.put(Order { at, what, stream, leg });
    }

    #[inline]
    fn put(&mut self, order: Order) {
        // What was heard stays with its packet.
        if self.batch.push(order) && !matches!(order.what, What::Heard(_)) {
            self.hand_over();
        }
    }

    #[cold]
    fn hand_over(&mut self) {
        let Ok(empty) = self.emptied.recv() else { self.fail() };
        let full = std::mem::replace(&mut self.batch, empty);
        self.send(Work::Fold(full));
    }

    fn send(&mut self, work: Work) {
        let sent = self.work.as_ref().is_some_and(|sender| sender.send(work).is_ok());
        if !sent {
            self.fail();
        }
    }

    /// The thread ends only when it is told to, or when it panics: then so does the engine, with the same message.
    #[cold]
    fn fail(&mut self) -> ! {
        let message = self.thread.take().and_then(|thread| thread.join().err());
        std::panic::resume_unwind(message.unwrap_or_else(|| Box::new("a folder ended early")))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Without a sender the thread comes to its end.
        self.work = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Threads of one engine; each has its batches.
const THREADS_MAX: usize = 16;
/// Batches of one folder that are under way or wait.
const BATCHES_MAX: usize = 4;
