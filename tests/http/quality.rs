//! The media quality of a call over HTTP: of records, and of live calls.

use std::sync::Arc;

use serde_json::{Value, json};
use sidetone_api::{ApiState, Ports};
use sidetone_call::quality::{self, WallClock};
use sidetone_media::session::{Report, Session, SessionConfig};
use sidetone_media::simulate::{Scenario, play};
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::{CallId, OrganisationId, TeamId};
use sidetone_model::media_quality::{
    CallQuality, LegSide, LiveCallQuality, LiveQuality, QualityState, QualityTimeline,
};
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::quality::{MediaVerdict, Quality};
use uuid::Uuid;

use crate::common::records::{answered, at, ended};
use crate::http::calls::DIRECTORY;
use crate::http::engine::{Engine, Ids};
use crate::http::face::{Answer, Face, Ready, key, request};
use crate::http::office::Office;

/// The report of a session on a leg whose party sends this scenario.
fn report(scenario: &str) -> Report {
    let scenario: Scenario = scenario.parse().unwrap();
    let mut session = Session::new(SessionConfig::default());
    play(&scenario, &mut session)
}

/// The media of a one-minute call between a lossy caller and a good callee.
fn media(call: CallId) -> CallQuality {
    let leg = |scenario: &str, side, party: &str| {
        let report = report(scenario);
        let clock = WallClock::of(&report, at(62));
        quality::leg(&report, side, Some(party.to_owned()), clock)
    };
    let legs = vec![leg("lossy", LegSide::A, "1001"), leg("clean", LegSide::B, "1002")];
    quality::call(call, QualityState::Final, at(62), legs)
}

fn with_media(cdr: Cdr) -> Cdr {
    Cdr { media: Some(Box::new(media(cdr.call_uuid))), ..cdr }
}

fn records(ids: Ids) -> Vec<Cdr> {
    let full = with_media(Cdr { organisation_id: ids.acme, ..ended(1) });
    let old = Cdr { organisation_id: ids.acme, ..ended(2) };
    let unanswered = Quality { verdict: Some(MediaVerdict::Unanswered), ..Quality::default() };
    let missed = Cdr { organisation_id: ids.acme, answered_at: None, quality: unanswered, ..ended(3) };
    let silent = Cdr { organisation_id: ids.acme, answered_at: None, ..answered(4) };
    let crashed = Cdr { organisation_id: ids.acme, quality: Quality::default(), ..ended(5) };
    let foreign = with_media(Cdr { organisation_id: ids.bolt, ..ended(6) });
    let first = Cdr { organisation_id: ids.acme, ..ended(7) };
    let first = Cdr { media: Some(Box::new(of_rules_1(first.call_uuid))), ..first };
    vec![full, old, missed, silent, crashed, foreign, first]
}

/// The quality of a record that was written by the first version of the rules and figures.
fn of_rules_1(call: CallId) -> CallQuality {
    let mut body = serde_json::to_value(media(call)).unwrap();
    body["rules_version"] = json!("1");
    let inbound = body["legs"][0]["inbound"].as_object_mut().unwrap();
    inbound.remove("late_80");
    inbound.remove("late_200");
    inbound.insert("late_ms_total".to_owned(), json!(340));
    inbound.insert("quality_pct".to_owned(), json!(84.12));
    inbound.insert("mos".to_owned(), json!(4.15));
    serde_json::from_value(body).unwrap()
}

const BOSS: &str = "acmeboss0001";
/// Bolt's own key.
const BOLT: &str = "boltcrm00001";

fn path(number: u128) -> String {
    format!("/cdrs/{}/quality", ended(number).call_uuid)
}

#[test]
fn both_legs_of_a_record_are_told_as_they_were_measured() {
    let engine = Engine::start(records);
    let answer = engine.get(BOSS, &path(1));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let expected = media(ended(1).call_uuid);
    assert_eq!(answer.body, serde_json::to_value(&expected).unwrap());
    let again: CallQuality = serde_json::from_value(answer.body.clone()).unwrap();
    assert_eq!(again.legs.len(), 2);
    let body = answer.body;
    assert_eq!([&body["state"], &body["media_verdict"]], [&json!("final"), &json!("lossy_inbound")]);
    assert_eq!(body["rules_version"], sidetone_media::verdict::RULES_VERSION);
    let [lossy, clean] = [0, 1].map(|place| body["legs"][place].clone());
    assert_eq!([&lossy["leg"], &lossy["party"], &clean["leg"]], [&json!("a"), &json!("1001"), &json!("b")]);
    assert_eq!(clean["media_verdict"], "ok");
    let fired: Vec<&Value> =
        lossy["rules"].as_array().unwrap().iter().filter(|rule| rule["outcome"] == "fired").collect();
    assert_eq!(fired.len(), 1);
    let loss = fired[0]["measures"].as_array().unwrap().iter().find(|measure| measure["name"] == "loss_pct");
    let loss = loss.unwrap();
    assert_eq!((&loss["value"], &loss["threshold"]), (&lossy["inbound"]["loss_pct"], &json!(2.0)));
    assert!(lossy["sentence"].as_str().unwrap().len() > 20);
    assert!(body.get("reason").is_some_and(|reason| reason == "loss"));

    let bare = engine.get(BOSS, &format!("{}?timeline=false", path(1)));
    let without = serde_json::to_value(expected.clone().without_timeline()).unwrap();
    assert_eq!((bare.status, bare.body), (200, without));
    assert_eq!(engine.get(BOSS, &format!("{}?timeline=true", path(1))).body, body);
}

/// Figures of another version are shown as they were stored, under their own version.
#[test]
fn an_older_record_keeps_its_figures_and_their_version() {
    let engine = Engine::start(records);
    let answer = engine.get(BOSS, &path(7));
    assert_eq!((answer.status, &answer.body["rules_version"]), (200, &json!("1")), "{}", answer.body);
    let inbound = &answer.body["legs"][0]["inbound"];
    assert_eq!([&inbound["quality_pct"], &inbound["mos"]], [&json!(84.12), &json!(4.15)]);
    assert!(["late_80", "late_200", "late_ms_total"].iter().all(|name| inbound.get(*name).is_none()));
    let new = &engine.get(BOSS, &path(1)).body["legs"][0]["inbound"];
    assert_eq!([&new["late_80"], &new["late_200"]], [&json!(0), &json!(0)]);
}

/// A row for every second, each with a number for every column.
#[test]
fn the_timeline_adds_up_to_the_figures() {
    let engine = Engine::start(records);
    let body = engine.get(BOSS, &path(1)).body;
    let inbound = &body["legs"][0]["inbound"];
    let timeline = &inbound["timeline"];
    assert_eq!(timeline["columns"], json!(QualityTimeline::COLUMNS));
    assert_eq!(timeline["step_s"], 1);
    let rows = timeline["seconds"].as_array().unwrap();
    assert!((60..=61).contains(&rows.len()), "{}", rows.len());
    assert!(rows.iter().all(|row| row.as_array().unwrap().len() == QualityTimeline::COLUMNS.len()));
    let sum = |column: usize| rows.iter().map(|row| row[column].as_u64().unwrap()).sum::<u64>();
    assert_eq!([sum(0), sum(1)], [inbound["packets"].as_u64().unwrap(), inbound["lost"].as_u64().unwrap()]);
}

#[test]
fn a_record_without_media_says_why() {
    let engine = Engine::start(records);
    for (number, verdict, words) in [
        (2, json!("ok"), "Nothing but the record's own figures was kept"),
        (3, json!("unanswered"), "not answered"),
        (4, Value::Null, "not answered"),
        (5, Value::Null, "Nothing is known"),
    ] {
        let answer = engine.get(BOSS, &path(number));
        assert_eq!((answer.status, &answer.body["media_verdict"]), (200, &verdict), "{number}");
        assert!(answer.body["sentence"].as_str().unwrap().contains(words), "{}", answer.body);
        assert_eq!((&answer.body["legs"], &answer.body["flags"]), (&json!([]), &json!([])));
        assert!(answer.body.get("rules_version").is_none());
    }
}

#[test]
fn it_is_shown_to_who_may_see_the_record_alone() {
    let engine = Engine::start(records);
    assert_eq!(engine.get(BOSS, &path(6)).status, 403);
    assert_eq!(engine.get(BOLT, &path(6)).status, 200);
    assert_eq!(engine.get(BOSS, &path(9)).status, 404);
    for wrong in
        ["/cdrs/nobody/quality".to_owned(), format!("{}?timeline=no", path(1)), format!("{}?rows=1", path(1))]
    {
        assert_eq!(engine.get(BOSS, &wrong).status, 400, "{wrong}");
    }
    let office = Office::with_calls(|names| {
        let of =
            |number, team| with_media(Cdr { organisation_id: names.acme, team_id: team, ..ended(number) });
        vec![of(1, Some(names.support)), of(2, Some(names.sales))]
    });
    for (email, expected) in
        [("boss@acme.test", [200, 200]), ("eve@acme.test", [200, 403]), ("boss@bolt.test", [403, 403])]
    {
        let token = office.login(email);
        let seen = [1, 2].map(|number| office.get(&token, &path(number)).status);
        assert_eq!(seen, expected, "{email}");
    }
}

/// Stored with the record, once, and deleted with it.
#[test]
fn it_lives_and_dies_with_its_record() {
    let engine = Engine::start(records);
    let first = engine.get(BOSS, &path(1)).body;
    // A journal that is replayed after a crash contains the same record again.
    let again = with_media(Cdr { organisation_id: engine.ids.acme, ..ended(1) });
    engine.store_again(again);
    assert_eq!(engine.get(BOSS, &path(1)).body, first);
    engine.execute("DELETE FROM cdrs");
    assert_eq!(engine.rows("SELECT body FROM cdr_quality"), 0);
}

/// A switch with call 1 of Acme and call 2 of another organisation, too busy for call 3.
struct Carried(OrganisationId);

impl LiveQuality for Carried {
    fn quality(&self, call: CallId) -> PortFuture<'_, Option<LiveCallQuality>> {
        Box::pin(async move {
            let (organisation_id, team_id): (_, Option<TeamId>) = match call.0.as_u128() {
                1 => (self.0, None),
                2 => (Uuid::from_u128(77).into(), None),
                3 => return Err(Problem::Busy { retry_after_s: 1 }),
                _ => return Ok(None),
            };
            let quality = CallQuality { state: QualityState::Live, ..media(call) };
            Ok(Some(LiveCallQuality { organisation_id, team_id, quality }))
        })
    }
}

#[test]
fn a_live_call_is_told_of_while_it_is_up() {
    let (face, ()) = Face::open(DIRECTORY, async move |ground| {
        let acme = ground.database.texts("SELECT id FROM organisations").await.remove(0).remove(0);
        let store = Arc::new(ground.store.clone());
        let carried = Arc::new(Carried(acme.unwrap().parse().unwrap()));
        let state = ApiState::new(
            Ports { live_quality: Some(carried), ..Ports::of_log(store.clone(), store, Arc::new(Ready)) },
            Arc::new(|| at(100)),
        );
        (state, ())
    });
    let get = |number: u128, query: &str, short_id: &str| {
        let authorization = format!("Authorization: Bearer {}\r\n", key(short_id));
        let path = format!("/calls/{}/quality{query}", Uuid::from_u128(number));
        Answer::of(face.exchange(&request("GET", &path, &authorization, b"")))
    };
    let live = get(1, "", "acmecrm00001");
    assert_eq!((live.status, &live.body["state"]), (200, &json!("live")), "{}", live.body);
    assert!(live.body["legs"][0]["inbound"].get("timeline").is_some());
    assert!(get(1, "?timeline=false", "acmecrm00001").body["legs"][0]["inbound"].get("timeline").is_none());
    for (number, status) in [(2, 403), (3, 503), (4, 404)] {
        assert_eq!(get(number, "", "acmecrm00001").status, status, "{number}");
    }
    let gone = get(4, "", "acmecrm00001");
    assert!(gone.body["error"]["message"].as_str().unwrap().contains("/cdrs/"), "{}", gone.body);
    assert_eq!(get(1, "", "acmerooms001").status, 403);
    assert_eq!(get(1, "?timeline=", "acmecrm00001").status, 400);
}
