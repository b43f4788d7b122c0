//! The table of subscriptions: the subscribing and the watched extension of each, its expiry, and whether a NOTIFY is
//! due.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use sidetone_model::ids::{ExtensionId, OrganisationId};
use sidetone_sip::flow::Flow;
use sidetone_sip::message::StatusCode;
use sidetone_sip::ua::SubscriptionKey;

use crate::subscriptions::documents::Shown;
use crate::subscriptions::package::Package;

/// The subscriptions of all phones.
///
/// *Bounds*: [`PER_EXTENSION_MAX`] for each subscribing extension, [`PER_ORGANISATION_MAX`] for each organisation.
pub(in super::super) struct Subscriptions {
    known: HashMap<SubscriptionKey, Subscription>,
    /// Subscriptions by watched extension.
    watching: BTreeSet<(ExtensionId, SubscriptionKey)>,
    /// Subscriptions by subscribing extension.
    watched_by: BTreeSet<(ExtensionId, SubscriptionKey)>,
    /// The number of subscriptions of each organisation that has any.
    of_organisation: HashMap<OrganisationId, usize>,
    organisation_len_max: usize,
    timers: BTreeSet<(Instant, SubscriptionKey)>,
    /// The subscriptions whose state may have changed, except those whose NOTIFY is in progress.
    due: BTreeSet<SubscriptionKey>,
}

impl Default for Subscriptions {
    fn default() -> Self {
        Subscriptions {
            known: HashMap::new(),
            watching: BTreeSet::new(),
            watched_by: BTreeSet::new(),
            of_organisation: HashMap::new(),
            organisation_len_max: PER_ORGANISATION_MAX,
            timers: BTreeSet::new(),
            due: BTreeSet::new(),
        }
    }
}

/// A subscription.
pub(super) struct Subscription {
    /// The organisation of both extensions.
    organisation: OrganisationId,
    pub(super) by: ExtensionId,
    pub(super) watched: ExtensionId,
    pub(super) package: Package,
    /// The `id` of its Event header.
    pub(super) event_id: Option<String>,
    /// The flow of its device.
    pub(super) flow: Flow,
    pub(super) expires_at: Instant,
    /// The number of documents sent.
    pub(super) version: u32,
    /// The state last sent to the device; `None` when the state must be sent even without a change.
    pub(super) shown: Option<Shown>,
    /// Why it ends with the next NOTIFY (RFC 6665 §4.1.3).
    pub(super) ending: Option<Ending>,
    is_in_progress: bool,
    /// Whether its state may have changed since the NOTIFY in progress was sent.
    has_news: bool,
    wakes_at: Instant,
}

/// Why a subscription ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The subscriber's credential has changed, or its extension was deleted.
    Deactivated,
    /// The watched extension was deleted.
    NoResource,
    /// It has expired, or the subscriber has ended it.
    Timeout,
}

impl Ending {
    /// The reason in Subscription-State.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Ending::Deactivated => "deactivated",
            Ending::NoResource => "noresource",
            Ending::Timeout => "timeout",
        }
    }
}

impl Subscription {
    /// A subscription whose first NOTIFY is due.
    pub(super) fn new(
        organisation: OrganisationId,
        (by, watched): (ExtensionId, ExtensionId),
        (package, event_id): (Package, Option<String>),
        flow: Flow,
        expires_at: Instant,
    ) -> Self {
        Subscription {
            organisation,
            by,
            watched,
            package,
            event_id,
            flow,
            expires_at,
            version: 0,
            shown: None,
            ending: None,
            is_in_progress: false,
            has_news: false,
            wakes_at: expires_at,
        }
    }
}

impl Subscriptions {
    /// Adds a subscription, and returns an earlier one that it replaces: the same device had subscribed to the same
    /// state before a restart.
    pub(super) fn insert(&mut self, key: SubscriptionKey, new: Subscription) -> Option<SubscriptionKey> {
        let is_same = |key: &SubscriptionKey| {
            self.known.get(key).is_some_and(|old| {
                (old.watched, old.package, old.flow, &old.event_id)
                    == (new.watched, new.package, new.flow, &new.event_id)
            })
        };
        let replaced = self.of(new.by).find(is_same);
        if let Some(replaced) = replaced {
            self.remove(replaced);
        }
        self.watching.insert((new.watched, key));
        self.watched_by.insert((new.by, key));
        *self.of_organisation.entry(new.organisation).or_default() += 1;
        self.timers.insert((new.wakes_at, key));
        self.due.insert(key);
        self.known.insert(key, new);
        replaced
    }

    /// Whether an extension, or its organisation, has reached its limit of subscriptions.
    pub(super) fn is_full(&self, organisation: OrganisationId, by: ExtensionId) -> bool {
        let of_organisation = self.of_organisation.get(&organisation).copied().unwrap_or_default();
        of_organisation >= self.organisation_len_max || self.of(by).count() >= PER_EXTENSION_MAX
    }

    pub(super) fn get(&self, key: SubscriptionKey) -> Option<&Subscription> {
        self.known.get(&key)
    }

    /// Extends or ends a subscription; its next NOTIFY is due in any case (RFC 6665 §4.2.1.2). A subscription that the
    /// directory has ended is not extended: its subscriber was authenticated by a credential that is no longer valid.
    pub(super) fn refresh(&mut self, key: SubscriptionKey, expires_at: Instant, ending: Option<Ending>) {
        let Some(known) = self.known.get_mut(&key) else { return };
        (known.expires_at, known.shown) = (expires_at, None);
        if !matches!(known.ending, Some(Ending::Deactivated | Ending::NoResource)) {
            known.ending = ending;
        }
        self.wake_at(key, expires_at);
        self.mark_due(key);
    }

    /// Removes a subscription.
    pub(super) fn remove(&mut self, key: SubscriptionKey) {
        let Some(known) = self.known.remove(&key) else { return };
        self.watching.remove(&(known.watched, key));
        self.watched_by.remove(&(known.by, key));
        if let Entry::Occupied(mut len) = self.of_organisation.entry(known.organisation) {
            *len.get_mut() -= 1;
            if *len.get() == 0 {
                len.remove();
            }
        }
        self.timers.remove(&(known.wakes_at, key));
        self.due.remove(&key);
    }

    /// Notes that the state of an extension may have changed.
    pub(in super::super) fn touch(&mut self, extension: ExtensionId) {
        let watching: Vec<_> = keys(&self.watching, extension).collect();
        watching.into_iter().for_each(|key| self.mark_due(key));
    }

    /// Whether no phone has a subscription.
    pub(in super::super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Ends the subscriptions of an extension whose credential has changed; if it was deleted, also those to it.
    pub(in super::super) fn forget(&mut self, extension: ExtensionId, is_deleted: bool) {
        let to_it: Vec<_> = keys(&self.watching, extension).filter(|_| is_deleted).collect();
        let by_it: Vec<_> = self.of(extension).collect();
        let endings = to_it.into_iter().map(|key| (key, Ending::NoResource));
        for (key, ending) in endings.chain(by_it.into_iter().map(|key| (key, Ending::Deactivated))) {
            if let Some(known) = self.known.get_mut(&key) {
                known.ending = Some(ending);
                self.mark_due(key);
            }
        }
    }

    /// Returns a subscription whose state may have changed and whose last NOTIFY was answered.
    pub(super) fn poll(&mut self) -> Option<SubscriptionKey> {
        self.due.pop_first()
    }

    /// Notes that the state of a subscription may have changed; its NOTIFY waits for the response to one in progress.
    fn mark_due(&mut self, key: SubscriptionKey) {
        match self.known.get_mut(&key) {
            Some(known) if known.is_in_progress => known.has_news = true,
            Some(_) => {
                self.due.insert(key);
            }
            None => {}
        }
    }

    /// Notes that a NOTIFY with this state was sent.
    pub(super) fn sent(&mut self, key: SubscriptionKey, shown: Shown) {
        let Some(known) = self.known.get_mut(&key) else { return };
        known.shown = Some(shown);
        known.version = known.version.wrapping_add(1);
        (known.is_in_progress, known.has_news) = (true, false);
    }

    /// Tries again later, because there was no space for the NOTIFY.
    pub(super) fn postpone(&mut self, now: Instant, key: SubscriptionKey) {
        let Some(known) = self.known.get_mut(&key) else { return };
        known.shown = None;
        self.wake_at(key, now + RETRY_AFTER);
    }

    /// Handles the result of a NOTIFY; returns whether the subscription has ended with it. It ends when the device does
    /// not recognise it, or does not answer (RFC 6665 §4.2.2).
    pub(super) fn answered(&mut self, key: SubscriptionKey, status: Option<StatusCode>) -> bool {
        let Some(known) = self.known.get_mut(&key) else { return false };
        known.is_in_progress = false;
        if known.has_news {
            self.due.insert(key);
        }
        let is_there = status.is_some_and(|status| !matches!(status.as_u16(), 400..=499 | 600..));
        if !is_there {
            self.remove(key);
        }
        !is_there
    }

    /// Returns when the next subscription expires.
    pub(in super::super) fn next_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Marks expired subscriptions and retries as due.
    pub(in super::super) fn timeout(&mut self, now: Instant) {
        while let Some((_, key)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.pop_first();
            let Some(known) = self.known.get_mut(&key) else { continue };
            if known.expires_at <= now {
                known.ending = Some(Ending::Timeout);
            } else {
                known.wakes_at = known.expires_at;
                self.timers.insert((known.wakes_at, key));
            }
            self.mark_due(key);
        }
    }

    fn wake_at(&mut self, key: SubscriptionKey, at: Instant) {
        let Some(known) = self.known.get_mut(&key) else { return };
        self.timers.remove(&(known.wakes_at, key));
        known.wakes_at = at.min(known.expires_at);
        self.timers.insert((known.wakes_at, key));
    }

    fn of(&self, by: ExtensionId) -> impl Iterator<Item = SubscriptionKey> {
        keys(&self.watched_by, by)
    }
}

/// The subscriptions of one extension in an index.
fn keys(
    index: &BTreeSet<(ExtensionId, SubscriptionKey)>,
    extension: ExtensionId,
) -> impl Iterator<Item = SubscriptionKey> {
    let of_it = index.range((extension, SubscriptionKey::MIN)..=(extension, SubscriptionKey::MAX));
    of_it.map(|(_, key)| *key)
}

/// Twice the keys of the largest phones with two packages.
const PER_EXTENSION_MAX: usize = 400;
/// A quarter of the user agent's limit for all organisations.
const PER_ORGANISATION_MAX: usize = 25_000;
const RETRY_AFTER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use sidetone_sip::flow::ListenerId;
    use uuid::Uuid;

    use super::*;
    use crate::tests::ladder::any_instant;

    const EXPIRES: Duration = Duration::from_secs(60);

    fn organisation(n: u128) -> OrganisationId {
        Uuid::from_u128(n).into()
    }

    fn extension(n: u128) -> ExtensionId {
        Uuid::from_u128(n).into()
    }

    /// A subscription of extension `by` to extension 100 of its organisation.
    fn subscription(expires_at: Instant, of: u128, by: u128) -> Subscription {
        let flow = Flow::udp(ListenerId(0), ([192, 0, 2, 1], 5060).into());
        let extensions = (extension(by), extension(100));
        Subscription::new(organisation(of), extensions, (Package::Presence, None), flow, expires_at)
    }

    #[test]
    fn a_notify_without_space_is_sent_later() {
        let now = any_instant();
        let key = SubscriptionKey::MIN;
        let mut subscriptions = Subscriptions::default();
        assert_eq!(subscriptions.insert(key, subscription(now + EXPIRES, 1, 1)), None);
        assert_eq!(subscriptions.poll(), Some(key));
        subscriptions.postpone(now, key);
        assert_eq!(subscriptions.poll(), None);
        assert_eq!(subscriptions.next_timeout(), Some(now + RETRY_AFTER));
        subscriptions.timeout(now + RETRY_AFTER);
        assert_eq!(subscriptions.poll(), Some(key));
        subscriptions.sent(key, Shown::Registered(true));
        subscriptions.touch(extension(100));
        assert_eq!(subscriptions.poll(), None, "it waits for the response");
        assert!(!subscriptions.answered(key, Some(StatusCode::OK)));
        assert_eq!(subscriptions.poll(), Some(key));
        assert_eq!(subscriptions.next_timeout(), Some(now + EXPIRES));
    }

    /// The SUBSCRIBE needs no credentials inside its dialog.
    #[test]
    fn a_refresh_does_not_revive_what_a_new_password_has_ended() {
        let key = SubscriptionKey::MIN;
        let soon = any_instant() + EXPIRES;
        let later = soon + EXPIRES;
        for (is_deleted, of, ending) in
            [(false, extension(1), Ending::Deactivated), (true, extension(100), Ending::NoResource)]
        {
            let mut subscriptions = Subscriptions::default();
            subscriptions.insert(key, subscription(soon, 1, 1));
            assert_eq!(subscriptions.poll(), Some(key));
            subscriptions.sent(key, Shown::Registered(true));
            subscriptions.forget(of, is_deleted);
            for by_refresh in [None, Some(Ending::Timeout)] {
                subscriptions.refresh(key, later, by_refresh);
                assert_eq!(subscriptions.get(key).and_then(|known| known.ending), Some(ending));
            }
            assert!(!subscriptions.answered(key, Some(StatusCode::OK)));
            assert_eq!(subscriptions.poll(), Some(key), "its last NOTIFY is due");
        }
    }

    #[test]
    fn a_full_organisation_keeps_no_other_from_subscribing() {
        let soon = any_instant() + EXPIRES;
        let mut subscriptions = Subscriptions { organisation_len_max: 2, ..Subscriptions::default() };
        let [first, second] = [SubscriptionKey::MIN, SubscriptionKey::MAX];
        subscriptions.insert(first, subscription(soon, 1, 1));
        assert!(!subscriptions.is_full(organisation(1), extension(2)));
        subscriptions.insert(second, subscription(soon, 1, 2));
        assert!(subscriptions.is_full(organisation(1), extension(3)));
        assert!(!subscriptions.is_full(organisation(2), extension(4)));
        subscriptions.remove(first);
        assert!(!subscriptions.is_full(organisation(1), extension(3)));
        // The phone of extension 2 was restarted: its new subscription replaces the one before.
        assert_eq!(subscriptions.insert(first, subscription(soon, 1, 2)), Some(second));
        assert!(!subscriptions.is_full(organisation(1), extension(3)));
    }
}
