//! One live call with its current quality.

use axum::extract::Path;
use axum::http::HeaderMap;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;
use sidetone_model::time::Timestamp;

use crate::assets;
use crate::clock::now;
use crate::failure::Failure;
use crate::form::segment;
use crate::layout::Section;
use crate::pages::call_figures::{legs, summary};
use crate::pages::live::{KINDS, controls};
use crate::pages::signalling::ladder;
use crate::show::{or_dash, text, time, words};
use crate::visitor::{Visitor, see};

/// The page of a live call; a call that has ended has a record instead.
pub(crate) async fn page(visitor: Visitor, Path(uuid): Path<String>) -> Response {
    let uuid = segment(&uuid);
    let since = now();
    let body = match visitor.client.get(&format!("/calls/{uuid}")).await {
        Err(failure) if failure.status.as_u16() == 404 => return see(&format!("/calls/{uuid}")),
        Err(failure) => Err(failure),
        Ok(call) => content(&visitor, &uuid, &call, since).await,
    };
    visitor.page(Section::Live, "Live call", body)
}

/// The SIP messages up to now as text.
pub(crate) async fn signalling(visitor: Visitor, Path(uuid): Path<String>, headers: HeaderMap) -> Response {
    let path = format!("/calls/{}/signalling?format=text", segment(&uuid));
    visitor.file(Some(Section::Live), &path, &headers).await
}

async fn content(visitor: &Visitor, uuid: &str, call: &Value, since: Timestamp) -> Result<Markup, Failure> {
    let quality = visitor.client.get(&format!("/calls/{uuid}/quality")).await?;
    let signalling = visitor.client.find(&format!("/calls/{uuid}/signalling")).await?;
    Ok(html! {
        script type="module" src=(assets::address("live.mjs")) {}
        p class="crumbs" { a href="/live" { "Live" } }
        div id="live-call" data-live="call.*" data-since=(since) data-kinds=(KINDS) {
            h1 { (or_dash(text(call, "caller"))) " → " (or_dash(text(call, "destination"))) " "
                small { (words(text(call, "state"))) " since " (time(&call["started_at"])) } }
            @if visitor.me.may("calls:control") { (controls(visitor, uuid)) }
            (summary(&quality))
            (legs(&quality, None))
        }
        // Outside of the part that is loaded again, so that an open message stays open.
        (ladder(&format!("/live/calls/{uuid}"), &signalling))
    })
}
