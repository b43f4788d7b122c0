//! One attempt: the request, and the interpretation of its response.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use sidetone_model::directory::Secret;
use sidetone_model::ids::DeliveryId;
use sidetone_model::time::Timestamp;
use sidetone_model::webhook::ANSWER_BYTES_KEPT_MAX;
use sidetone_store::ClaimedDelivery;

use crate::outbound_http::{Budget, Client, End};
use crate::webhooks::signing::{service_signature, standard_signatures};

/// Sends requests to other hosts.
pub trait Carrier: Send + Sync {
    /// Sends one request and returns the result.
    fn carry(&self, request: Outgoing) -> Pin<Box<dyn Future<Output = Carried> + Send + '_>>;
}

/// A request that is ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The URL.
    pub url: String,
    /// The headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body, byte for byte as signed.
    pub body: Bytes,
}

/// The result of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carried {
    /// The status of the response, if there was one.
    pub status: Option<u16>,
    /// Why there was no response, or the error in it.
    pub error: Option<String>,
    /// The endpoint's Retry-After.
    pub retry_after: Option<Duration>,
    /// The response, or its beginning.
    pub answer: Option<Bytes>,
}

/// A message before it is signed.
#[derive(Debug, Clone)]
pub struct Message<'a> {
    /// The id of the reported event; the same for every attempt.
    pub id: String,
    /// The type of the reported event.
    pub kind: &'a str,
    /// The delivery.
    pub delivery: DeliveryId,
    /// The destination.
    pub url: &'a str,
    /// The signing secrets, newest first.
    pub secrets: &'a [Secret],
    /// The body, byte for byte.
    pub body: &'a str,
}

/// The request of an attempt that begins at `now`.
pub fn outgoing(delivery: &ClaimedDelivery, now: Timestamp) -> Outgoing {
    let message = Message {
        id: delivery.event.to_string(),
        kind: &delivery.kind,
        delivery: delivery.id,
        url: &delivery.url,
        secrets: &delivery.secrets,
        body: &delivery.body,
    };
    message.signed(now)
}

impl Message<'_> {
    /// The signed request of an attempt that begins at `now`.
    pub fn signed(self, now: Timestamp) -> Outgoing {
        let Message { id, kind, delivery, url, secrets, body } = self;
        let timestamp_s = now.as_micros().div_euclid(1_000_000);
        let body = body.as_bytes();
        let mut headers = vec![("content-type", "application/json".to_owned())];
        headers
            .extend(secrets.first().map(|newest| ("x-service-signature", service_signature(newest, body))));
        headers.extend([
            ("x-service-event", kind.to_owned()),
            ("x-service-delivery", delivery.to_string()),
            ("webhook-signature", standard_signatures(secrets, &id, timestamp_s, body)),
            ("webhook-timestamp", timestamp_s.to_string()),
            ("webhook-id", id),
        ]);
        Outgoing { url: url.to_owned(), headers, body: Bytes::copy_from_slice(body) }
    }
}

impl Carried {
    /// Why the attempt failed; `None` for a success, which is any 2xx.
    pub fn failure(&self) -> Option<String> {
        if let Some(error) = &self.error {
            return Some(clipped(error, ERROR_CHARS_MAX));
        }
        match self.status {
            Some(200..=299) => None,
            Some(300..=399) => {
                Some("the endpoint answered with a redirect, which is not followed".to_owned())
            }
            Some(status) => Some(format!("the endpoint answered {status}")),
            None => Some("there was no answer".to_owned()),
        }
    }

    /// The beginning of the response, for people; a placeholder if it is not text.
    pub fn shown_answer(&self) -> Option<String> {
        let answer = self.answer.as_ref()?;
        let begin = answer.get(..ANSWER_BYTES_KEPT_MAX).unwrap_or(answer);
        let text = String::from_utf8_lossy(begin);
        // A replaced byte becomes three: the limit applies to the stored text as well.
        let mut end = text.len().min(ANSWER_BYTES_KEPT_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.get(..end).map(str::to_owned)
    }
}

impl Carrier for Client {
    fn carry(&self, request: Outgoing) -> Pin<Box<dyn Future<Output = Carried> + Send + '_>> {
        Box::pin(async move {
            let budget = Budget { total: ATTEMPT_TIME, answer_bytes: ANSWER_BYTES_READ_MAX };
            match self.post(&request.url, &request.headers, request.body, budget).await {
                // A status within the time limit is a response, however the rest of it ends.
                Ok(answer) => Carried {
                    status: Some(answer.status),
                    error: (answer.end == End::Late && !answer.is_success())
                        .then(|| format!("the endpoint answered {}, and not to the end", answer.status)),
                    retry_after: answer.retry_after,
                    answer: Some(answer.body),
                },
                Err(error) => Carried { error: Some(error.to_string()), ..Carried::default() },
            }
        })
    }
}

fn clipped(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).collect()
}

/// From the name lookup to the last byte.
pub const ATTEMPT_TIME: Duration = Duration::from_secs(15);
/// Bytes that are read of a response.
const ANSWER_BYTES_READ_MAX: usize = 64 * 1024;
const ERROR_CHARS_MAX: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16) -> Carried {
        Carried { status: Some(status), ..Carried::default() }
    }

    #[test]
    fn any_2xx_is_a_success_and_nothing_else() {
        for status in [200, 201, 202, 204, 299] {
            assert_eq!(answered(status).failure(), None, "{status}");
        }
        for status in [100, 199, 300, 301, 302, 307, 308, 400, 401, 404, 410, 429, 500, 503, 599] {
            assert!(answered(status).failure().is_some(), "{status}");
        }
        assert!(answered(302).failure().unwrap().contains("redirect"));
        assert_eq!(answered(410).failure().unwrap(), "the endpoint answered 410");
        let cut = Carried { error: Some("x".repeat(1000)), ..answered(500) };
        assert_eq!(cut.failure().unwrap().len(), ERROR_CHARS_MAX);
    }

    #[test]
    fn a_kilobyte_of_an_answer_is_kept() {
        let shown = |bytes: &[u8]| {
            let answer = Some(Bytes::copy_from_slice(bytes));
            Carried { answer, ..Carried::default() }.shown_answer().unwrap()
        };
        assert_eq!(shown(b"thanks"), "thanks");
        assert_eq!(shown(b""), "");
        assert_eq!(shown(&[b'x'; 4000]).len(), ANSWER_BYTES_KEPT_MAX);
        assert_eq!(shown(&[0xFF; 2]), "\u{FFFD}\u{FFFD}");
        assert!(shown(&[0xFF; 4000]).len() <= ANSWER_BYTES_KEPT_MAX);
        assert!(shown("é".repeat(900).as_bytes()).len() <= ANSWER_BYTES_KEPT_MAX);
        assert_eq!(Carried::default().shown_answer(), None);
    }
}
