//! Answers whose address is a host name: no packet can be sent there.

use sidetone_model::call::HangupCause;
use sidetone_sip::message::Method;

use crate::tests::network::{Net, Plan, SDP, acme, address, trunk};

const CARRIER: &str = "203.0.113.1:5060";

#[test]
fn an_answer_with_a_host_name_ends_the_call_with_488() {
    for (host, expected) in [("IN IP4 media.example", "488 Not Acceptable Here"), ("IN IP4 192.0.2.1", "200")]
    {
        let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
        net.carrier(CARRIER, [Plan::Ring]);
        net.dial("+447700900001");
        net.heard.clear();
        let invite = net.carriers[&address(CARRIER)].of(&Method::Invite)[0].clone();
        let header = |name| invite.header(name).unwrap().to_owned();
        let body = SDP.replace("IN IP4 192.0.2.1\r\nt", &format!("{host}\r\nt"));
        let text = format!(
            "SIP/2.0 200 OK\r\nVia: {}\r\nFrom: {}\r\nTo: {};tag=carrier\r\nCall-ID: {}\r\nCSeq: {}\r\n\
             Contact: <sip:{CARRIER}>\r\nContent-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{body}",
            header("Via"),
            header("From"),
            header("To"),
            header("Call-ID"),
            header("CSeq"),
            body.len()
        );
        net.inject(CARRIER, text);
        assert_eq!(net.heard, [expected], "{host}");
        let byes = net.carriers[&address(CARRIER)].of(&Method::Bye).len();
        assert_eq!(byes, usize::from(expected != "200"), "{host}");
        let causes: Vec<_> = net.records.iter().map(|record| record.hangup_cause).collect();
        let expected = (expected != "200").then_some(Some(HangupCause::IncompatibleDestination));
        assert_eq!(causes, expected.into_iter().collect::<Vec<_>>(), "{host}");
    }
}
