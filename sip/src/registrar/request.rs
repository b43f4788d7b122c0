//! Converts REGISTER messages to registrations, and results to responses.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use crate::flow::Flow;
use crate::message::{
    Contacts as ContactHeaders, Headers, Name, NameAddr, Request, Response, StatusCode, Uri, write_quoted,
};
use crate::registrar::binding::seconds_up;
use crate::registrar::{Binding, GruuKey};

/// The content of a REGISTER.
#[derive(Clone, Debug)]
pub struct Registration {
    /// The contacts.
    pub contacts: Contacts,
    /// The Expires header, seconds.
    pub expires: Option<u32>,
    /// The Call-ID; all REGISTERs of a phone since its start have the same one.
    pub call_id: String,
    /// The CSeq number.
    pub cseq: u32,
    /// The User-Agent header, at most 200 characters of it.
    pub user_agent: Option<Arc<str>>,
    /// The Path headers (RFC 3327).
    pub path: Vec<NameAddr>,
    /// The flow on which it arrived.
    pub flow: Flow,
    /// The limit of bindings of its account; `None` means that of the registrar.
    pub bindings_max: Option<usize>,
}

/// The contacts of a REGISTER.
#[derive(Clone, Debug)]
pub enum Contacts {
    /// `*`: all bindings.
    All,
    /// These; an empty list only queries the bindings.
    List(Vec<ContactUpdate>),
}

/// One contact to add, refresh or remove.
#[derive(Clone, Debug)]
pub struct ContactUpdate {
    /// The address.
    pub uri: Uri,
    /// Its `expires` parameter, seconds; 0 removes it.
    pub expires: Option<u32>,
    /// Its `q` in thousandths.
    pub q_permille: u16,
    /// Its `+sip.instance`.
    pub instance: Option<String>,
    /// Its `reg-id`, which is valid only with an instance (RFC 5626 §6).
    pub reg_id: Option<u32>,
    /// Whether the device supports ICE (RFC 5768 §4).
    pub has_ice: bool,
}

/// Why a registration failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RegisterError {
    /// The registrar has no space for another address of record.
    #[error("register: no room for another address of record")]
    Full,
    /// A header cannot be parsed, or a contact is not a SIP address.
    #[error("register: malformed {0}")]
    Malformed(&'static str),
    /// The request is older than the binding it would change.
    #[error("register: the CSeq is not higher than before")]
    OutOfOrder,
    /// `*` with other contacts, or without `Expires: 0`.
    #[error("register: * stands alone and with Expires: 0")]
    Star,
    /// The requested lifetime is too short.
    #[error("register: the shortest registration is {min_seconds} s")]
    TooBrief {
        /// The Min-Expires of the response.
        min_seconds: u64,
    },
    /// More contacts than one address of record may have.
    #[error("register: too many contacts")]
    TooMany,
}

impl RegisterError {
    /// The status of the response.
    pub const fn status(self) -> StatusCode {
        match self {
            RegisterError::Full => StatusCode::SERVICE_UNAVAILABLE,
            RegisterError::Malformed(_) | RegisterError::Star => StatusCode::BAD_REQUEST,
            // RFC 3261 names no status here; §12.2.2 uses 500 for the same fault in a dialog.
            RegisterError::OutOfOrder => StatusCode::SERVER_ERROR,
            RegisterError::TooBrief { .. } => StatusCode::INTERVAL_TOO_BRIEF,
            RegisterError::TooMany => StatusCode::FORBIDDEN,
        }
    }
}

impl Registration {
    /// Parses a REGISTER that arrived on `flow`.
    ///
    /// # Errors
    /// When a header cannot be parsed, or a contact is neither `sip:` nor `sips:`.
    pub fn from_request(request: &Request, flow: Flow) -> Result<Self, RegisterError> {
        let contacts = match request.contacts().map_err(|_| RegisterError::Malformed("Contact"))? {
            ContactHeaders::Star => Contacts::All,
            ContactHeaders::List(list) => {
                let supports_ice = request.headers().lists(Name::Supported, "ice");
                let update = |address| ContactUpdate::from_address(address, supports_ice);
                Contacts::List(list.into_iter().map(update).collect::<Result<_, _>>()?)
            }
        };
        Ok(Registration {
            contacts,
            expires: request.expires(),
            call_id: request.call_id().to_owned(),
            cseq: request.cseq().map_err(|_| RegisterError::Malformed("CSeq"))?.number,
            user_agent: request.user_agent().map(|text| shortened(&text).into()),
            path: request.path().map_err(|_| RegisterError::Malformed("Path"))?,
            flow,
            bindings_max: None,
        })
    }
}

impl ContactUpdate {
    fn from_address(address: NameAddr, supports_ice: bool) -> Result<Self, RegisterError> {
        if !address.uri.is_sip() {
            return Err(RegisterError::Malformed("Contact"));
        }
        let instance = address.params.unquoted("+sip.instance").map(|instance| instance.into_owned());
        let reg_id =
            address.params.get("reg-id").and_then(|text| text.parse().ok()).filter(|_| instance.is_some());
        let has_ice = supports_ice || address.params.has("+sip.ice");
        Ok(ContactUpdate {
            expires: address.expires(),
            q_permille: address.q_permille(),
            uri: address.uri,
            instance,
            reg_id,
            has_ice,
        })
    }

    /// Whether it concerns `binding`.
    pub(super) fn is_of(&self, binding: &Binding) -> bool {
        binding.is_of(&self.uri, self.instance.as_deref(), self.reg_id)
    }
}

/// The response to a REGISTER: a 200 with every binding and its remaining time, or the refusal. The caller
/// still has to set a To tag.
pub fn reply(request: &Request, result: Result<&[Binding], &RegisterError>, now: Instant) -> Response {
    let (status, headers) = reply_headers(request, result, now, None);
    let mut response = Response::reply_to(request, status);
    let refused = response.headers_mut().overlay(&headers).is_err();
    debug_assert!(!refused, "a handful of lines fits");
    response
}

/// The status of the response to a REGISTER, and its additional headers. With `gruus`, the key and the address of
/// record, devices that request GRUUs get them (RFC 5627 §5.2).
pub fn reply_headers(
    request: &Request,
    result: Result<&[Binding], &RegisterError>,
    now: Instant,
    gruus: Option<(&mut GruuKey, &str)>,
) -> (StatusCode, Headers) {
    let mut headers = Headers::new();
    let bindings = match result {
        Ok(bindings) => bindings,
        Err(error) => {
            if let RegisterError::TooBrief { min_seconds } = error {
                push(&mut headers, Name::MinExpires, min_seconds);
            }
            return (error.status(), headers);
        }
    };
    let mut gruus = gruus.filter(|_| request.headers().lists(Name::Supported, "gruu"));
    for binding in bindings {
        let gruu = gruus.as_mut().and_then(|(key, aor)| key.contact_params(aor, binding));
        push(&mut headers, Name::Contact, Contact { binding, now, gruu: gruu.as_deref().unwrap_or("") });
    }
    // RFC 3327 §5.3: the response returns the path of the registration to the phone.
    headers.copy_from(request.headers(), Name::Path);
    // RFC 5626 §6: for a request with a reg-id; those of other bindings do not matter.
    let has_reg_id = match request.contacts() {
        Ok(ContactHeaders::List(list)) => list.iter().any(|contact| contact.params.has("reg-id")),
        Ok(ContactHeaders::Star) | Err(_) => false,
    };
    if has_reg_id
        && bindings.iter().any(|binding| binding.reg_id.is_some())
        && request.headers().lists(Name::Supported, "outbound")
    {
        push(&mut headers, Name::Require, "outbound");
    }
    (StatusCode::OK, headers)
}

/// The first [`USER_AGENT_MAX`] characters of a text.
fn shortened(text: &str) -> &str {
    let end = text.char_indices().nth(USER_AGENT_MAX).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or(text)
}

/// The Contact of a binding, with its registered parameters.
struct Contact<'a> {
    binding: &'a Binding,
    now: Instant,
    /// Its GRUUs, as parameters.
    gruu: &'a str,
}

impl fmt::Display for Contact<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Contact { binding, now, gruu } = self;
        write!(f, "<{}>;expires={}", binding.contact, seconds_up(binding.expires_in(*now)))?;
        if binding.q_permille < Q_PERMILLE_MAX {
            write!(f, ";q=0.{:03}", binding.q_permille)?;
        }
        if let Some(instance) = &binding.instance {
            f.write_str(";+sip.instance=")?;
            write_quoted(f, instance)?;
        }
        if let Some(reg_id) = binding.reg_id {
            write!(f, ";reg-id={reg_id}")?;
        }
        f.write_str(gruu)
    }
}

/// Every value comes from a message that the guard accepted or from a number, so the writer never refuses
/// one. If it did, a 200 without a Contact would still be a valid response.
fn push(headers: &mut Headers, name: Name<'_>, value: impl fmt::Display) {
    let refused = headers.push(name, value).is_err();
    debug_assert!(!refused, "a header value of ours is sound");
}

/// Characters of a User-Agent that are kept.
const USER_AGENT_MAX: usize = 200;
/// `q=1`, the default.
const Q_PERMILLE_MAX: u16 = 1_000;
