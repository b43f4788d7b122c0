//! What a user agent keeps: its legs, why each of its transactions runs, and what waits to be given out.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use rand::rngs::StdRng;

use crate::dialog::{InviteOutput, SessionTimer, SessionTimerConfig};
use crate::flow::Flow;
use crate::message::Uri;
use crate::transaction::deadlines::Deadlines;
use crate::transaction::{ClientKey, Layer, LayerConfig};
use crate::ua::event::{Cause, Event, Output};
use crate::ua::leg::{Leg, LegKey, Phase};

/// A user agent, client and server in one.
pub struct Ua {
    pub(super) config: UaConfig,
    pub(super) layer: Layer,
    pub(super) legs: HashMap<LegKey, Leg>,
    /// All dialogs of a leg have the same local tag.
    pub(super) legs_by_tag: HashMap<String, LegKey>,
    /// The purpose of each client transaction, until its final response.
    pub(super) purposes: HashMap<ClientKey, Purpose>,
    pub(super) deadlines: Deadlines<LegKey>,
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
    Outside,
    /// An UPDATE that refreshes the session.
    Refresh(LegKey),
    Reinvite {
        leg: LegKey,
        cseq: u32,
        offered: bool,
    },
    Within(LegKey),
}

impl UaConfig {
    /// Space for [`LEGS_MAX`] legs, no extensions.
    pub fn new(layer: LayerConfig) -> Self {
        Self { layer, legs_len_max: LEGS_MAX, extensions: Vec::new(), session_timer: None }
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
            outputs: VecDeque::new(),
            keys: 0,
        }
    }

    pub(super) fn leg_of_tag(&self, tag: &str) -> Option<LegKey> {
        self.legs_by_tag.get(tag).copied()
    }

    pub(super) fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    pub(super) fn overload(&mut self, flow: Flow) {
        self.outputs.push_back(Output::Overload { flow });
    }

    pub(super) fn insert_leg(&mut self, leg: Leg) -> LegKey {
        let leg = Leg { timer: self.session_timer(), ..leg };
        self.keys += 1;
        let key = LegKey(self.keys);
        self.legs_by_tag.insert(leg.local_tag.clone(), key);
        self.legs.insert(key, leg);
        key
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
            // Otherwise the transaction of the INVITE stays for ever when the peer sent 100 and then failed.
            if let Some(client) = &leg.reinvite {
                self.layer.cancel(now, client);
            }
            self.drop_refresh(leg.update);
        }
        self.deadlines.set(key, None);
    }

    /// Removes a leg that has nothing left to do; otherwise updates its timeout.
    pub(super) fn settle(&mut self, now: Instant, key: LegKey) {
        match self.legs.get(&key) {
            Some(leg) if matches!(leg.phase, Phase::Ending) && leg.byes == 0 => self.remove_leg(now, key),
            Some(leg) => self.deadlines.set(key, leg.next_timeout()),
            None => {}
        }
    }

    /// Our Contact for the peer of a flow.
    pub(super) fn contact(&self, flow: &Flow, user: Option<&str>) -> String {
        let local = self.config.layer.local.address(flow);
        let mut uri = Uri::sip(local.host, local.port);
        if let Some(user) = user {
            uri = uri.with_user(user);
        }
        if flow.protocol.is_reliable() {
            uri = uri.with_param("transport", Some(&flow.protocol.as_str().to_ascii_lowercase()));
        }
        format!("<{uri}>")
    }

    /// A timer for a new leg, when the user agent has them.
    pub(super) fn session_timer(&self) -> Option<SessionTimer> {
        self.config.session_timer.map(SessionTimer::new)
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

/// Default bound of the table of legs: 5,000 calls of two legs.
pub const LEGS_MAX: usize = 10_000;
