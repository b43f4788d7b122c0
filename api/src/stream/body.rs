//! The body of a stream: its items, keep-alives, and its end when the caller may no longer see it.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream;
use sidetone_model::event::EventStream;
use sidetone_model::ids::ExtensionId;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::auth::{Standing, Still};
use crate::state::ApiState;
use crate::stream::frame::{BEGINNING, KEEP_ALIVE, frame};
use crate::stream::places::Place;

/// A stream on its way to the caller.
///
/// Nothing here waits for the caller: a piece is made when the connection requests one. A caller that does
/// not read is limited by the queue of [`EventStream`] and by the server's stall timeout.
pub(crate) struct EventBody {
    source: Box<dyn EventStream>,
    state: ApiState,
    standing: Standing,
    /// The extensions by which the caller sees live rooms.
    extensions: Vec<ExtensionId>,
    /// Whether the caller was permitted at the last check; a failed check counts as no.
    is_let_in: bool,
    ask_at: Instant,
    /// Counts changes of keys, users and sessions.
    changes: watch::Receiver<u64>,
    begun: bool,
    _place: Place,
}

impl EventBody {
    pub(crate) fn new(
        source: Box<dyn EventStream>,
        state: ApiState,
        (standing, extensions): (Standing, Vec<ExtensionId>),
        place: Place,
    ) -> Self {
        let ask_at = Instant::now() + ASK_EVERY;
        let mut changes = state.credential_changes.clone();
        changes.mark_unchanged();
        Self {
            source,
            state,
            standing,
            extensions,
            is_let_in: true,
            ask_at,
            changes,
            begun: false,
            _place: place,
        }
    }

    /// The body of the answer.
    pub(crate) fn into_body(self) -> Body {
        Body::from_stream(stream::unfold(self, |mut body| async move {
            let piece = body.next().await?;
            Some((Ok::<Bytes, Infallible>(piece), body))
        }))
    }

    /// Returns the next piece; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.begun {
            self.begun = true;
            return Some(BEGINNING);
        }
        let Self { source, state, standing, extensions, is_let_in, ask_at, changes, .. } = self;
        let keep_alive_at = Instant::now() + KEEP_ALIVE_EVERY;
        let mut item = source.next();
        loop {
            tokio::select! {
                // Checks first whether the caller may still see the ready items, because these may have
                // waited for a long time.
                biased;
                () = ask_due(*ask_at, changes) => {
                    match standing.ask(state, extensions).await {
                        Still::LetIn => *is_let_in = true,
                        Still::Refused => return None,
                        Still::Unknown => *is_let_in = false,
                    }
                    *ask_at = Instant::now() + ASK_EVERY;
                }
                item = &mut item, if *is_let_in => return match item {
                    Ok(item) => item.map(|item| frame(&item, (state.clock)())),
                    Err(problem) => {
                        // The client reconnects and continues after its last event.
                        tracing::warn!(error = %problem, "a stream of events was broken off");
                        None
                    }
                },
                () = sleep_until(keep_alive_at) => return Some(KEEP_ALIVE),
            }
        }
    }
}

/// Waits until the caller's permission is to be checked again: when it is due, or after a change of a key, a user or a
/// session.
async fn ask_due(at: Instant, changes: &mut watch::Receiver<u64>) {
    let notified = async {
        sleep_until(at - ASK_EVERY + ASK_PAUSE).await;
        if changes.changed().await.is_err() {
            // The sender is dropped: there are no further notifications.
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = sleep_until(at) => {}
        () = notified => {}
    }
}

/// How often the caller's permission is checked again.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// The least time between two checks: many streams may be open while many keys change.
const ASK_PAUSE: Duration = Duration::from_millis(200);
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);
