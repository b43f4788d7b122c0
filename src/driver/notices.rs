//! Notices for the operator, written to the log. A kind that unknown senders can cause gets at most one line a
//! second, readable SRTP keys one a minute, each with the number of notices omitted since.

use std::io;
use std::time::{Duration, Instant};

use sidetone_sip::flow::Flow;
use sidetone_switch::carriers::CarrierFault;
use sidetone_switch::machine::Notice;

use crate::tls::tls_reason;

/// When each kind last got a line.
#[derive(Debug, Default)]
pub(super) struct NoticeLog {
    kinds: [Kind; KINDS],
}

#[derive(Clone, Debug, Default)]
struct Kind {
    last: Option<Instant>,
    /// Notices of this kind omitted since that line.
    more: u64,
}

impl NoticeLog {
    /// Writes a line, or counts the notice for the next line of its kind.
    pub(super) fn note(&mut self, now: Instant, notice: &Notice) {
        let every = if matches!(notice, Notice::ReadableKeys(_)) { EVERY_READABLE } else { EVERY };
        let more = match place(notice) {
            Some(kind) => match self.kinds.get_mut(kind).and_then(|kind| kind.begin(now, every)) {
                Some(more) => more,
                None => return,
            },
            None => 0,
        };
        write(notice, more);
    }

    /// Logs why a connection could not be secured, like [`NoticeLog::note`]; failures of connections that this node
    /// opened, to `server`, are a separate kind.
    pub(super) fn note_unsecured(
        &mut self,
        now: Instant,
        flow: &Flow,
        server: Option<&str>,
        error: &io::Error,
    ) {
        let (address, reason) = (flow.remote, tls_reason(error));
        let kind = if server.is_some() { UNSECURED_SERVER } else { UNSECURED };
        let Some(more) = self.kinds.get_mut(kind).and_then(|kind| kind.begin(now, EVERY)) else { return };
        if let Some(server) = server {
            tracing::warn!(server, %address, reason, more, "no TLS connection to the server of a trunk");
            return;
        }
        let source = address.ip();
        tracing::info!(%source, transport = flow.protocol.as_str(), reason, more, "no secure connection with a client");
    }
}

impl Kind {
    /// Returns how many notices were omitted before this line; `None` if this one is omitted too.
    fn begin(&mut self, now: Instant, every: Duration) -> Option<u64> {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) < every) {
            self.more = self.more.saturating_add(1);
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.more))
    }
}

/// Returns the kind of a notice that unknown senders can cause; notices about trunks are always written.
fn place(notice: &Notice) -> Option<usize> {
    Some(match notice {
        Notice::Guessing(..) => 0,
        Notice::Overload(_) => 1,
        Notice::Rejected(..) => 2,
        Notice::Withheld(_) => 3,
        Notice::ReadableKeys(_) => 4,
        Notice::Dropped(_, reason) => 5 + *reason as usize,
        Notice::Carrier(..)
        | Notice::Credentials(_)
        | Notice::Denied(_)
        | Notice::PinGuessing(..)
        | Notice::Registered(_)
        | Notice::Unregistered(..) => return None,
    })
}

fn write(notice: &Notice, more: u64) {
    match notice {
        Notice::Carrier(trunk, address, CarrierFault::Inside) => tracing::warn!(
            trunk.id = %trunk, %address,
            "the trunk's name resolves to a non-public address, which is not used; permit it with [sip] allow_trunk_addresses"
        ),
        Notice::Carrier(trunk, address, CarrierFault::Taken) => tracing::warn!(
            trunk.id = %trunk, %address,
            "the trunk resolves to an address of another organisation's trunk, which is not used; use one shared trunk"
        ),
        Notice::Credentials(trunk) => {
            tracing::warn!(trunk.id = %trunk, "the trunk refuses our credentials; check username, password and realm")
        }
        // The refusal log writes these, with one line a second for each source.
        Notice::Denied(_) => {}
        Notice::Dropped(source, reason) if reason.is_flood() => {
            tracing::warn!(%source, reason = reason.as_str(), more, "too many SIP messages, dropped without an answer")
        }
        Notice::Dropped(source, reason) => {
            tracing::debug!(%source, reason = reason.as_str(), more, "a SIP message without a transaction or dialog was dropped")
        }
        Notice::Guessing(source, limit) => {
            tracing::warn!(%source, limit = limit.as_str(), more, "too many wrong passwords, guesses are refused for a while")
        }
        Notice::PinGuessing(room, limit) => {
            tracing::warn!(room.id = %room, limit = limit.as_str(), "too many wrong PINs at a conference room")
        }
        Notice::Overload(source) => {
            tracing::warn!(%source, more, "too many SIP transactions, message answered 503")
        }
        Notice::ReadableKeys(source) => tracing::warn!(
            %source, more,
            "the keys of SRTP came over SIP without TLS, and can be read on the way; use tls:// for this phone or trunk"
        ),
        Notice::Registered(trunk) => tracing::info!(trunk.id = %trunk, "registered with the trunk"),
        Notice::Unregistered(trunk, status) => tracing::warn!(
            trunk.id = %trunk,
            sip.status = status,
            "cannot register with the trunk; trying again, less often each time"
        ),
        Notice::Rejected(source, reason) => {
            tracing::debug!(%source, %reason, more, "what came is no SIP message")
        }
        Notice::Withheld(source) => {
            tracing::debug!(%source, more, "a request too short for its answer was not answered")
        }
    }
}

const EVERY: Duration = Duration::from_secs(1);
const EVERY_READABLE: Duration = Duration::from_secs(60);
/// Connections of clients that could not be secured. The preceding kinds are five, and one for each reason to drop a
/// message.
const UNSECURED: usize = 5 + sidetone_sip::admission::Dropped::ALL.len();
/// Connections to servers that could not be secured.
const UNSECURED_SERVER: usize = UNSECURED + 1;
const KINDS: usize = UNSECURED_SERVER + 1;

#[cfg(test)]
mod tests {
    use sidetone_model::guessing::GuessLimit;
    use sidetone_sip::admission::Dropped;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
    fn each_kind_has_a_line_a_second_that_counts_the_others() {
        let zero = Instant::now();
        let mut kind = Kind::default();
        let lines: Vec<Option<u64>> =
            (0..30).map(|turn| kind.begin(zero + Duration::from_millis(turn * 100), EVERY)).collect();
        let written: Vec<u64> = lines.into_iter().flatten().collect();
        assert_eq!(written, [0, 9, 9]);
        let source = "192.0.2.1".parse().unwrap();
        let mut places: Vec<usize> = Dropped::ALL
            .iter()
            .map(|reason| Notice::Dropped(source, *reason))
            .chain([
                Notice::Guessing(source, GuessLimit::Account),
                Notice::Overload(source),
                Notice::ReadableKeys(source),
                Notice::Withheld(source),
            ])
            .filter_map(|notice| place(&notice))
            .collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!((places.len(), places.last()), (Dropped::ALL.len() + 4, Some(&(UNSECURED - 1))));
    }
}
