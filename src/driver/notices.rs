//! Notices for the operator, written to the log. A kind that unknown senders can cause gets at most one line
//! a second, with the number of notices left out since.

use std::time::{Duration, Instant};

use sidetone_switch::carriers::CarrierFault;
use sidetone_switch::machine::Notice;

/// When each kind last got a line.
#[derive(Debug, Default)]
pub(super) struct NoticeLog {
    kinds: [Kind; KINDS],
}

#[derive(Clone, Debug, Default)]
struct Kind {
    last: Option<Instant>,
    /// Notices of this kind left out since that line.
    more: u64,
}

impl NoticeLog {
    /// Writes a line, or counts the notice for the next line of its kind.
    pub(super) fn note(&mut self, now: Instant, notice: &Notice) {
        let more = match place(notice) {
            Some(kind) => match self.kinds.get_mut(kind).and_then(|kind| kind.begin(now)) {
                Some(more) => more,
                None => return,
            },
            None => 0,
        };
        write(notice, more);
    }
}

impl Kind {
    /// Returns how many notices were left out before this line; `None` when this one is left out too.
    fn begin(&mut self, now: Instant) -> Option<u64> {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) < EVERY) {
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
        Notice::Dropped(_, reason) => 4 + *reason as usize,
        Notice::Carrier(..)
        | Notice::Credentials(_)
        | Notice::Denied(_)
        | Notice::Registered(_)
        | Notice::Unregistered(..) => return None,
    })
}

fn write(notice: &Notice, more: u64) {
    match notice {
        Notice::Carrier(trunk, address, CarrierFault::Inside) => tracing::warn!(
            trunk.id = %trunk, %address,
            "the trunk's name leads to an address that is not public, which is not used; [sip] allow_trunk_addresses opens addresses"
        ),
        Notice::Carrier(trunk, address, CarrierFault::Taken) => tracing::warn!(
            trunk.id = %trunk, %address,
            "the trunk leads to an address of another organisation's trunk, which is not used; make one trunk that all share"
        ),
        Notice::Credentials(trunk) => {
            tracing::warn!(trunk.id = %trunk, "the trunk does not take our credentials; check username, password and realm")
        }
        // The refusal log writes these, with one line a second for each source.
        Notice::Denied(_) => {}
        Notice::Dropped(source, reason) if reason.is_flood() => {
            tracing::warn!(%source, reason = reason.as_str(), more, "too many SIP messages, dropped without an answer")
        }
        Notice::Dropped(source, reason) => {
            tracing::debug!(%source, reason = reason.as_str(), more, "a SIP message that belongs to nothing was dropped")
        }
        Notice::Guessing(source, limit) => {
            tracing::warn!(%source, limit = limit.as_str(), more, "too many wrong passwords, guesses are refused for a while")
        }
        Notice::Overload(source) => {
            tracing::warn!(%source, more, "too many SIP transactions, message answered 503")
        }
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
/// Four kinds, and one for each reason to drop a message.
const KINDS: usize = 4 + sidetone_sip::admission::Dropped::ALL.len();

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
            (0..30).map(|turn| kind.begin(zero + Duration::from_millis(turn * 100))).collect();
        let written: Vec<u64> = lines.into_iter().flatten().collect();
        assert_eq!(written, [0, 9, 9]);
        let source = "192.0.2.1".parse().unwrap();
        let mut places: Vec<usize> = Dropped::ALL
            .iter()
            .map(|reason| Notice::Dropped(source, *reason))
            .chain([
                Notice::Guessing(source, GuessLimit::Account),
                Notice::Overload(source),
                Notice::Withheld(source),
            ])
            .filter_map(|notice| place(&notice))
            .collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!((places.len(), places.last()), (Dropped::ALL.len() + 3, Some(&(KINDS - 1))));
    }
}
