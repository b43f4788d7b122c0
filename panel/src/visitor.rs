//! The extractors of pages: a user with a session, and a form sent from one of the panel's own pages.

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use crate::client::Client;
use crate::failure::Failure;
use crate::form::{Fields, segment};
use crate::layout::{self, Section};
use crate::me::Me;
use crate::session::{Cookies, form_token, is_same};
use crate::state::Panel;

/// A user with a session.
pub(crate) struct Visitor {
    pub(crate) client: Client,
    pub(crate) me: Me,
    pub(crate) cookies: Cookies,
}

impl Visitor {
    /// The page, or the page of the failure.
    pub(crate) fn page(&self, section: Section, title: &str, body: Result<Markup, Failure>) -> Response {
        match body {
            Ok(body) => layout::page(&self.me, Some(section), StatusCode::OK, title, &body),
            Err(failure) => self.failed(Some(section), &failure),
        }
    }

    /// A page with a form that was refused.
    pub(crate) fn refused(
        &self,
        section: Section,
        title: &str,
        failure: &Failure,
        body: &Markup,
    ) -> Response {
        layout::page(&self.me, Some(section), failure.status, title, body)
    }

    /// A file or a stream of the API, or the page of its failure. `asked` are the headers of the visitor's request.
    pub(crate) async fn file(&self, section: Option<Section>, path: &str, asked: &HeaderMap) -> Response {
        match self.client.pass(path, asked).await {
            Ok(file) => file,
            Err(failure) => self.failed(section, &failure),
        }
    }

    /// The page of a failure.
    pub(crate) fn failed(&self, section: Option<Section>, failure: &Failure) -> Response {
        // The session ended between two requests of this page.
        if failure.status == StatusCode::UNAUTHORIZED {
            return see("/login");
        }
        layout::page(&self.me, section, failure.status, "Failed", &layout::failure(failure))
    }

    /// The hidden field that every form needs.
    pub(crate) fn token(&self) -> Markup {
        layout::form_token(&self.me)
    }
}

impl FromRequestParts<Panel> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, panel: &Panel) -> Result<Self, Response> {
        let cookies = Cookies::of(panel.settings.secure, &parts.headers);
        let Some(token) = cookies.session(&parts.headers) else {
            return Err(asked_to_log_in(&parts.method, &parts.uri, &parts.headers));
        };
        let client = Client::of(&panel.api, parts, Some(token));
        match client.get("/auth/me").await {
            Ok(user) => Ok(Self { client, me: Me::of(&user, form_token(FORM, token)), cookies }),
            Err(failure) if failure.status == StatusCode::UNAUTHORIZED => {
                Err(with_cookie(see(&login_address(&parts.method, &parts.uri)), &cookies.end()))
            }
            Err(failure) => Err(layout::bare(failure.status, "Failed", &layout::failure(&failure))),
        }
    }
}

/// A form sent by the user.
pub(crate) struct Change {
    pub(crate) visitor: Visitor,
    pub(crate) fields: Fields,
}

impl FromRequest<Panel> for Change {
    type Rejection = Response;

    async fn from_request(request: Request, panel: &Panel) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, panel).await?;
        let fields = match Fields::of_body(&parts.headers, body).await {
            Ok(fields) => fields,
            Err(failure) => return Err(visitor.failed(None, &failure)),
        };
        if !is_own(&parts.headers) || !is_same(fields.get("csrf"), &visitor.me.form_token) {
            return Err(visitor.failed(None, &not_own()));
        }
        Ok(Self { visitor, fields })
    }
}

/// The form was not made by a page of this session.
pub(crate) fn not_own() -> Failure {
    let message = "this form is not of your session: open the page again and send it from there";
    Failure::new(StatusCode::FORBIDDEN, message)
}

/// Whether a page of this site sent the request, according to the browser's headers.
pub(crate) fn is_own(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_none_or(|site| site == "same-origin")
}

/// Redirects the browser to another page, which it reads with `GET`.
pub(crate) fn see(address: &str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, address)]).into_response()
}

/// Adds a cookie to an answer.
pub(crate) fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(cookie) = cookie.parse() {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// Redirects the browser to the login.
///
/// A link on another site sends no cookie, because it is `SameSite=Strict`. A page that opens the same URL again
/// makes the request same-site.
fn asked_to_log_in(method: &Method, uri: &Uri, headers: &HeaderMap) -> Response {
    let is_link = headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site");
    if method == Method::GET && is_link {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head { meta charset="utf-8"; meta http-equiv="refresh" content="0"; title { "Sidetone" } }
                body { p { a href="" { "Continue" } } }
            }
        };
        return ([(axum::http::header::CONTENT_TYPE, "text/html; charset=utf-8")], page.into_string())
            .into_response();
    }
    see(&login_address(method, uri))
}

fn login_address(method: &Method, uri: &Uri) -> String {
    match uri.path_and_query().map(|path| path.as_str()) {
        Some(path) if method == Method::GET && path != "/" && path.len() <= NEXT_LEN_MAX => {
            format!("/login?next={}", segment(path))
        }
        _ => "/login".to_owned(),
    }
}

/// The purpose of the token of forms.
const FORM: &str = "sidetone panel form";
/// The longest URL to which the login returns.
const NEXT_LEN_MAX: usize = 2_048;
