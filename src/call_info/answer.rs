//! Interprets a response: a note, nothing, or the reason why there is no note; pure.

use std::time::Duration;

use sidetone_model::note::Note;

use crate::outbound_http::{Answer, End, PostError};

/// Returns the note to show, if any.
///
/// # Errors
/// The reason why there is no note, unless the URL intentionally returned none.
pub(super) fn judge(result: Result<Answer, PostError>, limit: Duration) -> Result<Option<Note>, String> {
    let late = |stage: &str| format!("no answer within {} s ({stage})", limit.as_secs());
    let answer = match result {
        Ok(answer) => answer,
        // The part of the time that was left when the request began is not reported.
        Err(PostError::Timeout { stage, .. }) => return Err(late(&stage.to_string())),
        Err(error) => return Err(error.to_string()),
    };
    match answer.status {
        300..400 => return Err(format!("the URL answered {}: no redirect is followed", answer.status)),
        200..300 => {}
        status => return Err(format!("the URL answered {status}")),
    }
    match answer.end {
        End::Broken => return Err("the connection ended in the middle of the answer".to_owned()),
        End::Late => return Err(late("the answer was not complete")),
        End::TooLarge => return Err(format!("the answer is larger than {} KiB", ANSWER_BYTES_MAX / 1024)),
        End::Whole => {}
    }
    if answer.body.trim_ascii().is_empty() {
        return Ok(None);
    }
    if answer.content_type.as_deref().is_some_and(is_html) {
        return Err("the answer is text/html: a note is JSON (application/json)".to_owned());
    }
    Note::parse(&answer.body).map(Some).map_err(|problems| {
        let problems = problems.iter().map(|problem| format!("{}: {}", problem.field, problem.message));
        format!("the answer is no note: {}", problems.collect::<Vec<_>>().join("; "))
    })
}

fn is_html(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("text/html") || essence.eq_ignore_ascii_case("application/xhtml+xml")
}

/// Bytes that are read of a response. A note is far smaller; a longer response is reported as too large.
pub(super) const ANSWER_BYTES_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::outbound_http::Stage;

    fn answer(status: u16, content_type: &str, body: &str) -> Answer {
        Answer {
            status,
            content_type: Some(content_type.to_owned()),
            retry_after: None,
            body: Bytes::copy_from_slice(body.as_bytes()),
            end: End::Whole,
        }
    }

    fn judged(result: Result<Answer, PostError>) -> Result<Option<String>, String> {
        judge(result, Duration::from_secs(5)).map(|note| note.map(|note| note.title().to_owned()))
    }

    const JSON: &str = "application/json";

    #[test]
    fn a_note_is_shown_and_nothing_is_nothing() {
        let note = r#"{"title":"Owes 900 EUR","level":"warn"}"#;
        for content_type in [JSON, "application/json; charset=utf-8", "text/plain", ""] {
            assert_eq!(judged(Ok(answer(200, content_type, note))), Ok(Some("Owes 900 EUR".to_owned())));
        }
        assert_eq!(judged(Ok(answer(201, JSON, note))), Ok(Some("Owes 900 EUR".to_owned())));
        for (status, body) in [(204, ""), (200, ""), (202, " \r\n")] {
            assert_eq!(judged(Ok(answer(status, "text/html", body))), Ok(None), "{status}");
        }
    }

    #[test]
    fn every_bad_answer_says_why() {
        let long = format!(r#"{{"title":"a","x":"{}"}}"#, "y".repeat(5_000));
        let cases = [
            (answer(500, JSON, "{}"), "the URL answered 500"),
            (answer(404, JSON, ""), "the URL answered 404"),
            (answer(302, JSON, ""), "the URL answered 302: no redirect is followed"),
            (
                answer(200, "Text/HTML; charset=utf-8", "<html>"),
                "the answer is text/html: a note is JSON (application/json)",
            ),
            (answer(200, JSON, "{"), "the answer is no note: body: "),
            (answer(200, JSON, "[]"), "the answer is no note: body: must be a JSON object, not an array"),
            (
                answer(200, JSON, r#"{"title":"a","id":"x","level":"loud"}"#),
                "the answer is no note: id: is assigned by the service, leave it out; level: must be one of ",
            ),
            (answer(200, JSON, r#"{"body":"a"}"#), "the answer is no note: title: is required"),
            (answer(200, JSON, &long), "the answer is no note: body: must stay under 4 KB"),
            (Answer { end: End::TooLarge, ..answer(200, JSON, "{") }, "the answer is larger than 64 KiB"),
            (
                Answer { end: End::Late, ..answer(200, JSON, "{") },
                "no answer within 5 s (the answer was not complete)",
            ),
            (
                Answer { end: End::Broken, ..answer(200, JSON, "{") },
                "the connection ended in the middle of the answer",
            ),
        ];
        for (answer, expected) in cases {
            let reason = judged(Ok(answer)).unwrap_err();
            assert!(reason.starts_with(expected), "{reason}");
        }
        let timeout = PostError::Timeout { limit: Duration::from_millis(4_997), stage: Stage::Tls };
        assert_eq!(judged(Err(timeout)), Err("no answer within 5 s (waiting for TLS)".to_owned()));
        let closed = "the connection was closed before an answer came".to_owned();
        assert_eq!(judged(Err(PostError::Closed)), Err(closed));
    }
}
