//! A page as a browser parses it: its tags and their attributes.

/// The tags of a page, each with its attributes: `(name, [(attribute, value)])`.
pub(crate) fn tags(page: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let name: String =
            rest.chars().take_while(|c| c.is_ascii_alphanumeric() || "!/-".contains(*c)).collect();
        rest = &rest[name.len()..];
        let mut attributes = Vec::new();
        loop {
            rest = rest.trim_start();
            if rest.is_empty() || rest.starts_with('>') || rest.starts_with("/>") {
                break;
            }
            let attribute: String =
                rest.chars().take_while(|c| !c.is_whitespace() && !"=>".contains(*c)).collect();
            rest = &rest[attribute.len()..];
            let mut value = String::new();
            if let Some(after) = rest.strip_prefix('=') {
                let quoted = after.strip_prefix('"').expect("every value is in double quotes");
                let (inside, after) = quoted.split_once('"').expect("every value ends");
                value = inside.to_owned();
                rest = after;
            }
            attributes.push((attribute, value));
        }
        found.push((name, attributes));
    }
    found
}

/// The tags that pages may contain.
const TAGS: &str = "!DOCTYPE a audio b body br button caption code dd details div dl dt em figcaption figure form h1 h2 h3 head \
                    header html i input kbd label legend fieldset li link main meta meter nav ol option p path \
                    pre rect script section select small span summary svg table tbody td text \
                    textarea th thead time title tr ul";

/// Asserts that a page contains only the panel's own tags, and no inline script or style.
pub(crate) fn assert_harmless(page: &str, about: &str) {
    let scripts = page.matches("<script").count();
    for (name, attributes) in tags(page) {
        let bare = name.trim_start_matches('/');
        assert!(TAGS.split_whitespace().any(|known| known == bare), "{about}: <{name}>");
        for (attribute, value) in &attributes {
            let plain = attribute.chars().all(|c| c.is_ascii_alphabetic() || c == '-' || c == ':');
            assert!(
                plain && !attribute.starts_with("on") && attribute != "style",
                "{about}: <{name} {attribute}>"
            );
            if ["href", "src", "action", "formaction"].contains(&attribute.as_str()) {
                let is_ours = value.is_empty()
                    || value.starts_with('#')
                    || (value.starts_with('/') && !value.starts_with("//"));
                assert!(is_ours, "{about}: {attribute}={value}");
            }
        }
    }
    let ours = page.matches("<script type=\"module\" src=\"/panel/").count();
    assert_eq!(scripts, ours, "{about}: a script that is not of the panel");
}

#[test]
fn the_reader_sees_tags_and_attributes() {
    let read = tags("<p class=\"a > b\" hidden>x</p><br>");
    assert_eq!(
        read[0],
        (
            "p".to_owned(),
            vec![("class".to_owned(), "a > b".to_owned()), ("hidden".to_owned(), String::new())]
        )
    );
    assert_eq!((read[1].0.as_str(), read[2].0.as_str()), ("/p", "br"));
}

#[test]
#[should_panic(expected = "<img>")]
fn a_strange_tag_is_refused() {
    assert_harmless("<p><img src=\"/x\"></p>", "page");
}

#[test]
#[should_panic(expected = "onclick")]
fn an_inline_handler_is_refused() {
    assert_harmless("<p onclick=\"x\"></p>", "page");
}
