//! The table of subscriptions: who watches whom, until when, and which of them have news.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use sidetone_model::ids::ExtensionId;
use sidetone_sip::flow::Flow;
use sidetone_sip::message::StatusCode;
use sidetone_sip::ua::SubscriptionKey;

use crate::subscriptions::documents::Shown;
use crate::subscriptions::package::Package;

/// The subscriptions of all phones.
///
/// *Bounds*: [`PER_PHONE_MAX`] for each subscribing extension.
#[derive(Default)]
pub(in super::super) struct Subscriptions {
    known: HashMap<SubscriptionKey, Subscription>,
    /// By the extension that is watched.
    watching: BTreeSet<(ExtensionId, SubscriptionKey)>,
    /// By the extension that watches.
    watched_by: BTreeSet<(ExtensionId, SubscriptionKey)>,
    timers: BTreeSet<(Instant, SubscriptionKey)>,
    /// Those that may have news.
    due: BTreeSet<SubscriptionKey>,
}

/// A subscription.
pub(super) struct Subscription {
    pub(super) by: ExtensionId,
    pub(super) watched: ExtensionId,
    pub(super) package: Package,
    /// The `id` of its Event header.
    pub(super) event_id: Option<String>,
    /// Where its device sends from.
    pub(super) flow: Flow,
    pub(super) expires_at: Instant,
    /// The number of documents sent.
    pub(super) version: u32,
    /// What the device was shown last; `None` when it must be shown the state in any case.
    pub(super) shown: Option<Shown>,
    /// Why it ends with the next NOTIFY (RFC 6665 §4.1.3).
    pub(super) ending: Option<Ending>,
    is_in_progress: bool,
    wakes_at: Instant,
}

/// Why a subscription ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The subscriber's credential has changed, or its extension was deleted.
    Deactivated,
    /// The watched extension was deleted.
    NoResource,
    /// Its time is over, or the subscriber has ended it.
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
        (by, watched): (ExtensionId, ExtensionId),
        (package, event_id): (Package, Option<String>),
        flow: Flow,
        expires_at: Instant,
    ) -> Self {
        Subscription {
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
            wakes_at: expires_at,
        }
    }
}

impl Subscriptions {
    /// Adds a subscription, and returns an earlier one that it replaces: of the same device to the same state, made
    /// before the device was restarted.
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
        self.timers.insert((new.wakes_at, key));
        self.due.insert(key);
        self.known.insert(key, new);
        replaced
    }

    /// Whether an extension has as many subscriptions as it may have.
    pub(super) fn is_full(&self, by: ExtensionId) -> bool {
        self.of(by).count() >= PER_PHONE_MAX
    }

    pub(super) fn get(&self, key: SubscriptionKey) -> Option<&Subscription> {
        self.known.get(&key)
    }

    /// Extends or ends a subscription; its next NOTIFY is due in any case (RFC 6665 §4.2.1.2).
    pub(super) fn refresh(&mut self, key: SubscriptionKey, expires_at: Instant, ending: Option<Ending>) {
        let Some(known) = self.known.get_mut(&key) else { return };
        (known.expires_at, known.shown, known.ending) = (expires_at, None, ending);
        self.wake_at(key, expires_at);
        self.due.insert(key);
    }

    /// Removes a subscription.
    pub(super) fn remove(&mut self, key: SubscriptionKey) {
        let Some(known) = self.known.remove(&key) else { return };
        self.watching.remove(&(known.watched, key));
        self.watched_by.remove(&(known.by, key));
        self.timers.remove(&(known.wakes_at, key));
        self.due.remove(&key);
    }

    /// Notes that the state of an extension may have changed.
    pub(in super::super) fn touch(&mut self, extension: ExtensionId) {
        self.due.extend(keys(&self.watching, extension));
    }

    /// Whether no phone has a subscription.
    pub(in super::super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Ends the subscriptions of an extension whose credential has changed, and, if it was deleted, those to it.
    pub(in super::super) fn forget(&mut self, extension: ExtensionId, is_deleted: bool) {
        let to_it: Vec<_> = keys(&self.watching, extension).filter(|_| is_deleted).collect();
        let by_it: Vec<_> = self.of(extension).collect();
        let endings = to_it.into_iter().map(|key| (key, Ending::NoResource));
        for (key, ending) in endings.chain(by_it.into_iter().map(|key| (key, Ending::Deactivated))) {
            if let Some(known) = self.known.get_mut(&key) {
                known.ending = Some(ending);
                self.due.insert(key);
            }
        }
    }

    /// Returns a subscription that may have news and whose last NOTIFY was answered.
    pub(super) fn poll(&mut self) -> Option<SubscriptionKey> {
        let is_free = |key: &&SubscriptionKey| self.known.get(key).is_some_and(|known| !known.is_in_progress);
        let key = self.due.iter().find(is_free).copied()?;
        self.due.remove(&key);
        Some(key)
    }

    /// Notes that a NOTIFY with this state was sent.
    pub(super) fn sent(&mut self, key: SubscriptionKey, shown: Shown) {
        let Some(known) = self.known.get_mut(&key) else { return };
        known.shown = Some(shown);
        known.version = known.version.wrapping_add(1);
        known.is_in_progress = true;
    }

    /// Tries again later, because there was no space for the NOTIFY.
    pub(super) fn postpone(&mut self, now: Instant, key: SubscriptionKey) {
        let Some(known) = self.known.get_mut(&key) else { return };
        known.shown = None;
        self.wake_at(key, now + RETRY_AFTER);
    }

    /// Handles the result of a NOTIFY; returns whether the subscription has ended with it. A device that does not know
    /// the subscription, or does not answer, has none any more (RFC 6665 §4.2.2).
    pub(super) fn answered(&mut self, key: SubscriptionKey, status: Option<StatusCode>) -> bool {
        let Some(known) = self.known.get_mut(&key) else { return false };
        known.is_in_progress = false;
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

    /// Marks those as due whose time has come.
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
            self.due.insert(key);
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
const PER_PHONE_MAX: usize = 400;
const RETRY_AFTER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use sidetone_sip::flow::ListenerId;
    use uuid::Uuid;

    use super::*;
    use crate::tests::ladder::any_instant;

    #[test]
    fn a_notify_without_space_is_sent_later() {
        let now = any_instant();
        let [by, watched]: [ExtensionId; 2] = [1, 2].map(|n| Uuid::from_u128(n).into());
        let flow = Flow::udp(ListenerId(0), ([192, 0, 2, 1], 5060).into());
        let key = SubscriptionKey::MIN;
        let mut subscriptions = Subscriptions::default();
        let expires_at = now + Duration::from_secs(60);
        let new = Subscription::new((by, watched), (Package::Presence, None), flow, expires_at);
        assert_eq!(subscriptions.insert(key, new), None);
        assert_eq!(subscriptions.poll(), Some(key));
        subscriptions.postpone(now, key);
        assert_eq!(subscriptions.poll(), None);
        assert_eq!(subscriptions.next_timeout(), Some(now + RETRY_AFTER));
        subscriptions.timeout(now + RETRY_AFTER);
        assert_eq!(subscriptions.poll(), Some(key));
        subscriptions.sent(key, Shown::Registered(true));
        subscriptions.touch(watched);
        assert_eq!(subscriptions.poll(), None, "it waits for the response");
        assert!(!subscriptions.answered(key, Some(StatusCode::OK)));
        assert_eq!(subscriptions.poll(), Some(key));
        assert_eq!(subscriptions.next_timeout(), Some(expires_at));
    }
}
