//! Events of a live call, and answers to queries about it.

use sidetone_model::access::Scope;
use sidetone_model::live_call::{CallEvent, CallState, LegRole, LiveCallQuery};
use sidetone_model::page::Window;

use crate::call_queries::{find, list, phone_legs};
use crate::tests::network::{Net, Plan, acme, trunk};

const FIRST: &str = "203.0.113.1:5060";
const WORLD: &str = "+447700900123";

#[test]
fn ringing_and_the_answer_are_told_once_each_and_legs_keep_their_ids() {
    let mut net = Net::new(acme(vec![trunk(1, FIRST)]));
    net.carrier(FIRST, [Plan::Ring]);
    net.dial(WORLD);
    let [CallEvent::Ringing(ringing)] = net.news.as_slice() else { panic!("{:?}", net.news) };
    assert_eq!((ringing.state, ringing.ringing_at.is_some()), (CallState::Ringing, true));
    assert_eq!(ringing.legs.len(), 2);
    let live = find(&net.switch.control.calls, ringing.uuid).unwrap();
    assert_eq!(&live, ringing);
    let phones = phone_legs(&net.switch.control.calls, live.uuid).unwrap();
    assert_eq!(phones.len(), 1, "the other leg leads to a carrier");
    assert_eq!((phones[0].id, phones[0].number.as_deref()), (live.legs[0].uuid, Some("1001")));
    assert_eq!(net.switch.control.calls.identity_of(phones[0].key), Some((live.uuid, live.legs[0].uuid)));
    let uuid = live.uuid;
    net.hang_up();
    assert_eq!(
        (find(&net.switch.control.calls, uuid), phone_legs(&net.switch.control.calls, uuid)),
        (None, None)
    );
    assert_eq!(net.news.len(), 1, "an end is told by the record");

    let mut net = Net::new(acme(vec![trunk(1, FIRST)]));
    net.carrier(FIRST, [Plan::Accept]);
    net.dial(WORLD);
    let [CallEvent::Answered(up)] = net.news.as_slice() else { panic!("{:?}", net.news) };
    assert_eq!((up.state, up.ringing_at), (CallState::Answered, None));
    assert!(up.answered_at.is_some() && up.trunk_id.is_some());
    assert_eq!(up.legs.iter().map(|leg| leg.role).collect::<Vec<_>>(), [LegRole::Caller, LegRole::Callee]);
    assert!(up.legs.iter().all(|leg| leg.state == CallState::Answered && leg.codec.is_some()));
    assert_ne!(up.legs[0].uuid, up.legs[1].uuid);
}

#[test]
fn a_window_of_the_live_calls_is_in_order_and_knows_how_many_there_are() {
    let mut net = Net::new(acme(vec![trunk(1, FIRST)]));
    net.carrier(FIRST, [Plan::Ring]);
    for _ in 0..3 {
        net.dial(WORLD);
    }
    let page = |limit, offset| {
        let query = LiveCallQuery { window: Window::at(offset, limit), ..LiveCallQuery::default() };
        list(&net.switch.control.calls, Scope::Everything, &query)
    };
    let all = page(50, 0);
    assert_eq!((all.items.len(), all.total), (3, 3));
    assert!(all.items.is_sorted_by(|a, b| (a.started_at, a.uuid) > (b.started_at, b.uuid)));
    assert_eq!(page(1, 1).items, all.items[1..2]);
    assert_eq!((page(1, 3).items.len(), page(1, u64::MAX).total), (0, 3));
    let other = Scope::Organisation(uuid::Uuid::from_u128(2).into());
    assert_eq!(list(&net.switch.control.calls, other, &LiveCallQuery::default()).total, 0);
}
