//! Parts of SIP messages that several files of the switch read or write.

use sidetone_sip::message::{Headers, NameAddr, Request, StatusCode, Uri, part};
use sidetone_sip::sdp::{Address, Media, SessionDescription};
use sidetone_sip::ua::Reply;

/// The content type of session descriptions.
pub(super) const SDP: &str = "application/sdp";

/// Returns the SDP of a message, also from a multipart body; `None` without SDP, or if it is not valid.
pub(super) fn description(headers: &Headers, body: &[u8]) -> Option<SessionDescription> {
    SessionDescription::parse(sdp_part(headers, body)?).ok()
}

/// Returns the refusal of a description whose audio or fax has a host name instead of an address: host names in SDP are
/// not resolved.
pub(super) fn unresolved(offer: &SessionDescription) -> Option<Reply> {
    let is_name = |media: &Media| {
        let connection = media.connection.as_ref().or(offer.connection.as_ref());
        media.port != 0
            && (media.is_rtp_audio() || media.is_fax())
            && matches!(connection, Some(Address::Name(_)))
    };
    let warning = "301 sidetone \"The address in c= is a host name; write an IP address\"";
    offer
        .media
        .iter()
        .any(is_name)
        .then(|| Reply::new(StatusCode::NOT_ACCEPTABLE_HERE).header("Warning", warning))
}

/// Returns the answer in a message; `None` also if its audio has a host name instead of an address, because
/// no packet could be sent there.
pub(super) fn answer_of(headers: &Headers, body: &[u8]) -> Option<SessionDescription> {
    description(headers, body).filter(|answer| unresolved(answer).is_none())
}

/// Returns the bytes of the SDP of a message.
pub(super) fn sdp_part<'b>(headers: &Headers, body: &'b [u8]) -> Option<&'b [u8]> {
    if body.is_empty() { None } else { part(headers, body, SDP) }
}

/// Returns the caller's number and name as a trunk asserts them: P-Asserted-Identity (RFC 3325), else Remote-Party-ID,
/// which older carriers send. `None` if there is neither, or if the caller asks for privacy.
pub(super) fn asserted(request: &Request) -> Option<(String, Option<String>)> {
    let privacy = request.headers().header_all("Privacy").flat_map(|value| value.split([';', ',']));
    if privacy.map(str::trim).any(|wish| !wish.eq_ignore_ascii_case("none")) {
        return None;
    }
    let of = |address: &NameAddr| {
        let number = dialled(&address.uri).filter(|number| number != "anonymous")?;
        Some((number, address.display.clone().filter(|name| !name.is_empty())))
    };
    let asserted = request.p_asserted_identity().unwrap_or_default();
    asserted.iter().find_map(of).or_else(|| {
        let party = NameAddr::parse(request.headers().header("Remote-Party-ID")?).ok()?;
        let is = |name: &str, values: &[&str]| {
            let value = party.params.unquoted(name);
            value.is_none_or(|value| values.iter().any(|known| value.eq_ignore_ascii_case(known)))
        };
        if is("party", &["calling"]) && is("privacy", &["off"]) { of(&party) } else { None }
    })
}

/// Returns a reply with the description as its body, if there is one.
pub(super) fn with_description(reply: Reply, description: Option<&SessionDescription>) -> Reply {
    match description {
        Some(description) => reply.content(SDP, description.to_bytes()),
        None => reply,
    }
}

/// Returns the status code of a number; 500 for a number that is not a status code.
pub(super) fn status_code(status: u16) -> StatusCode {
    StatusCode::new(status).unwrap_or(StatusCode::SERVER_ERROR)
}

/// Adds the methods that the switch accepts.
pub(super) fn allow(reply: Reply) -> Reply {
    reply.header(
        "Allow",
        "INVITE, ACK, CANCEL, BYE, OPTIONS, REGISTER, INFO, MESSAGE, PRACK, REFER, SUBSCRIBE, UPDATE",
    )
}

/// Returns the number that a URI dials: the user of a SIP URI without its parameters, or a `tel:` number.
pub(super) fn dialled(uri: &Uri) -> Option<String> {
    let user = uri.user_decoded()?;
    // A telephone-subscriber has parameters after its digits (RFC 3261 §19.1.6).
    let digits = user.split(';').next().unwrap_or_default();
    Some(digits.to_owned()).filter(|digits| !digits.is_empty())
}
