//! Calls that an extension forwards, by its settings or by a redirection of its phone (301 and 302): their new targets,
//! and the headers for those.
//!
//! The extension forwards within its dial plan and at its cost. A redirection by a trunk is not followed, because a
//! trunk has no dial plan.

use sidetone_call::record::{Facts, Forwarded};
use sidetone_model::call::Direction;
use sidetone_model::directory::Extension;
use sidetone_model::forwarding::ForwardReason;
use sidetone_model::ids::OrganisationId;
use sidetone_sip::message::{Host, NameAddr, Response, Scheme, Uri};

use crate::io::Forwards;
use crate::live::{Callee, Diversion, LiveCall, Redirect};
use crate::message_parts::dialled;
use crate::routing::{Directory, from_extension};

/// Returns the redirection of a fork that answered 301 or 302; `None` if the fork is no phone of an extension, or if
/// no Contact names a number. Of several Contacts it is the one with the highest `q` (RFC 3261 §8.1.3.4).
pub(super) fn redirect_of(live: &LiveCall, fork: usize, response: &Response) -> Option<Redirect> {
    if !matches!(response.status().as_u16(), 301 | 302) {
        return None;
    }
    let by = live.callees.get(fork)?.identity.extension?;
    let contacts = response.list("Contact").filter_map(|contact| NameAddr::parse(contact).ok());
    let mut targets: Vec<(u16, String)> =
        contacts.filter_map(|contact| Some((contact.q_permille(), number_at(&contact.uri)?))).collect();
    targets.sort_by_key(|(q_permille, _)| std::cmp::Reverse(*q_permille));
    let mut targets = targets.into_iter().map(|(_, target)| target);
    Some(Redirect { by, target: targets.next()?, others: targets.take(OTHERS_MAX).collect() })
}

/// Returns the number that a Contact names; `None` for a scheme that cannot be called, such as `mailto`.
fn number_at(uri: &Uri) -> Option<String> {
    dialled(uri).filter(|_| matches!(uri.scheme(), Scheme::Sip | Scheme::Sips | Scheme::Tel))
}

/// Returns why calls to an extension are forwarded or refused without ringing a phone.
pub(super) fn at_once(extension: &Extension, is_reachable: bool) -> Option<ForwardReason> {
    if extension.forwarding.always.is_some() {
        Some(ForwardReason::Always)
    } else if extension.do_not_disturb {
        Some(ForwardReason::DoNotDisturb)
    } else {
        (!is_reachable).then_some(ForwardReason::Unregistered)
    }
}

/// Returns the target to which calls to an extension are forwarded without ringing a phone, and the reason.
pub(super) fn target_at_once(extension: &Extension, is_reachable: bool) -> Option<(ForwardReason, &str)> {
    let reason = at_once(extension, is_reachable)?;
    Some((reason, extension.forwarding.target(reason)?))
}

/// Returns which results of an extension's phones forward a call.
pub(super) fn forwards(extension: &Extension) -> Forwards {
    let forwarding = &extension.forwarding;
    let ringing = std::time::Duration::from_secs(forwarding.no_answer_seconds.into());
    Forwards {
        busy: forwarding.busy.is_some(),
        no_answer: forwarding.no_answer.is_some().then_some(ringing),
        unregistered: forwarding.unregistered.is_some(),
    }
}

/// Returns the extension that forwards a live call for this reason, and the target; removes a stored redirection.
pub(super) fn take_target(
    live: &mut LiveCall,
    directory: &Directory,
    reason: ForwardReason,
) -> Option<Redirect> {
    if reason == ForwardReason::Redirected {
        let redirect = live.redirect.take()?;
        return Some(first_callable(redirect, &live.diverted, directory));
    }
    let by = live.call.facts().called?.extension_id;
    let target = directory.extension(by)?.forwarding.target(reason)?.to_owned();
    Some(Redirect { by, target, others: Vec::new() })
}

/// Returns a redirection with the first target that the extension can call; if there is none, with its first target,
/// whose refusal is the result of the call.
fn first_callable(redirect: Redirect, diverted: &[Diversion], directory: &Directory) -> Redirect {
    let Some(by) = directory.extension(redirect.by) else { return redirect };
    let can_be_called = |target: &&String| {
        !is_loop(diverted, &by.number, target)
            && from_extension(directory, by.organisation_id, target.as_str()).is_ok()
    };
    let first = std::iter::once(&redirect.target).chain(&redirect.others).find(can_be_called).cloned();
    Redirect { target: first.unwrap_or(redirect.target), others: Vec::new(), ..redirect }
}

/// Records that an extension forwards a live call; `None` if that would be a loop, or too long a chain.
pub(super) fn follow(
    live: &mut LiveCall,
    directory: &Directory,
    redirect: &Redirect,
    reason: ForwardReason,
) -> Option<()> {
    let number = &directory.extension(redirect.by)?.number;
    extend(&mut live.diverted, number, reason, &redirect.target)?;
    // Forks without a port were never rung, and have no place in the call.
    live.callees.truncate(live.call.parties().forked());
    Some(())
}

/// Adds an extension to those that have forwarded a call; `None` if that would be a loop, or too long a chain.
pub(super) fn extend(
    diverted: &mut Vec<Diversion>,
    number: &str,
    reason: ForwardReason,
    target: &str,
) -> Option<()> {
    if is_loop(diverted, number, target) || diverted.len() >= DIVERSIONS_MAX {
        return None;
    }
    diverted.push(Diversion { number: number.to_owned(), reason });
    Some(())
}

/// Whether a call would be forwarded in a circle: an extension may forward a call only once.
fn is_loop(diverted: &[Diversion], number: &str, target: &str) -> bool {
    let has_forwarded = |number: &str| diverted.iter().any(|diversion| diversion.number == number);
    number == target || has_forwarded(number) || has_forwarded(target)
}

/// Returns the facts of a forwarded call, from its first facts and those of the new target. The call still belongs to its
/// caller, and a call from a trunk is still an inbound call to the number that it arrived on. Only the prices are those
/// of the new target.
pub(super) fn facts(before: Facts, target: Facts, diverted: &[Diversion]) -> Facts {
    let to = target.destination_number.clone();
    let forwarded =
        |last: &Diversion| Forwarded { by: last.number.clone(), reason: last.reason, to: to.clone() };
    let (direction, destination, dialled) = match (before.direction, target.direction) {
        (Direction::Inbound, _) => (Direction::Inbound, before.destination_number, before.dialled_number),
        (before_direction, target_direction) => {
            let dialled = before.dialled_number.or(before.destination_number);
            let is_outbound = target_direction == Direction::Outbound;
            let direction = if is_outbound { target_direction } else { before_direction };
            (direction, to.clone(), dialled)
        }
    };
    Facts {
        call: before.call,
        extension: before.extension,
        agent: before.agent,
        team: before.team,
        // The last extension that forwarded the call, if the new target is none.
        called: target.called.or(before.called),
        trunk: before.trunk,
        direction,
        started_at: before.started_at,
        caller_number: before.caller_number,
        destination_number: destination,
        dialled_number: dialled,
        forwarded: diverted.last().map(forwarded),
        ..target
    }
}

/// Adds headers, such as Diversion (RFC 5806) and History-Info (RFC 7044), to the INVITEs of new targets.
pub(super) fn mark(callees: Vec<Callee>, headers: &[(&'static str, String)]) -> Vec<Callee> {
    if headers.is_empty() {
        return callees;
    }
    let mark = |callee: Callee| {
        let invite = headers.iter().fold(callee.invite, |invite, (name, value)| invite.header(name, value));
        Callee { invite, ..callee }
    };
    callees.into_iter().map(mark).collect()
}

/// Returns the headers that name the extensions that forwarded the call: latest first in Diversion, oldest first in
/// History-Info. Empty for a call that was not forwarded.
pub(super) fn headers(
    diverted: &[Diversion],
    directory: &Directory,
    organisation: OrganisationId,
    target: &str,
) -> Vec<(&'static str, String)> {
    let organisation = directory.organisation(organisation).filter(|_| !diverted.is_empty());
    let Some(host) = organisation.and_then(|known| Host::parse(&known.sip_domain).ok()) else {
        return Vec::new();
    };
    let address = |number: &str| Uri::sip(host.clone(), None).with_user(number).to_string();
    let diversions = diverted.iter().rev().map(|Diversion { number, reason }| {
        ("Diversion", format!("<{}>;reason={};counter=1", address(number), reason_word(*reason)))
    });
    let mut index = "1".to_owned();
    let mut history = Vec::with_capacity(diverted.len().saturating_add(1));
    for (place, Diversion { number, reason }) in diverted.iter().enumerate() {
        let mapped = if place == 0 { "" } else { ";mp=1" };
        let cause = cause(*reason);
        history.push((
            "History-Info",
            format!("<{}?Reason=SIP%3Bcause%3D{cause}>;index={index}{mapped}", address(number)),
        ));
        index.push_str(".1");
    }
    history.push(("History-Info", format!("<{}>;index={index};mp=1", address(target))));
    diversions.chain(history).collect()
}

/// The reason in Diversion (RFC 5806 §4).
fn reason_word(reason: ForwardReason) -> &'static str {
    match reason {
        ForwardReason::Always => "unconditional",
        ForwardReason::Busy => "user-busy",
        ForwardReason::DoNotDisturb => "do-not-disturb",
        ForwardReason::NoAnswer => "no-answer",
        ForwardReason::Redirected => "deflection",
        ForwardReason::Unregistered => "unavailable",
    }
}

/// The SIP status in History-Info (RFC 7044 §10.2, RFC 4458 §3).
fn cause(reason: ForwardReason) -> u16 {
    match reason {
        ForwardReason::Always | ForwardReason::Redirected => 302,
        ForwardReason::Busy => 486,
        ForwardReason::DoNotDisturb => 480,
        ForwardReason::NoAnswer => 408,
        ForwardReason::Unregistered => 503,
    }
}

/// The number of Contacts after the first that are kept of a redirection.
const OTHERS_MAX: usize = 9;
/// How often one call is forwarded.
const DIVERSIONS_MAX: usize = 5;
