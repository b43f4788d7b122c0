//! One page from the pages of several nodes.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::peers::concern::ListKind;

/// Merges pages that each begin at the first item into the window of `limit` items after `offset`.
///
/// Totals are added. `None` if one is not a page.
pub(super) fn merge(kind: ListKind, pages: Vec<Value>, offset: u64, limit: u32) -> Option<Value> {
    let (mut items, mut total) = (Vec::new(), 0_u64);
    for page in pages {
        let Value::Object(mut page) = page else { return None };
        total = total.saturating_add(page.get("total")?.as_u64()?);
        let Some(Value::Array(more)) = page.remove("items") else { return None };
        items.extend(more);
    }
    items.sort_by(|a, b| compare(kind, a, b));
    let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
    let window: Vec<Value> = items.into_iter().skip(skipped).take(limit as usize).collect();
    let fields = [
        ("items", Value::from(window)),
        ("total", Value::from(total)),
        ("limit", Value::from(limit)),
        ("offset", Value::from(offset)),
    ];
    Some(Value::Object(Map::from_iter(fields.map(|(name, value)| (name.to_owned(), value)))))
}

/// Whether a page that begins at the first item omits further items.
pub(super) fn is_cut(page: &Value) -> bool {
    let items = page.get("items").and_then(Value::as_array).map_or(0, Vec::len);
    let total = page.get("total").and_then(Value::as_u64).unwrap_or_default();
    total > items as u64
}

/// Adds the member counts of other nodes' pages to the first page of stored rooms: a room is live at one node.
///
/// `None` if one is not a page.
pub(super) fn merge_members(pages: Vec<Value>) -> Option<Value> {
    let mut pages = pages.into_iter();
    let mut merged = pages.next()?;
    let mut counts: HashMap<String, u64> = HashMap::new();
    for page in pages {
        for room in page.get("items")?.as_array()? {
            let (id, members) = (room.get("id")?.as_str()?, room.get(MEMBERS)?.as_u64()?);
            let count = counts.entry(id.to_owned()).or_default();
            *count = members.max(*count);
        }
    }
    for room in merged.get_mut("items")?.as_array_mut()? {
        let count = counts.get(room.get("id")?.as_str()?).copied().unwrap_or_default();
        let members = room.get_mut(MEMBERS)?;
        *members = count.max(members.as_u64()?).into();
    }
    Some(merged)
}

/// The state of a trunk, that of this node first: the latest registration of any node, the calls of all, and the
/// refusals of all, newest first. Whether an address answers is the result of this node.
///
/// `None` if one is not a trunk state.
pub(super) fn merge_trunk_status(states: Vec<Value>) -> Option<Value> {
    let mut states = states.into_iter();
    let mut merged = states.next()?;
    for mut state in states {
        add(merged.get_mut("calls")?, state.get("calls")?.as_u64()?)?;
        // While a registration moves, two nodes have one: that of the new owner expires later.
        let until = |state: &Value| Some(state.get("expires_at")?.as_str()?.to_owned());
        let (own, other) = (merged.get_mut("registration")?, state.get_mut("registration")?);
        if own.is_null() || until(own) < until(other) {
            *own = other.take();
        }
        let used = state.get("addresses")?.as_array()?;
        for address in merged.get_mut("addresses")?.as_array_mut()? {
            let same = |other: &&Value| {
                ["server", "address"].iter().all(|name| other.get(name) == address.get(name))
            };
            let more = used.iter().filter(same).filter_map(|other| other.get(OUTBOUND)?.as_u64()).sum();
            add(address.get_mut(OUTBOUND)?, more)?;
        }
        let refusals = merged.get_mut("refusals")?.as_array_mut()?;
        refusals.append(state.get_mut("refusals")?.as_array_mut()?);
        let at = |refusal: &Value| refusal.get("at").and_then(Value::as_str).map(str::to_owned);
        refusals.sort_by_cached_key(|refusal| Reverse(at(refusal)));
        refusals.truncate(REFUSALS_MAX);
    }
    Some(merged)
}

/// Adds to a number; `None` if the value is not a number.
fn add(number: &mut Value, more: u64) -> Option<()> {
    *number = number.as_u64()?.saturating_add(more).into();
    Some(())
}

/// The outbound calls over an address of a trunk.
const OUTBOUND: &str = "outbound_calls";
/// The most refusals in a trunk state.
const REFUSALS_MAX: usize = 20;
/// The number of members of a room.
const MEMBERS: &str = "live_members";

/// The order of the lists: calls and rooms newest first, registrations by number.
fn compare(kind: ListKind, a: &Value, b: &Value) -> Ordering {
    let text = |item: &Value, field: &str| {
        item.get(field).and_then(Value::as_str).map(str::to_owned).unwrap_or_default()
    };
    let by = |fields: &[&str]| {
        let orders = fields.iter().map(|field| text(a, field).cmp(&text(b, field)));
        orders.fold(Ordering::Equal, Ordering::then)
    };
    match kind {
        ListKind::Calls => by(&["started_at", "uuid"]).reverse(),
        ListKind::Rooms => by(&["started_at", "session_id"]).reverse(),
        ListKind::Registrations => by(&["number", "organisation_id", "extension_id", "contact"]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pages_of_nodes_become_one() {
        let call = |at: u32, uuid: &str| json!({"started_at": format!("2026-01-01T00:00:{at:02}.000Z"), "uuid": uuid});
        let first =
            json!({"items": [call(9, "a"), call(5, "b"), call(1, "c")], "total": 3, "limit": 4, "offset": 0});
        let second = json!({"items": [call(7, "d"), call(5, "e")], "total": 12, "limit": 4, "offset": 0});
        let order = |offset, limit| {
            let pages = vec![first.clone(), second.clone()];
            let page = merge(ListKind::Calls, pages, offset, limit).unwrap();
            assert_eq!((page["total"].as_u64(), page["offset"].as_u64()), (Some(15), Some(offset)));
            let items = page["items"].as_array().unwrap().clone();
            items.iter().map(|item| item["uuid"].as_str().unwrap().to_owned()).collect::<String>()
        };
        assert_eq!(order(0, 10), "adebc");
        assert_eq!(order(1, 2), "de");
        assert_eq!(order(9, 2), "");
        assert_eq!((is_cut(&first), is_cut(&second)), (false, true));
        let phone = |number: &str| json!({"number": number, "contact": "x"});
        let page = |number| json!({"items": [phone(number)], "total": 1});
        let merged = merge(ListKind::Registrations, vec![page("20"), page("10")], 0, 5).unwrap();
        assert_eq!(merged["items"][0]["number"], "10");
        assert_eq!(merge(ListKind::Rooms, vec![json!({"error": {}})], 0, 5), None);
        assert_eq!(merge(ListKind::Rooms, vec![json!([])], 0, 5), None);
    }

    #[test]
    fn the_members_of_a_room_are_those_of_the_node_where_it_is_live() {
        let page = |first: u32, second: u32| {
            let room = |id: &str, members: u32| json!({"id": id, "live_members": members, "name": "Board"});
            json!({"items": [room("a", first), room("b", second)], "total": 2})
        };
        let merged = merge_members(vec![page(0, 2), page(3, 0), page(0, 0)]);
        assert_eq!(merged, Some(page(3, 2)));
        assert_eq!(merge_members(vec![page(1, 0)]), Some(page(1, 0)));
        // A node that has read another page of the list has no counts for these rooms.
        assert_eq!(merge_members(vec![page(1, 0), json!({"items": []})]), Some(page(1, 0)));
        assert_eq!(merge_members(vec![page(1, 0), json!({"error": {}})]), None);
    }

    #[test]
    fn the_state_of_a_trunk_is_that_of_all_nodes() {
        let address = |calls: u32, state: &str| json!({"server": "sip:a", "address": "192.0.2.1:5060", "state": state, "outbound_calls": calls});
        let refusal = |minute: u32| json!({"at": format!("2026-01-01T00:{minute:02}:00.000Z")});
        let state = |registration: Value, calls: u32, minutes: std::ops::Range<u32>| {
            json!({
                "trunk_id": "t", "registration": registration, "calls": calls,
                "addresses": [address(calls, "reachable")],
                "refusals": minutes.rev().map(refusal).collect::<Vec<_>>(),
            })
        };
        let registered = |minute: u32| json!({"state": "registered", "expires_at": format!("2026-01-01T01:{minute:02}:00.000Z")});
        let failed = json!({"state": "failed", "expires_at": null});
        let merged =
            merge_trunk_status(vec![state(Value::Null, 2, 0..15), state(registered(5), 3, 10..30)]).unwrap();
        assert_eq!((&merged["registration"], &merged["calls"]), (&registered(5), &json!(5)));
        assert_eq!(merged["addresses"], json!([address(5, "reachable")]));
        assert_eq!(merged["refusals"].as_array().unwrap().len(), 20);
        assert_eq!(merged["refusals"][0], refusal(29));
        let cases = [
            ([failed.clone(), Value::Null], failed.clone()),
            ([Value::Null, failed.clone()], failed.clone()),
            ([failed.clone(), registered(1)], registered(1)),
            ([registered(2), registered(1)], registered(2)),
            ([Value::Null, Value::Null], Value::Null),
        ];
        for ([first, second], expected) in cases {
            let merged = merge_trunk_status(vec![state(first, 0, 0..0), state(second, 0, 0..0)]).unwrap();
            assert_eq!(merged["registration"], expected);
        }
        assert_eq!(merge_trunk_status(vec![state(Value::Null, 0, 0..0), json!({})]), None);
    }
}
