//! The state of a user agent: its legs, the purposes of its transactions, and its pending outputs.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Instant;

use rand::rngs::StdRng;

use crate::dialog::{Dialog, InviteOutput, SessionTimer, SessionTimerConfig, TIMER};
use crate::flow::{Flow, Protocol};
use crate::message::{Request, Scheme, Uri};
use crate::transaction::deadlines::Deadlines;
use crate::transaction::{ClientKey, Layer, LayerConfig};
use crate::ua::event::{Cause, Event, Output};
use crate::ua::leg::{Leg, LegKey, Phase};
use crate::ua::subscription_key::SubscriptionKey;

/// A user agent, client and server in one.
pub struct Ua {
    pub(super) config: UaConfig,
    pub(super) layer: Layer,
    /// Boxed: the table has space for twice as many, and moves them when it grows.
    pub(super) legs: HashMap<LegKey, Box<Leg>>,
    /// All dialogs of a leg have the same local tag.
    pub(super) legs_by_tag: HashMap<String, LegKey>,
    /// The purpose of each client transaction, until its final response.
    pub(super) purposes: HashMap<ClientKey, Purpose>,
    pub(super) deadlines: Deadlines<LegKey>,
    /// The legs on connections.
    pub(super) on_connections: BTreeSet<(Flow, LegKey)>,
    /// The dialogs of subscriptions created by peers.
    pub(super) subscriptions: HashMap<SubscriptionKey, Box<Dialog>>,
    pub(super) subscriptions_by_tag: HashMap<String, SubscriptionKey>,
    pub(super) outputs: VecDeque<Output>,
    keys: u64,
}

/// Settings of a [`Ua`].
#[derive(Clone, Debug)]
pub struct UaConfig {
    /// Settings of the transaction layer.
    pub layer: LayerConfig,
    /// The largest number of legs; a further INVITE is answered 503.
    pub legs_len_max: usize,
    /// The option tags that are accepted in Require; any other is answered 420.
    pub extensions: Vec<String>,
    /// The option tags in Supported of INVITEs and of 2xx to INVITE, beside those of session timers and reliable
    /// responses; empty for none.
    pub dialog_extensions: String,
    /// The methods in Allow of INVITEs and of their responses from 101 to 299 (RFC 3261 §13.2.1, RFC 3311 §5.1). If it
    /// is empty, no Allow is sent.
    pub dialog_methods: String,
    /// Settings of session timers; `None` means that no leg has one.
    pub session_timer: Option<SessionTimerConfig>,
}

/// The purpose of a client transaction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Bye(LegKey),
    Info(LegKey),
    Invite(LegKey),
    Message,
    /// A NOTIFY of a subscription.
    Notify(SubscriptionKey),
    Outside,
    /// The PRACK of a provisional response of the peer.
    Prack(LegKey),
    /// An UPDATE that refreshes the session.
    Refresh(LegKey),
    Reinvite {
        leg: LegKey,
        cseq: u32,
        offered: bool,
    },
    Within(LegKey),
}

impl Purpose {
    /// The leg of the request.
    pub(super) fn leg(&self) -> Option<LegKey> {
        match self {
            Purpose::Bye(leg)
            | Purpose::Info(leg)
            | Purpose::Invite(leg)
            | Purpose::Prack(leg)
            | Purpose::Refresh(leg)
            | Purpose::Reinvite { leg, .. }
            | Purpose::Within(leg) => Some(*leg),
            Purpose::Message | Purpose::Notify(_) | Purpose::Outside => None,
        }
    }
}

impl UaConfig {
    /// Space for [`LEGS_MAX`] legs, no extensions.
    pub fn new(layer: LayerConfig) -> Self {
        Self {
            layer,
            legs_len_max: LEGS_MAX,
            extensions: Vec::new(),
            dialog_extensions: String::new(),
            dialog_methods: String::new(),
            session_timer: None,
        }
    }
}

impl Ua {
    /// A user agent without legs; `rng` makes branches, tags, Call-IDs and random waits.
    pub fn new(config: UaConfig, rng: StdRng) -> Self {
        Self {
            layer: Layer::new(config.layer.clone(), rng),
            config,
            legs: HashMap::new(),
            legs_by_tag: HashMap::new(),
            purposes: HashMap::new(),
            deadlines: Deadlines::new(),
            on_connections: BTreeSet::new(),
            subscriptions: HashMap::new(),
            subscriptions_by_tag: HashMap::new(),
            outputs: VecDeque::new(),
            keys: 0,
        }
    }

    pub(super) fn leg_of_tag(&self, tag: &str) -> Option<LegKey> {
        self.legs_by_tag.get(tag).copied()
    }

    /// Removes a subscription. A NOTIFY in progress is still repeated; its result is not reported.
    pub fn end_subscription(&mut self, subscription: SubscriptionKey) {
        if let Some(dialog) = self.subscriptions.remove(&subscription) {
            self.subscriptions_by_tag.remove(&dialog.id().local_tag);
        }
    }

    /// The option tags of all supported extensions, as the value of Supported.
    pub fn supported(&self) -> String {
        let timer = self.config.session_timer.is_some().then_some(TIMER);
        let tags: Vec<&str> = self.config.extensions.iter().map(String::as_str).chain(timer).collect();
        tags.join(", ")
    }

    /// The number of subscriptions.
    pub fn subscriptions_len(&self) -> usize {
        self.subscriptions.len()
    }

    /// The subscription that a request names by its To tag.
    pub(super) fn subscription_of_tag(&self, tag: &str) -> Option<SubscriptionKey> {
        self.subscriptions_by_tag.get(tag).copied()
    }

    pub(super) fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    pub(super) fn overload(&mut self, flow: Flow) {
        self.outputs.push_back(Output::Overload { flow });
    }

    pub(super) fn insert_leg(&mut self, leg: Leg) -> LegKey {
        let leg = Leg { timer: self.session_timer(), ..leg };
        let key = LegKey(self.next_key());
        self.legs_by_tag.insert(leg.local_tag.clone(), key);
        self.legs.insert(key, Box::new(leg));
        self.hold_flow(key);
        key
    }

    /// A number that no leg and no subscription had before.
    pub(super) fn next_key(&mut self) -> u64 {
        self.keys += 1;
        self.keys
    }

    /// Reports the end of the leg to the user, once.
    pub(super) fn release(&mut self, key: LegKey, cause: Cause) {
        if let Some(leg) = self.legs.get_mut(&key).filter(|leg| !leg.released) {
            leg.released = true;
            self.event(Event::Ended { leg: key, cause });
        }
    }

    pub(super) fn remove_leg(&mut self, now: Instant, key: LegKey) {
        if let Some(leg) = self.legs.remove(&key) {
            self.legs_by_tag.remove(&leg.local_tag);
            // Otherwise the transaction of the INVITE would stay forever if the peer sent 100 and then failed.
            if let Some(client) = &leg.reinvite {
                self.layer.cancel(now, client, None);
            }
            self.release_flow(key, leg.held);
            self.drop_refresh(leg.update);
        }
        self.deadlines.set(key, None);
    }

    /// Removes a leg that has nothing left to do; otherwise updates its timeout.
    pub(super) fn settle(&mut self, now: Instant, key: LegKey) {
        match self.legs.get(&key) {
            Some(leg) if matches!(leg.phase, Phase::Ending) && leg.byes == 0 => self.remove_leg(now, key),
            Some(leg) => {
                self.deadlines.set(key, leg.next_timeout());
                self.hold_flow(key);
            }
            None => {}
        }
    }

    /// Holds the connection of a leg, and releases its previous one. For datagrams it does nothing.
    pub(super) fn hold_flow(&mut self, key: LegKey) {
        let Some(leg) = self.legs.get_mut(&key) else { return };
        let flow = leg.dialogs.first().map_or(leg.flow, Dialog::flow);
        if leg.held.as_deref() == Some(&flow) || (leg.held.is_none() && !flow.protocol.is_reliable()) {
            return;
        }
        let before = match flow.protocol.is_reliable() {
            true => leg.held.replace(Box::new(flow)),
            false => leg.held.take(),
        };
        self.release_flow(key, before);
        if flow.protocol.is_reliable() {
            let is_first = !self.is_used(&flow);
            self.on_connections.insert((flow, key));
            if is_first {
                self.outputs.push_back(Output::Hold { flow, is_held: true });
            }
        }
    }

    /// Releases the connection that was held for a leg.
    pub(super) fn release_flow(&mut self, key: LegKey, held: Option<Box<Flow>>) {
        let Some(flow) = held.map(|held| *held) else { return };
        self.on_connections.remove(&(flow, key));
        if !self.is_used(&flow) {
            self.outputs.push_back(Output::Hold { flow, is_held: false });
        }
    }

    fn is_used(&self, flow: &Flow) -> bool {
        self.on_connections.range((*flow, LegKey::MIN)..=(*flow, LegKey::MAX)).next().is_some()
    }

    /// Our Contact for the peer of a flow; a `sips:` URI in a dialog that begins with a request for one (§8.1.1.8,
    /// §12.1.1).
    pub(super) fn contact(&self, flow: &Flow, user: Option<&str>, is_sips: bool) -> String {
        let local = self.config.layer.local.address(flow);
        let mut uri = Uri::sip(local.host, local.port);
        if let Some(user) = user {
            uri = uri.with_user(user);
        }
        if is_sips {
            uri = uri.with_scheme(Scheme::Sips);
        }
        // `sips:` implies TLS (RFC 5630 §3.1.3).
        if flow.protocol.is_reliable() && !(is_sips && flow.protocol == Protocol::Tls) {
            uri = uri.with_param("transport", Some(flow.protocol.uri_transport()));
        }
        format!("<{uri}>")
    }

    /// A timer for a new leg, if the user agent uses session timers.
    pub(super) fn session_timer(&self) -> Option<SessionTimer> {
        self.config.session_timer.map(SessionTimer::new)
    }

    pub(super) fn refresh_target(&mut self, key: LegKey, at: usize, request: &Request) {
        if let Some(dialog) = self.legs.get_mut(&key).and_then(|leg| leg.dialogs.get_mut(at)) {
            let _ = dialog.refresh_target_by(request); // The guard has read Contact; an unreadable one changes nothing.
        }
    }

    /// Removes the UPDATE of a leg that is removed.
    pub(super) fn drop_refresh(&mut self, client: Option<ClientKey>) {
        if let Some(client) = client {
            self.purposes.remove(&client);
        }
    }

    /// Passes a due retry of an INVITE to the user.
    pub(super) fn poll_usage(&mut self, key: LegKey) {
        let Some(leg) = self.legs.get_mut(&key) else { return };
        if let Some(InviteOutput::Retry) = leg.usage.poll_output()
            && !leg.released
        {
            self.event(Event::ReinviteDue { leg: key });
        }
    }
}

/// Default bound of the table of legs: 20,000 calls of two legs, and legs whose BYE is not answered yet.
pub const LEGS_MAX: usize = 50_000;
