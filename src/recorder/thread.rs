//! The thread that writes recordings.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use sidetone_model::ids::{ConferenceSessionId, OrganisationId};

use crate::recorder::counters::RecorderCounters;
use crate::recorder::disk::DataDisk;
use crate::recorder::recordings::{Begin, Ended, Recordings};
use crate::recorder::sink::RecordingSink;
use crate::supervise::{Beat, Supervisor, Task};

/// Writes the recordings of a node.
pub struct Recorder {
    orders: Sender<Order>,
    counters: Arc<RecorderCounters>,
    thread: JoinHandle<Recordings<DataDisk>>,
}

/// More recordings wait to begin than the disk opens files.
#[derive(Debug, thiserror::Error)]
#[error("the disk of recordings is too slow, {ORDERS_LEN_MAX} recordings wait to begin")]
pub struct RecorderBusy;

/// Begins recordings; clones are the same recorder's.
#[derive(Clone, Debug)]
pub struct Begins {
    orders: Sender<Order>,
    counters: Arc<RecorderCounters>,
}

#[derive(Debug)]
enum Order {
    Begin(Begin),
    Finish,
}

impl Recorder {
    /// Starts the thread. `tell` hears what became of each recording, and may wait.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(
        disk: DataDisk,
        reserve_bytes: u64,
        supervisor: &Supervisor,
        tell: impl Fn(Ended) + Send + 'static,
    ) -> io::Result<Recorder> {
        let counters = Arc::new(RecorderCounters::default());
        let (orders, received) = crossbeam_channel::bounded(ORDERS_LEN_MAX);
        let recordings = Recordings::new(disk, reserve_bytes, Arc::clone(&counters));
        let run = move |recordings: &mut Recordings<DataDisk>, beat: &Beat| {
            run(recordings, &received, &tell, beat);
        };
        let thread = supervisor.keep_thread(Task::Recorder, recordings, run)?;
        Ok(Recorder { orders, counters, thread })
    }

    /// What begins recordings.
    pub fn begins(&self) -> Begins {
        Begins { orders: self.orders.clone(), counters: Arc::clone(&self.counters) }
    }

    /// What is counted.
    pub fn counters(&self) -> Arc<RecorderCounters> {
        Arc::clone(&self.counters)
    }

    /// Completes every recording, tells of it, and stops.
    pub fn stop(self) {
        // A thread that is gone has no recordings.
        let _ = self.orders.send(Order::Finish);
        if self.thread.join().is_err() {
            tracing::error!("the recorder stopped before its time");
        }
    }
}

impl Begins {
    /// Begins to record a session, behind what was recorded of it before; the file is opened soon. When that fails the
    /// sink takes nothing, and it is told.
    ///
    /// # Errors
    /// When too many wait already.
    pub fn begin(
        &self,
        organisation: OrganisationId,
        session: ConferenceSessionId,
    ) -> Result<RecordingSink, RecorderBusy> {
        let (begin, sink) = Begin::new(organisation, session, &self.counters);
        self.orders.try_send(Order::Begin(begin)).map_err(|_| RecorderBusy)?;
        Ok(sink)
    }
}

fn run(recordings: &mut Recordings<DataDisk>, orders: &Receiver<Order>, tell: &impl Fn(Ended), beat: &Beat) {
    loop {
        beat.beat();
        let order = orders.recv_timeout(TURN_EVERY);
        let is_over = matches!(order, Ok(Order::Finish) | Err(RecvTimeoutError::Disconnected));
        if let Ok(Order::Begin(begin)) = order {
            recordings.begin(begin);
        }
        if is_over {
            recordings.finish();
        } else {
            recordings.turn();
        }
        while let Some(ended) = recordings.poll_ended() {
            tell(ended);
        }
        if is_over {
            return;
        }
    }
}

/// Recordings that may wait to begin.
const ORDERS_LEN_MAX: usize = 1_024;
/// A sink holds twenty times as much.
const TURN_EVERY: Duration = Duration::from_millis(250);
