//! Requests that name the domain of another organisation (S7, RFC 3261 §8.2.2.1, §10.3).

use sidetone_model::directory::DirectorySnapshot;
use sidetone_sip::message::Method;
use sidetone_sip::ua::{Draft, Extra, Invite};

use crate::tests::directory::organisation;
use crate::tests::network::{Net, Plan, acme, extension, trunk};
use crate::tests::transfers::Desk;

const CARRIER: &str = "203.0.113.1:5060";

/// Both organisations have 1002.
fn directory() -> DirectorySnapshot {
    let mut directory = acme(vec![trunk(1, CARRIER)]);
    directory.extensions.push(extension(12, 1, "acme.test", "1002"));
    directory.organisations.push(organisation(2, "other.test"));
    directory.extensions.push(extension(22, 2, "other.test", "1002"));
    directory
}

#[test]
fn s7_a_call_to_the_domain_of_another_organisation_rings_nobody() {
    let mut net = Net::new(directory());
    net.carrier("192.0.2.21:5060", [Plan::Accept]).options = Some(200);
    net.register_elsewhere("1002", "192.0.2.21:5060");
    net.heard.clear();
    for (host, expected) in [
        ("other.test", "404 Not Found"),
        ("OTHER.test:5060", "404 Not Found"),
        ("acme.test", "200"),
        ("198.51.100.1", "200"),
        ("localhost", "200"),
        ("unknown.test", "200"),
    ] {
        let uri = format!("sip:1002@{host}");
        net.dial_by(Invite::new(uri.as_str(), "<sip:1001@acme.test>", format!("<{uri}>")));
        assert_eq!(net.heard.pop().unwrap(), expected, "{host}");
    }
}

#[test]
fn s7_a_transfer_to_the_domain_of_another_organisation_is_refused() {
    let mut desk = Desk::with(directory(), [Plan::Accept]);
    desk.refer(Extra::new().header("Refer-To", "<sip:1002@other.test>"));
    assert_eq!(desk.net.heard, ["404 Domain Of Another Organisation"]);
    desk.net.heard.clear();
    desk.refer(Extra::new().header("Refer-To", "<sip:+447700900002@unknown.test>"));
    assert_eq!(desk.net.heard[0], "202 Accepted");
}

#[test]
fn s7_a_registration_in_the_domain_of_another_organisation_is_refused() {
    let mut net = Net::new(directory());
    for (domain, expected) in [("other.test", "404 Not Found"), ("198.51.100.1", "200 OK")] {
        let aor = format!("<sip:1001@{domain}>");
        let draft = Draft::new(Method::Register, "sip:acme.test", "<sip:1001@acme.test>", aor);
        net.phone
            .request(net.now(), net.flow_of("198.51.100.1:5060"), draft.header("Expires", "600"))
            .unwrap();
        net.run();
        assert_eq!(net.heard.pop().unwrap(), expected, "{domain}");
    }
    assert_eq!(net.switch.bindings(), 1);
}
