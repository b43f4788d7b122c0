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
use super::announcements::{Announcement, announcements};
use super::call_leg::CallLeg;
use super::dialog::Dialog;
use super::embedded_sdp::described;
use super::endpoints::{Bound, Effect, Endpoints, Standing};
use super::flows::Binding;
use super::leg::LegReport;
use super::lenient_sip;
use super::payloads::Meanings;
use super::registrations::{Registrations, is_registration};
use super::signal::LegSignal;
use super::stream::AdvertisedPtime;

/// The reason why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The message guard refuses it.
    Malformed,
    /// There are too many calls already.
    OverLimit,
}

/// The calls of a capture by Call-ID, and the media addresses with the calls that named each.
#[derive(Debug)]
pub(super) struct Calls {
    by_id: HashMap<String, u32>,
    /// By number; boxed, since the list grows by doubling.
    calls: Vec<Option<Box<Dialog>>>,
    /// Numbers that are free again.
    free: Vec<u32>,
    /// Calls begun so far.
    begun: u64,
    endpoints: Endpoints,
    keeps_ladders: bool,
    /// The registrations; empty when calls are evicted, since these would never be.
    pub(super) registrations: Registrations,
    /// The ends of calls in the order of arrival, when calls are evicted.
    ends: Option<VecDeque<(Micros, u32)>>,
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
            endpoints: Endpoints::default(),
            keeps_ladders,
            registrations: Registrations::default(),
            ends: evicts.then(VecDeque::new),
        }
    }

    /// A counter that changes whenever a flow may have been bound to another call.
    #[inline]
    pub(super) fn generation(&self) -> u32 {
        self.endpoints.generation()
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
            return Ok(self.describe_message(at, message));
        };
        let dialog = self.calls.get_mut(number as usize).and_then(Option::as_deref_mut);
        let Some(dialog) = dialog else { return Ok(None) };
        if self.keeps_ladders {
            dialog.ladder.push(at, hop, message);
        }
        if !dialog.takes(hop, message) {
            // The streams of another hop are not the call's, but its session descriptions are known.
            dialog.behind(hop.0, message);
            return Ok(self.describe_message(at, message));
        }
        let mut leg = Vec::new();
        let before = dialog.standing();
        let announcements = dialog.message(at, hop, message, &mut self.endpoints.meanings, &mut leg);
        let standing = dialog.standing();
        let mut news = News { call: number, leg, announced: Vec::new(), anything: false };
        if standing != before {
            let contested = dialog.addresses.iter().copied();
            news.announced.extend(contested.filter(|address| self.endpoints.reconsider(*address)));
        }
        let ended = standing.ended.filter(|ended| before.ended != Some(*ended));
        if let (Some(ends), Some(ended)) = (&mut self.ends, ended) {
            ends.push_back((ended, number));
        }
        for announcement in announcements {
            self.announce(at, number, &announcement, &mut news);
        }
        Ok(Some(news))
    }

    /// Takes the session description of a message that belongs to no call, or to another hop of one.
    fn describe_message(&mut self, at: Micros, message: &Message) -> Option<News> {
        let description = settles_media(message).then(|| described(message)).flatten()?;
        Some(self.describe(at, &description))
    }

    /// Takes a session description without a call: its media addresses are known, but belong to no call.
    pub(super) fn describe(&mut self, at: Micros, description: &SessionDescription) -> News {
        let mut news =
            News { call: Binding::NO_CALL, leg: Vec::new(), announced: Vec::new(), anything: false };
        for announcement in announcements(&Arc::new(description.clone()), true, None, None) {
            // The SIP announcement of an address has precedence. A candidate shows nothing without a call.
            if !announcement.is_candidate && !self.endpoints.is_a_calls(announcement.address) {
                self.announce(at, Binding::NO_CALL, &announcement, &mut news);
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
            self.endpoints.withdraw(*address, number);
        }
        self.free.push(number);
        Some(*dialog)
    }

    /// Returns the call whose SDP named one or both ends of a flow, and the others that its packets belong to.
    pub(super) fn binding(&self, at: Micros, source: SocketAddr, destination: SocketAddr) -> Option<Bound> {
        self.endpoints.bind(at, (source, destination), &|call| standing(&self.calls, call))
    }

    /// Whether a call ended so long ago that no late packet is expected any more.
    pub(super) fn is_over(&self, call: u32, at: Micros) -> bool {
        standing(&self.calls, call).is_some_and(|call| call.is_over(at))
    }

    /// The RTP address that belongs to the RTCP at `address`.
    pub(super) fn rtp_address(&self, address: SocketAddr) -> SocketAddr {
        self.endpoints.rtp_address(address)
    }

    /// The meaning of the payload types of a flow that belongs to a call, where signalling defines it.
    pub(super) fn payloads(&self, binding: Binding, ends: (SocketAddr, SocketAddr)) -> Option<Meanings> {
        self.endpoints.payloads(binding, ends)
    }

    /// The packet durations that the sender and the receiver of a bound stream advertised.
    pub(super) fn ptime_ms(&self, binding: Binding, ends: (SocketAddr, SocketAddr)) -> AdvertisedPtime {
        match self.get(binding.call).and_then(|call| call.ptime_ms) {
            Some((caller, called)) if binding.audio => {
                Some(if binding.from_caller { (caller, called) } else { (called, caller) })
            }
            // Another section than the audio that the parties agreed on, or no agreement was seen.
            _ => self.endpoints.ptime_ms(binding, ends),
        }
    }

    fn announce(&mut self, at: Micros, call: u32, announcement: &Announcement, news: &mut News) {
        let standing = |call: u32| standing(&self.calls, call);
        if self.endpoints.is_full() {
            self.endpoints.retain_live(&standing);
            news.anything = true;
        }
        let address = announcement.address;
        let Effect::Changed(rivals) = self.endpoints.announce(at, call, announcement, &standing) else {
            return;
        };
        news.announced.push(address);
        if self.ends.is_none() && rivals.is_empty() {
            return;
        }
        for number in rivals.into_iter().chain([call]) {
            if let Some(dialog) = self.get_mut(number).filter(|dialog| !dialog.addresses.contains(&address)) {
                dialog.addresses.push(address);
            }
        }
    }
}

/// The state of a call; `None` when there is none with that number.
fn standing(calls: &[Option<Box<Dialog>>], number: u32) -> Option<Standing> {
    calls.get(number as usize)?.as_deref().map(Dialog::standing)
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
