//! Video on a leg's second pair of ports: RTP of any codec. It is admitted by the rules for sources, counted and
//! relayed. A picture consists of many packets with one timestamp, and repair packets have their own SSRC, so no figure
//! of audio and no rule of the verdict includes video.

use crate::rtp::Packet;
use crate::session::numbers::Numbers;

/// Counts of a leg's video.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VideoCounters {
    /// RTP packets of the party that were relayed or could have been.
    pub received: u64,
    /// Octets of their payloads.
    pub received_bytes: u64,
    /// RTP packets sent to the party.
    pub sent: u64,
    /// Sequence numbers of the party that did not arrive.
    pub missing: u64,
}

/// The counts, and the newest sequence numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Video {
    pub(super) counters: VideoCounters,
    streams: [Option<(u32, Numbers)>; STREAMS_MAX],
    /// The index in `streams` for the next new SSRC.
    next: usize,
}

impl Video {
    /// Counts an accepted packet.
    pub(super) fn received(&mut self, packet: &Packet) {
        self.counters.received = self.counters.received.saturating_add(1);
        self.counters.received_bytes = self.counters.received_bytes.saturating_add(packet.payload_len.into());
        let missing = self.numbers(packet.ssrc).map_or(0, |numbers| numbers.note(packet.sequence));
        self.counters.missing = self.counters.missing.saturating_add_signed(missing);
    }

    /// The numbers of an SSRC; a new SSRC replaces the one that was added first.
    fn numbers(&mut self, ssrc: u32) -> Option<&mut Numbers> {
        let known = self.streams.iter().position(|stream| stream.is_some_and(|(known, _)| known == ssrc));
        let place = known.unwrap_or_else(|| {
            let place = self.next;
            self.next = (place + 1) % STREAMS_MAX;
            place
        });
        let stream = self.streams.get_mut(place)?;
        let (_, numbers) = match (known, stream) {
            (Some(_), Some(stream)) => stream,
            (_, stream) => stream.insert((ssrc, Numbers::default())),
        };
        Some(numbers)
    }
}

/// SSRCs whose numbers are followed at the same time: pictures, repairs, and both again after the party has changed
/// them.
const STREAMS_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ssrc_has_numbers_of_its_own() {
        let mut video = Video::default();
        let mut receive = |ssrc: u32, sequence: u16| {
            video.received(&Packet { ssrc, sequence, payload_len: 10, ..Packet::default() });
            video.counters.missing
        };
        for number in 0..20 {
            assert_eq!(receive(1, number), 0);
            assert_eq!(receive(2, 60_000 + number), 0, "repairs beside the pictures");
        }
        assert_eq!(receive(1, 22), 2);
        for ssrc in 10..100 {
            assert_eq!(receive(ssrc, 7), 2, "a new one misses nothing");
        }
        assert_eq!(receive(1, 40), 2, "one that was forgotten begins anew");
        assert_eq!((video.counters.received, video.counters.received_bytes), (132, 1_320));
    }
}
