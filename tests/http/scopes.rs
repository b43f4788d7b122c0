//! The records that a caller sees: in the list, its total, the export and by id.

use sidetone_model::cdr::Cdr;
use sidetone_model::ids::{OrganisationId, TeamId};

use crate::common::records::ended;
use crate::http::office::{Names, Office};

/// Record `number` of that organisation and team.
fn record(number: u128, organisation: OrganisationId, team: Option<TeamId>) -> Cdr {
    Cdr {
        organisation_id: organisation,
        team_id: team,
        caller_number: Some(format!("70{number}")),
        ..ended(number)
    }
}

fn records(names: Names) -> Vec<Cdr> {
    vec![
        record(1, names.acme, Some(names.support)),
        record(2, names.acme, Some(names.sales)),
        record(3, names.acme, None),
        record(4, names.bolt, Some(names.bolt_support)),
        // A team id of another organisation gives no access.
        record(5, names.bolt, Some(names.support)),
    ]
}

/// Each user, and the records that they see.
const SEEN: [(&str, &[u128]); 7] = [
    ("root@platform.test", &[1, 2, 3, 4, 5]),
    ("boss@acme.test", &[1, 2, 3]),
    ("mia@acme.test", &[1, 2, 3]),
    ("eve@acme.test", &[1]),
    ("bob@acme.test", &[1]),
    ("lost@acme.test", &[]),
    ("boss@bolt.test", &[4, 5]),
];

#[test]
fn lists_totals_and_exports_hold_what_is_in_scope() {
    let office = Office::with_calls(records);
    for (email, seen) in SEEN {
        let token = office.login(email);
        let expected: Vec<String> = seen.iter().map(|number| format!("70{number}")).collect();
        let filters = [
            String::new(),
            "&q=70".to_owned(),
            "&direction=internal".to_owned(),
            "&limit=1".to_owned(),
            "&sort=billsec&order=asc".to_owned(),
        ];
        for filter in filters {
            let list = office.get(&token, &format!("/cdrs?min_billsec=0{filter}"));
            assert_eq!(list.body["total"], seen.len(), "{email} {filter}");
            let mut items = list.items("caller_number");
            items.sort_unstable();
            assert!(items.iter().all(|item| expected.contains(&(*item).to_owned())), "{email} {filter}");
            assert_eq!(items.len(), seen.len().min(if filter == "&limit=1" { 1 } else { 50 }));
        }
        let export = office.get(&token, "/cdrs/export");
        let rows = export.text.lines().skip(1).count();
        assert_eq!((export.status, rows), (200, seen.len()), "{email}");
        assert!(
            (1..=5).all(|number| export.text.contains(&format!(",70{number},")) == seen.contains(&number))
        );
    }
}

#[test]
fn one_record_is_shown_to_who_sees_it_and_forbidden_to_others() {
    let office = Office::with_calls(records);
    for (email, seen) in SEEN {
        let token = office.login(email);
        for number in 1..=5 {
            let answer = office.get(&token, &format!("/cdrs/{}", ended(number).call_uuid));
            let expected = if seen.contains(&number) { 200 } else { 403 };
            assert_eq!(answer.status, expected, "{email} {number}");
            assert!(expected == 200 || !answer.text.contains("70"), "{email} {number}");
        }
        assert_eq!(office.get(&token, &format!("/cdrs/{}", ended(9).call_uuid)).status, 404, "{email}");
    }
}

#[test]
fn an_organisation_outside_the_scope_is_forbidden_and_an_operator_narrows_to_any() {
    let office = Office::with_calls(records);
    let names = office.names;
    for (email, acme, bolt) in [
        ("root@platform.test", (200, 3), (200, 2)),
        ("boss@acme.test", (200, 3), (403, 0)),
        ("eve@acme.test", (200, 1), (403, 0)),
        ("lost@acme.test", (200, 0), (403, 0)),
        ("boss@bolt.test", (403, 0), (200, 2)),
    ] {
        let token = office.login(email);
        for (organisation, (status, total)) in [(names.acme, acme), (names.bolt, bolt)] {
            for path in ["/cdrs", "/cdrs/export"] {
                let answer = office.get(&token, &format!("{path}?organisation_id={organisation}"));
                assert_eq!(answer.status, status, "{email} {path}");
                if status == 200 && path == "/cdrs" {
                    assert_eq!(answer.body["total"], total, "{email}");
                }
            }
        }
    }
}

#[test]
fn the_filters_of_a_supervisor_reach_no_other_team() {
    let office = Office::with_calls(records);
    let eve = office.login("eve@acme.test");
    for (team, total) in [(office.names.support, 1), (office.names.sales, 0), (office.names.bolt_support, 0)]
    {
        let list = office.get(&eve, &format!("/cdrs?team_id={team}"));
        assert_eq!((list.status, &list.body["total"]), (200, &total.into()));
    }
}

/// Carrier costs are for operators, and for keys to which an operator granted access.
#[test]
fn margins_are_for_operators() {
    let office = Office::with_calls(records);
    let path = format!("/cdrs/{}", ended(1).call_uuid);
    for (email, shown) in [("root@platform.test", true), ("boss@acme.test", false), ("eve@acme.test", false)]
    {
        let record = office.get(&office.login(email), &path);
        assert_eq!(record.body.get("cost_amount").is_some(), shown, "{email}");
        assert_eq!(record.body.get("margin").is_some(), shown, "{email}");
        assert!(record.body.get("sell_amount").is_some());
    }
}
