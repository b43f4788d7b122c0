//! Devices with several flows (RFC 5626).

use std::time::{Duration, Instant};

use crate::registrar::tests::register;
use crate::registrar::{Input, Registrar, RegistrarConfig, Registration, reply};

const AOR: &str = "1001@acme.test";

/// RFC 5626 §7: not more than one contact of a device is a target. When its flow fails, the other one is.
#[test]
fn one_flow_of_a_device_is_used_at_a_time() {
    #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let mut registrar = Registrar::new(RegistrarConfig::default());
    let first = "192.0.2.9:5060 a";
    let one = "Contact: <sip:1@192.0.2.9>;+sip.instance=\"<urn:uuid:1>\";reg-id=1";
    let two = "Contact: <sip:2@192.0.2.9>;+sip.instance=\"<urn:uuid:1>\";reg-id=2";
    let steps = [
        (0, format!("{first} 1 {one}"), vec!["1"]),
        (1, format!("192.0.2.9:5062 b 1 {two}"), vec!["2"]),
        (2, "192.0.2.7:5060 c 1 Contact: <sip:3@192.0.2.7>".to_owned(), vec!["3", "2"]),
        (3, format!("{first} 2 {one}"), vec!["1", "3"]),
    ];
    let targets = |registrar: &Registrar, seconds| -> Vec<String> {
        let found = registrar.lookup(AOR, at(seconds));
        found.iter().filter_map(|binding| binding.contact.user().map(str::to_owned)).collect()
    };
    for (seconds, text, expected) in steps {
        let (request, flow) = register(&text);
        let registration = Registration::from_request(&request, flow).unwrap();
        registrar.register(at(seconds), AOR, registration).unwrap();
        assert_eq!(targets(&registrar, seconds), expected, "{text}");
    }
    assert_eq!(registrar.flows(AOR, at(3)).len(), 3);
    let (_, failed) = register(&format!("{first} 3 {one}"));
    registrar.handle_input(at(4), Input::FlowFailed(&failed));
    assert_eq!(targets(&registrar, 4), ["3", "2"]);
}

/// RFC 5626 §6: `Require: outbound` answers a reg-id of this request, not one of another binding.
#[test]
fn outbound_is_required_of_a_device_that_uses_it() {
    #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
    let now = Instant::now();
    let mut registrar = Registrar::new(RegistrarConfig::default());
    let with_flow = "Contact: <sip:1@192.0.2.9>;+sip.instance=\"<urn:uuid:1>\";reg-id=1";
    for (text, expected) in [
        (format!("192.0.2.9:5060 a 1 {with_flow}|Supported: outbound"), Some("outbound")),
        ("192.0.2.7:5060 b 1 Contact: <sip:2@192.0.2.7>|Supported: outbound".to_owned(), None),
        (format!("192.0.2.9:5060 a 2 {with_flow}"), None),
    ] {
        let (request, flow) = register(&text);
        let registration = Registration::from_request(&request, flow).unwrap();
        let result = registrar.register(now, AOR, registration);
        let response = reply(&request, result.as_deref(), now);
        assert_eq!(response.header("Require"), expected, "{text}");
    }
}
