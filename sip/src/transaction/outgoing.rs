//! Messages that a transaction layer creates by itself (100, refusals, the ACK of a failure, CANCEL), and the routes of
//! responses.

use std::net::SocketAddr;

use crate::flow::Flow;
use crate::message::{InvalidValue, Method, Name, Request, Response, StatusCode};

/// A response with only the headers that §8.2.6 requires.
pub(crate) fn reply(request: &Request, status: StatusCode, to_tag: &str) -> Result<Response, InvalidValue> {
    let mut response = Response::reply_to(request, status);
    if status != StatusCode::TRYING {
        response.set_to_tag(to_tag)?;
    }
    Ok(response)
}

/// Whether a request belongs to a dialog.
pub(crate) fn is_in_dialog(request: &Request) -> bool {
    request.to_tag().is_ok_and(|tag| !tag.is_empty())
}

/// §18.2.2 and RFC 3581 §4: responses are sent back on the connection of the request, or else to the address that the
/// top Via gives.
pub(crate) fn response_route(flow: Flow, response_to: SocketAddr) -> Flow {
    if flow.protocol.is_reliable() { flow } else { Flow { remote: response_to, ..flow } }
}

/// The ACK of a failure: Request-URI, Via, From, Call-ID and Route of the INVITE, To of the response
/// (§17.1.1.3).
pub(crate) fn ack_of_failure(invite: &Request, response: &Response) -> Result<Request, InvalidValue> {
    let mut ack = hop_by_hop(invite, Method::Ack)?;
    ack.copy_first_from(response.headers(), Name::To);
    Ok(ack)
}

/// The CANCEL of an INVITE: equal to it in Request-URI, top Via, From, To, Call-ID and CSeq number (§9.1).
pub(crate) fn cancel(invite: &Request) -> Result<Request, InvalidValue> {
    let mut cancel = hop_by_hop(invite, Method::Cancel)?;
    cancel.copy_first_from(invite.headers(), Name::To);
    Ok(cancel)
}

fn hop_by_hop(invite: &Request, method: Method) -> Result<Request, InvalidValue> {
    let number = invite.cseq().map_err(|_| InvalidValue::Token)?.number;
    let via = invite.via_top().map_err(|_| InvalidValue::Token)?;
    let mut request = Request::new(method, invite.uri())?;
    request.push(Name::Via, via)?;
    request.copy_from(invite.headers(), Name::Route);
    request.push(Name::MaxForwards, MAX_FORWARDS)?;
    request.copy_first_from(invite.headers(), Name::From);
    request.copy_first_from(invite.headers(), Name::CallId);
    let method = request.method().clone();
    request.push(Name::CSeq, format_args!("{number} {method}"))?;
    Ok(request)
}

/// The initial Max-Forwards (§8.1.1.6).
pub(crate) const MAX_FORWARDS: u8 = 70;
