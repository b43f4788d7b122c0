//! The language of prompts in rooms.

use sidetone_model::language::Language;
use sidetone_model::prompt::Prompt;
use sidetone_model::room::{Control, DialKind, DialRequest, PlayingSound, Role};

use crate::io::MediaCommand;
use crate::mixing::MixOrder;
use crate::queries::{ControlRoom, DialIntoRoom};
use crate::tests::conference_adapter::{CARRIER, WORLD, room_id, with_rooms};
use crate::tests::network::{Net, OfRooms, Plan};

#[test]
fn prompts_are_in_the_language_of_the_extension_or_else_of_its_organisation() {
    let mut directory = with_rooms();
    directory.organisations[0].language = Language::German;
    let own = directory.extensions.iter_mut().find(|one| one.number == "1001").unwrap();
    own.language = Some(Language::English);
    let mut net = Net::new(directory);
    net.dial("200");
    net.carrier(CARRIER, [Plan::Accept]);
    let (kind, target) = (DialKind::External, WORLD.to_owned());
    let request = DialRequest { kind, target, role: Role::Participant, confirm: false };
    assert!(net.ask(DialIntoRoom(room_id(51), request)).is_ok());
    let (mut joined, mut to_all) = (Vec::new(), Vec::new());
    for output in &net.of_rooms {
        match output {
            OfRooms::Media(_, MediaCommand::Join { language, .. }) => joined.push(*language),
            OfRooms::Mix(_, MixOrder::Play { language, .. }) => to_all.push(*language),
            _ => {}
        }
    }
    assert_eq!(joined, [Language::English, Language::German]);
    assert_eq!(to_all, [Language::German], "what all hear is in the language of the organisation");
}

/// The length of a sound is that of the organisation's language, and the room reports the end of the sound by it.
#[test]
fn a_sound_is_in_the_language_of_the_organisation_for_one_member_too() {
    let mut directory = with_rooms();
    directory.organisations[0].language = Language::German;
    let own = directory.extensions.iter_mut().find(|one| one.number == "1001").unwrap();
    own.language = Some(Language::English);
    let mut net = Net::new(directory);
    net.dial("200");
    let live = net.live_rooms().remove(0);
    let mut played = Vec::new();
    for member in [Some(live.members[0].id), None] {
        net.of_rooms.clear();
        let sound = PlayingSound { prompt: Prompt::Ended.into(), member };
        for control in [Control::Play { sound, duration_ms: 900 }, Control::StopSound] {
            net.ask(ControlRoom(live.room, control)).unwrap();
        }
        played.extend(net.of_rooms.iter().filter_map(|output| match output {
            OfRooms::Media(_, MediaCommand::PlaySound { language, .. }) => Some(("one", *language)),
            OfRooms::Mix(_, MixOrder::PlaySound { language, .. }) => Some(("all", *language)),
            _ => None,
        }));
    }
    assert_eq!(played, [("one", Language::German), ("all", Language::German)]);
}
