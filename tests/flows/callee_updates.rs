//! Offers of the callee by UPDATE (RFC 3311) in an answered call, on real sockets.

use sidetone_sip::message::Method;

use crate::common::site::Site;
use crate::flows::by_hand::{HandCall, port_of, rtp, text};

const AUDIO: &str = "m=audio PORT RTP/AVP 0";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_called_device_holds_and_resumes_by_update() {
    let site = Site::start().await;
    let mut call = HandCall::up(&site, AUDIO, AUDIO).await;
    let there = port_of(&call.offered, "audio");
    for (cseq, held, answered) in [(500, "a=sendonly", "a=recvonly"), (501, "a=sendrecv", "a=sendrecv")] {
        let offer = call.sdp(1, &format!("{AUDIO}\n{held}"));
        call.callee_sends("UPDATE", cseq, &offer).await;
        // A retransmitted re-INVITE of the step before may arrive first.
        let mut offered = call.caller.request("the offer to the caller", "INVITE").await;
        while !offered.contains(held) {
            offered = call.caller.request("the offer to the caller", "INVITE").await;
        }
        let answer = call.sdp(0, &format!("{AUDIO}\n{answered}"));
        call.caller_replies(&offered, 200, &answer).await;
        let mut response = call.callee.response(&Method::Update).await;
        while response.cseq().unwrap().number != cseq {
            response = call.callee.response(&Method::Update).await;
        }
        assert_eq!(response.status().as_u16(), 200, "{held}");
        let body = text(response.body());
        assert!(body.contains(&format!("{answered}\r\n")), "{held}: {body}");
        assert_eq!(port_of(&body, "audio"), there, "the port stays");
    }
    let packet = rtp(0, 1, 160, &[0x55; 160]);
    assert_eq!(call.passes(1, there, &packet).await, packet);
    call.ends().await;
    assert_eq!(site.record().await["hangup_cause"], "NORMAL_CLEARING");
}

/// An offer without common media is refused, and the call continues unchanged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_that_leaves_nothing_changes_nothing() {
    let site = Site::start().await;
    let mut call = HandCall::up(&site, AUDIO, AUDIO).await;
    let offer = call.sdp(1, "m=video PORT RTP/AVP 31");
    call.callee_sends("UPDATE", 500, &offer).await;
    assert_eq!(call.callee.response(&Method::Update).await.status().as_u16(), 488);
    let here = port_of(&call.answer, "audio");
    let packet = rtp(0, 1, 160, &[0x55; 160]);
    assert_eq!(call.passes(0, here, &packet).await, packet);
    call.ends().await;
    assert_eq!(site.record().await["hangup_cause"], "NORMAL_CLEARING");
}
