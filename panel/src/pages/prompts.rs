//! The prompts of the visitor's organisation, and a form to store a WAV file for one.

use axum::extract::{Path, RawQuery};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::failure::Failure;
use crate::form::{Fields, segment};
use crate::layout::{Section, refusal};
use crate::pages::settings::tabs;
use crate::show::{duration, figure, flag, items, sentence, text, time};
use crate::upload::{PERMISSION, Upload, not_permitted};
use crate::visitor::{Change, Visitor, see};

/// The prompts.
pub(crate) async fn list(visitor: Visitor) -> Response {
    let found = visitor.client.get(&path(&visitor, None)).await;
    let body = found.map(|found| {
        html! { h1 { "Prompts" } (tabs(&visitor.me, "prompts")) (table(&visitor, &found)) }
    });
    visitor.page(Section::Settings, "Prompts", body)
}

/// The sound of a prompt.
pub(crate) async fn sound(visitor: Visitor, Path(name): Path<String>, headers: HeaderMap) -> Response {
    visitor.file(Some(Section::Settings), &path(&visitor, Some(&name)), &headers).await
}

/// The form to store a sound; the query may contain the prompt.
pub(crate) async fn new(visitor: Visitor, RawQuery(query): RawQuery) -> Response {
    form(&visitor, Fields::of_query(query.as_deref()).get("name"), None)
}

/// Stores the sound of a prompt.
pub(crate) async fn store(Upload { visitor, name, wav }: Upload) -> Response {
    if name.is_empty() {
        let message = "is required: a prompt of the list, or own- and a name of your own";
        let mut failure = Failure::new(StatusCode::BAD_REQUEST, message);
        failure.fields.push(("name".to_owned(), message.to_owned()));
        return form(&visitor, &name, Some(&failure));
    }
    match visitor.client.put_wav(&path(&visitor, Some(&name)), wav).await {
        Ok(_) => see(LIST),
        Err(failure) if [401, 403].contains(&failure.status.as_u16()) => {
            visitor.failed(Some(Section::Settings), &failure)
        }
        Err(mut failure) => {
            let field = match failure.status {
                // The prompt does not exist.
                StatusCode::NOT_FOUND => Some("name"),
                StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNSUPPORTED_MEDIA_TYPE => Some("body"),
                _ => None,
            };
            failure.fields.extend(field.map(|field| (field.to_owned(), failure.message.clone())));
            form(&visitor, &name, Some(&failure))
        }
    }
}

/// Removes the organisation's own sound.
pub(crate) async fn delete(Path(name): Path<String>, Change { visitor, .. }: Change) -> Response {
    match visitor.client.send(Method::DELETE, &path(&visitor, Some(&name)), None).await {
        Ok(_) => see(LIST),
        Err(failure) => visitor.failed(Some(Section::Settings), &failure),
    }
}

fn table(visitor: &Visitor, found: &Value) -> Markup {
    let may_change = visitor.me.may(PERMISSION);
    html! {
        @if may_change { p { a class="button" href={ (LIST) "/new" } { "New" } } }
        div class="scroll" tabindex="0" role="region" aria-label="Prompts" { table {
            thead { tr {
                th scope="col" { "Prompt" } th scope="col" { "Sound" } th scope="col" class="n" { "Duration" }
                th scope="col" class="n" { "Bytes" } th scope="col" { "Stored" } th scope="col" { "Listen" }
                @if may_change { th scope="col" { "Change" } }
            } }
            tbody { @for prompt in items(found) { (row(visitor, prompt, may_change)) } }
        } }
    }
}

fn row(visitor: &Visitor, prompt: &Value, may_change: bool) -> Markup {
    let (name, is_own) = (text(prompt, "name"), flag(prompt, "own"));
    let seconds = prompt["duration_ms"].as_i64().unwrap_or_default().saturating_add(999) / 1_000;
    html! {
        tr data-row {
            td { @if may_change { a href={ (LIST) "/new?name=" (segment(name)) } { (name) } } @else { (name) } }
            td { @if is_own { "own" } @else { span class="soft" { "built in" } } }
            td class="n" { (duration(seconds)) }
            td class="n" { (figure(&prompt["bytes"])) }
            td { (time(&prompt["updated_at"])) }
            td { audio controls preload="none" aria-label={ "Sound of " (name) }
                src={ (LIST) "/" (segment(name)) "/sound" } {} }
            @if may_change { td { @if is_own {
                details class="ask" { summary { "Remove" }
                    form class="inline" method="post" action={ (LIST) "/" (segment(name)) "/delete" } {
                        (visitor.token()) button type="submit" class="danger" { "Remove now" }
                    } }
            } } }
        }
    }
}

fn form(visitor: &Visitor, name: &str, failure: Option<&Failure>) -> Response {
    if !visitor.me.may(PERMISSION) {
        return visitor.failed(Some(Section::Settings), &not_permitted());
    }
    let problem = |field: &str| failure.and_then(|failure| failure.of_field(field)).map(sentence);
    let (of_name, of_file) = (problem("name"), problem("body"));
    let body = html! {
        p class="crumbs" { a href="/settings" { "Settings" } " / " a href=(LIST) { "prompts" } }
        h1 { "Store a prompt" }
        @if let Some(failure) = failure { (refusal(failure, |field| ["body", "name"].contains(&field))) }
        form class="card" method="post" action=(LIST) enctype="multipart/form-data" {
            (visitor.token())
            div class="fields" {
                div class="field" {
                    label for="name" { "Prompt, such as alone, or own- and a name of your own" }
                    input id="name" name="name" value=(name) autocomplete="off"
                        aria-describedby=[of_name.as_ref().map(|_| "name-problem")]
                        aria-invalid=[of_name.as_ref().map(|_| "true")];
                    @if let Some(problem) = &of_name { p class="problem" id="name-problem" { (problem) } }
                }
                div class="field" {
                    label for="body" { "WAV file of at most 4 MiB and 120 seconds" }
                    input id="body" name="body" type="file" accept="audio/wav,.wav"
                        aria-describedby=[of_file.as_ref().map(|_| "body-problem")]
                        aria-invalid=[of_file.as_ref().map(|_| "true")];
                    @if let Some(problem) = &of_file { p class="problem" id="body-problem" { (problem) } }
                }
            }
            div class="actions" { button type="submit" { "Save" } a href=(LIST) { "Cancel" } }
        }
    };
    match failure {
        Some(failure) => visitor.refused(Section::Settings, "Store a prompt", failure, &body),
        None => visitor.page(Section::Settings, "Store a prompt", Ok(body)),
    }
}

/// The path in the API of all prompts of the visitor's organisation, or of one.
fn path(visitor: &Visitor, name: Option<&str>) -> String {
    let organisation = segment(&visitor.me.organisation_id);
    match name {
        Some(name) => format!("/organisations/{organisation}/prompts/{}", segment(name)),
        None => format!("/organisations/{organisation}/prompts"),
    }
}

const LIST: &str = "/settings/prompts";
