//! Actions on a webhook: sending it a test event, and giving it a new secret.

use axum::extract::Path;
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};

use crate::form::segment;
use crate::layout::{Section, shown_once};
use crate::show::text;
use crate::visitor::{Change, Visitor, see};

/// Queues a test event, and shows its delivery.
pub(crate) async fn test(Path(id): Path<String>, Change { visitor, .. }: Change) -> Response {
    let id = segment(&id);
    match visitor.client.send(Method::POST, &format!("/webhooks/{id}/test"), None).await {
        Ok(delivery) => {
            see(&format!("/settings/webhooks/{id}/deliveries/{}", segment(text(&delivery, "id"))))
        }
        Err(failure) => visitor.failed(Some(Section::Settings), &failure),
    }
}

/// Gives a webhook a new secret, and shows it once.
pub(crate) async fn rotate_secret(Path(id): Path<String>, Change { visitor, .. }: Change) -> Response {
    let id = segment(&id);
    match visitor.client.send(Method::POST, &format!("/webhooks/{id}/rotate-secret"), None).await {
        Ok(webhook) => {
            let secret = shown_once("secret", text(&webhook, "secret"), "/settings/webhooks");
            let body = html! { h1 { "New secret" } p { (text(&webhook, "url")) } (secret) (BOTH_SIGN) };
            visitor.page(Section::Settings, "New secret", Ok(body))
        }
        Err(failure) => visitor.failed(Some(Section::Settings), &failure),
    }
}

/// The forms for both actions, on the page of the webhook.
pub(crate) fn actions(visitor: &Visitor, id: &str) -> Markup {
    let address = format!("/settings/webhooks/{}", segment(id));
    html! {
        div class="controls" {
            form class="inline" method="post" action={ (address) "/test" } {
                (visitor.token()) button type="submit" class="plain" { "Send a test event" }
            }
            details class="ask" { summary { "New secret" }
                p { (BOTH_SIGN) }
                form class="inline" method="post" action={ (address) "/rotate-secret" } {
                    (visitor.token()) button type="submit" class="danger" { "Replace the secret now" }
                } }
        }
    }
}

/// The consequences of a new secret for the receiver.
const BOTH_SIGN: &str = "For 24 hours webhook-signature carries a signature with each of both secrets; \
                         X-Service-Signature is made with the new one at once.";
