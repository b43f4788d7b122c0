//! Manual requests: responses outside of calls, and the errors that the INVITE of a call may cause.

use serde_json::json;
use sidetone_phone::{Answering, CallPlan};

use crate::common::site::{DOMAIN, PASSWORD, Site, answering, calls, until, within};
use crate::common::wire::{Ask, Wire};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_outside_of_calls_have_their_answers() {
    let site = Site::start().await;
    let mut wire = Wire::open(site.sip).await;
    let home = format!("sip:{DOMAIN}");
    let in_dialog = |mut ask: Ask| {
        ask.to = format!("{};tag=nobody", ask.to);
        ask
    };
    let mut hopless = wire.invite("1001", "1002");
    hopless.max_forwards = 0;
    let cases = [
        ("OPTIONS", wire.ask("OPTIONS", "1001", &home), 200),
        ("an unknown method", wire.ask("WOMBAT", "1001", &home), 501),
        ("BYE of no dialog", in_dialog(wire.ask("BYE", "1001", &home)), 481),
        ("BYE outside of dialogs", wire.ask("BYE", "1001", &home), 481),
        ("CANCEL of nothing", wire.ask("CANCEL", "1001", &home), 481),
        ("re-INVITE of no dialog", in_dialog(wire.invite("1001", "1002")), 481),
        ("INFO of no dialog", in_dialog(wire.ask("INFO", "1001", &home)), 481),
        ("MESSAGE of a stranger", wire.ask("MESSAGE", "1001", &home), 401),
        ("INVITE at its last hop", hopless, 483),
        ("INVITE that requires", wire.invite("1001", "1002").header("Require: teleportation"), 420),
    ];
    for (name, ask, expected) in cases {
        let answer = wire.exchange(&ask).await;
        assert_eq!(answer.status().as_u16(), expected, "{name}");
        match expected {
            200 | 501 => assert!(answer.header("Allow").is_some(), "{name}"),
            401 => assert!(answer.header("WWW-Authenticate").is_some(), "{name}"),
            420 => assert_eq!(answer.header("Unsupported"), Some("teleportation")),
            _ => {}
        }
    }
    let ask = wire.ask("MESSAGE", "1001", &home);
    assert_eq!(wire.authorized(&ask, "1001", PASSWORD).await.status().as_u16(), 404);
    // There is no note that this could acknowledge.
    let tap = r#"{"ack":true,"id":"0190a000-0000-7000-8000-000000000001"}"#;
    let ask = wire.ask("MESSAGE", "1001", "sip:events@acme.test").body("application/json", tap);
    assert_eq!(wire.authorized(&ask, "1001", PASSWORD).await.status().as_u16(), 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unauthenticated_invite_is_challenged_and_leaves_no_record() {
    let site = Site::start().await;
    let _busy = site.phone("1002", Answering::Refuse(486)).await;
    let mut wire = Wire::open(site.sip).await;
    for number in ["1002", "7777"] {
        let ask = wire.invite("1001", number);
        let answer = wire.exchange(&ask).await;
        assert_eq!(answer.status().as_u16(), 401, "{number}");
        assert!(answer.header("WWW-Authenticate").is_some_and(|value| value.contains("realm=\"acme.test\"")));
    }
    // Asserted identities from a phone are not trusted.
    let ask = wire.invite("1001", "1002").header(format!("P-Asserted-Identity: <sip:1001@{DOMAIN}>"));
    assert_eq!(wire.exchange(&ask).await.status().as_u16(), 401);
    // An authenticated caller places the call, which leaves the only record.
    let ask = wire.invite("1001", "1002");
    assert_eq!(wire.authorized(&ask, "1001", PASSWORD).await.status().as_u16(), 486);
    assert_eq!(site.record().await["hangup_cause"], "USER_BUSY");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invite_that_comes_twice_rings_once_and_by_two_ways_is_merged() {
    let site = Site::start().await;
    let callee = site.phone("1002", Answering::Ring).await;
    let mut wire = Wire::open(site.sip).await;
    let ask = wire.invite("1001", "1002");
    let invite = wire.authorize(&ask, "1001", PASSWORD).await;
    wire.send(&invite).await;
    wire.send(&invite).await;
    calls(&callee, 1, 0).await;
    // The same request on another path (RFC 3261 §8.2.2.2).
    let merged = Ask { branch: format!("{}m", invite.branch), ..invite.clone() };
    assert_eq!(wire.exchange(&merged).await.status().as_u16(), 482);
    assert_eq!(callee.calls().borrow().ringing, 1);

    let cancelled = wire.exchange(&invite.cancel()).await;
    assert_eq!(cancelled.status().as_u16(), 200);
    let answer = wire
        .response("487", |response| {
            response.status().as_u16() == 487
                && response.via_top().is_ok_and(|via| via.branch() == Some(invite.branch.as_str()))
        })
        .await;
    wire.acknowledge(&invite, &answer).await;
    calls(&callee, 0, 0).await;
    assert_eq!(site.record().await["hangup_cause"], json!("ORIGINATOR_CANCEL"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_no_offer_is_refused() {
    let site = Site::start().await;
    let _callee = site.phone("1002", answering()).await;
    let mut wire = Wire::open(site.sip).await;
    let uri = format!("sip:1002@{DOMAIN}");
    for (content_type, body, expected) in
        [("text/plain", "hello", 415), ("application/sdp", "v=0\r\nnonsense", 400)]
    {
        let ask = wire.ask("INVITE", "1001", &uri).body(content_type, body);
        let answer = wire.authorized(&ask, "1001", PASSWORD).await;
        assert_eq!(answer.status().as_u16(), expected, "{content_type}");
    }
    site.idle().await;
}

/// A caller that is switched off during a call sends no BYE; the callee's BYE ends the call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_vanishes_leaves_a_call_that_the_callee_can_end() {
    let site = Site::start().await;
    let callee = site.phone("1002", answering()).await;
    {
        let caller = site.phone("1001", answering()).await;
        tokio::select! {
            _ = caller.call(CallPlan { talk_time: None, ..CallPlan::to("1002") }) => panic!("it ended"),
            () = calls(&callee, 0, 1) => {}
        }
        calls(&caller, 0, 1).await;
    }
    callee.hang_up().await.unwrap();
    within("the record", site.record()).await;
    until("no call is left", || site.engine().live_calls() == 0).await;
}

/// RFC 3261 §13.2.1: without an offer in the INVITE, the 200 has the switch's offer and the ACK has the answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_without_an_offer_is_made_one() {
    let site = Site::start().await;
    let callee = site.phone("1002", answering()).await;
    let media = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = media.local_addr().unwrap().port();
    let mut wire = Wire::open(site.sip).await;
    let ask = wire.ask("INVITE", "1001", &format!("sip:1002@{DOMAIN}"));
    let invite = wire.authorize(&ask, "1001", PASSWORD).await;
    let accepted = wire.exchange(&invite).await;
    assert_eq!(accepted.status().as_u16(), 200);
    let offer = String::from_utf8(accepted.body().to_vec()).unwrap();
    // One audio codec: the one that the callee has accepted.
    assert!(offer.contains("m=audio ") && offer.contains(" RTP/AVP 8 "), "{offer}");

    let contact = accepted.header("Contact").unwrap();
    let target = contact.trim_start_matches('<').split('>').next().unwrap().to_owned();
    let within_dialog = |method: &str, cseq: u32| Ask {
        method: method.into(),
        uri: target.clone(),
        to: accepted.header("To").unwrap().into(),
        branch: format!("{}{method}{cseq}", invite.branch),
        cseq,
        headers: Vec::new(),
        body: String::new(),
        ..invite.clone()
    };
    let answer = format!(
        "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
         m=audio {port} RTP/AVP 8\r\na=rtpmap:8 PCMA/8000\r\n"
    );
    wire.send(&within_dialog("ACK", invite.cseq).body("application/sdp", &answer)).await;
    // The callee's audio arrives at the address in the answer.
    let mut buffer = [0; 2_048];
    within("RTP", async {
        for _ in 0..20 {
            media.recv(&mut buffer).await.unwrap();
        }
    })
    .await;
    // The call continues after any INFO.
    assert_eq!(wire.exchange(&within_dialog("INFO", invite.cseq + 1)).await.status().as_u16(), 200);
    let digits = within_dialog("INFO", invite.cseq + 2).body("application/dtmf-relay", "Signal=1\r\n");
    assert_eq!(wire.exchange(&digits).await.status().as_u16(), 200);
    let fax = within_dialog("INFO", invite.cseq + 3).body("application/x-fax", "on\r\n");
    assert_eq!(wire.exchange(&fax).await.status().as_u16(), 415);
    assert_eq!(wire.exchange(&within_dialog("BYE", invite.cseq + 4)).await.status().as_u16(), 200);
    calls(&callee, 0, 0).await;
    let record = site.record().await;
    assert_eq!(
        [&record["hangup_cause"], &record["codec_a"], &record["codec_b"]],
        [&json!("NORMAL_CLEARING"), &json!("PCMA"), &json!("PCMA")]
    );
    // The dialog has ended.
    assert_eq!(wire.exchange(&within_dialog("BYE", invite.cseq + 5)).await.status().as_u16(), 481);
}
