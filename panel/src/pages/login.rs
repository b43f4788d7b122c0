//! Logging in and out.

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::json;
use uuid::Uuid;

use crate::client::Client;
use crate::failure::Failure;
use crate::form::Fields;
use crate::layout;
use crate::session::{Cookies, form_token, is_same};
use crate::show;
use crate::state::Panel;
use crate::visitor::{Change, is_own, see, with_cookie};

/// The form.
pub(crate) async fn form(State(panel): State<Panel>, request: Request) -> Response {
    let cookies = Cookies::of(panel.settings.secure, request.headers());
    let query = Fields::of_query(request.uri().query());
    asked(cookies, "", query.get("next"), None)
}

/// Begins a session.
pub(crate) async fn log_in(State(panel): State<Panel>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let cookies = Cookies::of(panel.settings.secure, &parts.headers);
    let fields = match Fields::of_body(&parts.headers, body).await {
        Ok(fields) => fields,
        Err(failure) => return asked(cookies, "", "", Some(&failure)),
    };
    let (email, next) = (fields.get("email"), fields.get("next"));
    let secret = cookies.login_secret(&parts.headers).unwrap_or_default();
    let is_known = !secret.is_empty() && is_same(fields.get("csrf"), &form_token(FORM, secret));
    if !is_own(&parts.headers) || !is_known {
        let failure = Failure::new(StatusCode::FORBIDDEN, "the form was too old, send it again");
        return asked(cookies, email, next, Some(&failure));
    }
    let body = json!({"email": email, "password": fields.get("password")});
    let answer = Client::of(&panel.api, &parts, None).send(Method::POST, "/auth/login", Some(&body)).await;
    match answer {
        Ok(session) => with_cookie(see(place(next)), &cookies.begin(show::text(&session, "token"))),
        Err(failure) => asked(cookies, email, next, Some(&failure)),
    }
}

/// Ends the session.
pub(crate) async fn log_out(Change { visitor, .. }: Change) -> Response {
    let ended = visitor.client.send(Method::POST, "/auth/logout", None).await;
    match ended {
        Ok(_) => with_cookie(see("/login"), &visitor.cookies.end()),
        // The session may still be valid, so its cookie is kept.
        Err(failure) => visitor.failed(None, &failure),
    }
}

/// The form with a new secret, and after a failure with the reason.
fn asked(cookies: Cookies, email: &str, next: &str, failure: Option<&Failure>) -> Response {
    let secret = Uuid::new_v4().to_string();
    let status = failure.map_or(StatusCode::OK, |failure| failure.status);
    let body = body(&form_token(FORM, &secret), email, next, failure);
    with_cookie(layout::bare(status, "Log in", &body), &cookies.ask(&secret))
}

fn body(token: &str, email: &str, next: &str, failure: Option<&Failure>) -> Markup {
    html! {
        form class="card login" method="post" action="/login" {
            h1 { "Log in" }
            @if let Some(failure) = failure {
                div class="alert" role="alert" { p { (show::sentence(&failure.message)) } }
            }
            input type="hidden" name="csrf" value=(token);
            input type="hidden" name="next" value=(next);
            label { "Email" input type="email" name="email" value=(email) autocomplete="username" required autofocus; }
            label { "Password" input type="password" name="password" autocomplete="current-password" required; }
            button type="submit" { "Log in" }
        }
    }
}

/// The page after the login: only a page of this site.
fn place(next: &str) -> &str {
    let is_ours = next.starts_with('/')
        && !next.starts_with("//")
        && !next.contains('\\')
        && next.bytes().all(|byte| byte.is_ascii_graphic());
    if is_ours { next } else { "/" }
}

/// The purpose of the token of this form.
const FORM: &str = "sidetone panel login";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_to_pages_of_this_site_only() {
        for (next, expected) in [
            ("/calls?q=1", "/calls?q=1"),
            ("", "/"),
            ("https://evil.test/", "/"),
            ("//evil.test/", "/"),
            ("/\\evil.test", "/"),
            ("/a\nSet-Cookie: x", "/"),
            ("javascript:alert(1)", "/"),
        ] {
            assert_eq!(place(next), expected, "{next:?}");
        }
    }
}
