//! The language of prompts in rooms.

use sidetone_model::language::Language;
use sidetone_model::room::{DialKind, DialRequest, Role};

use crate::io::MediaCommand;
use crate::mixing::MixOrder;
use crate::queries::DialIntoRoom;
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
