//! Plays a scenario to a session like a driver: signalling, packets, answer, hold and end.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::packet::{COMFORT_NOISE, TELEPHONE_EVENT};
use super::scenario::{Codec, Scenario};
use super::stream::Simulation;
use crate::rtp::PayloadKind;
use crate::session::{Description, Payload, Report, Session};
use crate::time::Micros;

/// The SDP result of the scenario's call, for a party at `remote`.
///
/// `own` is the address in our SDP to it.
pub fn description(scenario: &Scenario, remote: SocketAddr, own: IpAddr, on_hold: bool) -> Description {
    let payload = |number, kind, codec: Codec, bytes_per_ms, name: &str| Payload {
        number,
        kind,
        clock: codec.clock(),
        bytes_per_ms,
        default_ptime_ms: None,
        name: name.to_owned(),
    };
    let talker = &scenario.talker;
    let mut payloads: Vec<Payload> = [Some(talker.codec), talker.codec_switch.map(|(_, codec)| codec)]
        .into_iter()
        .flatten()
        .map(|codec| {
            payload(codec.payload_type(), PayloadKind::Audio, codec, codec.bytes_per_ms(), codec.name())
        })
        .collect();
    payloads.push(payload(TELEPHONE_EVENT, PayloadKind::Event, talker.codec, None, "telephone-event"));
    payloads.push(payload(COMFORT_NOISE, PayloadKind::ComfortNoise, Codec::Pcmu, None, "CN"));
    Description {
        remote: Some(remote),
        receive: !on_hold,
        send: !on_hold,
        payloads,
        ptime_ms: Some(scenario.advertised_ptime_ms()),
        signalling: Some(remote.ip()),
        own_advertised: Some(own),
        ..Description::default()
    }
}

/// Plays `scenario` to `session` and closes it; returns the report of a live call with this party.
///
/// A scenario whose media has another source expects a session without latching.
pub fn play(scenario: &Scenario, session: &mut Session) -> Report {
    let (sdp, own) = (SocketAddr::new(PARTY, 4_000), OWN);
    let source = if scenario.call.advertised_source { sdp } else { SocketAddr::new(STRANGER, 4_000) };
    let ms = |ms: u32| Micros::from_millis(ms.into());
    let end = ms(scenario.duration_ms);
    let mut events: Vec<(Micros, Event)> = vec![(ms(0), Event::Described { on_hold: false })];
    events.extend(scenario.call.answer_ms.map(|at| (ms(at), Event::Answered)));
    if let Some(hold) = scenario.call.hold {
        events.push((ms(hold.from_ms), Event::Described { on_hold: true }));
        events.push((ms(hold.to_ms), Event::Described { on_hold: false }));
    }
    if scenario.call.returned {
        events.extend((0..scenario.duration_ms / 100).map(|tenth| (ms(tenth * 100 + 50), Event::Sent)));
    }
    events.sort_by_key(|(at, _)| *at);
    let mut events = events.into_iter().peekable();
    let mut happen = |session: &mut Session, until: Micros| {
        while let Some((at, event)) = events.next_if(|(at, _)| *at <= until) {
            match event {
                Event::Answered => session.answer(at),
                Event::Described { on_hold } => {
                    session.describe(at, description(scenario, sdp, own, on_hold));
                }
                Event::Sent => session.sent(at, 5, session.destination().unwrap_or(sdp)),
            }
        }
    };
    let mut datagram = Vec::new();
    for packet in Simulation::new(scenario).take_while(|packet| packet.at < end) {
        happen(session, packet.at);
        packet.write(&mut datagram);
        session.receive(packet.at, source, &datagram);
        while session.poll_output().is_some() {}
    }
    happen(session, end);
    session.close(end)
}

/// Events of a call besides the party's packets.
enum Event {
    Answered,
    Described { on_hold: bool },
    Sent,
}

/// Addresses that no host has (RFC 5737).
const PARTY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 77));
const OWN: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

#[cfg(test)]
mod tests {
    use super::super::catalogue::CATALOGUE;
    use super::*;
    use crate::session::SessionConfig;

    #[test]
    fn every_named_scenario_gives_its_verdict_with_any_seed() {
        for entry in &CATALOGUE {
            for seed in 1..=3 {
                let scenario: Scenario = format!("{} seed={seed}", entry.name).parse().unwrap();
                let symmetric = scenario.call.advertised_source;
                let config = SessionConfig { symmetric, ..SessionConfig::default() };
                let report = play(&scenario, &mut Session::new(config));
                assert_eq!(
                    report.verdict,
                    Some(entry.expected),
                    "{} with seed {seed}: {:?}",
                    entry.name,
                    report.evidence
                );
            }
        }
    }

    #[test]
    fn losses_are_counted_exactly() {
        let cases = [
            ("clean duration=10s", 500, 0),
            ("clean duration=10s loss_every=10", 499, 49),
            ("clean duration=10s hole=2s..3s", 500, 50),
            ("clean duration=10s lose=100,101,300", 500, 3),
            ("clean duration=10s stop=9s swap=10 duplicate=20 seed=3", 450, 0),
            ("clean duration=10s ssrc_change=5s", 500, 0),
            // The first packet after a jump only announces it.
            ("clean duration=10s restart=7s", 499, 0),
            ("clean duration=10s hold=4s..6s", 400, 0),
            ("clean duration=10s digits=2", 500, 0),
        ];
        for (text, expected, lost) in cases {
            let report = play(&text.parse().unwrap(), &mut Session::new(SessionConfig::default()));
            assert_eq!((report.figures.expected, report.figures.lost), (expected, lost), "{text}");
        }
    }
}
