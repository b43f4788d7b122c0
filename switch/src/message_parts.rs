//! Parts of SIP messages that several files of the switch read or write.

use std::net::IpAddr;

use sidetone_sip::message::{Headers, NameAddr, Request, StatusCode, Uri, part};
use sidetone_sip::sdp::{Media, SessionDescription};
use sidetone_sip::ua::Reply;

/// The content type of session descriptions.
pub(super) const SDP: &str = "application/sdp";

/// Returns the SDP of a message, also from a multipart body; `None` without SDP, or if it is not valid.
pub(super) fn description(headers: &Headers, body: &[u8]) -> Option<SessionDescription> {
    SessionDescription::parse(sdp_part(headers, body)?).ok()
}

/// Returns the refusal of a description with an address to which no packet of its audio or fax can be sent: a host name,
/// which is not resolved, or an address of the other family than that of the party's media port. The port has the
/// family of `signalling`, from which the party's SIP arrives.
pub(super) fn unreachable(
    description: &SessionDescription,
    headers: &Headers,
    signalling: Option<IpAddr>,
) -> Option<Reply> {
    // RFC 3261 §20.43: incompatible network address formats.
    let warning = |text| format!("301 sidetone \"{text}\"");
    let text =
        description.media.iter().find_map(|media| fault_of(description, media, headers, signalling))?;
    Some(Reply::new(StatusCode::NOT_ACCEPTABLE_HERE).header("Warning", warning(text)))
}

/// Returns what is wrong with the address of a section, and the fix.
fn fault_of(
    description: &SessionDescription,
    media: &Media,
    headers: &Headers,
    signalling: Option<IpAddr>,
) -> Option<&'static str> {
    if media.port == 0 || !(media.is_rtp_audio() || media.is_fax()) {
        return None;
    }
    let connection = media.connection.as_ref().or(description.connection.as_ref())?;
    let Some(ip) = connection.ip().map(|ip| ip.to_canonical()) else {
        return Some("The address in c= is a host name; write an IP address");
    };
    // An address of no host means hold, or that ICE candidates follow.
    let has_ice = media.webrtc.as_ref().is_some_and(|webrtc| webrtc.transport.is_some());
    let over_ipv4 = signalling?.to_canonical().is_ipv4();
    if ip.is_unspecified() || has_ice || ip.is_ipv4() == over_ipv4 || is_translated(headers, over_ipv4) {
        return None;
    }
    Some(match over_ipv4 {
        true => "The address in c= is IPv6, but SIP arrives over IPv4; write an IPv4 address",
        false => "The address in c= is IPv4, but SIP arrives over IPv6; write an IPv6 address",
    })
}

/// Whether the sender of a message that arrived over IPv4, or over IPv6, has an address of the other family in Contact or
/// Via. Then a translator (NAT64) is in between, and the sender's audio passes through it too.
fn is_translated(headers: &Headers, over_ipv4: bool) -> bool {
    let contact = headers.contacts().ok().and_then(|contacts| contacts.first()?.uri.host()?.ip());
    let hop = headers.via_top().ok().and_then(|hop| hop.host.ip());
    contact.into_iter().chain(hop).any(|ip| ip.to_canonical().is_ipv4() != over_ipv4)
}

/// Returns the answer in a message; `None` also if no packet of its audio could be sent to its address
/// ([`unreachable`]).
pub(super) fn answer_of(
    headers: &Headers,
    body: &[u8],
    signalling: Option<IpAddr>,
) -> Option<SessionDescription> {
    description(headers, body).filter(|answer| unreachable(answer, headers, signalling).is_none())
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
