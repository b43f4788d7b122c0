//! Calls over a network that loses SIP datagrams: each ends for all parties, and has one record.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone_model::call::HangupCause;
use sidetone_sip::message::Method;

use crate::tests::conference_adapter::{CARRIER, WORLD};
use crate::tests::network::{Net, PHONE, Plan, acme, address, trunk};

/// The datagrams that the network loses; none by default.
#[derive(Default)]
pub(super) struct Losses {
    percent: u32,
    rng: Option<StdRng>,
}

impl Losses {
    fn of(percent: u32, seed: u64) -> Losses {
        Losses { percent, rng: Some(StdRng::seed_from_u64(seed)) }
    }
}

impl Net {
    /// Whether a datagram between two addresses is lost.
    pub(super) fn is_lost(&mut self, between: [SocketAddr; 2]) -> bool {
        let Losses { percent, rng } = &mut self.losses;
        let is_phone_gone = self.is_phone_gone && between.contains(&address(PHONE));
        is_phone_gone || rng.as_mut().is_some_and(|rng| rng.random_range(0..100) < *percent)
    }
}

/// How the calls of a run ended.
#[derive(Debug, Default)]
struct Ends {
    answered: usize,
    records: BTreeMap<&'static str, usize>,
}

/// Longer than the lifetime of any transaction.
const OVER: Duration = Duration::from_secs(70);
const CALLS: usize = 60;

/// 1001 calls an outside party repeatedly, over a network with this loss in each direction; in every third call it
/// gives up after a second without an answer.
fn calls(percent: u32) -> Ends {
    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    net.carrier(CARRIER, [Plan::Accept]).repeats = Some(BTreeMap::new());
    net.losses = Losses::of(percent, u64::from(percent) + 1);
    let mut ends = Ends::default();
    for call in 0..CALLS {
        let (records, heard, invites) = (net.records.len(), net.heard.len(), of(&net, &Method::Invite).len());
        let is_patient = call % 3 != 2;
        net.dial(WORLD);
        net.wait(Duration::from_secs(if is_patient { 40 } else { 1 }));
        let is_answered = net.heard[heard..].iter().any(|heard| heard == "200");
        net.hang_up();
        net.wait(OVER);
        assert_eq!(net.switch.live_calls(), 0, "{percent} %, call {call}: {:?}", net.heard);
        let records = &net.records[records..];
        // Without a record, no INVITE with credentials has arrived.
        assert!(records.len() <= 1, "{percent} %, call {call}: {records:?}");
        let called: Vec<String> = of(&net, &Method::Invite).split_off(invites);
        assert!(records.len() == 1 || called.is_empty(), "a call without a record");
        // Every party that has answered got a BYE, or a CANCEL in time. With more loss the switch may receive none of
        // its answers, which this carrier does not retransmit by itself.
        let ended = [of(&net, &Method::Bye), of(&net, &Method::Cancel)].concat();
        let is_over = called.iter().all(|id| ended.contains(id));
        assert!(is_over || percent > 20, "{percent} %, call {call}: left behind");
        for record in records {
            *ends.records.entry(record.hangup_cause.map_or("-", HangupCause::as_str)).or_default() += 1;
        }
        ends.answered += usize::from(is_answered);
        assert!(is_answered || !is_patient || percent > 20, "{percent} %, call {call}: {:?}", net.heard);
        if is_answered {
            assert_eq!(records.len(), 1, "{percent} %, call {call}: an answered call without a record");
            assert!(records[0].answered_at.is_some());
            // With more loss, the ACK of the phone may not arrive within 32 s.
            let cause = records[0].hangup_cause;
            let is_unacknowledged = percent > 20 && cause == Some(HangupCause::RecoveryOnTimerExpire);
            let is_normal = cause == Some(HangupCause::NormalClearing);
            assert!(is_normal || is_unacknowledged, "{percent} %, call {call}: {cause:?}");
        }
    }
    ends
}

/// The Call-IDs of the requests that the carrier has received, each once.
fn of(net: &Net, method: &Method) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for request in net.carriers[&address(CARRIER)].of(method) {
        if !ids.iter().any(|id| id == request.call_id()) {
            ids.push(request.call_id().to_owned());
        }
    }
    ids
}

#[test]
fn every_call_ends_with_one_record_whatever_the_network_loses() {
    for (percent, answered_min) in [(0, CALLS), (5, 50), (20, 45), (40, 25)] {
        let ends = calls(percent);
        assert!(ends.answered >= answered_min, "{percent} %: {ends:?}");
        let answered = ["NORMAL_CLEARING", "RECOVERY_ON_TIMER_EXPIRE"].map(|cause| ends.records.get(cause));
        assert!(answered.into_iter().flatten().sum::<usize>() >= ends.answered, "{percent} %: {ends:?}");
    }
}
