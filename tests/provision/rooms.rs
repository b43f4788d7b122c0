//! Conference rooms in apply files, and phone numbers that lead to them.

use sidetone::provision::DefaultPin;
use sidetone_model::directory::Destination;
use sidetone_model::room::Role;

use crate::common::records::at;
use crate::provision::declare;
use crate::provision::json;
use crate::provision::parse;
use crate::provision::refusals;
use crate::provision::with_store;

const ACME: &str = r#"
[[organisations]]
name = "Acme"
sip_domain = "acme.test"
  [[organisations.extensions]]
  number = "1001"
  password = "correct horse"
  [[organisations.extensions]]
  number = "1002"
  password = "correct horse"
  [[organisations.numbers]]
  number = "+442071230000"
  destination = { conference = true }
  [[organisations.numbers]]
  number = "+442071230001"
  destination = { conference = "200" }
  [[organisations.rooms]]
  name = "Stand-up"
  number = "200"
  participant_pin = "1234"
  moderator_pin = "9876"
  wait_for_moderator = true
  end_when_moderator_leaves = true
  record = true
  announce_names = true
  max_members = 7
  minutes_email = "minutes@acme.test"
  members = ["1002", "1001"]
  exemptions = [{ extension = "1001", role = "moderator" }, { extension = "1002", role = "participant" }]
  [[organisations.rooms]]
  name = "Open"
  number = "20"
"#;

#[test]
fn rooms_become_the_directory_and_a_second_time_changes_nothing() {
    with_store(async |store| {
        let report = json(&declare(store, &[ACME], false).await.unwrap());
        assert_eq!((&report["created"], &report["unchanged"]), (&7.into(), &0.into()));
        let shown = &report["organisations"][0]["rooms"];
        assert_eq!((&shown[0]["number"], &shown[1]["number"]), (&"200".into(), &"20".into()));
        assert_eq!(shown[0].as_object().unwrap().len(), 2, "number and id: {shown}");

        let directory = store.directory().await.unwrap();
        let [open, stand_up] = directory.rooms.as_slice() else { panic!("two rooms") };
        assert_eq!((open.number.as_str(), open.participant_pin.is_empty()), ("20", true));
        assert_eq!(shown[0]["id"], stand_up.id.to_string());
        assert_eq!((stand_up.participant_pin.as_str(), stand_up.moderator_pin.as_str()), ("1234", "9876"));
        assert!(stand_up.wait_for_moderator && stand_up.end_when_moderator_leaves && stand_up.record);
        assert!(stand_up.announce_names && !open.announce_names);
        assert_eq!(stand_up.max_members, 7);
        let [ada, grace] = directory.extensions.as_slice() else { panic!("two extensions") };
        assert_eq!(stand_up.members, [grace.id, ada.id], "in the order in which they are rung");
        assert_eq!(stand_up.exempt(ada.id), Some(Role::Moderator));
        assert_eq!(stand_up.exempt(grace.id), Some(Role::Participant));
        assert_eq!(open.exempt(ada.id), None);
        let led: Vec<Destination> = directory.numbers.iter().map(|number| number.destination).collect();
        assert_eq!(led, [Destination::Conference(None), Destination::Conference(Some(stand_up.id))]);

        let again = json(&declare(store, &[ACME], false).await.unwrap());
        assert_eq!((&again["changed"], &again["unchanged"]), (&0.into(), &7.into()));
        assert_eq!(store.directory().await.unwrap(), directory, "revision and all");
    });
}

#[test]
fn what_differs_is_changed_and_what_is_left_out_of_people_and_pins_stays() {
    with_store(async |store| {
        declare(store, &[ACME], false).await.unwrap();
        let without = "[[organisations]]\nname = \"Acme\"\nsip_domain = \"acme.test\"\n[[organisations.rooms]]\n\
                       name = \"Stand-up\"\nnumber = \"200\"\n";
        let report = declare(store, &[without], false).await.unwrap().to_string();
        assert_eq!(report, "changed room 200 of Acme\n0 created, 1 changed, 1 unchanged\n");
        let directory = store.directory().await.unwrap();
        let room = directory.rooms.iter().find(|room| room.number == "200").unwrap();
        assert_eq!((room.participant_pin.as_str(), room.moderator_pin.as_str()), ("1234", ""));
        assert!(!room.record && !room.wait_for_moderator && room.max_members == 0);
        assert_eq!((room.members.len(), room.exemptions.len()), (2, 2));

        let fewer = format!("{without}participant_pin = \"\"\nmembers = [\"1001\"]\nexemptions = []\n");
        assert_eq!(json(&declare(store, &[&fewer], false).await.unwrap())["changed"], 1);
        let directory = store.directory().await.unwrap();
        let room = directory.rooms.iter().find(|room| room.number == "200").unwrap();
        assert!(room.participant_pin.is_empty() && room.exemptions.is_empty());
        assert_eq!(room.members.len(), 1);
        assert_eq!(json(&declare(store, &[&fewer], false).await.unwrap())["changed"], 0);
        // A change of only the members is a change, too.
        let people = format!("{without}participant_pin = \"\"\nmembers = [\"1002\"]\nexemptions = []\n");
        let revision = directory.revision;
        assert_eq!(json(&declare(store, &[&people], false).await.unwrap())["changed"], 1);
        assert!(store.directory().await.unwrap().revision > revision);
    });
}

#[test]
fn a_dry_run_changes_nothing() {
    with_store(async |store| {
        let report = json(&declare(store, &[ACME], true).await.unwrap());
        assert_eq!(report["created"], 7);
        assert_eq!(report["organisations"][0]["rooms"][0].get("id"), None, "there is none yet");
        assert_eq!(store.directory().await.unwrap().rooms, []);
    });
}

#[test]
fn a_pin_is_made_up_once_where_that_is_the_rule() {
    with_store(async |store| {
        let apply = async || {
            let declaration = parse(ACME).unwrap().with_default_pin(DefaultPin::Random6);
            let mut rng = <rand::rngs::StdRng as rand::SeedableRng>::seed_from_u64(7);
            json(&sidetone::provision::apply(store, &[declaration], false, at(0), &mut rng).await.unwrap())
        };
        let first = apply().await;
        let rooms = &first["organisations"][0]["rooms"];
        assert_eq!(rooms[0].get("participant_pin"), None, "it was given");
        let pin = rooms[1]["participant_pin"].as_str().unwrap();
        assert_eq!(pin.len(), 6);
        let directory = store.directory().await.unwrap();
        assert_eq!(directory.rooms[0].participant_pin.as_str(), pin);
        let second = apply().await;
        assert_eq!((&second["changed"], &second["unchanged"]), (&0.into(), &7.into()));
        assert_eq!(second["organisations"][0]["rooms"][1].get("participant_pin"), None);
    });
}

#[test]
fn every_mistake_in_a_room_is_named() {
    let room = |inside: &str| {
        format!(
            "[[organisations]]\nname = \"A\"\nsip_domain = \"a.test\"\n[[organisations.rooms]]\nname = \"R\"\n\
             number = \"200\"\n{inside}"
        )
    };
    let at_room = "organisation \"A\", room \"200\"";
    let cases: Vec<(String, Vec<String>)> = vec![
        (
            room(
                "participant_pin = \"12\"\nmoderator_pin = 1234\nmax_members = 1001\nminutes_email = \"x\"\nrecord = 1\n",
            ),
            vec![
                format!("{at_room}: participant_pin: must be 4 to 10 digits, or empty for none"),
                format!("{at_room}: moderator_pin: must be a text in quotes, not a number"),
                format!("{at_room}: record: must be true or false, not a number"),
                format!("{at_room}: max_members: 1001 is out of range, write 0 to 1000"),
                format!("{at_room}: minutes_email: must be an address such as minutes@acme.test, or empty"),
            ],
        ),
        (
            room("participant_pin = \"1234\"\nmoderator_pin = \"1234\"\n"),
            vec![format!("{at_room}: moderator_pin: must differ from participant_pin")],
        ),
        (
            room("wait_for_moderator = true\n"),
            vec![
                format!(
                    "{at_room}: wait_for_moderator: needs a moderator_pin: without one the room has no moderator"
                ),
                format!("{at_room}: moderator_pin: must not be empty while wait_for_moderator is true"),
            ],
        ),
        (
            room("members = [\"1001\", \"1001\", \"x\"]\ncolour = \"red\"\n"),
            vec![
                format!("{at_room}: members: \"1001\" is named twice"),
                format!("{at_room}: members: must be 1 to 15 digits"),
                format!(
                    "{at_room}: colour: unknown key, known here are: name, number, participant_pin, moderator_pin, wait_for_moderator, end_when_moderator_leaves, record, record_channels, announce_names, max_members, minutes_email, members, exemptions"
                ),
            ],
        ),
        (
            room(
                "exemptions = [{ extension = \"1001\", role = \"guest\" }, { extension = \"1\", role = \"moderator\" }, { extension = \"1\", role = \"moderator\" }]\n",
            ),
            vec![
                format!("{at_room}, exemption \"1001\": role: must be participant or moderator"),
                format!("{at_room}, exemption \"1\": extension: \"1\" is named twice"),
            ],
        ),
        (
            room("[[organisations.rooms]]\nname = \"S\"\nnumber = \"200\"\n"),
            vec!["organisation \"A\", room \"200\": number: \"200\" is declared twice".to_owned()],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(&text).err().unwrap_or_default(), expected, "{text}");
    }
}

#[test]
fn what_is_not_there_is_refused_by_key() {
    let acme = "[[organisations]]\nname = \"Acme\"\nsip_domain = \"acme.test\"\n";
    let room = format!("{acme}[[organisations.rooms]]\nname = \"R\"\nnumber = \"200\"\n");
    let cases = [
        (
            format!(
                "{room}members = [\"9\"]\nexemptions = [{{ extension = \"8\", role = \"moderator\" }}]\n"
            ),
            vec![
                "0: organisation \"Acme\", room \"200\": members: there is no extension \"9\", declare it",
                "0: organisation \"Acme\", room \"200\": exemptions: there is no extension \"8\", declare it",
            ],
        ),
        (
            format!(
                "{acme}[[organisations.numbers]]\nnumber = \"+4420\"\ndestination = {{ conference = \"99\" }}\n"
            ),
            vec![
                "0: organisation \"Acme\", number \"+4420\": destination: there is no room \"99\", declare it",
            ],
        ),
        (
            format!("{room}moderator_pin = \"1234\"\n"),
            vec![
                "0: organisation \"Acme\", room \"200\": moderator_pin: must differ from participant_pin, which is stored",
            ],
        ),
    ];
    with_store(async |store| {
        declare(store, &[ACME], false).await.unwrap();
        let before = store.directory().await.unwrap();
        for (text, expected) in cases {
            assert_eq!(refusals(declare(store, &[&text], false).await.expect_err(&text)), expected, "{text}");
        }
        assert_eq!(store.directory().await.unwrap(), before);
    });
}
