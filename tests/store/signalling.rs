//! The SIP messages of calls: read only by their organisation, and kept for the configured days.

use sidetone_model::ids::{CallId, OrganisationId};
use sidetone_model::signalling::CallSignalling;
use sidetone_model::time::Timestamp;
use sidetone_store::Store;
use uuid::Uuid;

use crate::store::sessions::NODE;
use crate::store::with_store;

const DAY_US: i64 = 24 * 3_600 * 1_000_000;

fn call(number: u128) -> CallId {
    CallId(Uuid::from_u128(number))
}

fn left_out(number: u64) -> CallSignalling {
    CallSignalling { messages: Vec::new(), left_out: number }
}

#[test]
fn the_messages_of_a_call_are_its_organisations_and_expire() {
    with_store(async |store: &Store| {
        let [own, other] = [1, 2].map(|number| OrganisationId(Uuid::from_u128(number)));
        let (first, second) = (Timestamp::from_micros(1_000), Timestamp::from_micros(DAY_US));
        let (one, two) = (left_out(1), left_out(2));
        store
            .store_signalling(NODE, 2, &[(call(1), own, first, &one), (call(2), other, second, &two)])
            .await
            .unwrap();
        // A commit whose response is lost is repeated.
        store.store_signalling(NODE, 2, &[(call(1), own, first, &two)]).await.unwrap();
        store.store_signalling(NODE, 2, &[]).await.unwrap();
        assert_eq!(store.signalling(own, call(1)).await.unwrap(), Some(one));
        assert_eq!(store.signalling(other, call(2)).await.unwrap(), Some(two));
        assert_eq!(store.signalling(other, call(1)).await.unwrap(), None, "another organisation's");
        assert_eq!(store.signalling(own, call(3)).await.unwrap(), None);
        let until = first.plus_micros(2 * DAY_US);
        assert_eq!(store.purge_signalling(until.plus_micros(-1)).await.unwrap(), 0);
        assert_eq!(store.purge_signalling(until).await.unwrap(), 1);
        assert_eq!(store.signalling(own, call(1)).await.unwrap(), None);
        assert!(store.signalling(other, call(2)).await.unwrap().is_some());
    });
}
