//! Media figures of a live call: answers to queries, and warnings of the relay.

use std::time::Duration;

use sidetone_call::media_plan::strict_source;
use sidetone_media::session::{self as media, Change, Report, Verdict, Warning};
use sidetone_media::time::Micros;
use sidetone_model::directory::{StrictSource, Trunk};
use sidetone_model::event::EventKind;
use sidetone_model::ids::CallId;
use sidetone_model::live_call::CallEvent;
use sidetone_model::media_quality::{LegSide, MediaChange, QualityState};
use sidetone_model::quality::MediaVerdict;

use crate::io::{MediaCommand, PortId};
use crate::machine::Input;
use crate::queries::{CallQuality, QualityAnswer, Question};
use crate::tests::network::{Net, OfRooms, Plan, SDP, acme, trunk};

const FIRST: &str = "203.0.113.1:5060";
const WORLD: &str = "+447700900123";

fn up() -> (Net, CallId) {
    let mut net = Net::new(acme(vec![trunk(1, FIRST)]));
    net.carrier(FIRST, [Plan::Accept]);
    net.dial(WORLD);
    let call = net.news[0].call().uuid;
    (net, call)
}

/// Queries the quality of a call; returns the answer if it is immediate.
fn ask(net: &mut Net, call: CallId) -> Option<QualityAnswer> {
    let token = net.put(CallQuality(call));
    net.replies.remove(&token).and_then(CallQuality::answer)
}

#[test]
fn both_legs_of_a_live_call_are_asked_and_told_together() {
    let (mut net, call) = up();
    let Some(QualityAnswer::Known(told)) = ask(&mut net, call) else { panic!("no answer") };
    assert_eq!((told.quality.call_uuid, told.quality.state), (call, QualityState::Live));
    let legs: Vec<_> = told.quality.legs.iter().map(|leg| (leg.leg, leg.party.as_deref())).collect();
    assert_eq!(legs, [(LegSide::A, Some("1001")), (LegSide::B, Some(WORLD))]);
    net.hang_up();
    assert_eq!(ask(&mut net, call), Some(QualityAnswer::Gone));
    assert_eq!(net.records.len(), 1);
}

/// A relay that does not answer does not fill the memory: old queries are dropped, and too many are
/// refused.
#[test]
fn questions_that_are_not_answered_are_bounded() {
    let (mut net, call) = up();
    net.is_relay_slow = true;
    let waiting: Vec<_> = (0..256).map(|_| ask(&mut net, call)).collect();
    assert!(waiting.iter().all(Option::is_none));
    assert_eq!(ask(&mut net, call), Some(QualityAnswer::Busy));
    net.wait(Duration::from_secs(2));
    assert_eq!(ask(&mut net, call), None);
    // The 256 dropped queries and the one in between have been answered.
    assert_eq!(net.replies.len(), 256);
    net.is_relay_slow = false;
    assert!(matches!(ask(&mut net, call), Some(QualityAnswer::Known(_))));
}

/// Returns what the last `Describe` for a port contained: its strict source check, and the source of its SIP.
fn described(net: &Net, port: u64) -> (Option<media::StrictSource>, Option<String>) {
    let description = net.of_rooms.iter().rev().find_map(|order| match order {
        OfRooms::Media(of, MediaCommand::Describe(description)) if of.0 == port => Some(description),
        _ => None,
    });
    let description = description.unwrap();
    (description.strict_source, description.signalling.map(|at| at.to_string()))
}

#[test]
fn trunks_and_extensions_say_whose_packets_their_legs_take() {
    for (of_extension, of_trunk) in
        [(None, None), (Some(StrictSource::Sdp), None), (None, Some(StrictSource::Any))]
    {
        let mut directory = acme(vec![Trunk { strict_source: of_trunk, ..trunk(1, FIRST) }]);
        directory.extensions[0].strict_source = of_extension;
        let mut net = Net::new(directory);
        net.carrier(FIRST, [Plan::Accept]);
        net.dial(WORLD);
        assert_eq!(described(&net, 1).0, of_extension.map(strict_source), "the caller");
        assert_eq!(described(&net, 2).0, of_trunk.map(strict_source), "the trunk");
    }
}

/// After a change of its network a phone sends a new offer; its media are then expected from the new address
/// too.
#[test]
fn a_reinvite_says_where_signalling_comes_from_now() {
    let (mut net, _) = up();
    let before = described(&net, 1).1;
    net.phone_at = "192.0.2.77:5060".parse().unwrap();
    net.offer_anew(SDP);
    assert_eq!((before.as_deref(), described(&net, 1).1.as_deref()), (Some("192.0.2.1"), Some("192.0.2.77")));
    assert_eq!(described(&net, 2).1.as_deref(), Some("203.0.113.1"), "the other leg stays");
}

#[test]
fn a_warning_of_the_relay_is_news_of_its_call() {
    let (mut net, call) = up();
    net.news.clear();
    let warning = |change| Warning {
        change,
        since: Micros(10_000_000),
        previous: Verdict::Ok,
        report: Report { at: Micros(13_400_000), verdict: Some(Verdict::Ok), ..Report::default() },
    };
    let ports: Vec<PortId> = (1..3).map(PortId).collect();
    net.wait(Duration::from_secs(20));
    net.feed(Input::Warning(ports[1], Box::new(warning(Change::NoAudio))));
    net.feed(Input::Warning(ports[0], Box::new(warning(Change::Verdict))));
    // A port that belongs to no call.
    net.feed(Input::Warning(PortId(99), Box::new(warning(Change::NoAudio))));
    net.run();
    let [CallEvent::Media(of, far), CallEvent::Media(_, own)] = net.news.as_slice() else {
        panic!("{:?}", net.news)
    };
    assert_eq!((of.uuid, far.leg, far.party.as_deref()), (call, LegSide::B, Some(WORLD)));
    assert_eq!((far.state, far.media_verdict), (MediaChange::NoAudio, Some(MediaVerdict::Ok)));
    assert_eq!(far.sentence, "No audio has come from the called party for 3 seconds.");
    assert_eq!(far.at.since(far.since), 3_400_000);
    assert_eq!((own.leg, own.state), (LegSide::A, MediaChange::Verdict));

    let event = net.news[0].event();
    assert_eq!((event.kind, event.timestamp), (EventKind::CallMediaWarning, far.at));
    let names: Vec<&str> = event.data.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "call_uuid",
            "direction",
            "caller",
            "destination",
            "leg",
            "party",
            "state",
            "media_verdict",
            "previous",
            "sentence",
            "since",
            "at"
        ]
    );
    net.hang_up();
    net.feed(Input::Warning(ports[0], Box::new(warning(Change::AudioBack))));
    net.run();
    assert_eq!(net.news.len(), 2, "a call that is over has no more news");
}
