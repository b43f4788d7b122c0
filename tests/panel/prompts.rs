//! Prompts: who stores one, and what is refused.

use sidetone_media::audio::wav::header;

use crate::panel::site::{Browser, Page, Site};

const LIST: &str = "/settings/prompts";

/// A WAV file of silence.
fn wav(samples: usize) -> Vec<u8> {
    let data = vec![0; samples * 2];
    [header(16_000, data.len() as u64).as_slice(), &data].concat()
}

/// Opens the form and sends it.
fn store(browser: &mut Browser<'_>, name: &str, file: &[u8]) -> Page {
    let form = browser.get(&format!("{LIST}/new"));
    assert_eq!(form.status, 200, "{}", form.text);
    browser.upload(LIST, &[("csrf", &form.token()), ("name", name)], ("body", file))
}

/// The row of a prompt.
fn row(page: &Page, name: &str) -> String {
    let (_, rest) =
        page.text.split_once(&format!("?name={name}\"")).unwrap_or_else(|| panic!("{}", page.text));
    rest.split("</tr>").next().unwrap().to_owned()
}

#[test]
fn a_sound_is_stored_played_replaced_and_removed() {
    let site = Site::open(false);
    let mut boss = site.logged_in("boss@acme.test");
    let list = boss.get(LIST);
    assert!(row(&list, "alone").contains("built in"), "{}", list.text);
    for (name, samples, shown) in
        [("alone", 16_000, "0:01"), ("alone", 48_000, "0:03"), ("own-ad", 32_000, "0:02")]
    {
        let page = store(&mut boss, name, &wav(samples));
        assert_eq!((page.status, page.header("location")), (303, LIST), "{name}: {}", page.text);
        let row = row(&boss.get(LIST), name);
        assert!(row.contains("<td>own</td>") && row.contains(shown) && row.contains("<time"), "{row}");
    }
    let sound = boss.get(&format!("{LIST}/own-ad/sound"));
    assert_eq!((sound.status, sound.header("content-type")), (200, "audio/wav"));
    assert!(sound.text.starts_with("RIFF"));
    // Bolt has its own list.
    let mut bolt = site.logged_in("boss@bolt.test");
    let list = bolt.get(LIST);
    assert!(row(&list, "alone").contains("built in") && !list.text.contains("own-ad"));
    assert_eq!(bolt.get(&format!("{LIST}/own-ad/sound")).status, 404);
    let token = list.token();
    assert_eq!(bolt.post(&format!("{LIST}/own-ad/delete"), &[("csrf", &token)]).status, 404);
    let token = boss.get(LIST).token();
    for name in ["own-ad", "alone"] {
        let page = boss.post(&format!("{LIST}/{name}/delete"), &[("csrf", &token)]);
        assert_eq!((page.status, page.header("location")), (303, LIST), "{name}: {}", page.text);
    }
    let list = boss.get(LIST);
    assert!(row(&list, "alone").contains("built in") && !list.text.contains("own-ad"));
}

#[test]
fn errors_stand_beside_the_name_or_the_file() {
    let site = Site::open(false);
    let mut boss = site.logged_in("boss@acme.test");
    let cases: [(&str, Vec<u8>, &str, u16, &str); 5] = [
        ("", wav(100), "name", 400, "Is required"),
        ("louder", wav(100), "name", 404, "There is no prompt louder"),
        ("own-ad", b"{}".to_vec(), "body", 400, "Cannot be played: it is no WAV file"),
        ("own-ad", Vec::new(), "body", 400, "Is missing"),
        ("own-ad", wav(16_000 * 120 + 1), "body", 400, "longer than 120 seconds"),
    ];
    for (name, file, field, status, message) in cases {
        let page = store(&mut boss, name, &file);
        assert_eq!(page.status, status, "{name}: {}", page.text);
        let (_, beside) =
            page.text.split_once(&format!("<p class=\"problem\" id=\"{field}-problem\">")).unwrap();
        assert!(beside.split("</p>").next().unwrap().contains(message), "{name}: {}", page.text);
        assert!(page.text.contains(&format!("name=\"name\" value=\"{name}\"")), "what was entered stays");
    }
    let page = store(&mut boss, "own-ad", &vec![0; 4 * 1024 * 1024 + 1]);
    assert_eq!(page.status, 413, "{}", page.text);
    let page = store(&mut boss, "own-ad", &vec![0; 5 * 1024 * 1024]);
    assert_eq!(page.status, 413, "{}", page.text);
    assert!(!boss.get(LIST).text.contains("own-ad"));
}

#[test]
fn prompts_are_stored_by_those_who_manage_rooms_from_a_form_of_the_session() {
    let site = Site::open(false);
    for email in ["eve@acme.test", "bob@acme.test", "mia@acme.test"] {
        let mut browser = site.logged_in(email);
        let page = browser.get("/settings");
        assert!(!page.links().contains(&LIST.to_owned()), "{email}");
        assert_eq!(browser.get(&format!("{LIST}/new")).status, 403, "{email}");
        let fields = [("csrf", page.token()), ("name", "own-ad".to_owned())];
        let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
        assert_eq!(browser.upload(LIST, &fields, ("body", &wav(100))).status, 403, "{email}");
        assert_eq!(browser.post(&format!("{LIST}/own-ad/delete"), &fields).status, 403, "{email}");
    }
    let mut boss = site.logged_in("boss@acme.test");
    let foreign = site.logged_in("boss@acme.test").get(LIST).token();
    for token in ["", foreign.as_str()] {
        let page = boss.upload(LIST, &[("csrf", token), ("name", "own-ad")], ("body", &wav(100)));
        assert_eq!(page.status, 403, "{}", page.text);
    }
    assert!(!boss.get(LIST).text.contains("own-ad"));
    let page = site.browser().upload(LIST, &[("name", "own-ad")], ("body", &wav(100)));
    assert_eq!((page.status, page.header("location")), (303, "/login"));
}
