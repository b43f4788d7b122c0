//! One stream: what is stored first, then what happens.
//!
//! While it replays it reads the log itself, as fast as its reader takes it, and is on nobody's list. At the end of the
//! log it joins the bus, reads up to where the bus was then, and takes the rest from its queue: nothing is shown twice
//! and nothing falls between.

use std::collections::VecDeque;
use std::sync::Arc;

use sidetone_model::event::{
    EventBatch, EventFilter, EventStream, Gap, Position, REPLAY_US, Start, StreamItem,
};
use sidetone_model::ids::EventId;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;

use crate::events::bus::{Bus, Membership, streamed};
use crate::events::queue::Taken;

/// One stream.
pub(super) struct Stream {
    filter: Arc<EventFilter>,
    /// Everything up to here was shown, or is ready to be.
    cursor: Position,
    /// What is replayed has ids from this one on.
    floor: Option<EventId>,
    ready: VecDeque<StreamItem>,
    phase: Phase,
    open: Open,
}

enum Phase {
    /// Reads the log by itself.
    Replay,
    /// Is on the bus and reads what lies before.
    CatchUp(Membership),
    /// Takes what the bus shows.
    Live(Membership),
    Ended,
}

/// Counts one open stream.
struct Open(Bus);

impl Open {
    fn new(bus: Bus) -> Result<Self, Problem> {
        bus.opened()?;
        Ok(Self(bus))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.ended();
    }
}

impl Stream {
    /// A stream of what `filter` admits, from `start` on.
    pub(super) async fn open(
        bus: Bus,
        filter: EventFilter,
        start: Start,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let open = Open::new(bus)?;
        let oldest = now.plus_micros(-REPLAY_US);
        let log = open.0.log();
        let (gap, from) = match start {
            Start::Now => (None, From::Position(log.end().await?)),
            Start::Since(at) if at < oldest => {
                (Some(Gap::TooOld { replay_from: oldest }), From::Instant(oldest))
            }
            Start::Since(at) => (None, From::Instant(at)),
            Start::After(id) => match log.position_of(filter.scope, id).await? {
                None => (Some(Gap::UnknownId { replay_from: oldest }), From::Instant(oldest)),
                Some(_) if id.made_at().is_none_or(|at| at < oldest) => {
                    (Some(Gap::TooOld { replay_from: oldest }), From::Instant(oldest))
                }
                Some(position) => (None, From::Position(position)),
            },
        };
        let (cursor, floor) = match from {
            From::Position(position) => (position, None),
            From::Instant(at) => {
                let first = EventId::first_at(at);
                (log.position_before(first).await?, Some(first))
            }
        };
        if let Some(gap) = &gap {
            open.0.count_gap(gap.reason());
        }
        let ready = gap.map(StreamItem::Gap).into_iter().collect();
        Ok(Self { filter: Arc::new(filter), cursor, floor, ready, phase: Phase::Replay, open })
    }

    async fn advance(&mut self) -> Result<Option<StreamItem>, Problem> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            match &self.phase {
                Phase::Ended => return Ok(None),
                Phase::Live(membership) => match membership.queue.take().await {
                    Taken::Event(event) if event.position > self.cursor => {
                        return Ok(Some(StreamItem::Event(event)));
                    }
                    Taken::Event(_) => {}
                    Taken::Missing(gap) => {
                        self.phase = Phase::Ended;
                        return Ok(Some(StreamItem::Gap(gap)));
                    }
                    Taken::Closed => self.phase = Phase::Ended,
                },
                Phase::Replay => {
                    let batch = self.read().await?;
                    if batch.is_last {
                        // The batch is taken only once there is a place: this may be dropped and called again.
                        let membership = self.open.0.join(Arc::clone(&self.filter)).await?;
                        self.take(batch, None);
                        self.phase = Phase::CatchUp(membership);
                    } else {
                        self.take(batch, None);
                    }
                }
                Phase::CatchUp(membership) => {
                    let joined_at = membership.joined_at;
                    if self.cursor < joined_at {
                        let batch = self.read().await?;
                        let is_last = batch.is_last;
                        self.take(batch, Some(joined_at));
                        if is_last {
                            // Positions have holes, and not all events are this stream's.
                            self.cursor = joined_at;
                        }
                    } else {
                        self.go_live();
                    }
                }
            }
        }
    }

    async fn read(&self) -> Result<EventBatch, Problem> {
        self.open.0.log().after(self.filter.scope, self.cursor, REPLAY_LEN).await
    }

    /// Makes what was read ready to be shown; what stands behind `end` comes through the queue.
    fn take(&mut self, batch: EventBatch, end: Option<Position>) {
        let end = end.unwrap_or(batch.next);
        self.cursor = batch.next.min(end).max(self.cursor);
        let shown = batch.events.into_iter().filter(|placed| {
            placed.position <= end
                && self.floor.is_none_or(|floor| placed.event.id >= floor)
                && self.filter.admits(&placed.event)
        });
        let items = shown.map(|placed| StreamItem::Event(Arc::new(streamed(placed.position, &placed.event))));
        self.ready.extend(items);
    }

    fn go_live(&mut self) {
        if let Phase::CatchUp(membership) = std::mem::replace(&mut self.phase, Phase::Ended) {
            self.phase = Phase::Live(membership);
            self.ready.push_back(StreamItem::Live);
        }
    }
}

/// Where to begin to read.
enum From {
    Instant(Timestamp),
    Position(Position),
}

impl EventStream for Stream {
    fn next(&mut self) -> PortFuture<'_, Option<StreamItem>> {
        Box::pin(self.advance())
    }
}

/// Events replayed at once: what one stream holds in memory while its reader takes them.
const REPLAY_LEN: u32 = 64;
