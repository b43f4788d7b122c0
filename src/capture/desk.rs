//! The desk between the router and the folders: fills batches, and hands them over.
//!
//! Without further threads the one folder is worked where the batch was filled. With them every folder has a thread
//! of its own, and batches go round: filled by the router, emptied by the folder.

use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use sidetone_media::rtp::Packet;
use sidetone_media::session::AudioSample;
use sidetone_media::time::Micros;

use super::folder::{Folder, Taken};
use super::order::{Batch, ENDS_ONLY, LegEnd, LegSignal, NONE, Order, Signal, StreamSignal, What, batch_len};

/// Where the router leaves its orders.
#[derive(Debug)]
pub(super) struct Desk {
    /// The batches under way, one for each folder.
    batches: Vec<Batch>,
    folders: Folders,
    /// Streams under way.
    streams: usize,
}

#[derive(Debug)]
enum Folders {
    Here(Box<Folder>),
    Threads(Vec<Worker>),
}

/// A folder in a thread of its own.
#[derive(Debug)]
struct Worker {
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
        let workers: Option<Vec<Worker>> =
            (0..count).map(|place| Worker::start(place as u32, count as u32)).collect();
        let folders = match workers {
            Some(workers) if !workers.is_empty() => Folders::Threads(workers),
            _ => Folders::Here(Box::new(Folder::new(0, 1))),
        };
        let batches = match &folders {
            Folders::Here(_) => 1,
            Folders::Threads(workers) => workers.len(),
        };
        let batches = (0..batches).map(|_| Batch::new(batch_len(0))).collect();
        Desk { batches, folders, streams: 0 }
    }

    /// A packet of a known stream.
    #[inline]
    pub(super) fn packet(&mut self, at: Micros, packet: Packet, stream: u32, leg: LegEnd) {
        let order = Order { at, what: What::Packet(packet), stream, leg };
        if let [batch] = &mut self.batches[..] {
            if batch.push(order) {
                self.hand_over(0);
            }
        } else {
            self.share(order);
        }
    }

    /// What was heard in the packet that is left here next.
    #[cold]
    pub(super) fn heard(&mut self, at: Micros, sample: AudioSample, stream: u32, leg: LegEnd) {
        self.share(Order { at, what: What::Heard(sample), stream, leg });
    }

    /// Something that concerns the leg of one call.
    pub(super) fn leg(&mut self, at: Micros, leg: LegEnd, signal: LegSignal) {
        let Some(number) = leg.number() else { return };
        let place = number as usize % self.batches.len();
        self.signal(place, at, NONE, leg, Signal::Leg(signal));
    }

    /// Something that concerns one stream.
    pub(super) fn stream(&mut self, at: Micros, stream: u32, signal: StreamSignal) {
        let own = stream as usize % self.batches.len();
        match &signal {
            StreamSignal::Opened { .. } => self.streams += 1,
            StreamSignal::Taken { .. } => self.streams = self.streams.saturating_sub(1),
            StreamSignal::Concluded { .. } | StreamSignal::Described(_) | StreamSignal::Rtcp { .. } => {}
        }
        if let StreamSignal::Opened { source, destination, payloads } = &signal {
            for place in (0..self.batches.len()).filter(|place| *place != own) {
                let (source, destination, payloads) = (*source, *destination, payloads.clone());
                let ends = StreamSignal::Opened { source, destination, payloads };
                self.signal(place, at, stream | ENDS_ONLY, LegEnd::NOBODY, Signal::Stream(ends));
            }
        }
        self.signal(own, at, stream, LegEnd::NOBODY, Signal::Stream(signal));
    }

    /// Has every order carried out; [`Desk::receive`] gives up what was reported.
    ///
    /// Folders with threads of their own are at it meanwhile. Nothing may be asked for twice before it was received.
    pub(super) fn ask(&mut self) {
        for place in 0..self.batches.len() {
            self.hand_over(place);
        }
        if let Folders::Threads(workers) = &mut self.folders {
            for worker in workers {
                worker.send(Work::Give);
            }
        }
    }

    /// What was reported until [`Desk::ask`], by number.
    pub(super) fn receive(&mut self) -> Taken {
        let mut all = Taken::default();
        match &mut self.folders {
            Folders::Here(folder) => all = folder.take(),
            Folders::Threads(workers) => {
                for worker in workers {
                    let Ok(mut taken) = worker.taken.recv() else { worker.fail() };
                    all.outlines.append(&mut taken.outlines);
                    all.streams.append(&mut taken.streams);
                    all.legs.append(&mut taken.legs);
                }
            }
        }
        all.outlines.sort_unstable_by_key(|(number, _)| *number);
        all.streams.sort_unstable_by_key(|(number, _)| *number);
        all.legs.sort_unstable_by_key(|(number, _)| *number);
        all
    }

    /// Gives a packet to the folder of its leg and to that of its stream.
    fn share(&mut self, order: Order) {
        let folders = self.batches.len();
        let of_stream = order.stream as usize % folders;
        let of_leg = order.leg.number().map(|number| number as usize % folders);
        match of_leg {
            None => self.put(of_stream, order),
            Some(of_leg) if of_leg == of_stream => self.put(of_stream, order),
            Some(of_leg) => {
                self.put(of_stream, Order { leg: LegEnd::NOBODY, ..order });
                self.put(of_leg, Order { stream: order.stream | ENDS_ONLY, ..order });
            }
        }
    }

    fn put(&mut self, place: usize, order: Order) {
        if let Some(batch) = self.batches.get_mut(place) {
            // What was heard stays with its packet.
            if batch.push(order) && !matches!(order.what, What::Heard(_)) {
                self.hand_over(place);
            }
        }
    }

    #[cold]
    fn signal(&mut self, place: usize, at: Micros, stream: u32, leg: LegEnd, signal: Signal) {
        if let Some(batch) = self.batches.get_mut(place) {
            let what = What::Signal(batch.signals.len() as u32);
            batch.signals.push(signal);
            self.put(place, Order { at, what, stream, leg });
        }
    }

    #[cold]
    fn hand_over(&mut self, place: usize) {
        let len = batch_len(self.streams / self.batches.len());
        let Some(batch) = self.batches.get_mut(place) else { return };
        match &mut self.folders {
            Folders::Here(folder) => folder.fold(batch),
            Folders::Threads(workers) => {
                if let Some(worker) = workers.get_mut(place) {
                    let emptied = worker.emptied.recv();
                    let Ok(empty) = emptied else { worker.fail() };
                    worker.send(Work::Fold(std::mem::replace(batch, empty)));
                }
            }
        }
        batch.widen(len);
    }
}

impl Worker {
    /// Starts the folder in `place` of `folders`; `None` when the system has no thread for it.
    fn start(place: u32, folders: u32) -> Option<Self> {
        let (work, todo) = bounded(BATCHES_MAX + 1);
        let (empties, emptied) = bounded(BATCHES_MAX);
        let (results, taken) = bounded(1);
        for _ in 0..BATCHES_MAX {
            empties.send(Batch::new(batch_len(0))).ok()?;
        }
        let run = move || {
            let mut folder = Folder::new(place, folders);
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
        let thread = std::thread::Builder::new().name(format!("folder-{place}")).spawn(run).ok()?;
        Some(Worker { work: Some(work), emptied, taken, thread: Some(thread) })
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
