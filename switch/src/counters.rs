//! Counters of a running switch: messages by their first line, calls by their hangup cause.
//!
//! The driver updates them while it works; no decision depends on them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use sidetone_model::cdr::Cdr;
use sidetone_model::guessing::GuessLimit;
use sidetone_model::pin_guessing::PinLimit;
use sidetone_model::quality::Quality;
use sidetone_sip::admission::Dropped;
use sidetone_sip::message::Message;

use crate::machine::Notice;

/// Totals since the start.
#[derive(Debug, Default)]
pub struct Counters {
    received: Messages,
    sent: Messages,
    ended: Mutex<Ended>,
    notices: [AtomicU64; NOTICES.len()],
    denied: Mutex<Denials>,
    guessed: [AtomicU64; GUESS_LIMITS.len()],
    pins_guessed: [AtomicU64; PIN_LIMITS.len()],
    dropped: [AtomicU64; Dropped::ALL.len()],
}

/// Messages in one direction, by method and by class of status.
#[derive(Debug, Default)]
pub struct Messages {
    requests: [AtomicU64; METHODS.len()],
    responses: [AtomicU64; CLASSES.len()],
}

/// How calls ended.
///
/// *Bounds*: directions, causes and verdicts are closed sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ended {
    /// Calls by direction and hangup cause.
    pub calls: BTreeMap<(&'static str, &'static str), u64>,
    /// Legs by their side, `a` the caller's and `b` the called party's, and by their verdict, where they have one.
    pub verdicts: BTreeMap<(&'static str, &'static str), u64>,
}

/// Requests refused because of their sender.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Denials {
    /// Failed authentications by reason.
    pub authentication: BTreeMap<&'static str, u64>,
    /// Refused calls by hangup cause.
    pub calls: BTreeMap<&'static str, u64>,
}

impl Counters {
    /// Returns the messages received.
    pub fn received(&self) -> &Messages {
        &self.received
    }

    /// Returns the messages sent.
    pub fn sent(&self) -> &Messages {
        &self.sent
    }

    /// Returns how calls ended.
    pub fn ended(&self) -> Ended {
        self.ended.lock().clone()
    }

    /// Returns the notices to the operator, by kind.
    pub fn notices(&self) -> impl Iterator<Item = (&'static str, u64)> {
        NOTICES.into_iter().zip(self.notices.iter().map(|count| count.load(Ordering::Relaxed)))
    }

    /// Returns the requests refused because of their sender.
    pub fn denied(&self) -> Denials {
        self.denied.lock().clone()
    }

    /// How often wrong passwords reached a limit, by the limit's label.
    pub fn guessed(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.guessed.iter().map(|count| count.load(Ordering::Relaxed));
        GUESS_LIMITS.into_iter().map(GuessLimit::as_str).zip(counts)
    }

    /// How often wrong PINs of rooms reached a limit, by the limit's label.
    pub fn pins_guessed(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.pins_guessed.iter().map(|count| count.load(Ordering::Relaxed));
        PIN_LIMITS.into_iter().map(PinLimit::as_str).zip(counts)
    }

    /// Messages dropped unread, by reason.
    pub fn dropped(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.dropped.iter().map(|count| count.load(Ordering::Relaxed));
        Dropped::ALL.into_iter().map(Dropped::as_str).zip(counts)
    }

    /// Counts a call that has ended.
    pub fn note_end(&self, record: &Cdr) {
        let mut ended = self.ended.lock();
        let cause = record.hangup_cause.map_or("none", |cause| cause.as_str());
        *ended.calls.entry((record.direction.as_str(), cause)).or_default() += 1;
        let callee = record.media_b.and_then(Quality::of_callee);
        for (leg, quality) in [("a", Some(record.quality)), ("b", callee)] {
            if let Some(verdict) = quality.and_then(|quality| quality.verdict) {
                *ended.verdicts.entry((leg, verdict.as_str())).or_default() += 1;
            }
        }
    }

    /// Counts a notice of the switch.
    pub fn note_notice(&self, notice: &Notice) {
        let place = match notice {
            Notice::Carrier(..) => 4,
            Notice::Credentials(_) => 0,
            Notice::Denied(denied) => {
                let mut all = self.denied.lock();
                let Denials { authentication, calls } = &mut *all;
                let kind = if denied.denial.is_authentication() { authentication } else { calls };
                *kind.entry(denied.denial.as_str()).or_default() += 1;
                return;
            }
            Notice::Guessing(_, limit) => {
                let place = GUESS_LIMITS.iter().position(|known| known == limit);
                return add(place.and_then(|place| self.guessed.get(place)));
            }
            Notice::PinGuessing(_, limit) => {
                let place = PIN_LIMITS.iter().position(|known| known == limit);
                return add(place.and_then(|place| self.pins_guessed.get(place)));
            }
            Notice::Overload(_) => 1,
            Notice::Rejected(..) => 2,
            Notice::Withheld(_) => 3,
            Notice::Dropped(_, reason) => return add(self.dropped.get(*reason as usize)),
            // A trunk's state is not a count, and the media engine counts packets.
            Notice::ReadableKeys(_) | Notice::Registered(_) | Notice::Unregistered(..) => return,
        };
        add(self.notices.get(place));
    }
}

impl Messages {
    /// Returns the requests by method; unknown methods count as `other`.
    pub fn requests(&self) -> impl Iterator<Item = (&'static str, u64)> {
        METHODS.into_iter().zip(self.requests.iter().map(|count| count.load(Ordering::Relaxed)))
    }

    /// Returns the responses by class.
    pub fn responses(&self) -> impl Iterator<Item = (&'static str, u64)> {
        CLASSES.into_iter().zip(self.responses.iter().map(|count| count.load(Ordering::Relaxed)))
    }

    /// Counts a message that has been read already.
    pub fn note_message(&self, message: &Message) {
        match message {
            Message::Request(request) => self.note_method(request.method().as_str().as_bytes()),
            Message::Response(response) => {
                let class = usize::from(response.status().as_u16() / 100).checked_sub(1);
                add(class.and_then(|class| self.responses.get(class)));
            }
        }
    }

    /// Counts a datagram as a request or a response by its first bytes; keep-alives and other data are not counted.
    pub fn note(&self, bytes: &[u8]) {
        if let Some(rest) = bytes.strip_prefix(b"SIP/2.0 ") {
            let class = rest.first().and_then(|digit| digit.checked_sub(b'1'));
            add(class.and_then(|class| self.responses.get(usize::from(class))));
            return;
        }
        let Some(method) = bytes.split(|byte| *byte == b' ').next().filter(|word| is_method(word)) else {
            return;
        };
        self.note_method(method);
    }

    fn note_method(&self, method: &[u8]) {
        let known = METHODS.iter().position(|known| known.as_bytes() == method);
        add(self.requests.get(known.unwrap_or(METHODS.len() - 1)));
    }
}

/// Whether a datagram that begins with this word may be a request.
fn is_method(word: &[u8]) -> bool {
    (1..=METHOD_LEN_MAX).contains(&word.len()) && word.iter().all(u8::is_ascii_uppercase)
}

fn add(count: Option<&AtomicU64>) {
    if let Some(count) = count {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "6xx"];
const METHOD_LEN_MAX: usize = 32;
const METHODS: [&str; 15] = [
    "ACK",
    "BYE",
    "CANCEL",
    "INFO",
    "INVITE",
    "MESSAGE",
    "NOTIFY",
    "OPTIONS",
    "PRACK",
    "PUBLISH",
    "REFER",
    "REGISTER",
    "SUBSCRIBE",
    "UPDATE",
    "other",
];
const GUESS_LIMITS: [GuessLimit; 3] = [GuessLimit::Account, GuessLimit::AllSources, GuessLimit::Source];
const PIN_LIMITS: [PinLimit; 6] = [
    PinLimit::Caller,
    PinLimit::Known,
    PinLimit::Organisation,
    PinLimit::Room,
    PinLimit::Trunk,
    PinLimit::Withheld,
];
const NOTICES: [&str; 5] = ["credentials", "overload", "rejected", "withheld", "trunk_address"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_known_by_how_they_begin() {
        let messages = Messages::default();
        let texts: [&[u8]; 8] = [
            b"INVITE sip:1 SIP/2.0\r\n",
            b"BREW sip:1 SIP/2.0\r\n",
            b"SIP/2.0 200 OK\r\n",
            b"SIP/2.0 699 No\r\n",
            b"SIP/2.0 000 No\r\n",
            b"\r\n\r\n",
            b"hello there",
            b"",
        ];
        for text in texts {
            messages.note(text);
        }
        let counted = |mut all: Vec<(&'static str, u64)>| {
            all.retain(|(_, count)| *count > 0);
            all
        };
        assert_eq!(counted(messages.requests().collect()), [("INVITE", 1), ("other", 1)]);
        assert_eq!(counted(messages.responses().collect()), [("2xx", 1), ("6xx", 1)]);
    }
}
