//! Conversions to and from `rsip` types, for programs that use them; the only module that names `rsip`.
//!
//! rsip supports less of the wire format than this library, so both directions can fail, and neither repairs
//! anything: the differential tests record what rsip would alter silently.

use rsip::{Header as RsipHeader, SipMessage};

use crate::message::{InvalidValue, Message, Method, Request, Response, StatusCode};

/// Why a message does not convert.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// rsip cannot read the message: IPv6, folded Via, a method or transport outside its closed sets.
    #[error("rsip cannot hold the message: {0}")]
    Unsupported(String),
    /// rsip would alter the message: the body or the number of headers differ.
    #[error("rsip would alter the message")]
    Altered,
    /// A value of the rsip message is not valid on the wire.
    #[error(transparent)]
    Value(#[from] InvalidValue),
    /// The status is outside 100 to 699.
    #[error("response code out of range")]
    Status,
}

impl TryFrom<&Message> for SipMessage {
    type Error = ConvertError;

    fn try_from(message: &Message) -> Result<Self, ConvertError> {
        let unsupported = |error: rsip::Error| ConvertError::Unsupported(error.to_string());
        let unfolded = canonical(message)?;
        let converted = Self::try_from(unfolded.to_bytes().as_ref()).map_err(unsupported)?;
        let (headers, body) = match &converted {
            Self::Request(request) => (request.headers.iter().count(), &request.body),
            Self::Response(response) => (response.headers.iter().count(), &response.body),
        };
        // The writer adds Content-Length when it was absent.
        let expected = unfolded.headers().len() + usize::from(!unfolded.headers().contains("Content-Length"));
        if headers == expected && body.as_slice() == message.body().as_ref() {
            Ok(converted)
        } else {
            Err(ConvertError::Altered)
        }
    }
}

impl TryFrom<&SipMessage> for Message {
    type Error = ConvertError;

    fn try_from(message: &SipMessage) -> Result<Self, ConvertError> {
        match message {
            SipMessage::Request(from) => {
                let method =
                    Method::from_bytes(from.method.to_string().as_bytes()).ok_or(InvalidValue::Token)?;
                let mut request = Request::new(method, &from.uri)?;
                for header in from.headers.iter() {
                    let (name, value) = divide(header);
                    request.push(name.as_str(), value)?;
                }
                request.put_body(from.body.clone().into());
                Ok(Self::Request(request))
            }
            SipMessage::Response(from) => {
                let code = from.status_code.code();
                let mut response = Response::new(StatusCode::new(code).ok_or(ConvertError::Status)?);
                for header in from.headers.iter() {
                    let (name, value) = divide(header);
                    response.push(name.as_str(), value)?;
                }
                response.put_body(from.body.clone().into());
                Ok(Self::Response(response))
            }
        }
    }
}

/// The same message with long header names and without folds, the form that rsip supports.
fn canonical(message: &Message) -> Result<Message, InvalidValue> {
    let mut headers = crate::message::Headers::new();
    for header in message.headers().iter() {
        headers.push_bytes(header.name, header.value)?;
    }
    let mut message = message.clone();
    match &mut message {
        Message::Request(request) => *request.headers_mut() = headers,
        Message::Response(response) => *response.headers_mut() = headers,
    }
    Ok(message)
}

fn divide(header: &RsipHeader) -> (String, String) {
    let text = header.to_string();
    let (name, value) = text.split_once(':').unwrap_or((&text, ""));
    (name.trim().to_owned(), value.trim().to_owned())
}
