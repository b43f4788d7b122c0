//! The RTCP of a golden call: each side's reports of sent and received packets.

use sidetone_media::rtcp::{Block, REPORT_BYTES_MAX, ReportWriter, SenderInfo};

use super::capture_builder::{CaptureBuilder, Plane, wall};
use super::rtp::Voice;

/// One side's reports.
#[derive(Clone, Copy)]
pub(super) struct Reports<'a> {
    /// The stream that this side sends.
    pub(super) sends: &'a Voice,
    /// The stream that this side receives; without it, the reports have no report block.
    pub(super) hears: Option<Hears<'a>>,
    /// Packets that it reports to have sent in addition to those on the capture.
    pub(super) unseen: u32,
    /// Appended to each report: an extended report, or nothing.
    pub(super) extended: &'a [u8],
}

/// One side's report of the stream that it receives.
#[derive(Clone, Copy)]
pub(super) struct Hears<'a> {
    pub(super) voice: &'a Voice,
    /// Percentage of packets that are lost after the capture point.
    pub(super) lost_pct: u32,
    /// The highest sequence number stays 0: nothing arrives.
    pub(super) deaf: bool,
    /// Interarrival jitter by the index of the report.
    pub(super) jitter_ticks: fn(usize) -> u32,
}

impl<'a> Hears<'a> {
    /// A receiver that gets all packets, in order.
    pub(super) fn well(voice: &'a Voice) -> Hears<'a> {
        Hears { voice, lost_pct: 0, deaf: false, jitter_ticks: |_| 24 }
    }
}

impl<'a> Reports<'a> {
    pub(super) fn of(sends: &'a Voice, hears: Option<Hears<'a>>) -> Reports<'a> {
        Reports { sends, hears, unseen: 0, extended: &[] }
    }

    /// Writes report number `n`, at `at_us`; it answers the peer's report that passed at `peer_us`.
    fn write(&self, n: usize, at_us: i64, before_us: i64, peer_us: Option<i64>) -> Vec<u8> {
        let packets = self.sends.sent_by(at_us) + self.unseen;
        let sender = SenderInfo {
            ssrc: self.sends.ssrc,
            ntp: ntp(at_us),
            timestamp: self.sends.timestamp + packets * self.sends.ticks,
            packets,
            octets: packets * u32::from(self.sends.octets),
        };
        let block = self.hears.map(|hears| hears.block(n, at_us, before_us, peer_us));
        let mut buffer = [0; REPORT_BYTES_MAX];
        let writer = ReportWriter {
            ssrc: sender.ssrc,
            sender: Some(sender),
            block: block.as_ref(),
            extended: sidetone_media::rtcp::ExtendedContent::default(),
            cname: b"golden-captures.",
            leaves: false,
        };
        [writer.write(&mut buffer), self.extended].concat()
    }
}

impl Hears<'_> {
    fn block(&self, n: usize, at_us: i64, before_us: i64, peer_us: Option<i64>) -> Block {
        let expected = self.voice.sent_by(at_us);
        let lost = |expected: u32| expected * self.lost_pct / 100;
        let since =
            (lost(expected) - lost(self.voice.sent_by(before_us)), expected - self.voice.sent_by(before_us));
        let answered = peer_us.map_or((0, 0), |peer_us| {
            let held_us = (at_us - peer_us - ROUND_TRIP_US).max(0);
            (middle(peer_us), ((held_us << 16) / 1_000_000) as u32)
        });
        let heard = !self.deaf;
        Block {
            ssrc: self.voice.ssrc,
            fraction_lost: if heard { (since.0 * 256 / since.1.max(1)) as u8 } else { 0 },
            cumulative_lost: if heard { lost(expected) as i32 } else { 0 },
            highest: if heard { u32::from(self.voice.sequence) + expected - 1 } else { 0 },
            jitter_ticks: if heard { (self.jitter_ticks)(n) } else { 0 },
            last_report: answered.0,
            delay: answered.1,
        }
    }
}

/// Puts both sides' reports on the capture: after two seconds, and then every three seconds until `ends_us`.
pub(super) fn reports(
    capture: &mut CaptureBuilder,
    ends_us: i64,
    of_caller: &Reports<'_>,
    of_called: Option<&Reports<'_>>,
) {
    // There is no report before the first one.
    let (mut before_us, mut n) = (-ANSWER_US, 0);
    let mut at_us = 2_000_000;
    while at_us < ends_us {
        if let Some(called) = of_called {
            let peer_us = (n > 0).then_some(before_us + ANSWER_US);
            capture.push(at_us, Plane::Rtcp, false, called.write(n, at_us, before_us, peer_us));
        }
        let peer_us = of_called.map(|_| at_us);
        let answers_at = at_us + ANSWER_US;
        capture.push(
            answers_at,
            Plane::Rtcp,
            true,
            of_caller.write(n, answers_at, before_us + ANSWER_US, peer_us),
        );
        (before_us, n) = (at_us, n + 1);
        at_us += 3_000_000;
    }
}

/// The caller's last report, and the BYE of its source (RFC 3550 §6.6).
pub(super) fn goodbye(capture: &mut CaptureBuilder, at_us: i64, caller: &Voice) {
    let mut packet = Reports::of(caller, None).write(0, at_us, 0, None);
    packet.extend([0x81, 203, 0, 1]);
    packet.extend(caller.ssrc.to_be_bytes());
    capture.push(at_us, Plane::Rtcp, true, packet);
}

fn ntp(at_us: i64) -> u64 {
    let us = wall(at_us).0.unsigned_abs();
    ((us / 1_000_000 + NTP_OF_UNIX) << 32) | (((us % 1_000_000) << 32) / 1_000_000)
}

fn middle(at_us: i64) -> u32 {
    (ntp(at_us) >> 16) as u32
}

/// The round trip between the capture point and the caller.
const ROUND_TRIP_US: i64 = 60_000;
/// The caller's report follows the switch's after this time.
const ANSWER_US: i64 = 500_000;
/// Seconds from 1900 to 1970.
const NTP_OF_UNIX: u64 = 2_208_988_800;
