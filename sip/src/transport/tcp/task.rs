//! The tasks of TCP: a panic ends only its own connection and is counted.
//!
//! No other file of this crate calls `tokio::spawn` (`tests/architecture.rs` of the workspace).

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::flow::Flow;
use crate::transport::arrival::Arrival;
use crate::transport::tcp::limits::PAUSE_MAX;
use crate::transport::tcp::table::{Outbox, Table};

/// The data that the driver needs when the task of a connection panics.
pub(super) struct Obituary {
    pub(super) table: Arc<Table>,
    pub(super) flow: Flow,
    pub(super) outbox: Outbox,
    pub(super) arrivals: mpsc::Sender<Arrival>,
}

/// Runs a connection. After a panic its entry is free again, and the driver is notified that a trusted flow
/// has closed.
pub(super) fn connection(
    obituary: Obituary,
    serve: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let Obituary { table, flow, outbox, arrivals } = obituary;
        if caught(&table, serve).await.is_none() && outbox.is_trusted() {
            // The driver is absent only when the engine stops.
            let _ = arrivals.send(Arrival::Closed(flow)).await;
        }
    })
}

/// Runs the loop that accepts connections; after a panic it is restarted with the same listener.
pub(super) fn listener<F>(
    table: Arc<Table>,
    listener: TcpListener,
    accept: impl Fn(Arc<TcpListener>) -> F + Send + 'static,
) -> JoinHandle<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = Arc::new(listener);
    tokio::spawn(async move {
        while caught(&table, accept(Arc::clone(&listener))).await.is_none() {
            sleep(PAUSE_MAX).await;
        }
    })
}

/// The result of a future; `None` after a panic, which is counted.
async fn caught<T>(table: &Table, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let outcome = poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(poll) => poll.map(Some),
        Err(_) => Poll::Ready(None),
    })
    .await;
    if outcome.is_none() {
        table.panics.fetch_add(1, Ordering::Relaxed);
    }
    outcome
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::transport::tcp::limits::TcpLimits;

    #[tokio::test]
    async fn a_connection_that_panics_frees_its_place_and_says_that_the_flow_is_closed() {
        let table = Arc::new(Table::new(TcpLimits::default()));
        let (arrivals, mut arrived) = mpsc::channel(4);
        let flow = Flow::tcp_to(([127, 0, 0, 1], 5060).into());
        let (seat, _unsent) = table.seat(flow, None).unwrap();
        let obituary = Obituary { table: Arc::clone(&table), flow, outbox: seat.outbox.clone(), arrivals };
        let task = connection(obituary, async move {
            let _seat = seat;
            panic!("a message that breaks the task");
        });
        task.await.unwrap();
        assert!(matches!(arrived.recv().await, Some(Arrival::Closed(closed)) if closed == flow));
        assert_eq!((table.counters().open, table.counters().panics), (0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn the_accepting_loop_starts_again_on_its_listener() {
        let table = Arc::new(Table::new(TcpLimits::default()));
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, starts) = (socket.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&starts);
        let task = listener(Arc::clone(&table), socket, move |listener| {
            let starts = Arc::clone(&counted);
            async move {
                assert!(starts.fetch_add(1, Ordering::Relaxed) > 1, "the first two turns fail");
                assert_eq!(listener.local_addr().unwrap(), address);
            }
        });
        task.await.unwrap();
        assert_eq!((starts.load(Ordering::Relaxed), table.counters().panics), (3, 2));
    }
}
