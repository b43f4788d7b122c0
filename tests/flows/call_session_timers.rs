//! Session timers (RFC 4028) on real sockets: which party refreshes, and the end of a call whose refresher is gone.
//!
//! The shortest interval of the standard is 90 seconds, so this takes a minute and a half; all its calls run at the
//! same time. The name of the module makes it begin among the first tests of the binary.

use std::time::{Duration, Instant};

use sidetone_sip::message::{Method, Response};

use crate::common::site::{Site, directory};
use crate::common::wire::Wire;
use crate::flows::by_hand::{HandCall, text};

const AUDIO: &str = "m=audio PORT RTP/AVP 0";
const TIMER: &str = "Supported: timer";

async fn site() -> Site {
    Site::configured(&directory(), |config| {
        config.sip.session_expires = Some(Duration::from_secs(90));
        // These calls have no audio, so the media timeout would end them after a minute.
        config.media.timeout = None;
    })
    .await
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.header(name).unwrap_or_else(|| panic!("no {name}: {}", text(&response.to_bytes())))
}

/// The timer headers of the callee's responses.
fn settled(refresher: &str) -> Vec<(&'static str, String)> {
    vec![("Session-Expires", format!("90;refresher={refresher}")), ("Require", "timer".to_owned())]
}

/// Waits for an event that is due this many seconds after `since`, and not before.
async fn due<T>(what: &str, since: Instant, seconds: u64, future: impl Future<Output = T>) -> T {
    // A slow machine may need half a minute more.
    let found = tokio::time::timeout(Duration::from_secs(seconds + 30), future).await;
    let found = found.unwrap_or_else(|_| panic!("{what}: not within {seconds} s and 30 more"));
    assert!(
        since.elapsed() + Duration::from_millis(500) >= Duration::from_secs(seconds),
        "{what} came early"
    );
    found
}

async fn cause(site: &Site) -> String {
    site.record().await["hangup_cause"].as_str().unwrap_or_default().to_owned()
}

/// The switch refreshes the callee by UPDATE, and the call continues.
async fn we_refresh_by_update() {
    let site = site().await;
    let mut headers = settled("uac");
    headers.push(("Allow", "INVITE, ACK, BYE, UPDATE".to_owned()));
    let begun = Instant::now();
    let mut call = HandCall::up_with(&site, (&[], headers), AUDIO).await;
    let offered = call.called().header("Session-Expires").unwrap();
    assert!(offered.starts_with("90"), "{offered}");
    assert!(call.accepted().header("Session-Expires").is_none(), "the caller has no timer");
    let update = due("the refresh", begun, 45, call.callee.request_some_time(&Method::Update)).await;
    assert_eq!(update.header("Session-Expires"), Some("90;refresher=uac"));
    assert!(update.body().is_empty());
    let refreshed = Instant::now();
    call.callee.reply(&update, 200, "").await;
    // Without the first refresh the session would expire before the second one.
    let second = async {
        loop {
            let next = call.callee.request_some_time(&Method::Update).await;
            // The first one may have been retransmitted.
            if next.header("CSeq") != update.header("CSeq") {
                return next;
            }
        }
    };
    let second = due("the second refresh", refreshed, 45, second).await;
    call.callee.reply(&second, 200, "").await;
    call.ends().await;
    assert_eq!(cause(&site).await, "NORMAL_CLEARING");
}

/// The callee must refresh, and is gone: both parties get a BYE.
async fn the_callee_dies() {
    let site = site().await;
    let begun = Instant::now();
    let mut call = HandCall::up_with(&site, (&[], settled("uas")), AUDIO).await;
    due("the BYE of the callee", begun, 60, call.callee.request_some_time(&Method::Bye)).await;
    let bye = call.caller.request("the BYE of the caller", "BYE").await;
    call.caller_replies(&bye, 200, "").await;
    assert_eq!(cause(&site).await, "RECOVERY_ON_TIMER_EXPIRE");
}

/// The caller must refresh, does so once, and is gone.
async fn the_caller_refreshes_and_dies() {
    let site = site().await;
    let headers = [TIMER.to_owned(), "Session-Expires: 90;refresher=uac".to_owned()];
    let mut call = HandCall::up_with(&site, (&headers, Vec::new()), AUDIO).await;
    assert_eq!(header(call.accepted(), "Session-Expires"), "90;refresher=uac");
    assert_eq!(header(call.accepted(), "Require"), "timer");
    // An interval that is too short changes nothing.
    let update = call.in_dialog("UPDATE", None).header(TIMER).header("Session-Expires: 60;refresher=uac");
    let refused = call.caller.exchange(&update).await;
    assert_eq!((refused.status().as_u16(), header(&refused, "Min-SE")), (422, "90"));
    let refreshed = Instant::now();
    let update = call.in_dialog("UPDATE", None).header(TIMER).header("Session-Expires: 90;refresher=uac");
    let accepted = call.caller.exchange(&update).await;
    assert_eq!(accepted.status().as_u16(), 200);
    assert_eq!(header(&accepted, "Session-Expires"), "90;refresher=uac");
    due("the BYE of the caller", refreshed, 60, call.caller.request_some_time("BYE")).await;
    let bye = call.callee.request(&Method::Bye).await;
    call.callee.reply(&bye, 200, "").await;
    assert_eq!(cause(&site).await, "RECOVERY_ON_TIMER_EXPIRE");
}

/// The switch must refresh a caller without UPDATE, by a re-INVITE that the caller does not answer.
async fn the_refreshed_caller_is_dead() {
    let site = site().await;
    let headers = [TIMER.to_owned(), "Session-Expires: 90;refresher=uas".to_owned()];
    let begun = Instant::now();
    let mut call = HandCall::up_with(&site, (&headers, Vec::new()), AUDIO).await;
    assert_eq!(header(call.accepted(), "Session-Expires"), "90;refresher=uas");
    let invite = due("the refresh", begun, 45, call.caller.request_some_time("INVITE")).await;
    assert!(
        invite.contains("Session-Expires: 90;refresher=uac\r\n") && invite.contains("m=audio "),
        "{invite}"
    );
    due("the BYE of the callee", begun, 60, call.callee.request_some_time(&Method::Bye)).await;
    site.record().await;
}

/// The first INVITE, with an interval that is too short.
async fn a_short_interval_is_refused() {
    let site = site().await;
    let mut caller = Wire::open(site.sip).await;
    let ask = caller.invite("1001", "1002").header(TIMER).header("Session-Expires: 89");
    let refused = caller.exchange(&ask).await;
    assert_eq!((refused.status().as_u16(), header(&refused, "Min-SE")), (422, "90"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_refreshed_and_end_when_they_are_not() {
    // On the heap: together they are too large for the stack of a test.
    tokio::join!(
        Box::pin(we_refresh_by_update()),
        Box::pin(the_callee_dies()),
        Box::pin(the_caller_refreshes_and_dies()),
        Box::pin(the_refreshed_caller_is_dead()),
        Box::pin(a_short_interval_is_refused()),
    );
}
