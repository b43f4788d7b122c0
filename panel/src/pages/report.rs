//! The report of a call as one file, without packets: to be mailed to a carrier.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use sidetone_model::signalling::{CallSignalling, SipDirection};
use sidetone_model::time::Timestamp;
use sidetone_report::{Arrow, CallFile};

use crate::failure::Failure;
use crate::form::segment;
use crate::layout::Section;
use crate::pages::call_figures::measured;
use crate::show::{duration, text};
use crate::visitor::Visitor;

/// The file.
pub(crate) async fn download(visitor: Visitor, Path(uuid): Path<String>) -> Response {
    let uuid = segment(&uuid);
    match content(&visitor, &uuid).await {
        Err(failure) => visitor.page(Section::Calls, "Call", Err(failure)),
        Ok(page) => {
            let name = format!("attachment; filename=\"call-{uuid}.html\"");
            let headers =
                [(CONTENT_TYPE, "text/html; charset=utf-8".to_owned()), (CONTENT_DISPOSITION, name)];
            (headers, page).into_response()
        }
    }
}

async fn content(visitor: &Visitor, uuid: &str) -> Result<String, Failure> {
    let client = &visitor.client;
    let call = client.get(&format!("/cdrs/{uuid}")).await?;
    let quality = client.get(&format!("/cdrs/{uuid}/quality")).await?;
    let signalling = client.find(&format!("/cdrs/{uuid}/signalling")).await?;
    let quality = measured(&quality)
        .ok_or_else(|| Failure::new(StatusCode::BAD_GATEWAY, "the figures of this call cannot be read"))?;
    let signalling: CallSignalling = serde_json::from_value(signalling).unwrap_or_default();
    Ok(sidetone_report::file(&CallFile {
        parties: (text(&call, "caller_number"), text(&call, "destination_number")),
        facts: &facts(&call),
        ended_at: ended_at(&call),
        quality: &quality,
        arrows: &arrows(&signalling),
        more: signalling.left_out,
    }))
}

/// The end time of a record.
pub(crate) fn ended_at(call: &Value) -> Option<Timestamp> {
    text(call, "ended_at").parse().ok()
}

fn facts(call: &Value) -> Vec<(&'static str, String)> {
    let mut facts: Vec<(&'static str, String)> =
        FACTS.iter().map(|(label, key)| (*label, text(call, key).to_owned())).collect();
    facts.insert(4, ("duration", duration(call["billsec"].as_i64().unwrap_or_default())));
    if let Some(status) = call["sip_status"].as_u64() {
        facts.push(("SIP status", status.to_string()));
    }
    facts
}

/// The kept messages as arrows between this node and the other hosts.
fn arrows(signalling: &CallSignalling) -> Vec<Arrow> {
    let arrow = |message: &sidetone_model::signalling::SipMessage| {
        let own = message.local.clone().unwrap_or_else(|| "this node".to_owned());
        let (from, to) = match message.direction {
            SipDirection::Received => (message.remote.clone(), own),
            SipDirection::Sent => (own, message.remote.clone()),
        };
        let sdp = message.body_type.clone().filter(|_| message.body_bytes > 0);
        Arrow { at: message.at, from, to, summary: message.label(), sdp }
    };
    signalling.messages.iter().map(arrow).collect()
}

/// Labels, and the fields of the record.
const FACTS: [(&str, &str); 13] = [
    ("call", "call_uuid"),
    ("started", "started_at"),
    ("answered", "answered_at"),
    ("ended", "ended_at"),
    ("direction", "direction"),
    ("codec of the caller", "codec_a"),
    ("codec of the called party", "codec_b"),
    ("device of the caller", "user_agent_a"),
    ("network of the caller", "network_a"),
    ("device of the called party", "user_agent_b"),
    ("network of the called party", "network_b"),
    ("cause", "hangup_cause"),
    ("ended by", "ended_by"),
];
