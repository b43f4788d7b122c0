//! The settings that users change on their own extension: where its calls go, and whether it rejects them.

use axum::extract::RawQuery;
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::failure::Failure;
use crate::form::{Fields, segment};
use crate::layout::{Section, refusal};
use crate::pages::edit::input;
use crate::pages::resources::{OWN, was};
use crate::pages::settings::tabs;
use crate::show::{or_dash, text};
use crate::visitor::{Change, Visitor, see};

/// The form with the stored values.
pub(crate) async fn form(visitor: Visitor, RawQuery(query): RawQuery) -> Response {
    let Some(path) = own(&visitor) else { return none(&visitor) };
    let item = match visitor.client.get(&path).await {
        Ok(item) => item,
        Err(failure) => return visitor.failed(Some(Section::Settings), &failure),
    };
    let mut entered = Fields::default();
    for field in OWN.fields(false) {
        let value = field.shown(&item);
        entered.set(&was(field.name), &value);
        entered.set(field.name, &value);
    }
    let is_saved = !Fields::of_query(query.as_deref()).get("saved").is_empty();
    let body = page(&visitor, &title(&item), &entered, None, is_saved);
    visitor.page(Section::Settings, TITLE, Ok(body))
}

/// Changes the values that differ from those the form showed.
pub(crate) async fn change(Change { visitor, fields }: Change) -> Response {
    let Some(path) = own(&visitor) else { return none(&visitor) };
    let changed = visitor.client.send(Method::PATCH, &path, Some(&OWN.changed(&fields))).await;
    match changed {
        Ok(_) => see("/settings/own-extension?saved=1"),
        Err(failure) if failure.fields.is_empty() => visitor.failed(Some(Section::Settings), &failure),
        Err(failure) => {
            let body = page(&visitor, TITLE, &fields, Some(&failure), false);
            visitor.refused(Section::Settings, TITLE, &failure, &body)
        }
    }
}

/// The path of the extension in the API.
fn own(visitor: &Visitor) -> Option<String> {
    let id = visitor.me.extension_id.as_str();
    (!id.is_empty()).then(|| format!("/extensions/{}", segment(id)))
}

fn none(visitor: &Visitor) -> Response {
    visitor.failed(Some(Section::Settings), &Failure::nothing_here())
}

fn title(item: &Value) -> String {
    format!("{TITLE} {}", or_dash(text(item, "number")))
}

fn page(
    visitor: &Visitor,
    title: &str,
    entered: &Fields,
    failure: Option<&Failure>,
    is_saved: bool,
) -> Markup {
    html! {
        h1 { (title) }
        (tabs(&visitor.me, "own-extension"))
        @if let Some(failure) = failure { (refusal(failure, |name| OWN.shows(name))) }
        @if is_saved { div class="done" role="status" { p { "Saved." } } }
        form class="card" method="post" action="/settings/own-extension" {
            (visitor.token())
            @for field in OWN.fields(false) {
                @let name = was(field.name);
                input type="hidden" name=(name) value=(entered.get(&name));
            }
            div class="fields" {
                @for field in OWN.fields(false) { (input(field, entered.get(field.name), &[], failure)) }
            }
            div class="actions" { button type="submit" { "Save" } }
        }
    }
}

const TITLE: &str = "Your extension";
