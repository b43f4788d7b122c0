//! One stream: stored events first, then live ones.
//!
//! During the replay it reads the log itself, as fast as its client reads, and is not on the bus. At the end
//! of the log it joins the bus, reads up to the bus's position at that time, and takes the rest from its
//! queue: no event is sent twice and none is missed.

use std::collections::VecDeque;
use std::sync::Arc;

use sidetone_model::event::{
    EventBatch, EventFilter, EventStream, EventStreams, Gap, Position, REPLAY_US, Start, StreamItem,
    StreamedEvent,
};
use sidetone_model::ids::EventId;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;

use crate::events::bus::{Bus, Membership};
use crate::events::queue::Taken;

/// One stream.
pub(super) struct Stream {
    filter: Arc<EventFilter>,
    /// All events up to here were sent, or are ready.
    cursor: Position,
    /// Only events with ids from this one on are replayed.
    floor: Option<EventId>,
    ready: VecDeque<StreamItem>,
    phase: Phase,
    open: Open,
}

enum Phase {
    /// It reads the log itself.
    Replay,
    /// It is on the bus and reads the events before that.
    CatchUp(Membership),
    /// It takes the events from its queue.
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
    /// A stream of the events that `filter` admits, starting at `start`.
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
            Start::After(id) => match log.position_of(&filter.reader, id).await? {
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
                        // The batch is taken only after joining, because this future may be dropped and
                        // called again.
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
                            // Positions have gaps, and not all events pass the filter.
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
        self.open.0.log().after(&self.filter.reader, self.cursor, REPLAY_LEN).await
    }

    /// Prepares the events that were read; events after `end` come through the queue.
    fn take(&mut self, batch: EventBatch, end: Option<Position>) {
        let end = end.unwrap_or(batch.next);
        self.cursor = batch.next.min(end).max(self.cursor);
        let shown = batch.events.into_iter().filter(|placed| {
            placed.position <= end
                && self.floor.is_none_or(|floor| placed.event.id >= floor)
                && self.filter.admits(&placed.event)
        });
        let items = shown.map(|placed| StreamItem::Event(Arc::new(StreamedEvent::from(&placed))));
        self.ready.extend(items);
    }

    fn go_live(&mut self) {
        if let Phase::CatchUp(membership) = std::mem::replace(&mut self.phase, Phase::Ended) {
            self.phase = Phase::Live(membership);
            self.ready.push_back(StreamItem::Live);
        }
    }
}

/// Where reading starts.
enum From {
    Instant(Timestamp),
    Position(Position),
}

impl EventStreams for Bus {
    fn open(
        &self,
        filter: EventFilter,
        start: Start,
        now: Timestamp,
    ) -> PortFuture<'_, Box<dyn EventStream>> {
        Box::pin(async move {
            let stream: Box<dyn EventStream> =
                Box::new(Stream::open(self.clone(), filter, start, now).await?);
            Ok(stream)
        })
    }
}

impl EventStream for Stream {
    fn next(&mut self) -> PortFuture<'_, Option<StreamItem>> {
        Box::pin(self.advance())
    }
}

/// Events per replay read: the number that one stream holds in memory for its client.
const REPLAY_LEN: u32 = 64;
