//! SUBSCRIBE requests of phones, and the NOTIFY requests that follow (RFC 6665 §4.2).

use std::time::Duration;

use sidetone_model::ids::{ExtensionId, OrganisationId};
use sidetone_model::time::Now;
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Name, Request, StatusCode};
use sidetone_sip::registrar::Registrar;
use sidetone_sip::transaction::{SendError, ServerKey};
use sidetone_sip::ua::{Event, Extra, Reply, Ua};

use crate::call_table::CallTable;
use crate::live::LiveCall;
use crate::message_parts::dialled;
use crate::routing::Directory;
use crate::shared::Shared;
use crate::subscriptions::documents::{Shown, ShownDialog};
use crate::subscriptions::machine::{Ending, Subscription, Subscriptions};
use crate::subscriptions::package::Package;

/// The parts of the switch that handle a SUBSCRIBE.
pub(in super::super) struct SubscribeContext<'a> {
    pub(in super::super) now: Now,
    pub(in super::super) ua: &'a mut Ua,
    pub(in super::super) directory: &'a Directory,
    pub(in super::super) subscriptions: &'a mut Subscriptions,
}

impl SubscribeContext<'_> {
    /// Handles a SUBSCRIBE of an extension that begins a subscription.
    ///
    /// # Errors
    /// The refusal.
    pub(in super::super) fn subscribe(
        &mut self,
        by: ExtensionId,
        key: &ServerKey,
        flow: &Flow,
        request: &Request,
    ) -> Result<(), Reply> {
        if request.to_bytes().len() > SUBSCRIBE_BYTES_MAX {
            return Err(Reply::new(StatusCode::MESSAGE_TOO_LARGE));
        }
        let (package, event_id) = Package::of(request)?;
        if !package.is_accepted_by(request) {
            let reply = Reply::new(StatusCode::NOT_ACCEPTABLE);
            return Err(reply.header(Name::Accept.as_str(), package.content_type()));
        }
        let lifetime = lifetime(request)?;
        let (organisation, watched) =
            self.watched(by, request).ok_or_else(|| Reply::new(StatusCode::NOT_FOUND))?;
        if self.subscriptions.is_full(organisation, by) {
            return Err(Reply::new(StatusCode::FORBIDDEN).reason("Too Many Subscriptions"));
        }
        let subscription =
            match self.ua.accept_subscription(self.now.instant, key, *flow, request, accepted(lifetime)) {
                Ok(subscription) => subscription,
                Err(SendError::Overload) => return Err(Reply::new(StatusCode::SERVICE_UNAVAILABLE)),
                Err(_) => return Err(Reply::new(StatusCode::BAD_REQUEST)),
            };
        let expires_at = self.now.instant + lifetime;
        let new = Subscription::new(organisation, (by, watched), (package, event_id), *flow, expires_at);
        if let Some(replaced) = self.subscriptions.insert(subscription, new) {
            self.ua.end_subscription(replaced);
        }
        if lifetime.is_zero() {
            self.subscriptions.refresh(subscription, expires_at, Some(Ending::Timeout));
        }
        Ok(())
    }

    /// The subscriber's organisation and its extension that a SUBSCRIBE names; extensions of others are not
    /// disclosed.
    fn watched(&self, by: ExtensionId, request: &Request) -> Option<(OrganisationId, ExtensionId)> {
        let organisation = self.directory.extension(by)?.organisation_id;
        let uri = request.parsed_uri().ok()?;
        let domain = uri.host()?.to_string();
        let is_own = self.directory.organisation_of_domain(&domain).is_some_and(|of| of.id == organisation);
        let line = self.directory.line(organisation, &dialled(&uri)?).filter(|_| is_own)?;
        Some((organisation, line.id))
    }
}

/// Handles an event of a subscription: a SUBSCRIBE that refreshes or ends it, or the result of a NOTIFY.
pub(in super::super) fn event(now: Now, event: Event, shared: &mut Shared) {
    match event {
        Event::NotifyAnswered { subscription, status }
            if shared.subscriptions.answered(subscription, status) =>
        {
            shared.ua.end_subscription(subscription);
        }
        Event::Resubscribed { subscription, key, request } => match lifetime(&request) {
            Ok(lifetime) => {
                shared.respond(now, &key, accepted(lifetime));
                let ending = lifetime.is_zero().then_some(Ending::Timeout);
                shared.subscriptions.refresh(subscription, now.instant + lifetime, ending);
            }
            Err(reply) => shared.respond(now, &key, reply),
        },
        _ => {} // The caller passes only the events above.
    }
}

/// Sends one NOTIFY that is due; returns whether there was any work.
pub(in super::super) fn notify(now: Now, calls: &CallTable, shared: &mut Shared) -> bool {
    let Some(key) = shared.subscriptions.poll() else { return false };
    let Some(known) = shared.subscriptions.get(key) else { return true };
    let line = shared.directory.extension(known.watched);
    let entity = line.and_then(|line| shared.directory.aor(line));
    let shown = match (&entity, known.package) {
        (Some(_), Package::Dialog) => Shown::Dialogs(dialogs_of(known.watched, calls, &shared.ua)),
        (Some(aor), Package::Presence) => Shown::Registered(is_registered(now, aor, &shared.registrar)),
        (_, Package::MessageSummary) => {
            Shown::Messages(line.map(|line| line.message_waiting).unwrap_or_default())
        }
        (None, Package::Dialog) => Shown::Dialogs(Vec::new()),
        (None, Package::Presence) => Shown::Registered(false),
    };
    if known.ending.is_none() && known.shown.as_ref() == Some(&shown) {
        return true;
    }
    let event = match &known.event_id {
        Some(id) => format!("{};id={id}", known.package.name()),
        None => known.package.name().to_owned(),
    };
    let ending = known.ending;
    let state = match ending {
        Some(ending) => format!("terminated;reason={}", ending.as_str()),
        None => {
            let left = known.expires_at.saturating_duration_since(now.instant);
            format!("active;expires={}", left.as_secs())
        }
    };
    let mut extra =
        Extra::new().header(Name::Event.as_str(), event).header(Name::SubscriptionState.as_str(), state);
    if let Some(entity) = entity
        && let Ok(document) = shown.document(&entity, known.version)
    {
        extra = extra.content(known.package.content_type(), document);
    }
    let sent = shared.ua.notify(now.instant, key, &extra);
    match (sent, ending) {
        (Ok(()), None) => shared.subscriptions.sent(key, shown),
        (Err(SendError::Overload), None) => shared.subscriptions.postpone(now.instant, key),
        _ => {
            shared.subscriptions.remove(key);
            shared.ua.end_subscription(key);
        }
    }
    true
}

/// The 200 with the granted duration.
fn accepted(lifetime: Duration) -> Reply {
    Reply::new(StatusCode::OK).header(Name::Expires.as_str(), lifetime.as_secs().to_string())
}

/// The duration granted to a SUBSCRIBE (RFC 6665 §4.2.1.1).
///
/// # Errors
/// The refusal of a duration that is too short.
fn lifetime(request: &Request) -> Result<Duration, Reply> {
    match request.expires().unwrap_or(LIFETIME_S_MAX) {
        wanted if (1..LIFETIME_S_MIN).contains(&wanted) => Err(Reply::new(StatusCode::INTERVAL_TOO_BRIEF)
            .header(Name::MinExpires.as_str(), LIFETIME_S_MIN.to_string())),
        wanted => Ok(Duration::from_secs(wanted.min(LIFETIME_S_MAX).into())),
    }
}

fn is_registered(now: Now, aor: &str, registrar: &Registrar) -> bool {
    !registrar.lookup(aor, now.instant).is_empty()
}

/// The calls of an extension in the order of their ids.
fn dialogs_of(extension: ExtensionId, calls: &CallTable, ua: &Ua) -> Vec<ShownDialog> {
    let mut dialogs: Vec<_> = calls.iter().flat_map(|live| shown_of(live, extension, ua)).collect();
    dialogs.sort_by(|a, b| a.id.cmp(&b.id));
    dialogs
}

/// The legs of an extension in one call.
fn shown_of<'a>(
    live: &'a LiveCall,
    extension: ExtensionId,
    ua: &'a Ua,
) -> impl Iterator<Item = ShownDialog> + 'a {
    let facts = live.call.facts();
    let caller = live.caller.as_ref().map(|caller| caller.identity.id);
    let own = live.parties().filter(move |(_, identity, _)| identity.extension == Some(extension));
    own.map(move |(key, identity, state)| {
        let is_caller = caller == Some(identity.id);
        let dialog = key.and_then(|key| ua.dialog_of(key));
        let remote = if is_caller { &facts.destination_number } else { &facts.caller_number };
        ShownDialog {
            id: identity.id.to_string(),
            dialog: dialog.map(|(id, ours, theirs)| (id.to_owned(), ours.to_owned(), theirs.to_owned())),
            is_caller,
            state,
            remote: remote.clone(),
        }
    })
}

/// Also the duration for a SUBSCRIBE without Expires (RFC 4235 §3.4, RFC 3856 §6.4).
const LIFETIME_S_MAX: u32 = 3_600;
const LIFETIME_S_MIN: u32 = 60;
/// The dialog keeps the addresses, the tags and the route of its SUBSCRIBE; a phone needs a quarter of this.
const SUBSCRIBE_BYTES_MAX: usize = 4_096;
