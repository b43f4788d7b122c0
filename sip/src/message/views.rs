//! Typed views of the headers, created on request (RFC 3261 §20).
//!
//! The guard has already parsed Via, From, To, Call-ID, CSeq, Max-Forwards and Contact of every received
//! message, so these views fail only for messages that were built here.

use std::borrow::Cow;

use crate::message::address::{self, take_parts};
use crate::message::fields::{CSeq, Event, RAck, Reason, Replaces, SessionExpires, seconds};
use crate::message::limits::{LIST_LEN_MAX, VIAS_MAX};
use crate::message::scan::{Cursor, number};
use crate::message::{Contacts, Digest, FieldError, Headers, Hop, Malformed, Name, NameAddr, Via};

impl Headers {
    /// The top Via: the destination of a response.
    ///
    /// # Errors
    ///
    /// When there is none or it is malformed.
    pub fn via_top(&self) -> Result<Via, FieldError> {
        let text = self.required(Name::Via)?;
        Via::take(&mut Cursor::new(&text)).map_err(|_| FieldError::Malformed("Via"))
    }

    /// The top hop, borrowed; `None` when there is none, or it is malformed.
    pub(crate) fn hop_top(&self) -> Option<Hop<'_>> {
        Hop::take(&mut Cursor::new(self.header(Name::Via)?)).ok()
    }

    /// Whether there is exactly one hop, over lines and lists, and it is well-formed.
    pub(crate) fn has_one_hop(&self) -> bool {
        let mut hops = 0;
        for line in self.header_all_bytes(Name::Via) {
            let Ok(text) = std::str::from_utf8(line) else { return false };
            let mut cursor = Cursor::new(text);
            loop {
                hops += 1;
                if Hop::take(&mut cursor).is_err() {
                    return false;
                }
                if !cursor.eat(b',') {
                    break;
                }
            }
        }
        hops == 1
    }

    /// All Via hops from the top, over lines and lists.
    ///
    /// # Errors
    ///
    /// When one is malformed or there are more than [`VIAS_MAX`].
    pub fn vias(&self) -> Result<Vec<Via>, FieldError> {
        let mut vias = Vec::new();
        for line in self.header_all_bytes(Name::Via) {
            let text = String::from_utf8_lossy(line);
            let mut cursor = Cursor::new(&text);
            loop {
                if vias.len() >= VIAS_MAX {
                    return Err(FieldError::Malformed("Via"));
                }
                vias.push(Via::take(&mut cursor).map_err(|_| FieldError::Malformed("Via"))?);
                if !cursor.eat(b',') {
                    break;
                }
            }
        }
        Ok(vias)
    }

    /// From.
    ///
    /// # Errors
    ///
    /// When it is absent or malformed.
    pub fn from(&self) -> Result<NameAddr, FieldError> {
        self.address(Name::From)
    }

    /// The tag of From, empty when there is none. The URI is split off but not checked.
    ///
    /// # Errors
    ///
    /// When From is absent or malformed.
    pub fn from_tag(&self) -> Result<Cow<'_, str>, FieldError> {
        self.tag_of(Name::From)
    }

    /// To.
    ///
    /// # Errors
    ///
    /// When it is absent or malformed.
    pub fn to(&self) -> Result<NameAddr, FieldError> {
        self.address(Name::To)
    }

    /// The tag of To, empty when there is none.
    ///
    /// # Errors
    ///
    /// When To is absent or malformed.
    pub fn to_tag(&self) -> Result<Cow<'_, str>, FieldError> {
        let text = self.required(Name::To)?;
        address::check(&mut Cursor::new(&text)).map_err(|_| FieldError::Malformed(Name::To.as_str()))?;
        self.tag_of(Name::To)
    }

    /// Call-ID; empty when it is absent, which the guard does not allow in a received message.
    #[must_use]
    pub fn call_id(&self) -> &str {
        self.header(Name::CallId).unwrap_or_default()
    }

    /// CSeq.
    ///
    /// # Errors
    ///
    /// When it is absent or malformed.
    pub fn cseq(&self) -> Result<CSeq, FieldError> {
        self.read(Name::CSeq, "CSeq", CSeq::parse)
    }

    /// Contact: all addresses over lines and lists, or `*`.
    ///
    /// # Errors
    ///
    /// When one is malformed, `*` is not the only one, or there are more than [`LIST_LEN_MAX`].
    pub fn contacts(&self) -> Result<Contacts, FieldError> {
        if self.header_all_bytes(Name::Contact).eq([b"*".as_slice()]) {
            return Ok(Contacts::Star);
        }
        self.addresses(Name::Contact, "Contact").map(Contacts::List)
    }

    /// The Route set, top first.
    ///
    /// # Errors
    ///
    /// When one is malformed.
    pub fn routes(&self) -> Result<Vec<NameAddr>, FieldError> {
        self.addresses(Name::Route, "Route")
    }

    /// The Record-Route set, top first.
    ///
    /// # Errors
    ///
    /// When one is malformed.
    pub fn record_routes(&self) -> Result<Vec<NameAddr>, FieldError> {
        self.addresses(Name::RecordRoute, "Record-Route")
    }

    /// Max-Forwards; `None` when absent.
    #[must_use]
    pub fn max_forwards(&self) -> Option<u8> {
        u8::try_from(number(self.header(Name::MaxForwards)?)?).ok()
    }

    /// Expires in seconds; `None` when absent or malformed.
    #[must_use]
    pub fn expires(&self) -> Option<u32> {
        self.header(Name::Expires).and_then(seconds)
    }

    /// Min-Expires in seconds.
    #[must_use]
    pub fn min_expires(&self) -> Option<u32> {
        self.header(Name::MinExpires).and_then(seconds)
    }

    /// Min-SE in seconds (RFC 4028 §5).
    #[must_use]
    pub fn min_se(&self) -> Option<u32> {
        self.header(Name::MinSe).and_then(|text| seconds(text.split(';').next()?.trim()))
    }

    /// Content-Type as it was written.
    #[must_use]
    pub fn content_type(&self) -> Option<&str> {
        self.header(Name::ContentType)
    }

    /// Whether Content-Type is this media type; parameters and case are ignored.
    #[must_use]
    pub fn is_content_type(&self, media_type: &str) -> bool {
        let Some(text) = self.content_type() else { return false };
        let essence =
            text.bytes().take_while(|byte| *byte != b';').filter(|byte| !byte.is_ascii_whitespace());
        let lower = |byte: u8| byte.to_ascii_lowercase();
        essence.map(lower).eq(media_type.bytes().map(lower))
    }

    /// User-Agent of a request or Server of a response, converted to UTF-8 for display.
    #[must_use]
    pub fn user_agent(&self) -> Option<Cow<'_, str>> {
        self.header_bytes(Name::UserAgent)
            .or_else(|| self.header_bytes(Name::Server))
            .map(String::from_utf8_lossy)
    }

    /// Every Authorization header, each parsed or with its error.
    pub fn authorization(&self) -> impl Iterator<Item = Result<Digest, Malformed>> {
        self.header_all(Name::Authorization).map(Digest::parse)
    }

    /// Every Proxy-Authorization header.
    pub fn proxy_authorization(&self) -> impl Iterator<Item = Result<Digest, Malformed>> {
        self.header_all(Name::ProxyAuthorization).map(Digest::parse)
    }

    /// Every WWW-Authenticate challenge.
    pub fn www_authenticate(&self) -> impl Iterator<Item = Result<Digest, Malformed>> {
        self.header_all(Name::WwwAuthenticate).map(Digest::parse)
    }

    /// Every Proxy-Authenticate challenge.
    pub fn proxy_authenticate(&self) -> impl Iterator<Item = Result<Digest, Malformed>> {
        self.header_all(Name::ProxyAuthenticate).map(Digest::parse)
    }

    /// RSeq of a reliable provisional response (RFC 3262 §7.1); `None` when absent or malformed.
    #[must_use]
    pub fn rseq(&self) -> Option<u32> {
        u32::try_from(number(self.header(Name::RSeq)?)?).ok()
    }

    /// RAck of a PRACK.
    ///
    /// # Errors
    ///
    /// When it is absent or malformed.
    pub fn rack(&self) -> Result<RAck, FieldError> {
        self.read(Name::RAck, "RAck", RAck::parse)
    }

    /// Session-Expires.
    ///
    /// # Errors
    ///
    /// When it is absent or malformed.
    pub fn session_expires(&self) -> Result<SessionExpires, FieldError> {
        self.read(Name::SessionExpires, "Session-Expires", SessionExpires::parse)
    }

    /// Replaces.
    ///
    /// # Errors
    ///
    /// When it is absent or malformed.
    pub fn replaces(&self) -> Result<Replaces, FieldError> {
        self.read(Name::Replaces, "Replaces", Replaces::parse)
    }

    /// Refer-To (RFC 3515).
    ///
    /// # Errors
    ///
    /// When it is absent or malformed.
    pub fn refer_to(&self) -> Result<NameAddr, FieldError> {
        self.address(Name::ReferTo)
    }

    /// Referred-By (RFC 3892).
    ///
    /// # Errors
    ///
    /// When it is absent or malformed.
    pub fn referred_by(&self) -> Result<NameAddr, FieldError> {
        self.address(Name::ReferredBy)
    }

    /// P-Asserted-Identity: one or two addresses (RFC 3325 §9.1); trust it only from a trusted peer.
    ///
    /// # Errors
    ///
    /// When one is malformed.
    pub fn p_asserted_identity(&self) -> Result<Vec<NameAddr>, FieldError> {
        self.addresses(Name::PAssertedIdentity, "P-Asserted-Identity")
    }

    /// Diversion: the parties that forwarded the call, the last first (RFC 5806).
    ///
    /// # Errors
    ///
    /// When one is malformed.
    pub fn diversion(&self) -> Result<Vec<NameAddr>, FieldError> {
        self.addresses(Name::Diversion, "Diversion")
    }

    /// Path (RFC 3327).
    ///
    /// # Errors
    ///
    /// When one is malformed.
    pub fn path(&self) -> Result<Vec<NameAddr>, FieldError> {
        self.addresses(Name::Path, "Path")
    }

    /// Every Reason header that can be parsed (RFC 3326); not the phrase of a status line.
    pub fn reasons(&self) -> impl Iterator<Item = Reason> {
        self.list(Name::Reason).filter_map(|text| Reason::parse(text).ok())
    }

    /// Event.
    ///
    /// # Errors
    ///
    /// When it is absent or malformed.
    pub fn event(&self) -> Result<Event, FieldError> {
        self.read(Name::Event, "Event", Event::parse)
    }

    /// Subscription-State: the state in `package`, with its parameters.
    ///
    /// # Errors
    ///
    /// When it is absent or malformed.
    pub fn subscription_state(&self) -> Result<Event, FieldError> {
        self.read(Name::SubscriptionState, "Subscription-State", Event::parse)
    }

    /// The only address in a header; bytes that are not UTF-8 can occur only in its display name.
    fn address(&self, name: Name<'static>) -> Result<NameAddr, FieldError> {
        let text = self.required(name)?;
        NameAddr::parse(&text).map_err(|_| FieldError::Malformed(name.as_str()))
    }

    fn tag_of(&self, name: Name<'static>) -> Result<Cow<'_, str>, FieldError> {
        let malformed = |_| FieldError::Malformed(name.as_str());
        match self.required(name)? {
            Cow::Borrowed(text) => tag(text).map(Cow::Borrowed).map_err(malformed),
            Cow::Owned(text) => tag(&text).map(|tag| Cow::Owned(tag.to_owned())).map_err(malformed),
        }
    }

    fn addresses(&self, name: Name<'static>, what: &'static str) -> Result<Vec<NameAddr>, FieldError> {
        let mut list = Vec::new();
        for line in self.header_all_bytes(name).take(LIST_LEN_MAX) {
            let text = String::from_utf8_lossy(line);
            NameAddr::take_list(&text, &mut list).map_err(|_| FieldError::Malformed(what))?;
        }
        Ok(list)
    }

    fn read<T>(
        &self,
        name: Name<'static>,
        what: &'static str,
        parse: impl FnOnce(&str) -> Result<T, Malformed>,
    ) -> Result<T, FieldError> {
        let text = self.required(name)?;
        parse(&text).map_err(|_| FieldError::Malformed(what))
    }

    fn required(&self, name: Name<'static>) -> Result<Cow<'_, str>, FieldError> {
        self.header_bytes(name).map(String::from_utf8_lossy).ok_or(FieldError::Missing(name.as_str()))
    }
}

/// The tag of the address in `text`; empty when it has none.
fn tag(text: &str) -> Result<&str, Malformed> {
    let mut cursor = Cursor::new(text);
    let mut tag = None;
    take_parts(&mut cursor, &mut |name, value| {
        if tag.is_none() && name.eq_ignore_ascii_case("tag") {
            tag = Some(value.unwrap_or_default());
        }
    })?;
    if cursor.is_done() { Ok(tag.unwrap_or_default()) } else { Err(Malformed("address")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_read_alone_as_with_the_rest() {
        for text in [
            "<sip:a@h>;tag=1",
            "\"A\" <sip:a@h;tag=no>;x=1;TAG = two",
            "sip:a@h;tag=t",
            "<sip:a@h>;tag",
            "<sip:a@h>;tag=one;tag=two",
            "<sip:a@h>",
            "<sip:a@h>;tag=1,<sip:b@h>",
            "<sip:a@h",
            "\"A <sip:a@h>;tag=1",
        ] {
            let mut headers = Headers::new();
            headers.push(Name::From, text).unwrap();
            let whole = headers.from().map(|from| from.tag().unwrap_or_default().to_owned());
            assert_eq!(headers.from_tag().map(Cow::into_owned), whole, "{text}");
        }
        assert_eq!(Headers::new().from_tag(), Err(FieldError::Missing("From")));
    }

    #[test]
    fn a_media_type_is_told_without_case_space_and_parameters() {
        for (text, expected) in [
            ("application/sdp", true),
            (" Application / SDP ;charset=utf-8", true),
            ("application/sdpx", false),
            ("application/sd", false),
            (";application/sdp", false),
        ] {
            let mut headers = Headers::new();
            headers.push(Name::ContentType, text).unwrap();
            assert_eq!(headers.is_content_type("application/SDP"), expected, "{text}");
        }
    }
}
