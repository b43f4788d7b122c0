//! A simulated call as a capture: its SIP dialog and the RTP of both parties, in order of time.
//!
//! The messages are those of a plain phone and a plain switch (RFC 3665 §3.1, §3.8, RFC 3264 §8.4). Where the
//! scenario's media comes from an address that was not announced, the capture shows the caller announce an
//! unreachable address, and no audio arrives: in a capture there is no latching to switch off.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;

use sidetone_media::pcap::{LinkType, Writer};
use sidetone_media::simulate::{Codec, Packet, Scenario, Simulation};
use sidetone_media::time::Micros;

/// Writes the call of `scenario` to `out` as a pcap file; returns the number of packets.
///
/// The same scenario gives the same bytes.
///
/// *Errors*: write errors of `out`.
pub fn compose<W: io::Write>(scenario: &Scenario, out: W) -> io::Result<u64> {
    compose_calls(scenario, 1, out)
}

/// Writes `calls` calls of `scenario`, each starting [`STAGGER_MS`] after the one before.
///
/// Each call has a seed, a Call-ID, a caller's number, an SSRC and RTP ports of its own; the first is the call that
/// [`compose`] writes. *Bounds*: [`CALLS_MAX`] calls, a few kilobytes of memory each.
///
/// *Errors*: write errors of `out`.
pub fn compose_calls<W: io::Write>(scenario: &Scenario, calls: u32, out: W) -> io::Result<u64> {
    let mut writer = Writer::new(out, LinkType::ETHERNET)?;
    let mut composers: Vec<Composer> =
        (0..calls.min(CALLS_MAX)).map(|number| Composer::new(scenario, number)).collect();
    let mut due: BinaryHeap<Reverse<(Micros, usize)>> = BinaryHeap::with_capacity(composers.len());
    for (place, call) in composers.iter_mut().enumerate() {
        due.extend(call.next_at().map(|at| Reverse((at, place))));
    }
    let mut packets = 0_u64;
    // Each turn writes a packet, of which every call has a bounded number.
    while let Some(Reverse((_, place))) = due.pop() {
        let Some(call) = composers.get_mut(place) else { break };
        call.write_next(&mut writer)?;
        packets += 1;
        due.extend(call.next_at().map(|at| Reverse((at, place))));
    }
    writer.finish()?;
    Ok(packets)
}

/// The scenario of the call with that number, counted from 0, with its own values for what two calls cannot
/// share.
pub fn scenario_of_call(scenario: &Scenario, number: u32) -> Scenario {
    let mut own = scenario.clone().with_seed(scenario.seed.wrapping_add(number.into()));
    own.talker.ssrc = scenario.talker.ssrc.wrapping_add(number.wrapping_mul(SSRC_STEP));
    own
}

/// Time between the starts of two simulated calls.
pub const STAGGER_MS: u32 = 100;
/// The maximum number of calls simulated at the same time: one host has no more pairs of ports.
pub const CALLS_MAX: u32 = 20_000;
const SSRC_STEP: u32 = 0x0101_0101;

/// One call that is being written to a capture.
struct Composer {
    ends: Ends,
    messages: std::vec::IntoIter<Message>,
    /// The caller's packets, where the capture shows them.
    caller: Option<Simulation>,
    called: Option<Simulation>,
    /// From the first packet of the caller to the answer.
    answered_us: i64,
    /// The end of the call.
    end: Micros,
    /// The time at which the call begins.
    epoch: Micros,
    datagram: Vec<u8>,
}

impl Composer {
    fn new(scenario: &Scenario, number: u32) -> Composer {
        let scenario = scenario_of_call(scenario, number);
        let ends = Ends::of_call(number);
        Composer {
            messages: dialog(&scenario, &ends).into_iter(),
            caller: scenario.call.advertised_source.then(|| Simulation::new(&scenario)),
            called: returned(&scenario),
            answered_us: i64::from(scenario.call.answer_ms.unwrap_or(0)) * 1_000,
            end: Micros(i64::from(scenario.duration_ms) * 1_000),
            epoch: EPOCH + i64::from(STAGGER_MS) * 1_000 * i64::from(number),
            datagram: Vec::new(),
            ends,
        }
    }

    /// When the next packets of the caller, the called party and the signalling are due.
    fn due(&mut self) -> [Option<Micros>; 3] {
        let end = self.end;
        let due = |simulation: &mut Option<Simulation>, shift_us: i64| {
            let at = simulation.as_mut()?.next_due()? + shift_us;
            Some(at).filter(|at| *at < end)
        };
        let message = self.messages.as_slice().first().map(|message| message.at);
        [due(&mut self.caller, 0), due(&mut self.called, self.answered_us), message]
    }

    /// When its next packet is due; `None` after the last.
    fn next_at(&mut self) -> Option<Micros> {
        self.due().into_iter().flatten().min().map(|at| self.epoch + at.0)
    }

    /// Writes its next packet.
    fn write_next<W: io::Write>(&mut self, writer: &mut Writer<W>) -> io::Result<()> {
        let [from_caller, from_called, message] = self.due();
        let Some(next) = [from_caller, from_called, message].into_iter().flatten().min() else {
            return Ok(());
        };
        let (at, ends) = (self.epoch + next.0, &self.ends);
        if message == Some(next) {
            let Some(Message { text, from_caller, .. }) = self.messages.next() else { return Ok(()) };
            let (from, to) = if from_caller {
                (ends.caller_sip, ends.switch_sip)
            } else {
                (ends.switch_sip, ends.caller_sip)
            };
            writer.write_udp(at, from, to, text.as_bytes())
        } else if from_caller == Some(next) {
            let Some(packet) = self.caller.as_mut().and_then(Iterator::next) else { return Ok(()) };
            packet.write(&mut self.datagram);
            writer.write_udp(at, ends.caller_rtp, ends.switch_rtp, &self.datagram)
        } else {
            let Some(packet) = self.called.as_mut().and_then(Iterator::next) else { return Ok(()) };
            Packet { ssrc: !packet.ssrc, ..packet }.write(&mut self.datagram);
            writer.write_udp(at, ends.switch_rtp, ends.caller_rtp, &self.datagram)
        }
    }
}

/// The audio sent to the caller: undisturbed from the answer on.
fn returned(scenario: &Scenario) -> Option<Simulation> {
    let answer_ms = scenario.call.answer_ms.filter(|_| scenario.call.returned)?;
    let mut clean = Scenario { seed: scenario.seed.wrapping_add(1), ..Scenario::default() };
    clean.talker.codec = scenario.talker.codec;
    clean.talker.ssrc = scenario.talker.ssrc;
    clean.duration_ms = scenario.duration_ms.saturating_sub(answer_ms);
    clean.call.hold = scenario.call.hold.map(|hold| sidetone_media::simulate::Span {
        from_ms: hold.from_ms.saturating_sub(answer_ms),
        to_ms: hold.to_ms.saturating_sub(answer_ms),
    });
    Some(Simulation::new(&clean))
}

/// The addresses of the parties, from the documentation ranges (RFC 5737).
struct Ends {
    /// The caller's number.
    caller: u32,
    caller_sip: SocketAddr,
    caller_rtp: SocketAddr,
    switch_sip: SocketAddr,
    switch_rtp: SocketAddr,
}

impl Ends {
    /// The ends of the call with that number, counted from 0.
    fn of_call(number: u32) -> Ends {
        // Below `CALLS_MAX` every number is a valid port, and no two calls have the same.
        let port = |first: u16| first.wrapping_add((2 * number) as u16);
        Ends {
            caller: 1_000 + number,
            caller_sip: ([192, 0, 2, 10], 5060).into(),
            caller_rtp: ([192, 0, 2, 10], port(CALLER_PORT)).into(),
            switch_sip: ([192, 0, 2, 20], 5060).into(),
            switch_rtp: ([192, 0, 2, 20], port(SWITCH_PORT)).into(),
        }
    }
}

struct Message {
    at: Micros,
    from_caller: bool,
    text: String,
}

/// The call's messages in order; those before the media have times before zero.
fn dialog(scenario: &Scenario, ends: &Ends) -> Vec<Message> {
    let call = &scenario.call;
    let script = Script { scenario, ends };
    let ms = |ms: u32| i64::from(ms) * 1_000;
    let mut out = Vec::new();
    let mut say = |at_us: i64, from_caller: bool, text: String| {
        out.push(Message { at: Micros(at_us), from_caller, text });
    };
    let offer = script.sdp(true, "sendrecv");
    let answer = script.sdp(false, "sendrecv");
    say(-200_000, true, script.request("INVITE", 1, true, "", Some(&offer)));
    say(-199_000, false, script.response("100 Trying", 1, "INVITE", false, None));
    let early = call.answer_ms != Some(0);
    if early {
        say(-100_000, false, script.response("183 Session Progress", 1, "INVITE", true, Some(&answer)));
    } else {
        say(-100_000, false, script.response("180 Ringing", 1, "INVITE", true, None));
    }
    let end_us = ms(scenario.duration_ms);
    let Some(answer_ms) = call.answer_ms else {
        say(end_us, true, script.request("CANCEL", 1, true, "", None));
        say(end_us + 1_000, false, script.response("200 OK", 1, "CANCEL", true, None));
        say(end_us + 2_000, false, script.response("487 Request Terminated", 1, "INVITE", true, None));
        say(end_us + 3_000, true, script.request("ACK", 1, true, TO_TAG, None));
        return out;
    };
    say(ms(answer_ms) - 1, false, script.response("200 OK", 1, "INVITE", true, Some(&answer)));
    say(ms(answer_ms) + 1_000, true, script.request("ACK", 1, true, TO_TAG, None));
    if let Some(hold) = call.hold {
        let mut number = 1;
        for (at_ms, direction) in [(hold.from_ms, "inactive"), (hold.to_ms, "sendrecv")] {
            number += 1;
            let (offer, answer) = (script.sdp(true, direction), script.sdp(false, direction));
            let at_us = ms(at_ms) - 10_000;
            say(at_us, true, script.request("INVITE", number, true, TO_TAG, Some(&offer)));
            say(at_us + 2_000, false, script.response("200 OK", number, "INVITE", true, Some(&answer)));
            say(at_us + 3_000, true, script.request("ACK", number, true, TO_TAG, None));
        }
    }
    say(end_us, true, script.request("BYE", 9, true, TO_TAG, None));
    say(end_us + 1_000, false, script.response("200 OK", 9, "BYE", true, None));
    out.sort_by_key(|message| message.at);
    out
}

/// Writes the messages of one call.
struct Script<'a> {
    scenario: &'a Scenario,
    ends: &'a Ends,
}

impl Script<'_> {
    fn request(
        &self,
        method: &str,
        number: u32,
        from_caller: bool,
        to_tag: &str,
        sdp: Option<&str>,
    ) -> String {
        debug_assert!(from_caller, "the simulated switch sends no request");
        let mut head = format!("{method} sip:2000@{} SIP/2.0\r\n", self.ends.switch_sip);
        self.fields(&mut head, number, method, to_tag);
        let _ = write!(
            head,
            "Max-Forwards: 70\r\nContact: <sip:{}@{}>\r\n",
            self.ends.caller, self.ends.caller_sip
        );
        with_body(head, sdp)
    }

    fn response(&self, status: &str, number: u32, method: &str, tagged: bool, sdp: Option<&str>) -> String {
        let mut head = format!("SIP/2.0 {status}\r\n");
        self.fields(&mut head, number, method, if tagged { TO_TAG } else { "" });
        let _ = write!(head, "Contact: <sip:2000@{}>\r\n", self.ends.switch_sip);
        with_body(head, sdp)
    }

    /// The header fields that a request and its responses share (RFC 3261 §8.2.6.2).
    fn fields(&self, head: &mut String, number: u32, method: &str, to_tag: &str) {
        let seed = self.scenario.seed;
        let caller = self.ends.caller_sip;
        // An ACK to a final answer and every other request are transactions of their own (RFC 3261 §8.1.1.7).
        let own = if matches!(method, "INVITE" | "CANCEL") { "INVITE" } else { method };
        let _ = write!(
            head,
            "Via: SIP/2.0/UDP {caller};branch=z9hG4bK{seed:x}{own}{number}\r\n\
             From: \"Caller\" <sip:{}@{}>;tag=caller{seed:x}\r\n\
             To: <sip:2000@{}>{to_tag}\r\n\
             Call-ID: {}-{seed}@simulated.invalid\r\n\
             CSeq: {number} {method}\r\n",
            self.ends.caller,
            caller.ip(),
            self.ends.switch_sip.ip(),
            self.scenario.name,
        );
    }

    fn sdp(&self, of_caller: bool, direction: &str) -> String {
        let talker = &self.scenario.talker;
        let mut rtp = if of_caller { self.ends.caller_rtp } else { self.ends.switch_rtp };
        if of_caller && !self.scenario.call.advertised_source {
            rtp.set_ip([10, 1, 1, 9].into());
        }
        let codecs: Vec<Codec> =
            std::iter::once(talker.codec).chain(talker.codec_switch.map(|(_, codec)| codec)).collect();
        let numbers: Vec<String> = codecs.iter().map(|codec| codec.payload_type().to_string()).collect();
        let mut sdp = format!(
            "v=0\r\no=- 1 1 IN IP4 {ip}\r\ns=-\r\nc=IN IP4 {ip}\r\nt=0 0\r\nm=audio {} RTP/AVP {} 101 13\r\n",
            rtp.port(),
            numbers.join(" "),
            ip = rtp.ip(),
        );
        for codec in &codecs {
            let channels = if *codec == Codec::Opus { "/2" } else { "" };
            let (number, clock) = (codec.payload_type(), codec.clock());
            let _ = write!(sdp, "a=rtpmap:{number} {}/{clock}{channels}\r\n", codec.name());
        }
        let _ = write!(sdp, "a=rtpmap:101 telephone-event/{}\r\na=fmtp:101 0-15\r\n", talker.codec.clock());
        if of_caller {
            let _ = write!(sdp, "a=ptime:{}\r\n", self.scenario.advertised_ptime_ms());
        }
        let _ = write!(sdp, "a={direction}\r\n");
        sdp
    }
}

fn with_body(mut head: String, sdp: Option<&str>) -> String {
    if sdp.is_some() {
        head.push_str("Content-Type: application/sdp\r\n");
    }
    let body = sdp.unwrap_or_default();
    let _ = write!(head, "Content-Length: {}\r\n\r\n{body}", body.len());
    head
}

/// The first instant of the media: fixed, so that a seed gives the same file every time.
const EPOCH: Micros = Micros(1_767_268_800_000_000);
const CALLER_PORT: u16 = 4_000;
const SWITCH_PORT: u16 = 20_000;
const TO_TAG: &str = ";tag=called";

#[cfg(test)]
mod tests {
    use sidetone_media::session::Verdict;
    use sidetone_media::simulate::CATALOGUE;

    use super::super::{Analysis, read};
    use super::*;

    fn analyze(scenario: &Scenario) -> Analysis {
        let mut file = Vec::new();
        let packets = compose(scenario, &mut file).unwrap();
        let outcome = read("simulated", &mut &file[..], &mut |_| {});
        assert!(outcome.broken.is_none(), "{:?}", outcome.broken);
        assert_eq!(outcome.analysis.packets, packets);
        outcome.analysis
    }

    #[test]
    fn every_named_scenario_is_read_back_with_its_verdict() {
        for entry in &CATALOGUE {
            let analysis = analyze(&entry.name.parse().unwrap());
            let [call] = &analysis.calls[..] else {
                panic!("{}: {} calls", entry.name, analysis.calls.len())
            };
            assert_eq!(
                call.media_verdict,
                Some(entry.expected.as_str()),
                "{}: {:?}",
                entry.name,
                call.evidence
            );
        }
    }

    #[test]
    fn a_call_is_told_as_it_went() {
        let analysis = analyze(&"clean duration=12s answer=2s".parse().unwrap());
        let call = &analysis.calls[0];
        assert_eq!((call.from.as_str(), call.to.as_str()), ("1000", "2000"));
        assert_eq!(call.started_at.to_string(), "2026-01-01T11:59:59.800Z");
        assert_eq!(call.answered_at.map(|at| at.to_string()).as_deref(), Some("2026-01-01T12:00:01.999Z"));
        assert_eq!(call.ended_at.map(|at| at.to_string()).as_deref(), Some("2026-01-01T12:00:12.000Z"));
        assert_eq!((call.billsec, call.sip_status), (10, Some(200)));
        assert_eq!(call.hangup_cause.map(|cause| cause.to_string()).as_deref(), Some("NORMAL_CLEARING"));
        assert_eq!(call.codec_a.as_deref(), Some("PCMU"));
        assert_eq!(call.streams, [0, 1]);
        let directions: Vec<_> =
            analysis.streams.iter().map(|stream| (stream.direction, stream.packets)).collect();
        assert_eq!(directions, [(Some("from_caller"), 600), (Some("to_caller"), 500)]);
    }

    #[test]
    fn calls_share_nothing_that_is_theirs() {
        let scenario: Scenario = "lossy duration=3s".parse().unwrap();
        let mut one = Vec::new();
        compose(&scenario, &mut one).unwrap();
        let mut first_of_many = Vec::new();
        compose_calls(&scenario, 1, &mut first_of_many).unwrap();
        assert_eq!(one, first_of_many);

        let mut file = Vec::new();
        let packets = compose_calls(&scenario, 40, &mut file).unwrap();
        let analysis = read("simulated", &mut &file[..], &mut |_| {}).analysis;
        assert_eq!((analysis.packets, analysis.calls.len(), analysis.streams.len()), (packets, 40, 80));
        let mut own: Vec<_> = analysis.calls.iter().flat_map(|call| [&call.call_id, &call.from]).collect();
        own.extend(analysis.streams.iter().flat_map(|stream| [&stream.ssrc, &stream.src]));
        let told = own.len();
        own.sort_unstable();
        own.dedup();
        assert_eq!(own.len(), told, "a Call-ID, a number, an SSRC or a port is that of two calls");
        assert!(analysis.calls.iter().all(|call| call.streams.len() == 2 && call.media_verdict.is_some()));
        let last = Ends::of_call(CALLS_MAX - 1);
        assert_eq!((last.caller_rtp.port(), last.switch_rtp.port()), (43_998, 59_998));
    }

    #[test]
    fn an_unanswered_call_is_cancelled() {
        let analysis = analyze(&"unanswered".parse().unwrap());
        let call = &analysis.calls[0];
        assert_eq!((call.billsec, call.sip_status, call.answered_at), (0, Some(487), None));
        assert_eq!(call.hangup_cause.map(|cause| cause.to_string()).as_deref(), Some("ORIGINATOR_CANCEL"));
        assert_eq!(call.media_verdict, Some(Verdict::Unanswered.as_str()));
        assert!(call.loss_pct.is_some(), "early media is measured");
    }
}
