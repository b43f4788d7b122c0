//! Calls of Chromium over WSS with DTLS-SRTP: to and from an extension, into a room, to and from a number. The received
//! audio of each party is checked, and the record.

use serde_json::Value;

use super::driver::{Browser, is_there};
use crate::common::ports;
use crate::peers::engine::Engine;
use crate::peers::peer::{self, Kind, OUTSIDE, Peer};
use crate::peers::programs::assert_good;
use crate::peers::sipp_scenarios::{self, Way};
use crate::peers::sound;
use crate::peers::tell;
use crate::peers::turn;

/// An engine whose extension 1003 is Chromium; `None` where that is not installed.
fn engine(test: &str, port: u16) -> Option<Engine> {
    if !is_there() {
        tell(&format!("NOTICE: {test} is SKIPPED; apt-get install chromium"));
        return None;
    }
    let line = "number = \"1003\"\n";
    let directory = peer::DIRECTORY.replace(line, &format!("{line}srtp = \"webrtc\"\n"));
    let outside = format!(
        "[[organisations.numbers]]\nnumber = \"{INSIDE}\"\ndestination = {{ extension = \"1003\" }}\n\
         [[trunks]]\nname = \"carrier\"\naddress = \"sip:127.0.0.1:{port}\"\n"
    );
    Some(Engine::with(8, &(directory + &outside)))
}

/// Each hears only the tone of the other.
fn hear_each_other(browser: &mut Browser, peer: &mut Peer) {
    browser.hears(&[peer.hz]);
    peer.hears(&[browser.hz]);
}

/// The newest of this many records: who called whom, which party ended it, and good audio.
fn assert_record(engine: &mut Engine, count: usize, [caller, called, ended_by]: [&str; 3]) -> Value {
    let record = engine.records(count).swap_remove(0);
    assert_eq!([&record["caller_number"], &record["destination_number"]], [caller, called], "{record:#}");
    assert_eq!(record["ended_by"], ended_by, "{record:#}");
    assert_good(&record);
    record
}

/// The browser calls a phone, holds and resumes, and hangs up; then the phone calls the browser, holds, and hangs up.
#[test]
fn chromium_calls_an_extension_and_is_called_by_it() {
    let Some(_turn) = turn() else { return };
    let Some(mut engine) = engine("Chromium with an extension", ports::free(1)) else { return };
    let mut phone = Peer::register(&engine, Kind::Baresip, "1001");
    let mut browser = Browser::register(&engine, "1003");

    browser.call("1001");
    phone.answer();
    browser.wait_state("talking");
    hear_each_other(&mut browser, &mut phone);
    assert_eq!(browser.offer("inactive"), 200, "the hold; {browser}");
    phone.receives(false);
    browser.hears(&[]);
    assert_eq!(browser.offer("sendrecv"), 200, "the resumption; {browser}");
    phone.receives(true);
    browser.hears(&[phone.hz]);
    browser.hang_up();
    phone.released();
    let record = assert_record(&mut engine, 1, ["1003", "1001", "caller"]);
    assert_eq!(record["transcoded"], false, "both have G.711: {record:#}");

    phone.call("1003");
    browser.answer();
    hear_each_other(&mut browser, &mut phone);
    phone.hold();
    browser.hears(&[]);
    phone.resume();
    browser.hears(&[phone.hz]);
    phone.receives(true);
    phone.hang_up();
    browser.ended(2);
    assert_record(&mut engine, 2, ["1001", "1003", "caller"]);
}

/// The browser and a phone in a room.
#[test]
fn chromium_talks_in_a_room() {
    let Some(_turn) = turn() else { return };
    let Some(mut engine) = engine("Chromium in a room", ports::free(1)) else { return };
    let mut phone = Peer::register(&engine, Kind::Baresip, "1001");
    let mut browser = Browser::register(&engine, "1003");
    browser.call("300");
    browser.wait_state("talking");
    phone.call("300");
    hear_each_other(&mut browser, &mut phone);
    browser.hang_up();
    let record = assert_record(&mut engine, 1, ["1003", "300", "caller"]);
    assert_eq!(record["codec_a"], "opus", "{record:#}");
    phone.hang_up();
    assert_record(&mut engine, 2, ["1001", "300", "caller"]);
}

/// A carrier's number is called and hangs up; then the carrier calls the browser's number.
#[test]
fn chromium_calls_a_number_and_is_called_by_it() {
    let Some(_turn) = turn() else { return };
    let port = peer::outside_port();
    let Some(mut engine) = engine("Chromium with a number", port) else { return };
    let mut carrier = Peer::outside(&engine, OUTSIDE, port, engine.sip());
    let mut browser = Browser::register(&engine, "1003");
    browser.call(OUTSIDE);
    carrier.answer();
    browser.wait_state("talking");
    hear_each_other(&mut browser, &mut carrier);
    carrier.hang_up();
    browser.ended(1);
    let record = assert_record(&mut engine, 1, [INSIDE, OUTSIDE, "callee"]);
    assert_eq!(record["direction"], "outbound", "{record:#}");

    carrier.call(INSIDE);
    browser.answer();
    hear_each_other(&mut browser, &mut carrier);
    browser.hang_up();
    carrier.released();
    let record = assert_record(&mut engine, 2, [OUTSIDE, INSIDE, "callee"]);
    assert_eq!(record["direction"], "inbound", "{record:#}");
}

/// A carrier sends an announcement in a 183 and no answer; the browser hears it and cancels.
#[test]
fn chromium_hears_early_media() {
    let Some(_turn) = turn() else { return };
    let port = ports::free(1);
    let Some(mut engine) = engine("Chromium with early media", port) else { return };
    sound::write_capture(&engine.dir().join("pcma20.pcap"), 1_500);
    let mut carrier = sipp_scenarios::sipp(&engine, "callee_announces", &Way::udp(&engine), port, &[]);
    ports::wait_until_bound(port);
    let mut browser = Browser::register(&engine, "1003");
    browser.call(OUTSIDE);
    browser.wait_state("early");
    browser.wait("the announcement", |browser| {
        let loud = browser.eval(&format!("phone.loud([{ANNOUNCED_HZ}])[0]")).as_f64()?;
        (loud > 6_000.0).then_some(())
    });
    assert_eq!(browser.eval("phone.state"), "early", "{browser}");
    browser.eval("phone.hangUp()");
    browser.ended(1);
    assert_eq!(browser.eval("phone.status"), 487, "{browser}");
    assert!(carrier.wait_exit().success(), "{carrier}");
    let record = engine.records(1).remove(0);
    let seen = ["hangup_cause", "ended_by", "media_verdict"].map(|field| &record[field]);
    assert_eq!(seen, ["ORIGINATOR_CANCEL", "caller", "unanswered"], "{record:#}");
}

/// The fundamental frequency of the capture, a square wave.
const ANNOUNCED_HZ: f64 = 500.0;
/// The number of the browser's extension.
const INSIDE: &str = "+442071230000";
