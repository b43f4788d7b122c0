//! Sends a party our RTCP reports: about the stream generated for it, or, on a relayed leg whose peer sends no RTCP,
//! about the reception of the party's stream here ([`Monitor`](super::monitor::Monitor)).

use sidetone_wire::Wire;

use super::clock::Clock;
use super::counters::{Batch, Count};
use super::leg::{Leg, copied};
use crate::rtcp::REPORT_BYTES_MAX;
use crate::time::Micros;

impl Leg {
    /// Sends the party the RTCP report that is due, or the BYE after the last one.
    pub(super) fn send_report(&mut self, wire: &mut Wire, clock: &Clock, batch: &mut Batch) {
        let now = clock.now();
        let reports = match (&mut self.reports, &mut self.monitor) {
            (Some(reports), _) => reports,
            (None, Some(monitor)) if monitor.is_quiet(now) => &mut monitor.reports,
            (None, Some(monitor)) if monitor.reports.has_reported() => {
                let mut buffer = [0; REPORT_BYTES_MAX];
                let bye = monitor.reports.leave(&mut buffer).map(<[u8]>::len);
                return self.send_rtcp(wire, now, buffer.get(..bye.unwrap_or(0)).unwrap_or_default(), batch);
            }
            (None, _) => return,
        };
        if self.rtcp_target.is_none() || !reports.is_due(now) {
            return;
        }
        let sample = clock.sample();
        let block = self.session.report_block(sample.now);
        let extended = self.session.report_extended(sample.now);
        let asks = self.session.wants_reference_times();
        let mut buffer = [0; REPORT_BYTES_MAX];
        let Some(report) =
            reports.write(sample, block.as_ref(), (extended, asks), &mut buffer).map(<[u8]>::len)
        else {
            return;
        };
        self.send_rtcp(wire, sample.now, buffer.get(..report).unwrap_or_default(), batch);
    }

    /// Ends our reports, if there were any: the leg is closed.
    pub(super) fn end_reports(&mut self, wire: &mut Wire, now: Micros, batch: &mut Batch) {
        let monitored = self.monitor.as_mut().map(|monitor| &mut monitor.reports);
        let byes = [self.reports.as_mut(), monitored].map(|reports| {
            let mut buffer = [0; REPORT_BYTES_MAX];
            let bye = reports?.leave(&mut buffer)?.len();
            Some((buffer, bye))
        });
        for (buffer, bye) in byes.into_iter().flatten() {
            self.send_rtcp(wire, now, buffer.get(..bye).unwrap_or_default(), batch);
        }
    }

    fn send_rtcp(&mut self, wire: &mut Wire, now: Micros, report: &[u8], batch: &mut Batch) {
        let Some(to) = self.rtcp_target else { return };
        let endpoint = if self.rtcp_mux { &self.rtp } else { &self.rtcp };
        let sent = match &mut self.protected {
            None => wire.send_own(endpoint, to, report),
            Some(secured) => {
                let mut buffer = [0; REPORT_BYTES_MAX + SRTCP_BYTES_MAX];
                let sealed = copied(&mut buffer, report).and_then(|len| secured.seal_rtcp(&mut buffer, len));
                let sealed = sealed.and_then(|len| buffer.get(..len));
                sealed.is_some_and(|sealed| wire.send_own(endpoint, to, sealed))
            }
        };
        if sent {
            self.session.sent_rtcp(now, report);
            self.tap_sent(now, to, report);
        }
        batch.add(if sent { Count::Originated } else { Count::OriginateErrors }, 1);
    }
}

/// The bytes that SRTCP adds to a report.
const SRTCP_BYTES_MAX: usize = 20;
