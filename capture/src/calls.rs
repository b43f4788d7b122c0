//! All calls of a capture, and which call each media flow belongs to.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use sidetone_media::session::Withheld;
use sidetone_media::time::Micros;
use sidetone_model::failure::{Failure, FailureKind, Request};
use sidetone_model::time::Timestamp;
use sidetone_sip::message::{Datagram, Message, Method, parse_datagram};
use sidetone_sip::sdp::SessionDescription;

use super::analysis::{CallReport, EvidenceReport, Shared, verdict, worse};
use super::call_leg::CallLeg;
use super::dialog::{Announcement, Dialog, announcements};
use super::embedded_sdp::described;
use super::flows::Binding;
use super::leg::LegReport;
use super::lenient_sip;
use super::payloads::{Announced, Meanings, is_same};
use super::registrations::{Registrations, is_registration};
use super::signal::LegSignal;

/// The reason why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The message guard refuses it.
    Malformed,
    /// There are too many calls already.
    OverLimit,
}

/// The calls of a capture by Call-ID, and the media addresses with the call that used each last.
#[derive(Debug)]
pub(super) struct Calls {
    by_id: HashMap<String, u32>,
    /// By number; boxed, since the list grows by doubling.
    calls: Vec<Option<Box<Dialog>>>,
    /// Numbers that are free again.
    free: Vec<u32>,
    /// Calls begun so far.
    begun: u64,
    endpoints: HashMap<SocketAddr, Endpoint>,
    /// RTCP that is not on the next port, and its RTP; at most one entry per endpoint.
    rtcp: HashMap<SocketAddr, SocketAddr>,
    generation: u32,
    meanings: Announced,
    keeps_ladders: bool,
    /// The registrations; empty when calls are evicted, since these would never be.
    pub(super) registrations: Registrations,
    /// The ends of calls in the order of arrival, when calls are evicted.
    ends: Option<VecDeque<(Micros, u32)>>,
}

#[derive(Debug)]
struct Endpoint {
    call: u32,
    of_caller: bool,
    audio: bool,
    payloads: Meanings,
    /// The address of its RTCP, if SDP names one; boxed, since few descriptions do.
    rtcp: Option<Box<SocketAddr>>,
}

/// The changes that a message caused.
#[derive(Debug)]
pub(super) struct News {
    /// The number of its call.
    pub(super) call: u32,
    /// The changes to report to the call's leg.
    pub(super) leg: Vec<LegSignal>,
    /// Addresses whose flows may belong to another call now, or have other payload types.
    pub(super) announced: Vec<SocketAddr>,
    /// Any flow may be affected.
    pub(super) anything: bool,
}

impl Calls {
    /// `evicts` states whether finished calls are removed while others go on.
    pub(super) fn new(keeps_ladders: bool, evicts: bool) -> Self {
        Calls {
            by_id: HashMap::new(),
            calls: Vec::new(),
            free: Vec::new(),
            begun: 0,
            endpoints: HashMap::new(),
            rtcp: HashMap::new(),
            generation: 0,
            meanings: Announced::default(),
            keeps_ladders,
            registrations: Registrations::default(),
            ends: evicts.then(VecDeque::new),
        }
    }

    /// A counter that changes whenever a flow may have been bound to another call.
    #[inline]
    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    /// Takes a SIP message; `None` when it belongs to no call.
    pub(super) fn message(
        &mut self,
        at: Micros,
        hop: (SocketAddr, SocketAddr),
        payload: &[u8],
    ) -> Result<Option<News>, Refused> {
        let message = match parse_datagram(Bytes::copy_from_slice(payload)) {
            Ok(Datagram::Message(message)) => message,
            Ok(Datagram::Ping | Datagram::Pong) => return Ok(None),
            Err(_) => lenient_sip::read(payload).ok_or(Refused::Malformed)?,
        };
        self.take(at, hop, &message)
    }

    /// Takes a SIP message that has already passed the guard; `None` when it belongs to no call.
    pub(super) fn take(
        &mut self,
        at: Micros,
        hop: (SocketAddr, SocketAddr),
        message: &Message,
    ) -> Result<Option<News>, Refused> {
        if is_registration(message) {
            let taken = self.ends.is_some() || self.registrations.message(at, hop, message);
            return if taken { Ok(None) } else { Err(Refused::OverLimit) };
        }
        let Some(number) = self.number(at, hop, message)? else {
            // The beginning of the call was not captured; the media addresses of the message are used anyway.
            return Ok(settles_media(message)
                .then(|| described(message))
                .flatten()
                .map(|sdp| self.describe(&sdp)));
        };
        let dialog = self.calls.get_mut(number as usize).and_then(Option::as_deref_mut);
        let Some(dialog) = dialog else { return Ok(None) };
        let mut leg = Vec::new();
        let before = dialog.ended;
        let announcements = dialog.message(at, hop, message, &mut self.meanings, &mut leg);
        let ended = dialog.ended.filter(|_| dialog.ended != before);
        if self.keeps_ladders {
            dialog.ladder.push(at, hop, message);
        }
        if let (Some(ends), Some(ended)) = (&mut self.ends, ended) {
            ends.push_back((ended, number));
        }
        let mut news = News { call: number, leg, announced: Vec::new(), anything: false };
        for announcement in announcements {
            self.announce(number, announcement, &mut news);
        }
        Ok(Some(news))
    }

    /// Takes a session description without a call: its media addresses are known, but belong to no call.
    pub(super) fn describe(&mut self, description: &SessionDescription) -> News {
        let mut news =
            News { call: Binding::NO_CALL, leg: Vec::new(), announced: Vec::new(), anything: false };
        for announcement in announcements(&Arc::new(description.clone()), true, None) {
            let is_a_calls =
                self.endpoints.get(&announcement.address).is_some_and(|known| known.call != Binding::NO_CALL);
            // The SIP announcement of an address has precedence.
            if !is_a_calls {
                self.announce(Binding::NO_CALL, announcement, &mut news);
            }
        }
        news
    }

    /// Returns the number of the call that a message belongs to, or starts.
    fn number(
        &mut self,
        at: Micros,
        hop: (SocketAddr, SocketAddr),
        message: &Message,
    ) -> Result<Option<u32>, Refused> {
        let call_id = message.headers().call_id();
        let known = self.by_id.get(call_id).copied();
        let is_another =
            known.and_then(|number| self.get(number)).is_some_and(|call| call.is_followed_by(hop, message));
        if known.is_some() && !is_another {
            return Ok(known);
        }
        let Some(mut dialog) = Dialog::begin(at, hop, message) else { return Ok(None) };
        if self.calls.len() - self.free.len() >= CALLS_MAX {
            return Err(Refused::OverLimit);
        }
        dialog.serial = self.begun;
        self.begun += 1;
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                self.calls.push(None);
                self.calls.len() as u32 - 1
            }
        };
        if let Some(slot) = self.calls.get_mut(number as usize) {
            *slot = Some(Box::new(dialog));
        }
        self.by_id.insert(call_id.to_owned(), number);
        Ok(Some(number))
    }

    /// One call.
    pub(super) fn get(&self, number: u32) -> Option<&Dialog> {
        self.calls.get(number as usize)?.as_deref()
    }

    /// One call.
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Dialog> {
        self.calls.get_mut(number as usize)?.as_deref_mut()
    }

    /// The size of the tables.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let ends = self.ends.as_ref().map_or(0, VecDeque::len);
        self.calls.len().max(self.by_id.len()).max(self.endpoints.len()).max(ends)
    }

    /// Binds a flow to a call; recorded only when calls are evicted.
    pub(super) fn bound(&mut self, call: u32, flow: u32) {
        if self.ends.is_some()
            && let Some(dialog) = self.get_mut(call)
        {
            dialog.flows.push(flow);
        }
    }

    /// The numbers of all calls.
    pub(super) fn numbers(&self) -> Vec<u32> {
        (0_u32..).zip(&self.calls).filter(|(_, call)| call.is_some()).map(|(number, _)| number).collect()
    }

    /// The calls that ended before `limit` and have not resumed.
    pub(super) fn ended_before(&mut self, limit: Micros) -> Vec<u32> {
        let mut numbers = Vec::new();
        let mut ends = self.ends.take();
        while let Some((ended, number)) =
            ends.as_mut().and_then(|ends| ends.pop_front_if(|(ended, _)| *ended < limit))
        {
            let is_over = self.get(number).is_some_and(|call| call.ended == Some(ended));
            if is_over && !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        self.ends = ends;
        numbers
    }

    /// Takes a call out of the tables; its number may be used again.
    pub(super) fn remove(&mut self, number: u32) -> Option<Dialog> {
        let dialog = self.calls.get_mut(number as usize)?.take()?;
        // Another call may use the Call-ID by now.
        if self.by_id.get(&dialog.call_id) == Some(&number) {
            self.by_id.remove(&dialog.call_id);
        }
        for address in &dialog.addresses {
            if self.endpoints.get(address).is_some_and(|endpoint| endpoint.call == number)
                && let Some(endpoint) = self.endpoints.remove(address)
            {
                endpoint.rtcp.map(|rtcp| self.rtcp.remove(&*rtcp));
            }
        }
        self.free.push(number);
        Some(*dialog)
    }

    /// Returns the call whose SDP named one or both ends of a flow.
    pub(super) fn binding(&self, source: SocketAddr, destination: SocketAddr) -> Option<Binding> {
        let bind = |endpoint: &Endpoint, from_caller| Binding {
            call: endpoint.call,
            from_caller,
            audio: endpoint.audio,
        };
        if let Some(endpoint) = self.endpoints.get(&destination) {
            return Some(bind(endpoint, !endpoint.of_caller));
        }
        // A party behind NAT receives at an address that no SDP named, from the address that the other party
        // announced.
        self.endpoints.get(&source).map(|endpoint| bind(endpoint, endpoint.of_caller))
    }

    /// The RTP address that belongs to the RTCP at `address`.
    pub(super) fn rtp_address(&self, address: SocketAddr) -> SocketAddr {
        if let Some(rtp) = self.rtcp.get(&address) {
            return *rtp;
        }
        let shared = self.endpoints.contains_key(&address);
        let below = address.port().checked_sub(1).filter(|port| *port > 0 && !shared);
        below.map_or(address, |port| SocketAddr::new(address.ip(), port))
    }

    /// The meaning of the payload types sent to `destination`, where signalling defines it.
    pub(super) fn payloads(&self, source: SocketAddr, destination: SocketAddr) -> Option<Meanings> {
        let endpoint = self.endpoints.get(&destination).or_else(|| self.endpoints.get(&source))?;
        Some(Arc::clone(&endpoint.payloads))
    }

    /// The packet durations that the sender and the receiver of a bound stream advertised.
    pub(super) fn ptime_ms(&self, binding: Binding) -> (Option<u32>, Option<u32>) {
        match self.get(binding.call).map(|call| call.ptime_ms) {
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

    fn announce(&mut self, call: u32, announcement: Announcement, news: &mut News) {
        if self.endpoints.len() >= ENDPOINTS_MAX {
            let calls = &self.calls;
            self.endpoints.retain(|_, endpoint| {
                let call = calls.get(endpoint.call as usize).and_then(Option::as_ref);
                call.is_some_and(|call| call.ended.is_none())
            });
            let endpoints = &self.endpoints;
            self.rtcp.retain(|_, rtp| endpoints.contains_key(rtp));
            news.anything = true;
        }
        if self.endpoints.len() >= ENDPOINTS_MAX {
            return;
        }
        let Announcement { address, rtcp, of_caller, audio, sdp, place } = announcement;
        let Some(media) = sdp.media.get(place) else { return };
        let payloads = self.meanings.meanings(media);
        let unchanged = self.endpoints.get(&address).is_some_and(|known| {
            known.call == call
                && known.of_caller == of_caller
                && known.audio == audio
                && known.rtcp.as_deref() == rtcp.as_ref()
                && is_same(&known.payloads, &payloads)
        });
        if !unchanged {
            self.generation = self.generation.wrapping_add(1);
            let endpoint = Endpoint { call, of_caller, audio, payloads, rtcp: rtcp.map(Box::new) };
            let before = self.endpoints.insert(address, endpoint).and_then(|before| before.rtcp);
            if let Some(before) = before {
                self.rtcp.remove(&*before);
            }
            if let Some(rtcp) = rtcp {
                self.rtcp.insert(rtcp, address);
            }
            news.announced.push(address);
            let keeps = self.ends.is_some();
            if let Some(dialog) =
                self.get_mut(call).filter(|dialog| keeps && !dialog.addresses.contains(&address))
            {
                dialog.addresses.push(address);
            }
        }
    }
}

/// Whether the SDP of a message is an offer or an answer, and not a list of a host's capabilities.
fn settles_media(message: &Message) -> bool {
    let is_final_refusal = message.as_response().is_some_and(|response| response.status().as_u16() >= 300);
    let settles =
        |method: &Method| matches!(method, Method::Ack | Method::Invite | Method::Prack | Method::Update);
    !is_final_refusal && message.headers().cseq().is_ok_and(|cseq| settles(&cseq.method))
}

/// Reports a call that is over or was cut off, with the result of its leg. `withheld` is the reason why it cannot
/// be judged.
pub(super) fn report(
    call: Dialog,
    leg: LegReport,
    streams: Vec<usize>,
    withheld: Option<Withheld>,
) -> CallReport {
    let LegReport { report: mut leg, far: mut far_leg, last } = leg;
    // A final response that seems to be missing may be elsewhere in the capture.
    let failure = call.failure().filter(|_| withheld != Some(Withheld::OutOfOrder));
    // A live call that rings has an RTP session at the switch, and the same verdict.
    let rang = |failure: &Failure| failure.rang && failure.kind != FailureKind::NoFinalResponse;
    if leg.verdict.is_none() && call.offers_audio() && failure.as_deref().is_some_and(rang) {
        leg.judge_unanswered();
    }
    if let Some(why) = withheld {
        leg.leave_unjudged(why);
        far_leg.iter_mut().for_each(|leg| leg.leave_unjudged(why));
    }
    let words = failure.as_ref().map(|failure| failure.sentence(Request::Call));
    let shared = Shared::new(&leg.figures);
    let timestamp = |at: Micros| Timestamp::from_micros(at.0);
    let billed_us = call.answered.map_or(0, |answered| call.ended.unwrap_or(last).since(answered));
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
        media_verdict_worse: worse(verdict(&leg), far_leg.as_deref()),
        evidence: leg.verdict.map(|_| EvidenceReport(leg.evidence.clone())),
        failure,
        streams,
        ladder: call.ladder,
        leg: CallLeg { words, ..CallLeg::of_caller(leg) },
        far_leg,
    }
}

/// Calls of one capture.
const CALLS_MAX: usize = 500_000;
/// Media addresses known at one time.
const ENDPOINTS_MAX: usize = 200_000;
