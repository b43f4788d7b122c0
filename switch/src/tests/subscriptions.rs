//! Subscriptions of a phone to the calls and the registration of other extensions.

use std::sync::Arc;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone_model::directory::{DirectorySnapshot, Trunk};
use sidetone_model::message_waiting::MessageWaiting;
use sidetone_sip::auth::{Client, Realm};
use sidetone_sip::message::{Digest, Method, Name, Request};
use sidetone_sip::ua::Reply;

use crate::machine::Input;
use crate::routing::Directory;
use crate::tests::carrier::{Plan, challenge};
use crate::tests::nat::{CARRIER, of_carrier};
use crate::tests::network::{Net, PASSWORD, SDP, acme, address, extension, number, organisation, trunk};

/// The address of 1002's phone, which has keys with lamps.
const CONSOLE: &str = "192.0.2.50:5060";

/// 1001 and 1002 of one organisation, and 2001 of another.
fn directory() -> DirectorySnapshot {
    let from = sidetone_model::directory::Network { address: address(CARRIER).ip(), prefix_len: 32 };
    let mut directory = acme(vec![Trunk { accept_from: vec![from], ..trunk(1, CARRIER) }]);
    directory.extensions.push(extension(12, 1, "acme.test", "1002"));
    directory.organisations.push(organisation(2, "other.test"));
    directory.extensions.push(extension(21, 2, "other.test", "2001"));
    directory.numbers.push(number(32, 2, "+442079999999", 21));
    directory
}

fn net() -> Net {
    let mut net = Net::new(directory());
    net.carrier(CONSOLE, []);
    net.carrier(CARRIER, [Plan::Accept]);
    net
}

/// The console of 1002.
struct Console {
    net: Net,
    login: Client,
    cseq: u32,
}

impl Console {
    fn new(net: Net) -> Self {
        let realm = Realm::Exactly("acme.test".into());
        let login = Client::new("1002", PASSWORD, realm, StdRng::seed_from_u64(4));
        Console { net, login, cseq: 0 }
    }

    /// Sends a SUBSCRIBE to `number`, with credentials after a challenge; returns the status.
    fn subscribe(&mut self, number: &str, to_tag: &str, headers: &str) -> u16 {
        let uri = format!("sip:{number}");
        let status = self.send(&uri, to_tag, headers);
        if status != 401 {
            return status;
        }
        let told = self.net.told.last().unwrap();
        let challenges: Vec<Digest> = told.www_authenticate().filter_map(Result::ok).collect();
        let answer = self.login.answer(&challenges, false, "SUBSCRIBE", &uri).unwrap();
        self.send(&uri, to_tag, &format!("{headers}Authorization: {answer}\r\n"))
    }

    fn send(&mut self, uri: &str, to_tag: &str, headers: &str) -> u16 {
        self.cseq += 1;
        let (cseq, call) = (self.cseq, uri.len());
        let text = format!(
            "SUBSCRIBE {uri} SIP/2.0\r\nVia: SIP/2.0/UDP {CONSOLE};branch=z9hG4bK{cseq}\r\nMax-Forwards: 70\r\n\
             From: <sip:1002@acme.test>;tag=console\r\nTo: <{uri}>{to_tag}\r\nCall-ID: {call}-{uri}\r\n\
             CSeq: {cseq} SUBSCRIBE\r\nContact: <sip:1002@{CONSOLE}>\r\n{headers}Content-Length: 0\r\n\r\n"
        );
        let before = self.net.told.len();
        self.net.inject(CONSOLE, text);
        self.net.told.get(before).map_or(0, |told| told.status().as_u16())
    }

    /// Subscribes to the calls of 1001; returns our tag.
    fn watch(&mut self) -> String {
        assert_eq!(self.subscribe("1001@acme.test", "", "Event: dialog\r\n"), 200);
        format!(";tag={}", self.net.told.last().unwrap().to_tag().unwrap())
    }

    fn notified(&self) -> Vec<&Request> {
        self.net.carriers[&address(CONSOLE)].of(&Method::Notify)
    }

    /// The states of the calls in each NOTIFY, or its Subscription-State when the subscription ends.
    fn states(&self) -> Vec<String> {
        let state = |request: &&Request| {
            let state = request.header(Name::SubscriptionState).unwrap().to_owned();
            let body = std::str::from_utf8(request.body()).unwrap().to_owned();
            let states = body.split("<state>").skip(1).map(|rest| rest.split('<').next().unwrap().to_owned());
            match state.starts_with("active") {
                true => states.collect::<Vec<_>>().join(" "),
                false => state,
            }
        };
        self.notified().iter().map(state).collect()
    }
}

#[test]
fn a_lamp_follows_the_calls_of_an_extension() {
    let mut console = Console::new(net());
    console.watch();
    let told = console.net.told.last().unwrap();
    assert_eq!(told.header(Name::Expires), Some("3600"));
    assert!(told.header(Name::Contact).unwrap().contains("198.51.100.1"));
    let first = console.notified()[0];
    assert_eq!(first.header(Name::Event), Some("dialog"));
    assert_eq!(first.header(Name::SubscriptionState), Some("active;expires=3600"));
    assert_eq!(first.header(Name::ContentType), Some("application/dialog-info+xml"));
    assert_eq!(first.uri(), "sip:1002@192.0.2.50:5060");

    console.net.register();
    console.net.inject(CARRIER, of_carrier("INVITE", 1, "", SDP));
    let early = console.notified().last().map(|request| request.body().to_vec()).unwrap();
    let early = String::from_utf8(early).unwrap();
    assert!(
        early.contains("direction=\"recipient\"") && early.contains("sip:+447700900123@acme.test"),
        "{early}"
    );
    console.net.pick_up();
    console.net.wait(Duration::from_secs(5));
    console.net.hang_up();
    console.net.wait(Duration::from_secs(5));
    assert_eq!(console.states(), ["", "trying", "confirmed", ""]);
    let versions: Vec<bool> = console
        .notified()
        .iter()
        .zip(0..)
        .map(|(request, version)| {
            std::str::from_utf8(request.body()).unwrap().contains(&format!("version=\"{version}\""))
        })
        .collect();
    assert_eq!(versions, [true; 4]);
}

/// The early dialog in the document is the one that INVITE with Replaces takes over.
#[test]
fn the_dialog_of_a_ringing_phone_is_named_as_replaces_names_it() {
    let mut console = Console::new(net());
    console.watch();
    console.net.register();
    console.net.inject(CARRIER, of_carrier("INVITE", 1, "", SDP));
    let (_, key) = console.net.ringing.unwrap();
    let now = console.net.now();
    console.net.phone.respond(now, &key, Reply::new(sidetone_sip::message::StatusCode::RINGING)).unwrap();
    console.net.run();
    let shown = console.notified().last().map(|request| request.body().to_vec()).unwrap();
    let shown = String::from_utf8(shown).unwrap();
    let attribute = |name: &str| {
        let rest = shown.split_once(&format!(" {name}=\"")).unwrap().1;
        rest.split('"').next().unwrap().to_owned()
    };
    let (call_id, ours, theirs) = (attribute("call-id"), attribute("local-tag"), attribute("remote-tag"));
    let leg = console.net.switch.shared.ua.leg_of_dialog(&call_id, &ours, &theirs);
    assert!(leg.is_some(), "{shown}");
    assert!(shown.contains("<state>early</state>"), "{shown}");
}

#[test]
fn presence_is_open_while_a_phone_is_registered() {
    let mut console = Console::new(net());
    assert_eq!(console.subscribe("1001@acme.test", "", "Event: presence;id=7\r\nExpires: 7200\r\n"), 200);
    console.net.register();
    console.net.wait(Duration::from_secs(700));
    let notified: Vec<_> = console
        .notified()
        .iter()
        .map(|request| {
            assert_eq!(request.header(Name::Event), Some("presence;id=7"));
            std::str::from_utf8(request.body()).unwrap().contains("<basic>open</basic>")
        })
        .collect();
    assert_eq!(notified, [false, true, false], "the registration lasts for ten minutes");
}

#[test]
fn a_subscription_is_refreshed_ended_and_expires() {
    let mut console = Console::new(net());
    let tag = console.watch();
    console.net.wait(Duration::from_secs(3_000));
    assert_eq!(console.subscribe("1001@acme.test", &tag, "Event: dialog\r\nExpires: 100\r\n"), 200);
    assert_eq!(console.net.told.last().unwrap().header(Name::Expires), Some("100"));
    console.net.wait(Duration::from_secs(99));
    assert_eq!(console.states(), ["", ""]);
    console.net.wait(Duration::from_secs(2));
    assert_eq!(console.states(), ["", "", "terminated;reason=timeout"]);
    assert_eq!(console.subscribe("1001@acme.test", &tag, "Event: dialog\r\n"), 481, "it is over");

    let tag = console.watch();
    assert_eq!(console.subscribe("1001@acme.test", &tag, "Event: dialog\r\nExpires: 0\r\n"), 200);
    assert_eq!(console.states().len(), 5);
    assert_eq!(console.states()[4], "terminated;reason=timeout");
    // A fetch is a subscription without a duration (RFC 6665 §4.4.3).
    assert_eq!(console.subscribe("1001@acme.test", "", "Event: dialog\r\nExpires: 0\r\n"), 200);
    assert_eq!(console.states()[5], "terminated;reason=timeout");
    assert!(!console.notified()[5].body().is_empty());
    console.net.wait(Duration::from_secs(60));
    assert!(console.net.switch.shared.subscriptions.is_empty());
    assert_eq!(console.net.switch.shared.ua.subscriptions_len(), 0);
}

#[test]
fn what_cannot_be_subscribed_to_is_refused() {
    let mut console = Console::new(net());
    for (to, headers, status) in [
        ("1001@acme.test", "Event: reg\r\n", 489),
        ("1001@acme.test", "Event: message-summary\r\nAccept: application/pidf+xml\r\n", 406),
        ("1001@acme.test", "", 400),
        ("1001@acme.test", "Event: dialog\r\nExpires: 59\r\n", 423),
        ("1001@acme.test", "Event: dialog\r\nAccept: application/pidf+xml\r\n", 406),
        ("1009@acme.test", "Event: dialog\r\n", 404),
        ("2001@other.test", "Event: dialog\r\n", 404),
        ("2001@acme.test", "Event: dialog\r\n", 404),
    ] {
        assert_eq!(console.subscribe(to, "", headers), status, "{to} {headers}");
    }
    assert_eq!(
        console.subscribe(
            "1001@acme.test",
            "",
            "Event: dialog\r\nAccept: text/plain, application/*;q=0.5\r\n"
        ),
        200
    );
    // Without valid credentials, the response does not reveal whether the extension exists.
    console.login =
        Client::new("1002", "wrong", Realm::Exactly("acme.test".into()), StdRng::seed_from_u64(4));
    assert_eq!(console.subscribe("1009@acme.test", "", "Event: dialog\r\n"), 401);
}

#[test]
fn a_long_subscribe_is_refused() {
    let mut console = Console::new(net());
    let event = format!("Event: dialog;id={}\r\n", "7".repeat(4_096));
    assert_eq!(console.subscribe("1001@acme.test", "", &event), 513);
    assert!(console.net.switch.shared.subscriptions.is_empty());
    assert_eq!(console.net.switch.shared.ua.subscriptions_len(), 0);
}

/// The console was restarted and does not know its earlier subscription.
#[test]
fn one_device_has_one_subscription_to_a_state() {
    let mut console = Console::new(net());
    for _ in 0..3 {
        console.watch();
        assert_eq!(console.net.switch.shared.ua.subscriptions_len(), 1);
    }
}

#[test]
fn a_device_that_refuses_or_ignores_its_notify_has_no_subscription() {
    for (plan, wait) in
        [(Plan::Refuse(481, Vec::new()), 0), (Plan::Silence, 33), (challenge(401, "acme.test", "n", ""), 0)]
    {
        let mut console = Console::new(net());
        console.net.carriers.get_mut(&address(CONSOLE)).unwrap().notifies = [plan].into();
        console.watch();
        console.net.wait(Duration::from_secs(wait));
        assert!(console.net.switch.shared.subscriptions.is_empty());
        assert_eq!(console.net.switch.shared.ua.subscriptions_len(), 0);
    }
    // An overloaded device keeps its subscription.
    let mut console = Console::new(net());
    console.net.carriers.get_mut(&address(CONSOLE)).unwrap().notifies =
        [Plan::Refuse(503, Vec::new())].into();
    console.watch();
    assert!(!console.net.switch.shared.subscriptions.is_empty());
}

/// While a NOTIFY has no answer, changes are collected.
#[test]
fn one_notify_is_in_progress() {
    let mut console = Console::new(net());
    console.net.carriers.get_mut(&address(CONSOLE)).unwrap().notifies = [Plan::Silence].into();
    console.watch();
    console.net.register();
    console.net.inject(CARRIER, of_carrier("INVITE", 1, "", SDP));
    console.net.pick_up();
    assert_eq!(console.notified().len(), 1);
}

#[test]
fn a_changed_directory_ends_subscriptions() {
    let replace = |console: &mut Console, directory| {
        console.net.feed(Input::Directory(Arc::new(Directory::new(directory))));
        console.net.run();
    };
    let mut console = Console::new(net());
    console.watch();
    let mut changed = directory();
    changed.extensions.remove(0);
    replace(&mut console, changed);
    assert_eq!(console.states(), ["", "terminated;reason=noresource"]);

    let mut console = Console::new(net());
    console.watch();
    let mut changed = directory();
    changed.extensions[1].ha1 = extension(12, 1, "acme.test", "1009").ha1;
    replace(&mut console, changed);
    assert_eq!(console.states(), ["", "terminated;reason=deactivated"]);
    assert!(console.net.switch.shared.subscriptions.is_empty());
}

#[test]
fn one_extension_has_so_many_subscriptions() {
    let mut console = Console::new(net());
    for id in 0..400 {
        let event = format!("Event: dialog;id={id}\r\nExpires: 3600\r\n");
        assert_eq!(console.subscribe("1001@acme.test", "", &event), 200, "{id}");
        console.net.wait(Duration::from_secs(2));
    }
    assert_eq!(console.subscribe("1001@acme.test", "", "Event: dialog;id=400\r\n"), 403);
    assert_eq!(console.net.told.last().unwrap().reason(), "Too Many Subscriptions");
}

/// The directory with these messages in the mailboxes of 1001 and 1002, whose phones are notified without a
/// subscription.
fn with_mailboxes(revision: i64, of_1001: u32, of_1002: u32) -> Arc<Directory> {
    let mut directory = DirectorySnapshot { revision, ..directory() };
    for (line, new) in directory.extensions.iter_mut().zip([of_1001, of_1002]) {
        line.message_waiting = MessageWaiting { new, old: 8, urgent_new: 0, urgent_old: 2 };
        line.notify_message_waiting = line.number == "1002";
    }
    Arc::new(Directory::new(directory))
}

impl Console {
    /// Registers the console as a phone of 1002; the NOTIFY requests that follow are recorded like all others.
    fn register(&mut self) {
        let mut authorization = String::new();
        for cseq in 1..=2 {
            let text = format!(
                "REGISTER sip:acme.test SIP/2.0\r\nVia: SIP/2.0/UDP {CONSOLE};branch=z9hG4bKreg{cseq}\r\n\
                 Max-Forwards: 70\r\nFrom: <sip:1002@acme.test>;tag=reg\r\nTo: <sip:1002@acme.test>\r\nCall-ID: reg\r\n\
                 CSeq: {cseq} REGISTER\r\nContact: <sip:1002@{CONSOLE}>\r\nExpires: 600\r\n{authorization}\
                 Content-Length: 0\r\n\r\n"
            );
            self.net.inject(CONSOLE, text);
            let told = self.net.told.last().unwrap();
            let challenges: Vec<Digest> = told.www_authenticate().filter_map(Result::ok).collect();
            if told.status().as_u16() == 401 {
                let answer = self.login.answer(&challenges, false, "REGISTER", "sip:acme.test").unwrap();
                authorization = format!("Authorization: {answer}\r\n");
            }
        }
        assert_eq!(self.net.told.last().unwrap().status().as_u16(), 200);
    }

    fn follow(&mut self, directory: Arc<Directory>) {
        self.net.feed(Input::Directory(directory));
        self.net.run();
    }

    /// The bodies of the NOTIFY requests about mailboxes, with their Subscription-State.
    fn summaries(&self) -> Vec<(String, String)> {
        let summary = |request: &&Request| {
            assert_eq!(request.header(Name::Event), Some("message-summary"));
            assert_eq!(request.header(Name::ContentType), Some("application/simple-message-summary"));
            let body = std::str::from_utf8(request.body()).unwrap().to_owned();
            (request.header(Name::SubscriptionState).unwrap().to_owned(), body)
        };
        self.notified().iter().map(summary).collect()
    }
}

#[test]
fn a_lamp_shows_the_messages_in_a_mailbox() {
    let mut console = Console::new(net());
    assert_eq!(console.subscribe("1001@acme.test", "", "Event: message-summary\r\n"), 200);
    console.follow(with_mailboxes(2, 2, 0));
    console.follow(with_mailboxes(3, 2, 0));
    console.follow(with_mailboxes(4, 0, 0));
    let body = |waiting: &str, voice: &str| {
        format!(
            "Messages-Waiting: {waiting}\r\nMessage-Account: sip:1001@acme.test\r\nVoice-Message: {voice}\r\n"
        )
    };
    let active = "active;expires=3600".to_owned();
    let expected = [body("no", "0/0 (0/0)"), body("yes", "2/8 (0/2)"), body("no", "0/8 (0/2)")]
        .map(|body| (active.clone(), body));
    assert_eq!(console.summaries(), expected, "the same state is not sent twice");
}

#[test]
fn phones_that_do_not_subscribe_are_notified_when_their_extension_asks_for_it() {
    let mut console = Console::new(net());
    console.net.register();
    console.net.register_elsewhere("1002", CONSOLE);
    assert!(console.summaries().is_empty(), "the extension does not ask for it");
    console.follow(with_mailboxes(2, 1, 1));
    console.follow(with_mailboxes(3, 2, 1));
    console.net.register_elsewhere("1002", CONSOLE);
    assert_eq!(console.summaries().len(), 1, "neither a refresh nor another mailbox changes its own");
    console.follow(with_mailboxes(4, 2, 3));
    let summaries = console.summaries();
    for ((state, body), new) in summaries.iter().zip([1, 3]) {
        assert_eq!(state, "terminated;reason=noresource", "there is no subscription");
        assert!(body.contains("sip:1002@acme.test") && body.contains(&format!("{new}/8 (0/2)")), "{body}");
    }
    assert_eq!(summaries.len(), 2);
    assert_eq!(console.notified()[0].uri(), "sip:1002@192.0.2.50:5060");
}

#[test]
fn a_phone_that_registers_learns_the_state_of_its_mailbox() {
    let mut console = Console::new(net());
    console.follow(with_mailboxes(2, 1, 1));
    console.register();
    let summaries = console.summaries();
    assert!(summaries.len() == 1 && summaries[0].1.contains("Voice-Message: 1/8 (0/2)"), "{summaries:?}");
}
