//! Sessions of the panel are those of the API.

use serde_json::json;

use crate::http::office::PASSWORD;
use crate::panel::site::Site;

#[test]
fn a_login_is_a_session_of_the_api_and_logging_out_ends_it() {
    let site = Site::open(false);
    let mut browser = site.logged_in("eve@acme.test");
    let token = browser.cookies["sidetone_session"].clone();
    assert_eq!(site.office.get(&token, "/auth/me").status, 200);
    let page = browser.get("/calls");
    assert_eq!(page.status, 200);
    let page = browser.post("/logout", &[("csrf", &page.token())]);
    assert_eq!((page.status, page.header("location")), (303, "/login"));
    assert!(!browser.cookies.contains_key("sidetone_session"));
    assert_eq!(site.office.get(&token, "/auth/me").status, 401);
    browser.cookies.insert("sidetone_session".to_owned(), token);
    assert_eq!(browser.get("/calls").header("location"), "/login?next=%2Fcalls");
}

#[test]
fn a_wrong_password_is_answered_beside_the_form() {
    let site = Site::open(false);
    let mut browser = site.browser();
    let page = browser.log_in("eve@acme.test", "wrong", "/calls");
    assert_eq!(page.status, 401);
    assert!(page.text.contains("The email address or the password is wrong."), "{}", page.text);
    assert!(page.text.contains("value=\"eve@acme.test\"") && !page.text.contains("\"wrong\""));
    assert!(!browser.cookies.contains_key("sidetone_session"));
    let page = browser.log_in("eve@acme.test", PASSWORD, "/calls?q=1");
    assert_eq!(page.header("location"), "/calls?q=1");
}

#[test]
fn guessing_is_limited_as_over_the_api() {
    let site = Site::open(false);
    let mut browser = site.browser();
    let statuses: Vec<u16> = (0..6).map(|_| browser.log_in("eve@acme.test", "wrong", "").status).collect();
    assert_eq!(statuses, [401, 401, 401, 401, 401, 429]);
    let token = site.office.try_login("127.0.0.1", "eve@acme.test", PASSWORD);
    assert_eq!(token.status, 429, "the same failures count over the API");
}

#[test]
fn a_login_form_of_another_browser_is_refused() {
    let site = Site::open(false);
    let foreign = site.browser().get("/login").token();
    let mut browser = site.browser();
    browser.get("/login");
    let fields = [("csrf", foreign.as_str()), ("email", "eve@acme.test"), ("password", PASSWORD)];
    assert_eq!(browser.post("/login", &fields).status, 403);
    assert!(!browser.cookies.contains_key("sidetone_session"));
}

#[test]
fn a_revoked_session_and_one_of_twelve_hours_end_here_too() {
    let site = Site::open(false);
    let mut browser = site.logged_in("mia@acme.test");
    let boss = site.office.login("boss@acme.test");
    let id = site.office.get(&browser.cookies["sidetone_session"], "/auth/me").id().to_owned();
    let disabled = site.office.ask(&boss, &format!("PATCH /users/{id}"), json!({"disabled": true}));
    assert_eq!(disabled.status, 200, "{}", disabled.text);
    assert_eq!(browser.get("/calls").status, 303);
    let mut browser = site.logged_in("eve@acme.test");
    // Five seconds of leeway.
    site.office.pass(12 * 3_600 * 1_000 + 6_000);
    assert_eq!(browser.get("/calls").status, 303);
}

#[test]
fn cookies_are_strict_and_secure_under_tls() {
    let site = Site::open(true);
    let mut browser = site.browser();
    let page = browser.log_in("eve@acme.test", PASSWORD, "");
    let cookies: Vec<&str> =
        page.headers.get_all("set-cookie").iter().map(|cookie| cookie.to_str().unwrap()).collect();
    let session = cookies.iter().find(|cookie| cookie.starts_with("__Host-sidetone_session=")).unwrap();
    for part in ["; HttpOnly", "; SameSite=Strict", "; Secure", "; Path=/", "; Max-Age=43200"] {
        assert!(session.contains(part), "{session}");
    }
    assert_eq!(browser.get("/calls").status, 200);
}
