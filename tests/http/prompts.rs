//! An organisation's own prompts over HTTP, and how every node gets them.

use std::sync::Arc;

use serde_json::Value;
use sidetone::prompts::{self, Followed, Library};
use sidetone_media::audio::clip::Clip;
use sidetone_media::audio::wav::header;
use sidetone_model::directory::DirectorySnapshot;
use sidetone_model::ids::OrganisationId;
use sidetone_model::language::Language;
use sidetone_model::prompt::{Prompt, Prompts};

use crate::common::records::{TempDir, at};
use crate::http::desk::{As, Desk};
use crate::http::face::{Ground, request};

const WAV: &str = "Content-Type: audio/wav\r\n";

/// A recording with this many samples, all of them `sample`.
fn wav(sample: i16, samples: usize) -> Vec<u8> {
    let data: Vec<u8> = std::iter::repeat_n(sample.to_le_bytes(), samples).flatten().collect();
    [header(16_000, data.len() as u64).as_slice(), &data].concat()
}

fn path(desk: &Desk, rest: &str) -> String {
    format!("/organisations/{}/prompts{rest}", desk.organisation("Acme"))
}

fn put(desk: &Desk, who: As, rest: &str, file: &[u8]) -> (u16, Value) {
    let answer = desk.raw(who, "PUT", &path(desk, rest), WAV, file);
    (answer.status, answer.body)
}

#[test]
fn one_is_stored_listed_heard_replaced_and_removed() {
    let desk = Desk::start();
    let list = desk.get(As::Rooms, &path(&desk, ""));
    assert_eq!(list.status, 200, "{}", list.body);
    let names: Vec<&str> = Prompt::ALL.iter().map(|prompt| prompt.as_str()).collect();
    assert_eq!(list.items("name"), names);
    let alone = |list: &Value| {
        let mut items = list["items"].as_array().unwrap().iter();
        items.find(|item| item["name"] == "alone").unwrap().clone()
    };
    let builtin = alone(&list.body);
    assert_eq!(builtin["own"], false);
    assert!(builtin["duration_ms"].as_u64().unwrap() > 500 && builtin.get("updated_at").is_none());
    let (status, head, file) = desk.bytes(As::Rooms, "GET", &path(&desk, "/alone"), "", &[]);
    assert_eq!((status, file.len() as u64), (200, builtin["bytes"].as_u64().unwrap()));
    assert!(head.contains("content-type: audio/wav\r\n"), "{head}");
    assert!(Clip::from_wav(&file).is_ok());

    for (samples, duration_ms) in [(16_000, 1_000), (8_000, 500)] {
        let own = wav(7, samples);
        let (status, stored) = put(&desk, As::Rooms, "/alone", &own);
        assert_eq!(status, 200, "{stored}");
        assert_eq!(stored["own"], true);
        assert_eq!(
            (stored["duration_ms"].as_u64(), stored["bytes"].as_u64()),
            (Some(duration_ms), Some(own.len() as u64))
        );
        assert_eq!(alone(&desk.get(As::Rooms, &path(&desk, "")).body), stored);
        let (status, _, file) = desk.bytes(As::Rooms, "GET", &path(&desk, "/alone"), "", &[]);
        assert_eq!((status, file), (200, own));
    }

    assert_eq!(desk.delete(As::Rooms, &path(&desk, "/alone")).status, 204);
    let again = desk.delete(As::Rooms, &path(&desk, "/alone"));
    assert_eq!((again.status, again.code()), (404, "not_found"));
    assert_eq!(alone(&desk.get(As::Rooms, &path(&desk, "")).body), builtin);
}

#[test]
fn the_built_in_ones_are_in_the_language_of_the_organisation() {
    let desk = Desk::start();
    let file = || desk.bytes(As::Rooms, "GET", &path(&desk, "/alone"), "", &[]).2;
    let english = file();
    let organisation = format!("/organisations/{}", desk.organisation("Acme"));
    let changed = desk.patch(As::Acme, &organisation, serde_json::json!({"language": "de"}));
    assert_eq!((changed.status, &changed.body["language"]), (200, &Value::from("de")), "{}", changed.body);
    let german = file();
    assert_ne!(german, english);
    let list = desk.get(As::Rooms, &path(&desk, "")).body;
    let alone = list["items"].as_array().unwrap().iter().find(|item| item["name"] == "alone").unwrap();
    assert_eq!(alone["bytes"].as_u64(), Some(german.len() as u64));
}

#[test]
fn an_organisation_has_sounds_under_names_of_its_own() {
    let desk = Desk::start();
    let builtin = desk.get(As::Rooms, &path(&desk, "")).items("name").len();
    for number in 1..=20 {
        let (status, stored) = put(&desk, As::Rooms, &format!("/own-{number}"), &wav(7, 1_600));
        assert_eq!((status, &stored["name"]), (200, &Value::from(format!("own-{number}"))), "{stored}");
    }
    let list = desk.get(As::Rooms, &path(&desk, ""));
    let names = list.items("name");
    assert_eq!((names.len(), names.is_sorted()), (builtin + 20, true), "{names:?}");
    let (status, refused) = put(&desk, As::Rooms, "/own-21", &wav(7, 1_600));
    assert_eq!((status, refused["error"]["code"].as_str()), (409, Some("conflict")), "{refused}");
    // One of them is replaced, and a deletion makes room.
    assert_eq!(put(&desk, As::Rooms, "/own-20", &wav(8, 3_200)).1["duration_ms"], 200);
    assert_eq!(desk.delete(As::Rooms, &path(&desk, "/own-1")).status, 204);
    assert_eq!(put(&desk, As::Rooms, "/own-21", &wav(7, 1_600)).0, 200);
    for gone in ["/own-1", "/own-22", "/own-A", "/own-"] {
        assert_eq!(desk.get(As::Rooms, &path(&desk, gone)).status, 404, "{gone}");
    }
    assert_eq!(desk.delete(As::Rooms, &path(&desk, "/own-1")).status, 404);
}

#[test]
fn what_cannot_be_played_says_why() {
    let desk = Desk::start();
    let mut surround = wav(0, 100);
    surround[58] = 6;
    let mut compressed = wav(0, 100);
    compressed[56] = 0x55;
    let cases: [(&str, Vec<u8>, &str); 6] = [
        ("nothing", vec![], "body: is missing, send a WAV file"),
        ("text", b"{}".to_vec(), "it is no WAV file"),
        ("empty", wav(0, 0), "there is no sound in it"),
        ("surround", surround, "it has 6 channels; one or two are played"),
        ("mp3 in wav", compressed, "format 0x0055"),
        ("long", wav(0, 16_000 * 120 + 1), "it is longer than 120 seconds"),
    ];
    for (name, file, message) in cases {
        let (status, body) = put(&desk, As::Acme, "/hold-music", &file);
        assert_eq!(status, 400, "{name}: {body}");
        let said = body["error"]["message"].as_str().unwrap();
        assert!(said.contains(message), "{name}: {said}");
    }
    let (status, body) = put(&desk, As::Acme, "/hold-music", &vec![0; Prompt::WAV_BYTES_MAX + 1]);
    assert_eq!((status, body["error"]["code"].as_str()), (413, Some("payload_too_large")), "{body}");
    for kind in ["", "Content-Type: audio/mpeg\r\n", "Content-Type: application/json\r\n"] {
        let answer = desk.raw(As::Acme, "PUT", &path(&desk, "/hold-music"), kind, &wav(0, 100));
        assert_eq!((answer.status, answer.code()), (415, "unsupported_media_type"), "{kind}");
        assert!(answer.message().contains("audio/wav"), "{}", answer.message());
    }
    let answer = desk.get(As::Acme, &path(&desk, "/louder"));
    assert_eq!(answer.status, 404);
    assert!(
        answer.message().contains("there is no prompt louder, there are all-muted"),
        "{}",
        answer.message()
    );
    // The longest allowed sound.
    let (status, body) = put(&desk, As::Acme, "/hold-music", &wav(0, 16_000 * 120));
    assert_eq!(status, 200, "{body}");
}

#[test]
fn who_may_do_what() {
    let desk = Desk::start();
    let requests = [
        ("GET", path(&desk, ""), "conferences:read"),
        ("GET", path(&desk, "/alone"), "conferences:read"),
        ("PUT", path(&desk, "/alone"), "conferences:write"),
        ("DELETE", path(&desk, "/alone"), "conferences:write"),
    ];
    for (method, path, lacking) in requests {
        let send = |who, path: &str| desk.raw(who, method, path, WAV, &wav(0, 10));
        let answer = send(As::Nobody, &path);
        assert_eq!((answer.status, answer.code()), (401, "unauthenticated"), "{method} {path}");
        let answer = send(As::Reader, &path);
        assert_eq!((answer.status, answer.code()), (403, "forbidden"), "{method} {path}");
        assert!(answer.message().contains(lacking), "{}", answer.message());
        let answer = send(As::Bolt, &path);
        assert_eq!((answer.status, answer.code()), (403, "forbidden"), "foreign {method} {path}");
        let absent = path.replace(&desk.organisation("Acme"), "00000000-0000-4000-8000-000000000000");
        assert_eq!(send(As::Operator, &absent).status, 404, "{method} {absent}");
        let wrong = path.replace(&desk.organisation("Acme"), "acme");
        assert_eq!(send(As::Operator, &wrong).message(), "id: must be a UUID", "{method} {wrong}");
    }
}

/// A caller without authentication cannot send a long body, and no other resource accepts a longer one than before.
#[test]
fn only_a_sound_may_be_long() {
    let desk = Desk::start();
    let long = vec![b' '; 1024 * 1024 + 1];
    let answer = desk.raw(As::Nobody, "PUT", &path(&desk, "/alone"), WAV, &long);
    assert_eq!(answer.status, 401);
    let kind = "Content-Type: application/json\r\n";
    assert_eq!(desk.raw(As::Acme, "POST", "/teams", kind, &long).status, 413);
    assert!(request("PUT", "/x", "", &long).len() > long.len());
}

/// Two nodes on one database: each plays the sounds stored on either.
#[tokio::test]
async fn every_node_plays_what_was_stored() {
    let dir = TempDir::new();
    let declared = "[[organisations]]\nname = \"Acme\"\nsip_domain = \"acme.test\"\n\
        [[organisations]]\nname = \"Bolt\"\nsip_domain = \"bolt.test\"\n";
    let ground = Ground::new(&dir, declared).await;
    let snapshot: DirectorySnapshot = ground.store.directory().await.unwrap();
    let id = |name: &str| -> OrganisationId {
        snapshot.organisations.iter().find(|organisation| organisation.name == name).unwrap().id
    };
    let (acme, bolt) = (id("Acme"), id("Bolt"));
    let mut nodes = [(); 2].map(|()| (Library::new(), Followed::default()));
    let desk = Arc::new(prompts::PromptService::new(ground.store.clone(), nodes[0].0.clone()));
    let builtin = nodes[0].0.clip(acme, Language::English, Prompt::Joined);
    for sample in [5, 6] {
        desk.put(acme, Prompt::Joined.into(), wav(sample, 320), at(1)).await.unwrap();
        for (library, followed) in &mut nodes {
            followed.catch_up(&ground.store, library).await.unwrap();
            assert_eq!(library.clip(acme, Language::English, Prompt::Joined).samples(), [sample; 320]);
            assert_eq!(library.clip(bolt, Language::English, Prompt::Joined), builtin);
            assert_eq!(
                library.clip(acme, Language::English, Prompt::Left),
                library.clip(bolt, Language::English, Prompt::Left)
            );
        }
    }
    // A node that starts now has the sound immediately; a removed one is no longer played.
    let (late, mut followed) = (Library::new(), Followed::default());
    followed.catch_up(&ground.store, &late).await.unwrap();
    assert_eq!(late.clip(acme, Language::English, Prompt::Joined).samples(), [6; 320]);
    desk.remove(acme, Prompt::Joined.into()).await.unwrap();
    followed.catch_up(&ground.store, &late).await.unwrap();
    assert_eq!(late.clip(acme, Language::English, Prompt::Joined), builtin);
    ground.store.close().await;
}
