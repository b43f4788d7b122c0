//! Forms of settings: who may send them, and their effect through the API.

use serde_json::json;

use crate::panel::site::{Browser, Site};

/// Opens the form at `path` and sends these fields.
pub fn fill(browser: &mut Browser<'_>, path: &str, fields: &[(&str, &str)]) -> crate::panel::site::Page {
    let form = browser.get(path);
    assert_eq!(form.status, 200, "{path}: {}", form.text);
    let token = form.token();
    let fields: Vec<(&str, &str)> =
        [("csrf", token.as_str())].into_iter().chain(fields.iter().copied()).collect();
    browser.post(path, &fields)
}

#[test]
fn a_team_is_created_changed_and_deleted() {
    let site = Site::open(false);
    let mut boss = site.logged_in("boss@acme.test");
    let page = fill(&mut boss, "/settings/teams/new", &[("name", "night shift")]);
    assert_eq!((page.status, page.header("location")), (303, "/settings/teams"), "{}", page.text);
    let list = boss.get("/settings/teams");
    assert!(list.text.contains("night shift"));
    let before = list.text.split("night shift").next().unwrap();
    let path = before.rsplit("href=\"").next().unwrap().split('"').next().unwrap().to_owned();
    let page = fill(&mut boss, &path, &[("name", "early shift")]);
    assert_eq!(page.status, 303, "{}", page.text);
    assert!(boss.get("/settings/teams").text.contains("early shift"));
    let token = boss.get(&path).token();
    let page = boss.post(&format!("{path}/delete"), &[("csrf", &token)]);
    assert_eq!(page.status, 303, "{}", page.text);
    assert!(!boss.get("/settings/teams").text.contains("early shift"));
}

#[test]
fn errors_stand_beside_the_field_with_what_was_entered() {
    let site = Site::open(false);
    let mut boss = site.logged_in("boss@acme.test");
    let fields = [("name", ""), ("preset", "read_only"), ("allow", "nowhere"), ("rate_per_minute", "many")];
    let page = fill(&mut boss, "/settings/api-keys/new", &fields);
    assert_eq!(page.status, 400);
    for field in ["allow", "name", "rate_per_minute"] {
        assert!(page.text.contains(&format!("id=\"{field}-problem\"")), "{field}: {}", page.text);
    }
    assert!(page.text.contains(">nowhere</textarea>") && page.text.contains("value=\"many\""));
}

/// The form chooses permissions by a preset, so a missing choice is shown there.
#[test]
fn a_key_without_permissions_is_an_error_of_the_preset() {
    let site = Site::open(false);
    let mut boss = site.logged_in("boss@acme.test");
    let page = fill(&mut boss, "/settings/api-keys/new", &[("name", "crm"), ("allow", "127.0.0.1")]);
    assert_eq!(page.status, 400);
    assert!(page.text.contains("id=\"preset-problem\""), "{}", page.text);
    assert!(page.text.contains("Check the marked fields."), "{}", page.text);
}

#[test]
fn a_key_is_shown_once() {
    let site = Site::open(false);
    let mut boss = site.logged_in("boss@acme.test");
    let fields = [("name", "crm"), ("preset", "read_only"), ("allow", "127.0.0.1\r\n10.0.0.0/8")];
    let page = fill(&mut boss, "/settings/api-keys/new", &fields);
    assert_eq!(page.status, 200, "{}", page.text);
    let (_, rest) = page.text.split_once("<p class=\"secret\">").unwrap();
    let key = rest.split('<').next().unwrap();
    assert_eq!(site.office.get(key, "/cdrs").status, 200);
    let list = boss.get("/settings/api-keys");
    assert!(list.text.contains("crm") && list.text.contains("10.0.0.0/8") && !list.text.contains(key));
}

#[test]
fn who_may_not_change_gets_no_form_and_changes_nothing() {
    let site = Site::open(false);
    for email in ["eve@acme.test", "bob@acme.test", "mia@acme.test"] {
        let mut browser = site.logged_in(email);
        assert_eq!(browser.get("/settings/teams/new").status, 403, "{email}");
        let token = browser.get("/settings/teams").token();
        let page = browser.post("/settings/teams/new", &[("csrf", &token), ("name", "mine")]);
        assert_eq!(page.status, 403, "{email}");
        assert!(!browser.get("/settings/teams").text.contains("/settings/teams/new"), "{email}");
    }
    let names = site.office.names;
    let mut foreign = site.logged_in("boss@bolt.test");
    let path = format!("/settings/teams/{}", names.support);
    assert_eq!(foreign.get(&path).status, 403);
    let token = foreign.get("/settings/teams").token();
    assert_eq!(foreign.post(&path, &[("csrf", &token), ("name", "mine")]).status, 403);
    assert_eq!(foreign.post(&format!("{path}/delete"), &[("csrf", &token)]).status, 403);
    let mut boss = site.logged_in("boss@acme.test");
    assert!(boss.get("/settings/teams").text.contains("support"));
}

/// Two users have the same form open: each changes only the fields that they edited.
#[test]
fn a_change_by_another_user_in_between_stays() {
    let site = Site::open(false);
    let (mut boss, mut other) = (site.logged_in("boss@acme.test"), site.logged_in("boss@acme.test"));
    let list = boss.get("/settings/users").text;
    let before = list.split("eve@acme.test").next().unwrap();
    let path = before.rsplit("href=\"").next().unwrap().split('"').next().unwrap().to_owned();
    let form = boss.get(&path);
    let token = other.get(&path).token();
    let shown = |name: &str| {
        let (_, rest) = form.text.split_once(&format!("name=\"was.{name}\" value=\"")).unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let names = ["email", "name", "role", "team_id", "disabled"];
    let was: Vec<(String, String)> = names.iter().map(|name| (format!("was.{name}"), shown(name))).collect();
    let send = |browser: &mut Browser<'_>, token: &str, changed: (&str, &str)| {
        let mut fields: Vec<(&str, &str)> = vec![("csrf", token)];
        for (was, value) in &was {
            let name = was.trim_start_matches("was.");
            let entered = if name == changed.0 { changed.1 } else { value.as_str() };
            fields.extend([(was.as_str(), value.as_str()), (name, entered)]);
        }
        let page = browser.post(&path, &fields);
        assert_eq!(page.status, 303, "{}", page.text);
    };
    send(&mut other, &token, ("disabled", "1"));
    send(&mut boss, &form.token(), ("name", "Eve Adams"));
    let now = boss.get(&path).text;
    assert!(now.contains("value=\"Eve Adams\"") && now.contains("value=\"1\" checked"), "{now}");
}

#[test]
fn a_number_leads_to_an_extension_or_a_room() {
    let site = Site::open(false);
    let mut boss = site.logged_in("boss@acme.test");
    let names = site.office.names;
    let (ada, foreign) = (names.ada.to_string(), names.bolt_line.to_string());
    let room = [("name", "board"), ("number", "500"), ("participant_pin", "4711")];
    let page = fill(&mut boss, "/settings/conference-rooms/new", &room);
    assert_eq!(page.status, 303, "{}", page.text);
    let form = boss.get("/settings/numbers/new").text;
    assert!(form.contains(">Extension 1001</option>") && form.contains(">Room 500</option>"), "{form}");
    assert!(!form.contains(&foreign), "only what is in scope can be chosen");
    // Errors are shown beside the field, with the entered value.
    for (number, destination, field) in
        [("20", &ada, "number"), ("+442079460123", &foreign, "destination_id")]
    {
        let fields = [("number", number), ("destination", "extension"), ("destination_id", destination)];
        let page = fill(&mut boss, "/settings/numbers/new", &fields);
        assert_eq!(page.status, 400, "{}", page.text);
        assert!(page.text.contains(&format!("id=\"{field}-problem\"")), "{field}: {}", page.text);
        assert!(page.text.contains(&format!("value=\"{number}\"")), "{}", page.text);
    }
    let fields = [("number", "+442079460123"), ("destination", "extension"), ("destination_id", &ada)];
    let page = fill(&mut boss, "/settings/numbers/new", &fields);
    assert_eq!((page.status, page.header("location")), (303, "/settings/numbers"), "{}", page.text);
    let list = boss.get("/settings/numbers").text;
    let before = list.split("+442079460123").next().unwrap();
    let path = before.rsplit("href=\"").next().unwrap().split('"').next().unwrap().to_owned();
    let form = boss.get(&path).text;
    assert!(form.contains(&format!("<option value=\"{ada}\" selected>")), "{form}");
    // A conference without an id prompts its callers for the room's number.
    let showed = [
        ("was.number", "+442079460123"),
        ("was.destination", "extension"),
        ("was.destination_id", ada.as_str()),
    ];
    let entered = [("number", "+442079460123"), ("destination", "conference"), ("destination_id", "")];
    let page = fill(&mut boss, &path, &[showed, entered].concat());
    assert_eq!(page.status, 303, "{}", page.text);
    let form = boss.get(&path).text;
    assert!(
        form.contains("<option value=\"conference\" selected>")
            && !form.contains(&format!("\"{ada}\" selected"))
    );
    for (email, status) in [("bob@acme.test", 403), ("mia@acme.test", 403), ("boss@bolt.test", 403)] {
        let mut other = site.logged_in(email);
        assert_eq!(other.get(&path).status, status, "{email}");
        let token = other.get("/settings").token();
        assert_eq!(other.post(&format!("{path}/delete"), &[("csrf", &token)]).status, status, "{email}");
    }
    let token = boss.get(&path).token();
    assert_eq!(boss.post(&format!("{path}/delete"), &[("csrf", &token)]).status, 303);
    assert!(!boss.get("/settings/numbers").text.contains("+442079460123"));
}

#[test]
fn a_new_webhook_is_active_unless_the_box_is_cleared() {
    let site = Site::open(false);
    let form = site.logged_in("boss@acme.test").get("/settings/webhooks/new");
    assert!(form.text.contains("name=\"active\" type=\"checkbox\" value=\"1\" checked"), "{}", form.text);
}

/// The page of the entry that a list shows with this text.
fn page_of(browser: &mut Browser<'_>, list: &str, shown: &str) -> String {
    let list = browser.get(list).text;
    let before = list.split_once(shown).unwrap_or_else(|| panic!("{shown}: {list}")).0;
    before.rsplit("href=\"").next().unwrap().split('"').next().unwrap().to_owned()
}

#[test]
fn prices_are_entered_by_operators_and_read_by_their_customers() {
    let site = Site::open(false);
    let mut root = site.logged_in("root@platform.test");
    let acme = site.office.names.acme.to_string();
    let price = |per_minute: &'static str, increments: &'static str| {
        [
            ("organisation_id", acme.as_str()),
            ("prefix", "+4477"),
            ("per_minute", per_minute),
            ("currency", "EUR"),
            ("increments", increments),
            ("from_time", ""),
            ("to_time", ""),
        ]
    };
    let page = fill(&mut root, "/settings/sell-rates/new", &price("cheap", "60, x"));
    assert_eq!(page.status, 400);
    for field in ["per_minute", "increments"] {
        assert!(page.text.contains(&format!("id=\"{field}-problem\"")), "{field}: {}", page.text);
    }
    let page = fill(&mut root, "/settings/sell-rates/new", &price("0.5", "60, 1"));
    assert_eq!((page.status, page.header("location")), (303, "/settings/sell-rates"), "{}", page.text);
    let path = page_of(&mut root, "/settings/sell-rates", "+4477");
    let form = root.get(&path).text;
    assert!(form.contains("value=\"60, 1\"") && !form.contains("name=\"organisation_id\""), "{form}");
    let page = fill(&mut root, &path, &[("was.to_time", ""), ("to_time", "2030-01-01T00:00:00Z")]);
    assert_eq!(page.status, 303, "{}", page.text);
    assert!(root.get(&path).text.contains("value=\"2030-01-01T00:00:00.000Z\""));
    let fields = [("from", "CHF"), ("to", "EUR"), ("rate", "1.05"), ("from_time", "")];
    let page = fill(&mut root, "/settings/fx-rates/new", &fields);
    assert_eq!(page.status, 303, "{}", page.text);
    assert!(root.get("/settings/fx-rates").text.contains("CHF"));
    // A customer reads its prices; another one does not see them.
    let mut boss = site.logged_in("boss@acme.test");
    let list = boss.get("/settings/sell-rates").text;
    assert!(list.contains("+4477") && list.contains(">always<"), "{list}");
    assert!(!list.contains("/settings/sell-rates/new"), "{list}");
    assert_eq!(boss.get("/settings/sell-rates/new").status, 403);
    let token = boss.get("/settings/sell-rates").token();
    assert_eq!(boss.post(&format!("{path}/delete"), &[("csrf", &token)]).status, 403);
    let mut foreign = site.logged_in("boss@bolt.test");
    assert!(!foreign.get("/settings/sell-rates").text.contains("+4477"));
    let token = root.get(&path).token();
    assert_eq!(root.post(&format!("{path}/delete"), &[("csrf", &token)]).status, 303);
    assert!(!root.get("/settings/sell-rates").text.contains("+4477"));
}

#[test]
fn an_extension_is_forwarded() {
    let site = Site::open(false);
    let mut boss = site.logged_in("boss@acme.test");
    let path = format!("/settings/extensions/{}", site.office.names.ada);
    let shown = [("was.forwarding.busy", ""), ("was.forwarding.no_answer_seconds", "20")];
    let entered = [("forwarding.busy", "not a number"), ("forwarding.no_answer_seconds", "3")];
    let page = fill(&mut boss, &path, &[shown, entered].concat());
    assert_eq!(page.status, 400, "{}", page.text);
    for field in ["busy", "no_answer_seconds"] {
        assert!(page.text.contains(&format!("id=\"forwarding.{field}-problem\"")), "{field}: {}", page.text);
    }
    let entered = [("forwarding.busy", "1002"), ("forwarding.no_answer_seconds", "30")];
    let page = fill(&mut boss, &path, &[shown, entered].concat());
    assert_eq!(page.status, 303, "{}", page.text);
    let token = site.office.login("boss@acme.test");
    let extension = site.office.get(&token, &path.replace("/settings", ""));
    let forwarding = &extension.body["forwarding"];
    assert_eq!((&forwarding["busy"], &forwarding["no_answer_seconds"]), (&"1002".into(), &30.into()));
    let form = boss.get(&path).text;
    assert!(form.contains("name=\"forwarding.busy\" value=\"1002\""), "{form}");
}

/// An agent without a team sees no other extension, and changes its own as far as the API allows.
#[test]
fn an_agent_forwards_its_own_extension_alone() {
    let site = Site::open(false);
    let mut lost = site.logged_in("lost@acme.test");
    assert!(!lost.get("/settings").text.contains("own-extension"));
    assert_eq!(lost.get("/settings/own-extension").status, 404);
    let user = site.office.get(&site.office.login("lost@acme.test"), "/auth/me").id().to_owned();
    let boss = site.office.login("boss@acme.test");
    let extension = site.office.names.ada.to_string();
    let agent = json!({"name": "Lost", "kind": "human", "extension_id": extension, "user_id": user});
    let made = site.office.ask(&boss, "POST /agents", agent);
    assert_eq!(made.status, 201, "{}", made.text);

    assert!(lost.get("/settings").text.contains("/settings/own-extension"));
    let wrong = [("forwarding.busy", "no number"), ("do_not_disturb", "1")];
    let page = fill(&mut lost, "/settings/own-extension", &wrong);
    assert_eq!(page.status, 400, "{}", page.text);
    assert!(page.text.contains("id=\"forwarding.busy-problem\""), "{}", page.text);
    assert!(page.text.contains("value=\"no number\""), "{}", page.text);
    let path = format!("/extensions/{extension}");
    assert_eq!(site.office.get(&boss, &path).body["do_not_disturb"], false, "nothing was changed");

    let page = fill(&mut lost, "/settings/own-extension", &[("do_not_disturb", "1")]);
    assert_eq!((page.status, page.header("location")), (303, "/settings/own-extension?saved=1"));
    assert!(lost.get("/settings/own-extension?saved=1").text.contains("Saved."));
    assert_eq!(site.office.get(&boss, &path).body["do_not_disturb"], true);
    // Another agent has no extension, and so no form for one.
    let mut bob = site.logged_in("bob@acme.test");
    let token = bob.get("/settings").token();
    let page = bob.post("/settings/own-extension", &[("csrf", &token), ("do_not_disturb", "")]);
    assert_eq!(page.status, 404);
}

#[test]
fn organisations_are_the_operators_and_change_what_is_their_own() {
    let site = Site::open(false);
    let mut root = site.logged_in("root@platform.test");
    let wrong = [("name", "Cable"), ("sip_domain", "no domain"), ("currency", "euro"), ("star_codes", "1")];
    let page = fill(&mut root, "/settings/organisations/new", &wrong);
    assert_eq!(page.status, 400, "{}", page.text);
    for field in ["currency", "sip_domain"] {
        assert!(page.text.contains(&format!("id=\"{field}-problem\"")), "{field}: {}", page.text);
    }
    let right = [("name", "Cable"), ("sip_domain", "cable.test"), ("currency", "EUR"), ("star_codes", "1")];
    let page = fill(&mut root, "/settings/organisations/new", &right);
    assert_eq!((page.status, page.header("location")), (303, "/settings/organisations"), "{}", page.text);
    assert!(root.get("/settings/organisations").text.contains("cable.test"));

    let mut boss = site.logged_in("boss@acme.test");
    assert!(!boss.get("/settings/organisations").text.contains("/settings/organisations/new"));
    let own = format!("/settings/organisations/{}", site.office.names.acme);
    let form = boss.get(&own);
    assert!(form.status == 200 && !form.text.contains("Delete now"), "{}", form.text);
    let page = fill(&mut boss, &own, &[("was.name", "Acme"), ("name", "Acme and sons")]);
    assert_eq!(page.status, 303, "{}", page.text);
    assert!(boss.get("/settings/organisations").text.contains("Acme and sons"));
    let page = fill(&mut boss, &own, &[("max_outbound_calls", "7")]);
    assert_eq!(page.status, 403, "only the operator changes limits");
}
