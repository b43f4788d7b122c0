//! Detects when a connection takes too long: a state machine that receives the connection's events and
//! returns the next deadline.
//!
//! The timeout of a request's body is not here: the layer that reads it answers 408 in the envelope.

use std::time::{Duration, Instant};

use crate::settings::HttpSettings;

/// The step in which the client took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    /// The head of a request.
    Header,
    /// The next request.
    Idle,
    /// Receiving the answer.
    Stall,
}

impl Late {
    /// Every reason, each at the index of its discriminant.
    pub(crate) const ALL: [Late; 3] = [Late::Header, Late::Idle, Late::Stall];

    /// The value of the metric's label.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Late::Header => "header",
            Late::Idle => "idle",
            Late::Stall => "stall",
        }
    }
}

/// The timeouts of one connection.
#[derive(Debug)]
pub(super) struct Watch {
    header_time: Duration,
    idle_time: Duration,
    stall_time: Duration,
    phase: Phase,
    http2: bool,
    /// Since when the system has accepted no more bytes for the client.
    blocked_since: Option<Instant>,
}

#[derive(Debug)]
enum Phase {
    /// A request is being handled or its answer is being sent.
    Busy {
        requests: usize,
        /// Answers being sent, and how many of them wait for the server instead of the client.
        sending: usize,
        producing: usize,
        progress: Instant,
    },
    /// Bytes of a head are expected; since the start of the connection or the head's first byte.
    Head {
        since: Instant,
        /// Whether the first byte has arrived.
        begun: bool,
    },
    /// All requests are answered.
    Idle { since: Instant },
}

impl Watch {
    /// A new connection.
    pub(super) fn new(now: Instant, settings: &HttpSettings) -> Self {
        Self {
            header_time: settings.header_time,
            idle_time: settings.idle_time,
            stall_time: settings.stall_time,
            phase: Phase::Head { since: now, begun: false },
            http2: false,
            blocked_since: None,
        }
    }

    /// Bytes arrived. An HTTP/2 client sends many frames that belong to no request; the idle timeout applies
    /// to its heads.
    pub(super) fn read(&mut self, now: Instant) {
        match &mut self.phase {
            Phase::Head { begun, .. } => *begun = true,
            Phase::Idle { .. } if !self.http2 => self.phase = Phase::Head { since: now, begun: true },
            Phase::Busy { .. } | Phase::Idle { .. } => {}
        }
    }

    /// The system accepted bytes for the client.
    pub(super) fn wrote(&mut self, now: Instant) {
        self.blocked_since = None;
        if let Phase::Busy { progress, .. } = &mut self.phase {
            *progress = now;
        }
    }

    /// The system accepts no bytes now.
    pub(super) fn blocked(&mut self, now: Instant) {
        self.blocked_since.get_or_insert(now);
    }

    /// A request's head is complete.
    pub(super) fn request_began(&mut self, now: Instant, http2: bool) {
        self.http2 = http2;
        match &mut self.phase {
            Phase::Busy { requests, .. } => *requests += 1,
            Phase::Head { .. } | Phase::Idle { .. } => {
                self.phase = Phase::Busy { requests: 1, sending: 0, producing: 0, progress: now };
            }
        }
    }

    /// An answer's body starts or continues to be sent.
    pub(super) fn sending(&mut self, now: Instant, change: Change) {
        if let Phase::Busy { sending, producing, progress, .. } = &mut self.phase {
            *progress = now;
            match change {
                Change::Began => *sending += 1,
                Change::Ended { was_producing } => {
                    *sending = sending.saturating_sub(1);
                    *producing = producing.saturating_sub(usize::from(was_producing));
                }
                Change::Produced { was_producing } => {
                    *producing = producing.saturating_sub(usize::from(was_producing));
                }
                Change::Waits => *producing += 1,
            }
        }
    }

    /// A request has ended: its answer was passed to the system, or is no longer needed.
    pub(super) fn request_ended(&mut self, now: Instant) {
        if let Phase::Busy { requests, .. } = &mut self.phase {
            *requests = requests.saturating_sub(1);
            if *requests == 0 {
                self.phase = Phase::Idle { since: now };
            }
        }
    }

    /// Whether a part of a head has arrived, so that the client waits for an answer.
    pub(super) fn is_within_head(&self) -> bool {
        matches!(self.phase, Phase::Head { begun: true, .. })
    }

    /// What the client must do next and until when; `None` while everything depends on the server.
    pub(super) fn deadline(&self) -> Option<(Instant, Late)> {
        let waits = match &self.phase {
            Phase::Head { since, .. } => Some((*since + self.header_time, Late::Header)),
            Phase::Idle { since } => Some((*since + self.idle_time, Late::Idle)),
            Phase::Busy { sending, producing, progress, .. } => {
                (sending > producing).then(|| (*progress + self.stall_time, Late::Stall))
            }
        };
        let blocked = self.blocked_since.map(|since| (since + self.stall_time, Late::Stall));
        [waits, blocked].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// How long to wait before the deadline is read again: events may move it forward, but never by more than
    /// the shortest of the timeouts.
    pub(super) fn look_again_after(&self) -> Duration {
        self.header_time.min(self.idle_time).min(self.stall_time)
    }
}

/// An event of an answer's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// A body begins.
    Began,
    /// The body has ended.
    Ended {
        /// Whether it waited for the server until now.
        was_producing: bool,
    },
    /// A piece was taken.
    Produced {
        /// Whether it waited for the server until now.
        was_producing: bool,
    },
    /// The client is ready for a piece and the server has none yet.
    Waits,
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "any instant will do to begin at")]
mod tests {
    use super::*;

    struct Story {
        start: Instant,
        watch: Watch,
    }

    impl Story {
        fn new() -> Self {
            let start = Instant::now();
            Self { start, watch: Watch::new(start, &HttpSettings::default()) }
        }

        fn at(&self, seconds: u64) -> Instant {
            self.start + Duration::from_secs(seconds)
        }

        #[track_caller]
        fn expect(&self, expected: Option<(u64, Late)>) {
            assert_eq!(self.watch.deadline(), expected.map(|(seconds, late)| (self.at(seconds), late)));
        }
    }

    #[test]
    fn a_head_has_ten_seconds_from_the_first_byte_and_a_pause_sixty() {
        let mut story = Story::new();
        story.expect(Some((10, Late::Header)));
        story.watch.read(story.at(9));
        story.expect(Some((10, Late::Header)));
        story.watch.request_began(story.at(9), false);
        story.expect(None);
        story.watch.request_ended(story.at(20));
        story.expect(Some((80, Late::Idle)));
        story.watch.read(story.at(70));
        story.expect(Some((80, Late::Header)));
        story.watch.read(story.at(79));
        story.expect(Some((80, Late::Header)));
    }

    #[test]
    fn frames_of_http2_do_not_shorten_a_pause() {
        let mut story = Story::new();
        story.watch.request_began(story.at(0), true);
        story.watch.request_began(story.at(1), true);
        story.watch.request_ended(story.at(2));
        story.expect(None);
        story.watch.request_ended(story.at(3));
        story.watch.read(story.at(50));
        story.expect(Some((63, Late::Idle)));
    }

    #[test]
    fn an_answer_stalls_when_the_client_takes_nothing_and_not_while_we_make_it() {
        let mut story = Story::new();
        story.watch.request_began(story.at(0), false);
        story.watch.sending(story.at(1), Change::Began);
        story.expect(Some((31, Late::Stall)));
        story.watch.sending(story.at(5), Change::Produced { was_producing: false });
        story.expect(Some((35, Late::Stall)));
        story.watch.sending(story.at(6), Change::Waits);
        story.expect(None);
        story.watch.sending(story.at(60), Change::Produced { was_producing: true });
        story.expect(Some((90, Late::Stall)));
        story.watch.blocked(story.at(61));
        story.watch.blocked(story.at(70));
        story.expect(Some((90, Late::Stall)));
        story.watch.wrote(story.at(80));
        story.expect(Some((110, Late::Stall)));
        story.watch.sending(story.at(81), Change::Ended { was_producing: false });
        story.expect(None);
        story.watch.request_ended(story.at(81));
        story.expect(Some((141, Late::Idle)));
    }

    #[test]
    fn the_last_bytes_of_an_answer_may_stall_too() {
        let mut story = Story::new();
        story.watch.request_began(story.at(0), false);
        story.watch.blocked(story.at(1));
        story.watch.request_ended(story.at(2));
        story.expect(Some((31, Late::Stall)));
        story.watch.wrote(story.at(3));
        story.expect(Some((62, Late::Idle)));
    }
}
