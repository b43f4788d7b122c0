//! Tests the live view with simulated responses and time, drawn on a terminal in memory.
#![expect(clippy::disallowed_methods, reason = "a test begins at any instant")]

use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};
use sidetone_model::time::Timestamp;

use crate::asks::Failure;
use crate::draw::draw;
use crate::key::Key;
use crate::plain::plain;
use crate::screen::Screen;
use crate::top::{Input, Output, Top};

type Answer = Result<Value, Failure>;

/// A live view, and a server that answers it immediately.
struct Play<S> {
    top: Top,
    server: S,
    now: Instant,
    /// Every requested path, with the milliseconds since the start.
    asked: Vec<(u128, String)>,
    began: Instant,
    over: Vec<Output>,
}

impl<S: FnMut(&str) -> Answer> Play<S> {
    fn new(once: bool, server: S) -> Self {
        let began = Instant::now();
        let wall: Timestamp = "2026-03-02T09:00:30Z".parse().unwrap();
        let top = Top::new("http://127.0.0.1:8080", once, began, wall);
        let mut play = Play { top, server, now: began, asked: Vec::new(), began, over: Vec::new() };
        play.drain();
        play
    }

    fn drain(&mut self) {
        while let Some(output) = self.top.poll_output() {
            match output {
                Output::Fetch(fetch) => {
                    self.asked.push(((self.now - self.began).as_millis(), fetch.path.clone()));
                    let answer = (self.server)(&fetch.path);
                    self.top.handle_input(self.now, Input::Answer(fetch.number, answer));
                }
                output => self.over.push(output),
            }
        }
    }

    fn key(&mut self, key: Key) {
        self.top.handle_input(self.now, Input::Key(key));
        self.drain();
    }

    /// Advances the time, and handles every timeout in it.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(next) = self.top.next_timeout().filter(|next| *next <= end) {
            self.now = next.max(self.now);
            self.top.handle_input(self.now, Input::Timeout);
            self.drain();
        }
        self.now = end;
    }

    fn shown(&self) -> String {
        shown(&self.top.screen(self.now), 150, 30)
    }
}

/// The text of a screen, each line without trailing blanks.
fn shown(screen: &Screen, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, screen, true)).unwrap();
    let buffer = terminal.backend().buffer();
    let lines = (0..height).map(|y| {
        let line: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

const BAD: &str = "01900000-0000-7000-8000-000000000001";
const GOOD: &str = "01900000-0000-7000-8000-000000000002";
const RINGING: &str = "01900000-0000-7000-8000-000000000003";

fn call(uuid: &str, caller: &str, state: &str) -> Value {
    json!({ "uuid": uuid, "caller": caller, "destination": "1002", "state": state, "direction": "internal",
        "started_at": "2026-03-02T09:00:00Z", "answered_at": "2026-03-02T09:00:05Z", "held_by": "caller",
        "legs": [{ "codec": "PCMA" }, { "codec": "PCMA" }] })
}

fn quality(verdict: &str, mos: f64) -> Value {
    let leg = |side: &str| {
        json!({ "leg": side, "party": "1001", "codec": "PCMA", "inbound": { "mos": mos, "loss_pct": 3.25, "jitter_ms": 2.5,
            "timeline": { "step_s": 1, "columns": ["received", "lost", "late", "audio_expected"],
                "seconds": [[50, 0, 0, 1], [40, 10, 0, 1], [0, null, 0, 0], [25, 25, 0, 1]] } } })
    };
    json!({ "media_verdict": verdict, "media_verdict_worse": verdict, "sentence": format!("3 % of the packets were lost{} at last", ", and more".repeat(40)),
        "blame": "network", "legs": [leg("a"), leg("b")], "callee": { "media_verdict": "ok", "sentence": "all arrived" } })
}

fn page(items: &[Value]) -> Answer {
    Ok(json!({ "items": items, "total": items.len(), "next_cursor": null }))
}

fn refusal(status: u16, message: &str) -> Answer {
    Err(Failure::of(status, &json!({ "error": { "code": "x", "message": message } }), None))
}

/// A server with three calls, three phones, a room and two trunks, whose texts contain an attacker's escape
/// sequences.
fn office(path: &str) -> Answer {
    let path = path.split('?').next().unwrap_or_default();
    match path.split('/').skip(1).collect::<Vec<_>>().as_slice() {
        ["calls"] => page(&[
            call(RINGING, "1009", "ringing"),
            call(GOOD, "1003", "answered"),
            call(BAD, "\u{1b}[2J1001", "answered"),
        ]),
        ["calls", uuid, "quality"] if *uuid == BAD => Ok(quality("lossy_inbound", 3.1)),
        ["calls", _, "quality"] => Ok(quality("ok", 4.4)),
        ["registrations"] => page(&[
            json!({ "state": "reachable", "number": "1001", "round_trip_ms": 2.5, "contact": "a", "transport": "UDP",
                "user_agent": "Phone\u{1b}]0;owned\u{7}\u{9b}31m", "registered_at": "2026-03-02T08:00:30Z" }),
            json!({ "state": "unreachable", "number": "1002", "contact": "b", "transport": "TLS" }),
            json!({ "state": "reachable", "number": "1003", "round_trip_ms": 250.0, "contact": "c" }),
        ]),
        ["conferences"] => {
            page(&[json!({ "room_id": "r", "room_name": "Board", "started_at": "2026-03-02T09:00:00Z",
            "locked": true, "members": [{ "name": "Ada\u{202e}", "talking": true, "call_uuid": BAD },
                { "number": "1002", "waiting": true }] })])
        }
        ["trunks"] => page(&[
            json!({ "id": "t1", "name": "Good carrier" }),
            json!({ "id": "t2", "name": "Bad carrier" }),
        ]),
        ["trunks", "t2", "status"] => {
            Ok(json!({ "calls": 3, "addresses": [{ "state": "unreachable" }], "registration": null,
            "refusals": [{ "status": 503, "reason": "Busy\u{1b}c", "method": "INVITE" }] }))
        }
        ["trunks", "t1", "status"] => Ok(
            json!({ "calls": 0, "addresses": [{ "state": "reachable", "round_trip_ms": 12.0 }], "refusals": [] }),
        ),
        ["calls" | "cdrs", _, "signalling"] => refusal(404, "no messages"),
        other => panic!("{other:?}"),
    }
}

/// The lines that contain one of these, in their order.
fn order<'t>(text: &str, of: &[&'t str]) -> Vec<&'t str> {
    text.lines().filter_map(|line| of.iter().find(|part| line.contains(**part)).copied()).collect()
}

#[test]
fn each_view_shows_the_worst_first_and_no_escape_sequence() {
    let mut play = Play::new(false, office);
    let calls = play.shown();
    assert_eq!(order(&calls, &["1001", "1003", "1009"]), ["1001", "1003", "1009"], "{calls}");
    let row = calls.lines().find(|line| line.contains("1001")).unwrap();
    for part in ["lossy inbound", "3.10", "3.25", "·[2J1001", "answered, on hold", "0:25", "PCMA"] {
        assert!(row.contains(part), "{part}: {row}");
    }
    assert!(calls.contains("Calls 3") && calls.contains("read at 09:00:30 UTC"), "{calls}");
    play.key(Key::Tab);
    let phones = play.shown();
    assert_eq!(order(&phones, &["1001", "1002", "1003"]), ["1002", "1003", "1001"], "{phones}");
    assert!(phones.contains("Phone·]0;owned··31m") && phones.contains("1:00:00"), "{phones}");
    play.key(Key::Right);
    let rooms = play.shown();
    let room = rooms.lines().find(|line| line.contains("Board")).unwrap();
    assert!(["Ada·", "locked", "3.10", "0:30"].iter().all(|part| room.contains(part)), "{room}");
    play.key(Key::Char('4'));
    let trunks = play.shown();
    assert_eq!(order(&trunks, &["Good carrier", "Bad carrier"]), ["Bad carrier", "Good carrier"], "{trunks}");
    assert!(trunks.contains("503 Busy·c (INVITE)") && trunks.contains("unreachable"), "{trunks}");
    for text in [calls, phones, rooms, trunks] {
        assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{text:?}");
    }
    play.key(Key::BackTab);
    play.key(Key::Left);
    play.key(Key::BackTab);
    assert!(play.shown().contains("lossy inbound"), "back at the calls");
    play.key(Key::Char('q'));
    assert_eq!(play.over, [Output::Quit]);
}

#[test]
fn the_page_of_a_call_follows_it_to_its_record() {
    let (is_over, is_kept) = (std::cell::Cell::new(false), std::cell::Cell::new(false));
    let mut play =
        Play::new(false, |path: &str| match path.split(['/', '?']).skip(1).collect::<Vec<_>>().as_slice() {
            ["calls", _, "quality", ..] if is_over.get() => refusal(404, "no such call"),
            ["cdrs", _, "quality"] => Ok(quality("degraded_audio", 2.0)),
            ["calls", _, "signalling"] if is_kept.get() => {
                Ok(json!({ "messages": [{ "at_us": 1, "direction": "sent",
                "remote": "192.0.2.9:5060", "method": "INVITE", "summary": "INVITE sip:1002@x SIP/2.0" }] }))
            }
            _ => office(path),
        });
    play.key(Key::Enter);
    let page = play.shown();
    for part in [
        "·[2J1001 -> 1002",
        "lossy inbound",
        "  3 % of the packets were lost",
        "and more at last",
        "operator of the network",
        "From the called party: ok",
        "MOS",
        "3.10",
        "_▅ █",
        "No SIP messages are kept of this call.",
    ] {
        assert!(page.contains(part), "{part}:\n{page}");
    }
    let before = play.asked.len();
    play.pass(Duration::from_secs(4));
    let asked = play.asked[before..].iter().filter(|(_, path)| path.contains("quality")).count();
    assert_eq!(asked, 4, "its figures are read every second");
    is_kept.set(true);
    play.pass(Duration::from_secs(5));
    assert!(play.shown().contains("INVITE sip:1002@x"), "{}", play.shown());
    is_over.set(true);
    play.pass(Duration::from_secs(3));
    let page = play.shown();
    assert!(page.contains("these are its final figures") && page.contains("degraded audio"), "{page}");
    assert!(page.contains("INVITE sip:1002@x"), "what was read while it was live stays: {page}");
    assert!(play.asked.iter().any(|(_, path)| path.starts_with("/cdrs/") && path.ends_with("/signalling")));
    play.key(Key::Escape);
    assert!(play.shown().contains("Verdict"), "{}", play.shown());
}

#[test]
fn a_lost_server_is_shown_with_its_reason_and_asked_again() {
    let is_lost = std::cell::Cell::new(false);
    let mut play = Play::new(false, |path: &str| {
        if is_lost.get() { Err(Failure::unreachable("connection refused\u{1b}c")) } else { office(path) }
    });
    is_lost.set(true);
    play.pass(Duration::from_millis(900));
    let before = play.asked.len();
    play.pass(Duration::from_millis(40_100));
    let times: Vec<u128> = play.asked[before..].iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [1_000, 2_000, 4_000, 8_000, 16_000, 26_000, 36_000], "ever more slowly");
    let lost = play.shown();
    assert!(lost.contains("lost for 40 s: connection refused·c; the next attempt is in 5 s"), "{lost}");
    assert!(lost.contains("lossy inbound"), "what was read last stays: {lost}");
    play.key(Key::Tab);
    assert_eq!(play.asked.len(), before + 7, "a key does not hurry a lost server");
    is_lost.set(false);
    play.pass(Duration::from_secs(6));
    assert!(play.shown().contains("read at 09:01:1"), "{}", play.shown());
}

#[test]
fn an_answer_has_a_deadline_and_may_not_come_later() {
    let began = Instant::now();
    let mut top = Top::new("x", false, began, Timestamp::from_micros(0));
    let Some(Output::Fetch(first)) = top.poll_output() else { panic!("nothing is asked") };
    assert_eq!(top.next_timeout(), Some(began + Duration::from_secs(5)));
    top.handle_input(began + Duration::from_millis(4_999), Input::Timeout);
    assert_eq!(top.problem(), None);
    let late = began + Duration::from_secs(5);
    top.handle_input(late, Input::Timeout);
    assert_eq!(top.problem(), Some("no answer within 5 s"));
    top.handle_input(late, Input::Answer(first.number, page(&[])));
    assert!(top.problem().is_some() && top.poll_output().is_none(), "an answer that comes later is ignored");
    top.handle_input(late + Duration::from_secs(1), Input::Timeout);
    let Some(Output::Fetch(second)) = top.poll_output() else { panic!("nothing is asked again") };
    assert_ne!(first.number, second.number);
}

#[test]
fn refusals_and_limits_of_the_key_are_shown() {
    let mut play = Play::new(false, |path: &str| {
        if path.starts_with("/trunks") {
            refusal(403, "needs the permission trunks:write")
        } else {
            office(path)
        }
    });
    play.key(Key::Char('4'));
    let refused = play.shown();
    assert!(
        refused.contains("The server does not show this: needs the permission trunks:write"),
        "{refused}"
    );
    play.key(Key::Char('1'));
    assert!(play.shown().contains("lossy inbound"), "the other views go on");

    let limited = |_: &str| {
        Err(Failure {
            retry_after: Some(Duration::from_secs(47)),
            ..refusal(429, "too many requests").unwrap_err()
        })
    };
    let mut play = Play::new(false, limited);
    play.pass(Duration::from_secs(46));
    assert_eq!(play.asked.len(), 1, "as long as the server says");
    assert!(play.shown().contains("too many requests; the next attempt is in 1 s"), "{}", play.shown());
    play.pass(Duration::from_secs(1));
    assert_eq!(play.asked.len(), 2);
    for (status, part) in [(401, "check the key"), (404, "check that the URL")] {
        let play = Play::new(false, |_: &str| refusal(status, "no"));
        assert!(play.shown().contains(part), "{status}");
    }
}

#[test]
fn many_calls_are_read_page_by_page_and_a_few_figures_each_second() {
    let id = |number: usize| format!("01900000-0000-7000-8000-{number:012}");
    let mut play = Play::new(false, |path: &str| {
        let items = |from: usize| {
            (from..from + 50).map(|number| call(&id(number), "1001", "answered")).collect::<Vec<_>>()
        };
        match path {
            "/calls?limit=500&cursor=" => {
                Ok(json!({ "items": items(0), "total": 100, "next_cursor": "a b" }))
            }
            "/calls?limit=500&cursor=a%20b" => {
                Ok(json!({ "items": items(50), "total": 100, "next_cursor": null }))
            }
            path if path.starts_with("/calls/") => Ok(quality("ok", 4.0)),
            _ => page(&[]),
        }
    });
    assert!(play.shown().contains("Calls 100"));
    play.pass(Duration::from_secs(24));
    let mut figures: Vec<&str> =
        play.asked.iter().map(|(_, path)| path.as_str()).filter(|path| path.contains("quality")).collect();
    assert_eq!(figures.len(), 100, "four each second");
    figures.sort_unstable();
    figures.dedup();
    assert_eq!(figures.len(), 100, "each call once");
    let in_a_minute = play.asked.iter().filter(|(at, _)| *at < 10_000).count() * 6;
    assert!(in_a_minute < 600, "{in_a_minute} requests a minute are more than a key has by default");
}

#[test]
fn a_plain_text_has_every_view_and_ends() {
    let play = Play::new(true, office);
    assert_eq!((play.over.as_slice(), play.top.problem()), ([Output::Done].as_slice(), None));
    let text: String = play.top.screens(play.now).iter().map(plain).collect();
    for part in
        ["Calls 3", "lossy inbound", "Registrations 3", "Phone·]0;owned", "Rooms 1", "Trunks 2", "503 Busy"]
    {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{text:?}");
    let play = Play::new(true, |_: &str| Err(Failure::unreachable("connection refused")));
    assert_eq!(
        (play.over.as_slice(), play.top.problem()),
        ([Output::Done].as_slice(), Some("connection refused"))
    );
    assert_eq!(play.asked.len(), 1, "a lost server is asked once");
}

#[test]
fn any_size_of_a_terminal_and_any_answer_is_drawn() {
    for (width, height) in [(1, 1), (3, 2), (20, 4), (80, 24), (400, 100)] {
        for answer in
            [json!(null), json!([]), json!({ "items": [1, null, {}] }), json!({ "items": {}, "total": -1 })]
        {
            let mut play = Play::new(false, |_: &str| Ok(answer.clone()));
            for key in
                [Key::Tab, Key::Tab, Key::Tab, Key::Tab, Key::Enter, Key::Down, Key::PageDown, Key::End]
            {
                play.key(key);
                shown(&play.top.screen(play.now), width, height);
            }
        }
        let mut play = Play::new(false, office);
        for key in [Key::Enter, Key::PageDown, Key::Home, Key::Left, Key::Char('/'), Key::Char('z')] {
            play.key(key);
            shown(&play.top.screen(play.now), width, height);
        }
    }
}
