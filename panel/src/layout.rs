//! The frame of every page: head, navigation, and the page of a failure.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};
use serde_json::Value;

use crate::assets;
use crate::failure::Failure;
use crate::form::query_value;
use crate::me::Me;
use crate::show::{self, text};

/// A part of the panel, as the navigation lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Calls,
    Home,
    Live,
    Nodes,
    Phones,
    Rooms,
    Settings,
    Trunks,
}

/// The sections in their order, with the permission that each needs.
const SECTIONS: [(Section, &str, &str, &str); 8] = [
    (Section::Home, "/", "Home", "calls:read"),
    (Section::Calls, "/calls", "Calls", "calls:read"),
    (Section::Live, "/live", "Live", "calls:read"),
    (Section::Rooms, "/rooms", "Rooms", "conferences:read"),
    (Section::Phones, "/phones", "Phones", "directory:read"),
    (Section::Trunks, "/trunks", "Trunks", "trunks:write"),
    (Section::Settings, "/settings", "Settings", "directory:read"),
    // Only for operators.
    (Section::Nodes, "/nodes", "Nodes", "organisations:write"),
];

/// A page for a user.
pub(crate) fn page(
    me: &Me,
    section: Option<Section>,
    status: StatusCode,
    title: &str,
    body: &Markup,
) -> Response {
    let top = html! {
        header class="top" {
            a class="brand" href="/" { "Sidetone" }
            nav aria-label="Sections" {
                @for (known, path, name, permission) in SECTIONS {
                    @if me.may(permission) && (known != Section::Nodes || me.is_operator) {
                        a href=(path) aria-current=[(section == Some(known)).then_some("page")] { (name) }
                    }
                }
            }
            form class="account" method="post" action="/logout" {
                (form_token(me))
                span class="soft" { (me.name) }
                button type="submit" class="plain" { "Log out" }
            }
        }
    };
    document(status, title, &top, body)
}

/// A page without a user.
pub(crate) fn bare(status: StatusCode, title: &str, body: &Markup) -> Response {
    let top = html! { header class="top" { span class="brand" { "Sidetone" } } };
    document(status, title, &top, body)
}

/// The hidden field that every form needs.
pub(crate) fn form_token(me: &Me) -> Markup {
    html! { input type="hidden" name="csrf" value=(me.form_token); }
}

/// Why a form was refused: the failure's message, or a hint to the fields if each wrong one is shown.
pub(crate) fn refusal(failure: &Failure, is_shown: impl Fn(&str) -> bool) -> Markup {
    let shown = |(field, _): &(String, String)| is_shown(field.split(['.', '[']).next().unwrap_or_default());
    let stands_beside = !failure.fields.is_empty() && failure.fields.iter().all(shown);
    html! {
        div class="alert" role="alert" {
            p { @if stands_beside { "Check the marked fields." } @else { (show::sentence(&failure.message)) } }
        }
    }
}

/// A secret that the API returns only in this answer; `list` is the page that follows.
pub(crate) fn shown_once(name: &str, secret: &str, list: &str) -> Markup {
    html! {
        div class="done" role="status" {
            p { "This " (name) " is shown once. Copy it now." }
            p class="secret" { (secret) }
        }
        p { a href=(list) { "Back to the list" } }
    }
}

/// The message of a failure.
pub(crate) fn failure(failure: &Failure) -> Markup {
    let title = match failure.status.as_u16() {
        403 => "Not permitted",
        404 => "Not found",
        409 => "Not possible now",
        429 => "Too many requests",
        400..=499 => "The request is not valid",
        _ => "Something failed",
    };
    html! {
        h1 { (title) }
        div class="alert" role="alert" { p { (show::sentence(&failure.message)) } }
        p { a href="/" { "Back to the start" } }
    }
}

fn document(status: StatusCode, title: &str, top: &Markup, body: &Markup) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Sidetone" }
                link rel="icon" type="image/svg+xml" href=(assets::address("icon.svg"));
                link rel="stylesheet" href=(assets::address("style.css"));
                script type="module" src=(assets::address("page.mjs")) {}
            }
            body {
                a class="skip" href="#main" { "Skip to the content" }
                (top)
                main id="main" tabindex="-1" { (body) }
            }
        }
    };
    (status, [(CONTENT_TYPE, "text/html; charset=utf-8")], page.into_string()).into_response()
}

/// The link to the next page of a list; nothing after the last one.
pub(crate) fn next_page(address: &str, found: &Value) -> Markup {
    let next = query_value(text(found, "next_cursor"));
    html! {
        @if !next.is_empty() {
            nav class="paging" aria-label="Pages of the list" {
                a rel="next" href={ (address) "?cursor=" (next) } { "Next page" }
            }
        }
    }
}
