//! The signals that end a CLI command.

use std::io::{self, IsTerminal};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGHUP (the terminal was closed), SIGINT and SIGTERM.
pub(super) struct Signals {
    hangup: Option<Signal>,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Must run within a tokio runtime.
    pub(super) fn listen() -> io::Result<Signals> {
        Ok(Signals {
            // Under nohup, which replaces the terminal as the standard input, SIGHUP stays ignored.
            hangup: io::stdin().is_terminal().then(|| signal(SignalKind::hangup())).transpose()?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for one of them.
    pub(super) async fn any(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = hangup => {}
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
