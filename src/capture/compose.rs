//! A simulated call as a capture: its SIP dialog and the RTP of both parties, in order of time.
//!
//! The messages are what a plain phone and a plain switch exchange (RFC 3665 §3.1, §3.8, RFC 3264 §8.4). Where
//! the scenario's media comes from elsewhere, the capture shows the caller advertise an address that leads
//! nowhere, and nothing arrive: a capture has no latching that could be off.

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
/// *Errors*: what `out` reports.
pub fn compose<W: io::Write>(scenario: &Scenario, out: W) -> io::Result<u64> {
    let ends = Ends::default();
    let mut writer = Writer::new(out, LinkType::ETHERNET)?;
    let mut messages = dialog(scenario, &ends).into_iter().peekable();
    let mut caller = Simulation::new(scenario);
    let mut called = returned(scenario);
    let (mut datagram, mut packets) = (Vec::new(), 0_u64);
    let answered_us = i64::from(scenario.call.answer_ms.unwrap_or(0)) * 1_000;
    let end = Micros(i64::from(scenario.duration_ms) * 1_000);
    let sends = scenario.call.advertised_source;
    let due = |simulation: &mut Simulation, shift_us: i64| {
        simulation.next_due().map(|at| at + shift_us).filter(|at| *at < end)
    };
    loop {
        let from_caller = due(&mut caller, 0).filter(|_| sends);
        let from_called = called.as_mut().and_then(|called| due(called, answered_us));
        let message = messages.peek().map(|message| message.at);
        let Some(next) = [from_caller, from_called, message].into_iter().flatten().min() else { break };
        let at = |at: Micros| EPOCH + at.0;
        packets += 1;
        if message == Some(next) {
            let Some(Message { text, from_caller, .. }) = messages.next() else { break };
            let (from, to) = if from_caller {
                (ends.caller_sip, ends.switch_sip)
            } else {
                (ends.switch_sip, ends.caller_sip)
            };
            writer.write_udp(at(next), from, to, text.as_bytes())?;
        } else if from_caller == Some(next) {
            let Some(packet) = caller.next() else { break };
            packet.write(&mut datagram);
            writer.write_udp(at(next), ends.caller_rtp, ends.switch_rtp, &datagram)?;
        } else {
            let Some(packet) = called.as_mut().and_then(Iterator::next) else { break };
            Packet { ssrc: !packet.ssrc, ..packet }.write(&mut datagram);
            writer.write_udp(at(next), ends.switch_rtp, ends.caller_rtp, &datagram)?;
        }
    }
    writer.finish()?;
    Ok(packets)
}

/// What the caller hears: undisturbed audio from the answer on.
fn returned(scenario: &Scenario) -> Option<Simulation> {
    let answer_ms = scenario.call.answer_ms.filter(|_| scenario.call.returned)?;
    let mut clean = Scenario { seed: scenario.seed.wrapping_add(1), ..Scenario::default() };
    clean.talker.codec = scenario.talker.codec;
    clean.duration_ms = scenario.duration_ms.saturating_sub(answer_ms);
    clean.call.hold = scenario.call.hold.map(|hold| sidetone_media::simulate::Span {
        from_ms: hold.from_ms.saturating_sub(answer_ms),
        to_ms: hold.to_ms.saturating_sub(answer_ms),
    });
    Some(Simulation::new(&clean))
}

/// Where the parties are: documentation addresses (RFC 5737).
struct Ends {
    caller_sip: SocketAddr,
    caller_rtp: SocketAddr,
    switch_sip: SocketAddr,
    switch_rtp: SocketAddr,
}

impl Default for Ends {
    fn default() -> Self {
        Ends {
            caller_sip: ([192, 0, 2, 10], 5060).into(),
            caller_rtp: ([192, 0, 2, 10], 4000).into(),
            switch_sip: ([192, 0, 2, 20], 5060).into(),
            switch_rtp: ([192, 0, 2, 20], 20_000).into(),
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
        let _ = write!(head, "Max-Forwards: 70\r\nContact: <sip:1000@{}>\r\n", self.ends.caller_sip);
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
             From: \"Caller\" <sip:1000@{}>;tag=caller{seed:x}\r\n\
             To: <sip:2000@{}>{to_tag}\r\n\
             Call-ID: {}-{seed}@simulated.invalid\r\n\
             CSeq: {number} {method}\r\n",
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

/// The first instant of the media: a fixed one, so that a seed gives the same file every time.
const EPOCH: Micros = Micros(1_767_268_800_000_000);
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
    fn a_call_that_nobody_answers_is_cancelled() {
        let analysis = analyze(&"unanswered".parse().unwrap());
        let call = &analysis.calls[0];
        assert_eq!((call.billsec, call.sip_status, call.answered_at), (0, Some(487), None));
        assert_eq!(call.hangup_cause.map(|cause| cause.to_string()).as_deref(), Some("ORIGINATOR_CANCEL"));
        assert_eq!(call.media_verdict, Some(Verdict::Unanswered.as_str()));
        assert!(call.loss_pct.is_some(), "early media is measured");
    }
}
