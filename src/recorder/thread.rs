//! The thread that writes recordings.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError};
use sidetone_model::ids::{ConferenceSessionId, OrganisationId};

use crate::recorder::counters::RecorderCounters;
use crate::recorder::disk::DataDisk;
use crate::recorder::recordings::{Begin, Ended, RecordingKind, Recordings};
use crate::recorder::sink::RecordingSink;
use crate::supervise::{Beat, Supervisor, Task};

/// Writes the recordings of a node.
pub struct Recorder {
    orders: Sender<Order>,
    counters: Arc<RecorderCounters>,
    thread: JoinHandle<Recordings<DataDisk>>,
}

/// The recorder accepts no further recordings.
#[derive(Debug, thiserror::Error)]
pub enum RecorderBusy {
    /// Too many recordings wait for the disk to open their files.
    #[error("the disk of recordings is too slow, {ORDERS_LEN_MAX} recordings are waiting to start")]
    Full,
    /// The recorder has ended, with the engine or after a failure.
    #[error("the recorder has stopped: check the log of the engine")]
    Stopped,
}

/// Starts recordings; clones share the recorder.
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
    /// Starts the thread. It calls `tell` with the result of each recording; the call may block.
    ///
    /// # Errors
    /// When the system cannot start a thread.
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

    /// Returns a handle that starts recordings.
    pub fn begins(&self) -> Begins {
        Begins { orders: self.orders.clone(), counters: Arc::clone(&self.counters) }
    }

    /// Returns the counters.
    pub fn counters(&self) -> Arc<RecorderCounters> {
        Arc::clone(&self.counters)
    }

    /// Completes every recording, reports it, and stops.
    pub fn stop(self) {
        // A thread that has ended has no recordings.
        let _ = self.orders.send(Order::Finish);
        if self.thread.join().is_err() {
            tracing::error!("the recorder stopped unexpectedly");
        }
    }
}

impl Begins {
    /// Checks whether a recording may be started now.
    ///
    /// # Errors
    /// When too many wait already.
    pub fn require_place(&self) -> Result<(), RecorderBusy> {
        if self.orders.is_full() { Err(RecorderBusy::Full) } else { Ok(()) }
    }

    /// Starts to record a session, after its earlier recordings; the file is opened soon. If that fails, the sink
    /// accepts no frames, and the failure is reported.
    ///
    /// # Errors
    /// When too many wait already.
    pub fn begin(
        &self,
        organisation: OrganisationId,
        session: ConferenceSessionId,
    ) -> Result<RecordingSink, RecorderBusy> {
        self.begin_kind(organisation, session, RecordingKind::Room)
    }

    /// The same for a recording of this kind.
    ///
    /// # Errors
    /// When too many wait already.
    pub fn begin_kind(
        &self,
        organisation: OrganisationId,
        session: ConferenceSessionId,
        kind: RecordingKind,
    ) -> Result<RecordingSink, RecorderBusy> {
        let (begin, sink) = Begin::of_kind(organisation, session, kind, &self.counters);
        self.orders.try_send(Order::Begin(begin)).map_err(|refused| match refused {
            TrySendError::Disconnected(_) => RecorderBusy::Stopped,
            TrySendError::Full(_) => RecorderBusy::Full,
        })?;
        Ok(sink)
    }
}

fn run(recordings: &mut Recordings<DataDisk>, orders: &Receiver<Order>, tell: &impl Fn(Ended), beat: &Beat) {
    loop {
        beat.beat();
        let patience = if recordings.is_idle() { IDLE } else { TURN_EVERY };
        let order = orders.recv_timeout(patience);
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

/// Largest number of recordings that wait to start.
const ORDERS_LEN_MAX: usize = 1_024;
/// A sink holds twenty times as much.
const TURN_EVERY: Duration = Duration::from_millis(250);
/// The interval of turns while nothing is recorded.
const IDLE: Duration = Duration::from_secs(1);
