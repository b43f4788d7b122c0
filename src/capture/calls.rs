//! All calls of a capture, and whose media goes where.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use sidetone_media::rtp::Packet;
use sidetone_media::time::Micros;
use sidetone_model::time::Timestamp;
use sidetone_sip::message::{Datagram, parse_datagram};
use sidetone_sip::sdp::Media;

use super::dialog::{Announcement, Dialog};
use super::flows::Binding;
use super::payloads::{self, Meanings};
use super::report::{CallReport, EvidenceReport, Shared, verdict};

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The message guard refuses it.
    Malformed,
    /// There are too many calls already.
    OverLimit,
}

/// The calls of a capture by Call-ID, and the media addresses of those that last used them.
#[derive(Debug, Default)]
pub(super) struct Calls {
    by_id: HashMap<String, u32>,
    calls: Vec<Dialog>,
    endpoints: HashMap<SocketAddr, Endpoint>,
    generation: u32,
}

#[derive(Debug)]
struct Endpoint {
    call: u32,
    of_caller: bool,
    audio: bool,
    media: Media,
    payloads: Meanings,
}

impl Calls {
    pub(super) fn new() -> Self {
        Calls::default()
    }

    /// Changes whenever a flow could be bound to another call.
    #[inline]
    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    /// Takes a SIP message.
    pub(super) fn message(
        &mut self,
        at: Micros,
        source: SocketAddr,
        destination: SocketAddr,
        payload: &[u8],
    ) -> Result<(), Refused> {
        let Ok(datagram) = parse_datagram(Bytes::copy_from_slice(payload)) else {
            return Err(Refused::Malformed);
        };
        let Datagram::Message(message) = datagram else { return Ok(()) };
        let call_id = message.headers().call_id();
        let number = match self.by_id.get(call_id) {
            Some(number) => *number,
            None => {
                let Some(dialog) = Dialog::begin(at, (source, destination), &message) else { return Ok(()) };
                if self.calls.len() >= CALLS_MAX {
                    return Err(Refused::OverLimit);
                }
                let number = self.calls.len() as u32;
                self.by_id.insert(call_id.to_owned(), number);
                self.calls.push(dialog);
                number
            }
        };
        let Some(dialog) = self.calls.get_mut(number as usize) else { return Ok(()) };
        for announcement in dialog.message(at, (source, destination), &message) {
            self.announce(number, announcement);
        }
        Ok(())
    }

    /// The call whose SDP named the ends of a flow.
    pub(super) fn binding(&self, source: SocketAddr, destination: SocketAddr) -> Option<Binding> {
        let bind = |endpoint: &Endpoint, from_caller| Binding {
            call: endpoint.call,
            from_caller,
            audio: endpoint.audio,
        };
        if let Some(endpoint) = self.endpoints.get(&destination) {
            return Some(bind(endpoint, !endpoint.of_caller));
        }
        // A party behind NAT receives where nobody said it would, from where the other said it would send.
        self.endpoints.get(&source).map(|endpoint| bind(endpoint, endpoint.of_caller))
    }

    /// What the payload types mean that go to `destination`, where signalling says so.
    pub(super) fn payloads(&self, source: SocketAddr, destination: SocketAddr) -> Option<Meanings> {
        let endpoint = self.endpoints.get(&destination).or_else(|| self.endpoints.get(&source))?;
        Some(Arc::clone(&endpoint.payloads))
    }

    /// The packet durations that the sender and the receiver of a bound stream advertised.
    pub(super) fn ptime_ms(&self, binding: Binding) -> (Option<u32>, Option<u32>) {
        match self.calls.get(binding.call as usize).map(|call| call.ptime_ms) {
            Some((caller, called)) if binding.audio => {
                if binding.from_caller {
                    (caller, called)
                } else {
                    (called, caller)
                }
            }
            _ => (None, None),
        }
    }

    /// Takes a packet of a bound flow.
    #[inline]
    pub(super) fn packet(
        &mut self,
        at: Micros,
        binding: Binding,
        source: SocketAddr,
        destination: SocketAddr,
        packet: &Packet,
    ) {
        if !binding.audio {
            return;
        }
        if let Some(call) = self.calls.get_mut(binding.call as usize) {
            if binding.from_caller {
                call.received(at, source, packet);
            } else {
                call.sent(at, destination);
            }
        }
    }

    /// Judges every call that has not ended yet.
    pub(super) fn close_all(&mut self) {
        for call in &mut self.calls {
            call.close(call.ended.unwrap_or(call.last));
        }
    }

    /// The calls as reports; `places` holds the call of each stream and its place in the report.
    pub(super) fn reports(self, places: &[(u32, usize)]) -> Vec<CallReport> {
        let mut streams: Vec<Vec<usize>> = self.calls.iter().map(|_| Vec::new()).collect();
        for (call, place) in places {
            if let Some(list) = streams.get_mut(*call as usize) {
                list.push(*place);
            }
        }
        self.calls.into_iter().zip(streams).map(|(call, streams)| report(call, streams)).collect()
    }

    fn announce(&mut self, call: u32, announcement: Announcement) {
        if self.endpoints.len() >= ENDPOINTS_MAX {
            let calls = &self.calls;
            self.endpoints.retain(|_, endpoint| {
                calls.get(endpoint.call as usize).is_some_and(|call| call.ended.is_none())
            });
        }
        if self.endpoints.len() >= ENDPOINTS_MAX {
            return;
        }
        let Announcement { address, of_caller, audio, media } = announcement;
        let unchanged = self.endpoints.get(&address).is_some_and(|known| {
            known.call == call && known.of_caller == of_caller && known.audio == audio && known.media == media
        });
        if !unchanged {
            self.generation = self.generation.wrapping_add(1);
            let payloads = payloads::meanings(Some(&media));
            self.endpoints.insert(address, Endpoint { call, of_caller, audio, media, payloads });
        }
    }
}

fn report(mut call: Dialog, streams: Vec<usize>) -> CallReport {
    let leg = call.close(call.ended.unwrap_or(call.last)).clone();
    let shared = Shared::new(&leg.figures);
    let timestamp = |at: Micros| Timestamp::from_micros(at.0);
    let billed_us = call.answered.map_or(0, |answered| call.ended.unwrap_or(call.last).since(answered));
    CallReport {
        call_id: call.call_id,
        from: call.from,
        to: call.to,
        started_at: timestamp(call.started),
        answered_at: call.answered.map(timestamp),
        ended_at: call.ended.map(timestamp),
        billsec: billed_us.max(0) / 1_000_000,
        sip_status: call.status,
        hangup_cause: call.cause,
        codec_a: leg.codec.clone().or(call.codec),
        jitter_ms: shared.jitter_ms,
        loss_pct: shared.loss_pct,
        mean_interval_ms: shared.mean_interval_ms,
        quality_pct: shared.quality_pct,
        mos: shared.mos,
        media_verdict: verdict(&leg),
        evidence: leg.verdict.map(|_| EvidenceReport(leg.evidence)),
        streams,
    }
}

/// Calls of one capture.
const CALLS_MAX: usize = 500_000;
/// Media addresses that are known at once.
const ENDPOINTS_MAX: usize = 200_000;
