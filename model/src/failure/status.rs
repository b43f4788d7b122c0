//! The meaning of final SIP responses for a call and for a registration, with advice.

/// The kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// An INVITE.
    Call,
    /// A REGISTER.
    Registration,
}

/// The phrase of a status in the standard; empty for one that the standard does not have.
pub fn phrase(status: u16) -> &'static str {
    STATUSES.iter().find(|row| row.0 == status).map_or("", |row| row.1)
}

/// The statuses with their own text for that request, in ascending order.
pub fn known(request: Request) -> Vec<u16> {
    match request {
        Request::Call => STATUSES.iter().map(|row| row.0).collect(),
        Request::Registration => REGISTERING.iter().map(|row| row.0).collect(),
    }
}

/// The meaning of a status, completing "which means that", and the advice.
pub(super) fn meaning(status: u16, request: Request) -> (&'static str, &'static str) {
    let words = match request {
        Request::Call => STATUSES.iter().find(|row| row.0 == status).map(|row| (row.2, row.3)),
        Request::Registration => REGISTERING.iter().find(|row| row.0 == status).map(|row| (row.1, row.2)),
    };
    words.unwrap_or_else(|| general(status))
}

/// The meaning by the first digit (RFC 3261 §8.1.3.2).
fn general(status: u16) -> (&'static str, &'static str) {
    match status {
        300..=399 => ("the request is to be sent elsewhere", "See whether the device follows redirections."),
        400..=499 => (
            "it will not take the request in this form",
            "Compare the request with what the other side accepts; its log says more.",
        ),
        500..=599 => ("it failed or is not ready", "Look at the log of the machine that answered so."),
        _ => (
            "no other place would take the request either",
            "Look at the log of the machine that answered so.",
        ),
    }
}

/// Status, phrase, meaning, advice.
type Row = (u16, &'static str, &'static str, &'static str);

const STATUSES: &[Row] = &[
    (
        300,
        "Multiple Choices",
        "there are several places to send the call to",
        "See whether the caller's device follows redirections.",
    ),
    (
        301,
        "Moved Permanently",
        "the called party is at another address for good",
        "Call the address that it names.",
    ),
    (
        302,
        "Moved Temporarily",
        "the called party is at another address for now",
        "See whether the caller's device follows redirections.",
    ),
    (305, "Use Proxy", "the call is to be sent through a proxy", "Set that proxy in the caller's device."),
    (
        400,
        "Bad Request",
        "it could not read the request",
        "Look at the request in the capture, and at the log of the machine that refused it: a header is malformed or missing.",
    ),
    (
        401,
        "Unauthorized",
        "it wants a password",
        "Check the user name, the password and the realm of the caller's account.",
    ),
    (402, "Payment Required", "the account has no credit", "Check the credit of the account."),
    (
        403,
        "Forbidden",
        "it read the request and will not carry it out",
        "Check the caller's account and password there, and what its account, its address and its number may call.",
    ),
    (
        404,
        "Not Found",
        "the called number or address is not known there",
        "Check the number as it was sent, and the numbers and the dial plan of the machine that refused it.",
    ),
    (
        405,
        "Method Not Allowed",
        "it does not take this kind of request",
        "Check that the request went to the right machine.",
    ),
    (
        406,
        "Not Acceptable",
        "it cannot answer in a form that the caller accepts",
        "Compare the Accept headers of both sides.",
    ),
    (
        407,
        "Proxy Authentication Required",
        "it wants a password",
        "Check the user name, the password and the realm of the caller's account.",
    ),
    (
        408,
        "Request Timeout",
        "it got no answer itself in time",
        "Check that the called device is up, and that the machine that refused the call reaches it.",
    ),
    (410, "Gone", "the called number is no longer in use", "Ask for the new number."),
    (
        413,
        "Request Entity Too Large",
        "the request is too large",
        "Let the caller's device offer fewer codecs, or use TCP.",
    ),
    (414, "Request-URI Too Long", "the called address is too long", "Check the called address."),
    (
        415,
        "Unsupported Media Type",
        "it does not know the kind of body in the request",
        "Let the caller's device send SDP.",
    ),
    (
        416,
        "Unsupported URI Scheme",
        "it does not know this kind of address",
        "Call a sip: address, or a number as the other side expects it.",
    ),
    (
        420,
        "Bad Extension",
        "it does not support what the caller requires",
        "Switch off the extension that the Unsupported header names, on the caller's device.",
    ),
    (
        421,
        "Extension Required",
        "it requires an extension that the caller does not offer",
        "Switch the extension on that the Require header names, on the caller's device.",
    ),
    (
        422,
        "Session Interval Too Small",
        "the session timer of the caller is too short for it",
        "Raise the session timer (Session-Expires) of the caller's device.",
    ),
    (
        423,
        "Interval Too Brief",
        "the time asked for is too short for it",
        "Raise the registration time of the device.",
    ),
    (
        428,
        "Use Identity Header",
        "it wants a signed caller identity",
        "Have the calls signed (STIR), or agree otherwise with the carrier.",
    ),
    (433, "Anonymity Disallowed", "it does not take anonymous calls", "Call again with the number shown."),
    (
        436,
        "Bad Identity Info",
        "it cannot verify the signed caller identity",
        "Check the certificate with which calls are signed.",
    ),
    (
        438,
        "Invalid Identity Header",
        "the signature of the caller identity is wrong",
        "Check the machine that signs the calls.",
    ),
    (
        480,
        "Temporarily Unavailable",
        "the called party cannot be reached at present",
        "Check whether the called phone is registered, and whether it is set to do not disturb.",
    ),
    (
        481,
        "Call/Transaction Does Not Exist",
        "it does not know the call any more",
        "Look at its log: it may have been restarted, or another machine of a cluster has the call.",
    ),
    (
        482,
        "Loop Detected",
        "the call came back to it",
        "Check the routing of the machines in the path: two of them send the call to each other.",
    ),
    (
        483,
        "Too Many Hops",
        "the call went through too many machines",
        "Check the routing of the machines in the path: two of them may send the call to each other.",
    ),
    (484, "Address Incomplete", "the number has too few digits", "Dial the whole number."),
    (485, "Ambiguous", "the called address fits several parties", "Call the whole address."),
    (486, "Busy Here", "the called party was busy", "Nothing has to be repaired: call again later."),
    (
        487,
        "Request Terminated",
        "the call was cancelled behind it",
        "Nothing has to be repaired where the caller hung up.",
    ),
    (
        488,
        "Not Acceptable Here",
        "it accepts none of the media that was offered",
        "Compare the codecs and the encryption (SRTP) of both sides.",
    ),
    (
        489,
        "Bad Event",
        "it does not know this kind of event",
        "Check what the caller's device subscribes to.",
    ),
    (
        491,
        "Request Pending",
        "it was changing the call itself",
        "Nothing has to be repaired where this is seen once: the request is sent again.",
    ),
    (493, "Undecipherable", "it cannot decrypt the request", "Check the certificates of both sides."),
    (
        494,
        "Security Agreement Required",
        "it wants a security agreement first",
        "Check the security settings of the caller's device.",
    ),
    (500, "Server Internal Error", "it failed", "Look at the log of the machine that answered so."),
    (
        501,
        "Not Implemented",
        "it does not know this kind of request",
        "Check that the request went to the right machine.",
    ),
    (
        502,
        "Bad Gateway",
        "the machine behind it answered wrongly",
        "Look at the machine behind the one that answered so.",
    ),
    (
        503,
        "Service Unavailable",
        "it is overloaded, has no free line or is being serviced",
        "Check the load of the machine that answered so; of a trunk, how many calls it may carry at once.",
    ),
    (
        504,
        "Server Time-out",
        "the machine behind it did not answer in time",
        "Look at the machine behind the one that answered so.",
    ),
    (505, "Version Not Supported", "it does not speak this version of SIP", "Check the caller's device."),
    (
        513,
        "Message Too Large",
        "the request is too large",
        "Let the caller's device offer fewer codecs, or use TCP.",
    ),
    (
        580,
        "Precondition Failure",
        "a precondition of the call was not met",
        "Switch preconditions off on the caller's device.",
    ),
    (
        600,
        "Busy Everywhere",
        "the called party was busy on all devices",
        "Nothing has to be repaired: call again later.",
    ),
    (
        603,
        "Decline",
        "the called party declined the call",
        "Nothing has to be repaired where a person did so; otherwise check the call filters of the called phone and of the carrier.",
    ),
    (604, "Does Not Exist Anywhere", "the called party is not known anywhere", "Check the called number."),
    (
        606,
        "Not Acceptable",
        "the called party accepts none of the media that was offered",
        "Compare the codecs and the encryption (SRTP) of both sides.",
    ),
    (
        607,
        "Unwanted",
        "the called party does not want calls of this caller",
        "Nothing has to be repaired; ask the called party.",
    ),
    (
        608,
        "Rejected",
        "a call filter on the way rejected the call",
        "Ask the operator that the Call-Info header of the response names.",
    ),
];

/// Different entries for a registration: status, meaning, advice.
const REGISTERING: &[(u16, &str, &str)] = &[
    (
        400,
        "it could not read the request",
        "Look at the request in the capture, and at the log of the registrar.",
    ),
    (
        401,
        "it wants a password",
        "Check the user name, the password and the realm of the account in the device.",
    ),
    (
        403,
        "it will not register this account",
        "Check whether the account is locked, whether its password is right, and from which addresses it may register.",
    ),
    (404, "the account is not known there", "Check the user name and the domain in the device."),
    (405, "it is no registrar", "Check the address of the registrar in the device."),
    (
        407,
        "it wants a password",
        "Check the user name, the password and the realm of the account in the device.",
    ),
    (
        408,
        "it got no answer itself in time",
        "Check that the machine that answered so reaches the registrar.",
    ),
    (
        423,
        "the registration time asked for is too short for it",
        "Raise the registration time of the device.",
    ),
    (
        439,
        "the first hop does not support Outbound (RFC 5626)",
        "Switch Outbound off in the device, or on at the first proxy.",
    ),
    (480, "the account cannot register at present", "Look at the log of the registrar."),
    (500, "it failed", "Look at the log of the registrar."),
    (501, "it is no registrar", "Check the address of the registrar in the device."),
    (503, "it is overloaded or being serviced", "Check the load of the registrar."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_meaning_and_an_advice() {
        for status in 300..=699 {
            for request in [Request::Call, Request::Registration] {
                let (meaning, advice) = meaning(status, request);
                assert!(!meaning.is_empty() && !meaning.ends_with('.'), "{status}");
                assert!(advice.ends_with('.'), "{status}");
            }
        }
        assert!(STATUSES.is_sorted_by_key(|row| row.0) && REGISTERING.is_sorted_by_key(|row| row.0));
        assert_eq!((phrase(486), phrase(499)), ("Busy Here", ""));
    }
}
