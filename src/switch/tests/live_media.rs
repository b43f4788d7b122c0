//! How the media of a live call does, as somebody asks and as the relay warns.

use std::sync::mpsc;
use std::time::Duration;

use sidetone_media::session::{Change, Report, Verdict, Warning};
use sidetone_media::time::Micros;
use sidetone_model::event::EventKind;
use sidetone_model::ids::CallId;
use sidetone_model::live_call::CallNews;
use sidetone_model::media_quality::{LegSide, LiveCallQuality, MediaChange, QualityState};
use sidetone_model::quality::MediaVerdict;

use crate::switch::face::PortId;
use crate::switch::live_media::{AskMedia, AskedMedia};
use crate::switch::machine::Input;
use crate::switch::tests::network::{Net, Plan, acme, trunk};

const FIRST: &str = "203.0.113.1:5060";
const WORLD: &str = "+447700900123";

fn up() -> (Net, CallId) {
    let mut net = Net::new(acme(vec![trunk(1, FIRST)]));
    net.carrier(FIRST, [Plan::Accept]);
    net.dial(WORLD);
    let call = net.news[0].call().uuid;
    (net, call)
}

fn ask(net: &mut Net, call: CallId) -> (AskedMedia, mpsc::Receiver<LiveCallQuality>) {
    let (tell, told) = mpsc::channel();
    let tell = Box::new(move |quality| {
        let _ = tell.send(quality);
    });
    (net.ask(move |now, switch| switch.ask_media(now, AskMedia { call, tell })), told)
}

#[test]
fn both_legs_of_a_live_call_are_asked_and_told_together() {
    let (mut net, call) = up();
    let (asked, told) = ask(&mut net, call);
    net.run();
    assert_eq!(asked, AskedMedia::Soon);
    let told = told.try_recv().unwrap();
    assert_eq!((told.quality.call_uuid, told.quality.state), (call, QualityState::Live));
    let legs: Vec<_> = told.quality.legs.iter().map(|leg| (leg.leg, leg.party.as_deref())).collect();
    assert_eq!(legs, [(LegSide::A, Some("1001")), (LegSide::B, Some(WORLD))]);
    net.hang_up();
    let (asked, told) = ask(&mut net, call);
    assert_eq!((asked, told.try_recv().is_err()), (AskedMedia::Gone, true));
    assert_eq!(net.records.len(), 1);
}

/// A relay that does not answer fills no memory: who waited is forgotten, and too many are refused.
#[test]
fn questions_that_are_not_answered_are_bounded() {
    let (mut net, call) = up();
    net.is_relay_slow = true;
    let waiting: Vec<_> = (0..256).map(|_| ask(&mut net, call)).collect();
    net.run();
    assert!(waiting.iter().all(|(asked, told)| *asked == AskedMedia::Soon && told.try_recv().is_err()));
    assert_eq!(ask(&mut net, call).0, AskedMedia::Busy);
    net.wait(Duration::from_secs(2));
    assert_eq!(ask(&mut net, call).0, AskedMedia::Soon);
    net.is_relay_slow = false;
    let (asked, told) = ask(&mut net, call);
    net.run();
    assert_eq!((asked, told.try_recv().is_ok()), (AskedMedia::Soon, true));
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
    // A port of nobody's.
    net.feed(Input::Warning(PortId(99), Box::new(warning(Change::NoAudio))));
    net.run();
    let [CallNews::Media(of, far), CallNews::Media(_, own)] = net.news.as_slice() else {
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
