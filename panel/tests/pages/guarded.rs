//! Headers of every page, and forms that another page sent.

use crate::browser::Browser;
use crate::hostile;
use crate::safe_texts::PAGES;

/// Every form that changes data.
const CHANGES: &[&str] = &[
    "/live/calls/1/hang-up",
    "/live/calls/1/note",
    "/live/rooms/1/dial",
    "/settings/own-extension",
    "/live/rooms/1/end",
    "/live/rooms/1/lock",
    "/live/rooms/1/members/7/kick",
    "/live/rooms/1/members/7/mute",
    "/live/rooms/1/members/7/unmute",
    "/live/rooms/1/mute-all",
    "/live/rooms/1/record-off",
    "/live/rooms/1/record-on",
    "/live/rooms/1/unlock",
    "/logout",
    "/settings/prompts/1/delete",
    "/settings/teams/1",
    "/settings/teams/1/delete",
    "/settings/teams/new",
    "/settings/webhooks/1/deliveries/1/redeliver",
];

#[tokio::test]
async fn every_page_has_the_policy() {
    let mut browser = Browser::logged_in(hostile::api("plain"));
    let missing = ["/nowhere", "/login", "/panel/style.css", "/panel/nothing.js"];
    for path in PAGES.iter().chain(&missing) {
        let page = browser.get(path).await;
        let policy = page.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"),
            "{path}: {policy}"
        );
        assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(page.header("x-content-type-options"), "nosniff", "{path}");
        let kept = page.header("cache-control");
        assert!(
            kept == "no-store" || (kept == "no-cache" && path.starts_with("/panel/style")),
            "{path}: {kept}"
        );
    }
}

#[tokio::test]
async fn a_form_without_the_token_of_the_session_changes_nothing() {
    let mut browser = Browser::logged_in(hostile::api("plain"));
    let token = browser.get("/calls").await.token().to_owned();
    for path in CHANGES {
        for form in ["", "csrf=", "csrf=0000", &format!("csrf={}", &token[1..])] {
            let page = browser.post(path, form).await;
            assert_eq!(page.status, 403, "{path} {form}");
        }
        let foreign = [("sec-fetch-site", "cross-site")];
        let page = browser.send("POST", path, &foreign, Some(&format!("csrf={token}"))).await;
        assert_eq!(page.status, 403, "{path} from another site");
        // The token of another session.
        let mut other = Browser::logged_in(hostile::api("plain"));
        other.cookies.insert("sidetone_session".to_owned(), "d.e.f".to_owned());
        assert_eq!(other.post(path, &format!("csrf={token}")).await.status, 403, "{path}");
        let page = browser.post(path, &format!("csrf={token}")).await;
        assert!(page.status != 403, "{path}: {}", page.text);
        browser = Browser::logged_in(hostile::api("plain"));
    }
}

#[tokio::test]
async fn without_a_session_every_page_leads_to_the_login() {
    for path in PAGES.iter().filter(|path| !path.contains('?')) {
        let page = Browser::new(hostile::api("plain")).get(path).await;
        let next = path.replace('/', "%2F");
        let expected = if *path == "/" { "/login".to_owned() } else { format!("/login?next={next}") };
        assert_eq!((page.status, page.header("location")), (303, expected.as_str()), "{path}");
    }
    for path in CHANGES {
        let page = Browser::new(hostile::api("plain")).post(path, "csrf=x").await;
        assert_eq!((page.status, page.header("location")), (303, "/login"), "{path}");
    }
}

/// A page links the version of its files, which a browser keeps forever; a file without a version is requested again.
#[tokio::test]
async fn files_are_kept_by_version() {
    let mut browser = Browser::new(hostile::api("plain"));
    let page = browser.get("/login").await;
    let (_, rest) = page.text.split_once("rel=\"stylesheet\" href=\"").unwrap();
    let style = browser.get(rest.split('"').next().unwrap()).await;
    assert_eq!((style.status, style.header("cache-control")), (200, "public, max-age=31536000, immutable"));
    for path in ["/panel/style.css", "/panel/zone.mjs?v=old"] {
        let file = browser.get(path).await;
        assert_eq!((file.status, file.header("cache-control")), (200, "no-cache"), "{path}");
    }
}

/// A link in a mail is opened without the strict cookie; the page requests the same URL again.
#[tokio::test]
async fn a_link_from_another_site_is_opened_again() {
    let mut browser = Browser::new(hostile::api("plain"));
    let page = browser.send("GET", "/calls/1", &[("sec-fetch-site", "cross-site")], None).await;
    assert_eq!(page.status, 200);
    assert!(page.text.contains("http-equiv=\"refresh\""), "{}", page.text);
    let page = browser.send("GET", "/calls/1", &[("sec-fetch-site", "same-origin")], None).await;
    assert_eq!(page.header("location"), "/login?next=%2Fcalls%2F1");
}

/// A user who controls a live room may dial a party into it, with any role. Stored rooms belong to no team.
#[tokio::test]
async fn who_controls_a_room_is_offered_a_call_into_it() {
    for (role, is_of_team) in [("org_admin", false), ("team_supervisor", true)] {
        let mut browser = Browser::logged_in(hostile::api_for(role, "plain"));
        let page = browser.get("/live/rooms/1").await;
        assert!(page.text.contains("/mute-all\"") && page.text.contains("/dial\""), "{role}: {}", page.text);
        let page = browser.get("/rooms").await;
        assert_eq!(page.text.contains("Rooms belong to the organisation."), is_of_team, "{role}");
    }
}

/// Other clients get the API as without the panel.
#[tokio::test]
async fn other_paths_are_those_of_the_api() {
    let mut browser = Browser::new(hostile::api("plain"));
    let page = browser.get("/api/v1/cdrs").await;
    assert_eq!((page.status, page.header("content-type")), (200, "application/json"));
    assert_eq!(page.header("content-security-policy"), "");
    let page = browser.get("/api/v1/nothing").await;
    assert_eq!((page.status, page.header("content-type")), (404, "application/json"));
    let page = browser.get("/nothing").await;
    assert_eq!((page.status, page.header("content-type")), (404, "text/html; charset=utf-8"));
}

/// A browser cannot read a stream from a login page.
#[tokio::test]
async fn events_without_a_session_are_refused() {
    let path = "/panel/events?events=call.*";
    for mut browser in
        [Browser::new(hostile::api("plain")), Browser::logged_in(hostile::refusing(401, "ended"))]
    {
        let answer = browser.get(path).await;
        assert_eq!((answer.status, answer.header("location")), (401, ""));
    }
}

#[tokio::test]
async fn a_session_that_ended_is_forgotten() {
    let mut browser = Browser::logged_in(hostile::refusing(401, "ended"));
    let page = browser.get("/calls").await;
    assert_eq!((page.status, page.header("location")), (303, "/login"));
}
