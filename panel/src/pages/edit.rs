//! Forms that create, change and delete the items of the settings.

use axum::extract::Path;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::failure::Failure;
use crate::form::{Fields, segment};
use crate::layout::{Section, refusal, shown_once};
use crate::pages::resources::{Field, Kind, Resource, choices, resource, was};
use crate::pages::{deliveries, webhooks};
use crate::show::{named, or_dash, sentence, text, words};
use crate::visitor::{Change, Visitor, see};

/// The form for a new item.
pub(crate) async fn new(visitor: Visitor, Path(list): Path<String>) -> Response {
    let Some(resource) = resource(&list) else { return nothing(&visitor) };
    let mut entered = Fields::default();
    // The API's defaults; no other resource has these fields.
    entered.set("active", "1");
    entered.set("star_codes", "1");
    shown(&visitor, Form { resource, id: None, entered: &entered, failure: None }).await
}

/// Creates an item.
pub(crate) async fn create(Path(list): Path<String>, Change { visitor, fields }: Change) -> Response {
    let Some(resource) = resource(&list) else { return nothing(&visitor) };
    let body = resource.created(&fields);
    match visitor.client.send(Method::POST, &format!("/{}", resource.path), Some(&body)).await {
        Ok(created) => secret_or_list(&visitor, resource, &created),
        Err(failure) => {
            let failure = resource.failed(failure);
            shown(&visitor, Form { resource, id: None, entered: &fields, failure: Some(&failure) }).await
        }
    }
}

/// The form for an existing item.
pub(crate) async fn one(visitor: Visitor, Path((list, id)): Path<(String, String)>) -> Response {
    let Some(resource) = resource(&list) else { return nothing(&visitor) };
    match visitor.client.get(&address(resource, &id)).await {
        Ok(item) => {
            let mut entered = Fields::default();
            for field in resource.fields(false) {
                let value = field.shown(&item);
                entered.set(&was(field.name), &value);
                entered.set(field.name, &value);
            }
            shown(&visitor, Form { resource, id: Some(&id), entered: &entered, failure: None }).await
        }
        Err(failure) => visitor.failed(Some(Section::Settings), &failure),
    }
}

/// Changes an item: sends only the values that differ from those the form showed, so that a concurrent change
/// by another user is kept.
pub(crate) async fn change(
    Path((list, id)): Path<(String, String)>,
    Change { visitor, fields }: Change,
) -> Response {
    let Some(resource) = resource(&list) else { return nothing(&visitor) };
    let body = resource.changed(&fields);
    match visitor.client.send(Method::PATCH, &address(resource, &id), Some(&body)).await {
        Ok(_) => see(&format!("/settings/{}", resource.path)),
        Err(failure) => {
            let failure = resource.failed(failure);
            shown(&visitor, Form { resource, id: Some(&id), entered: &fields, failure: Some(&failure) }).await
        }
    }
}

/// Deletes an item.
pub(crate) async fn delete(
    Path((list, id)): Path<(String, String)>,
    Change { visitor, .. }: Change,
) -> Response {
    let Some(resource) = resource(&list) else { return nothing(&visitor) };
    match visitor.client.send(Method::DELETE, &address(resource, &id), None).await {
        Ok(_) => see(&format!("/settings/{}", resource.path)),
        Err(failure) => visitor.failed(Some(Section::Settings), &failure),
    }
}

/// The form with the entered values.
struct Form<'f> {
    resource: &'static Resource,
    /// `None` for a new item.
    id: Option<&'f str>,
    entered: &'f Fields,
    failure: Option<&'f Failure>,
}

async fn shown(visitor: &Visitor, form: Form<'_>) -> Response {
    let Form { resource, id, failure, .. } = form;
    if let Some(failure) = failure.filter(|failure| [401, 403, 404].contains(&failure.status.as_u16())) {
        return visitor.failed(Some(Section::Settings), failure);
    }
    if !resource.is_changed_by(&visitor.me) {
        let message = match visitor.me.may(resource.permission) {
            true => "only the operator changes prices".to_owned(),
            false => format!("changing it needs the permission {}", resource.permission),
        };
        return visitor.failed(Some(Section::Settings), &Failure::new(StatusCode::FORBIDDEN, message));
    }
    let mut fields = Vec::new();
    for field in resource.fields(id.is_none()) {
        let choices = match field.kind {
            Kind::Id(path, name) => entries(visitor, path, name).await,
            Kind::IdOf(lists) => {
                let mut choices = Vec::new();
                for (path, name, one) in lists {
                    let found = entries(visitor, path, name).await.into_iter();
                    choices.extend(found.map(|(id, name)| (id, format!("{one} {name}"))));
                }
                choices
            }
            Kind::Choice(known) => named(known),
            _ => Vec::new(),
        };
        fields.push(input(field, form.entered.get(field.name), &choices, failure));
    }
    let title = match id {
        Some(_) => format!("Change {}", resource.one),
        None => format!("New {}", resource.one),
    };
    let more = match id {
        Some(id) if resource.path == "webhooks" => {
            html! { (webhooks::actions(visitor, id)) (deliveries::newest(visitor, id).await) }
        }
        _ => html! {},
    };
    let body = html! { (page(visitor, &form, &title, &fields)) (more) };
    match failure {
        Some(failure) => visitor.refused(Section::Settings, &title, failure, &body),
        None => visitor.page(Section::Settings, &title, Ok(body)),
    }
}

/// The entries of a list as choices; if the list cannot be read, a field for the id.
async fn entries(visitor: &Visitor, path: &str, name: &str) -> Vec<(String, String)> {
    let found = visitor.client.get(&format!("{path}?limit=500")).await;
    found.map(|found| choices(&found, name)).unwrap_or_default()
}

fn page(visitor: &Visitor, form: &Form<'_>, title: &str, fields: &[Markup]) -> Markup {
    let list = format!("/settings/{}", form.resource.path);
    let action = format!("{list}/{}", form.id.map_or_else(|| "new".to_owned(), segment));
    html! {
        p class="crumbs" { a href="/settings" { "Settings" } " / " a href=(list) { (words(form.resource.path)) } }
        h1 { (title) }
        @if let Some(failure) = form.failure {
            (refusal(failure, |name| form.resource.shows(name)))
        }
        form class="card" method="post" action=(action) {
            (visitor.token())
            @if form.id.is_some() {
                @for field in form.resource.fields(false) {
                    @let name = was(field.name);
                    input type="hidden" name=(name) value=(form.entered.get(&name));
                }
            }
            div class="fields" { @for field in fields { (field) } }
            div class="actions" { button type="submit" { "Save" } a href=(list) { "Cancel" } }
        }
        @if form.id.is_some() && form.resource.is_managed_by(&visitor.me) {
            details class="ask" { summary { "Delete" }
                form class="inline" method="post" action={ (action) "/delete" } {
                    (visitor.token()) button type="submit" class="danger" { "Delete now" }
                } }
        }
    }
}

pub(crate) fn input(
    field: &Field,
    value: &str,
    choices: &[(String, String)],
    failure: Option<&Failure>,
) -> Markup {
    let name = field.name;
    let problem = failure.and_then(|failure| failure.of_field(name));
    let describes = problem.map(|_| format!("{name}-problem"));
    let describes = describes.as_deref();
    let invalid = problem.map(|_| "true");
    html! {
        div class="field" {
            label for=(name) { (field.label) }
            @match field.kind {
                Kind::Choice(_) | Kind::Id(..) | Kind::IdOf(_) if !choices.is_empty() => {
                    select id=(name) name=(name) aria-describedby=[describes] aria-invalid=[invalid] {
                        option value="" { "–" }
                        @for (id, label) in choices {
                            option value=(id) selected[id == value] { (or_dash(label)) }
                        }
                        @if !value.is_empty() && choices.iter().all(|(id, _)| id != value) {
                            option value=(value) selected { (value) }
                        }
                    }
                }
                Kind::Flag => {
                    input id=(name) name=(name) type="checkbox" value="1" checked[!value.is_empty()];
                }
                Kind::Lines => {
                    textarea id=(name) name=(name) rows="3" aria-describedby=[describes] aria-invalid=[invalid] {
                        (value)
                    }
                }
                Kind::Secret => {
                    input id=(name) name=(name) type="password" autocomplete="new-password"
                        aria-describedby=[describes] aria-invalid=[invalid];
                }
                _ => {
                    input id=(name) name=(name) value=(value) autocomplete="off"
                        inputmode=[matches!(field.kind, Kind::Number | Kind::OptionalNumber).then_some("numeric")]
                        aria-describedby=[describes] aria-invalid=[invalid];
                }
            }
            @if let Some(problem) = problem { p class="problem" id=[describes] { (sentence(problem)) } }
        }
    }
}

/// A secret that the API returns only once, or the list.
fn secret_or_list(visitor: &Visitor, resource: &Resource, created: &Value) -> Response {
    let list = format!("/settings/{}", resource.path);
    let secret = ["key", "password", "secret"].into_iter().find(|name| !text(created, name).is_empty());
    let Some(name) = secret else { return see(&list) };
    let body = html! { h1 { "Created" } (shown_once(name, text(created, name), &list)) };
    visitor.page(Section::Settings, "Created", Ok(body))
}

fn address(resource: &Resource, id: &str) -> String {
    format!("/{}/{}", resource.path, segment(id))
}

fn nothing(visitor: &Visitor) -> Response {
    visitor.failed(Some(Section::Settings), &Failure::nothing_here())
}
