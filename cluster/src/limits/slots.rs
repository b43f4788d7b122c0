//! State machine of one node's outbound calls of organisations with a limit: what it requests from the homes of the
//! limits, and how it decides when they cannot be reached.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use sidetone_model::ids::{NodeId, OrganisationId};

use super::home::{Members, heir_of, home_of};
use super::ledger::SlotLedger;
use super::message::{Ask, Granted, Held, HomeSlots, Question, Recall, Reply, Report};
use crate::membership::RunId;

/// Events.
#[derive(Clone, Debug)]
pub enum Input {
    /// The members as this node sees them; `None` while it is cut off from them.
    Members(Option<Members>),
    /// All organisations with a limit that have outbound calls or waiting callers here.
    Needs(Vec<Needs>),
    /// The answer to a question; `None` after a timeout.
    Answered(AskId, Option<Reply>),
    /// The time of [`Slots::next_timeout`] has been reached.
    Timeout,
}

/// The outbound calls of an organisation at this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The organisation.
    pub organisation: OrganisationId,
    /// Its limit.
    pub limit: u32,
    /// Its active calls.
    pub up: u32,
    /// Its calls that wait for a decision.
    pub waiting: u32,
    /// The ticket of the last waiting call; tickets increase.
    pub ticket: u64,
}

/// Identifies a question: a late answer to an earlier one is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AskId(u64);

/// The number of calls an organisation may have at this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The organisation.
    pub organisation: OrganisationId,
    /// The number of calls, including active ones.
    pub slots: u32,
    /// Calls up to this ticket that do not fit are refused.
    pub ticket: u64,
    /// Whether only this node's share was applied, because the home could not be asked.
    pub by_share: bool,
}

/// Actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a question to a node.
    Ask(AskId, NodeId, Question),
    /// Waiting callers proceed or are refused.
    Decided(Decision),
}

/// The outbound calls of one node, and the ledger of the limits that have their home here.
#[derive(Debug)]
pub struct Slots {
    node: NodeId,
    run: RunId,
    /// `None` while this node is cut off.
    members: Option<Members>,
    /// The last members that this node has seen.
    last: Members,
    ledger: SlotLedger,
    peers: BTreeMap<NodeId, Peer>,
    organisations: BTreeMap<OrganisationId, State>,
    seq: u64,
    /// When to request missing reports from members. This node may have lost them while it was cut off, which the
    /// members do not know.
    recall_at: Option<Instant>,
    outputs: VecDeque<Output>,
}

/// Another member, and whether it has the report of this node.
#[derive(Debug, Default)]
struct Peer {
    has_report: bool,
    under_way: Option<(AskId, Vec<Held>)>,
    again: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    needs: Needs,
    /// The slots at this node, granted by the home or by the share.
    slots: u32,
    /// The slots that the home has counted for this node; `None` if unknown.
    counted: Option<u32>,
    /// The last ticket that was decided.
    decided: u64,
    under_way: Option<UnderWay>,
    /// The slots that the next home has recorded for this node as the home of the limit; `None` after a change of the
    /// members.
    known_to_heir: Option<u32>,
    /// The home is not asked before this time.
    again: Option<Instant>,
}

/// A question in progress.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    id: AskId,
    /// Its answer decides the callers up to this ticket.
    ticket: u64,
    /// The slots reported to the next home; `None` for a question to the home.
    takes: Option<Takes>,
}

/// Slots that this node has granted itself.
#[derive(Clone, Copy, Debug)]
struct Takes {
    /// The slots to record at the next home.
    held: u32,
    /// The slots that this node takes afterwards.
    slots: u32,
}

impl State {
    fn want(&self) -> u32 {
        self.needs.up.saturating_add(self.needs.waiting)
    }

    fn is_undecided(&self) -> bool {
        self.needs.waiting > 0 && self.needs.ticket > self.decided
    }

    fn held(&self) -> u32 {
        self.slots.max(self.needs.up)
    }
}

impl Slots {
    /// Without calls and other nodes; `run` is this run of the node.
    pub fn new(node: NodeId, run: RunId) -> Self {
        Slots {
            node,
            run,
            members: None,
            last: Members::default(),
            ledger: SlotLedger::default(),
            peers: BTreeMap::new(),
            organisations: BTreeMap::new(),
            seq: 0,
            recall_at: None,
            outputs: VecDeque::new(),
        }
    }

    /// Handles an event; drain [`Slots::poll_output`] afterwards.
    pub fn handle_input(&mut self, now: Instant, input: Input) {
        match input {
            Input::Members(members) => self.replace_members(now, members),
            Input::Needs(needs) => self.replace_needs(now, needs),
            Input::Answered(id, reply) => self.answered(now, id, reply),
            Input::Timeout => {
                let due = |at: Option<Instant>| at.filter(|at| *at > now);
                self.organisations.values_mut().for_each(|state| state.again = due(state.again));
                self.peers.values_mut().for_each(|peer| peer.again = due(peer.again));
                self.report(now);
                self.recall(now);
                self.work_all(now);
            }
        }
    }

    /// Answers a question of another node.
    pub fn answer(&mut self, now: Instant, question: &Question) -> Reply {
        match question {
            Question::HomeSlots(slots) if self.ledger.note_home(slots) => Reply::Reported,
            Question::HomeSlots(_) | Question::Rate(_) => Reply::Unready,
            Question::Slots(ask) => self.ledger.ask(ask).map_or(Reply::Unready, Reply::Slots),
            Question::Report(report) => {
                let is_taken = self.ledger.report(report);
                if self.ledger.is_ready() {
                    self.work_all(now);
                }
                if is_taken { Reply::Reported } else { Reply::Unready }
            }
            Question::Recall(Recall { node }) => {
                if let Some(peer) = self.peers.get_mut(node) {
                    (peer.has_report, peer.again) = (false, None);
                }
                self.report(now);
                Reply::Reported
            }
        }
    }

    /// The next action.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to feed [`Input::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        let states = self.organisations.values().filter_map(|state| state.again);
        states.chain(self.peers.values().filter_map(|peer| peer.again)).chain(self.recall_at).min()
    }

    /// Whether this node has the reports of all others for the limits that have their home here.
    pub fn is_ready(&self) -> bool {
        self.ledger.is_ready()
    }

    /// The number of calls of an organisation at all nodes, if this node is the home of its limit.
    pub fn held(&self, organisation: OrganisationId) -> u64 {
        self.ledger.held(organisation)
    }

    fn replace_members(&mut self, now: Instant, members: Option<Members>) {
        if let Some(members) = &members {
            self.last = members.clone();
        }
        if self.members.as_ref().map(Members::hash) == members.as_ref().map(Members::hash) {
            if let Some(members) = &members {
                self.ledger.replace_absent(members.clone());
            }
            self.members = members;
            return;
        }
        self.members = members;
        self.ledger.replace_members(self.members.clone().unwrap_or_default());
        for state in self.organisations.values_mut() {
            (state.counted, state.under_way, state.again, state.known_to_heir) = (None, None, None, None);
        }
        let others = self.members.iter().flat_map(Members::up).map(|member| member.node);
        self.peers = others.filter(|node| *node != self.node).map(|node| (node, Peer::default())).collect();
        if self.members.is_some() {
            let held = self.held_of(self.node);
            for Held { organisation, up } in &held {
                if let Some(state) = self.organisations.get_mut(organisation) {
                    state.counted = Some(*up);
                }
            }
            let report = self.report_of(held);
            self.ledger.report(&report);
        }
        self.recall_at = self.members.as_ref().map(|_| now + RECALL_AFTER);
        self.report(now);
        self.work_all(now);
    }

    fn replace_needs(&mut self, now: Instant, needs: Vec<Needs>) {
        for state in self.organisations.values_mut() {
            (state.needs.up, state.needs.waiting) = (0, 0);
        }
        for needs in needs {
            let new = State {
                needs,
                slots: 0,
                counted: Some(0),
                decided: 0,
                under_way: None,
                known_to_heir: Some(0),
                again: None,
            };
            self.organisations.entry(needs.organisation).or_insert(new).needs = needs;
        }
        for state in self.organisations.values_mut() {
            // The switch takes no further call until the next decision.
            state.slots = state.slots.min(state.want());
        }
        self.work_all(now);
        self.organisations.retain(|_, state| {
            state.want() > 0 || state.under_way.is_some() || state.counted.is_none_or(|counted| counted > 0)
        });
    }

    fn answered(&mut self, now: Instant, id: AskId, reply: Option<Reply>) {
        let of_id = |(organisation, state): (&OrganisationId, &State)| {
            let under_way = state.under_way.filter(|under_way| under_way.id == id);
            under_way.map(|under_way| (*organisation, under_way))
        };
        if let Some((organisation, under_way)) = self.organisations.iter().find_map(of_id) {
            let UnderWay { ticket, takes, .. } = under_way;
            match (reply, takes) {
                (Some(Reply::Slots(granted)), None) => self.granted(organisation, granted, ticket),
                (Some(Reply::Reported), Some(Takes { held, slots })) => {
                    if let Some(state) = self.organisations.get_mut(&organisation) {
                        state.known_to_heir = Some(held);
                    }
                    self.granted(organisation, Granted { slots }, ticket);
                }
                (Some(_), _) => self.not_granted(now + UNREADY_FOR, organisation),
                (None, _) => self.not_granted(now + UNREACHABLE_FOR, organisation),
            }
            return self.work(now, organisation);
        }
        let of_id = |(_, peer): &(&NodeId, &mut Peer)| {
            peer.under_way.as_ref().is_some_and(|(under_way, _)| *under_way == id)
        };
        let Some((node, peer)) = self.peers.iter_mut().find(of_id) else { return };
        let Some((_, held)) = peer.under_way.take() else { return };
        let node = *node;
        if !matches!(reply, Some(Reply::Reported)) {
            peer.again = Some(now + UNREADY_FOR);
            return;
        }
        peer.has_report = true;
        let reported = |organisation: &OrganisationId| {
            held.iter().find(|held| held.organisation == *organisation).map_or(0, |held| held.up)
        };
        let own: Vec<OrganisationId> =
            self.organisations.keys().copied().filter(|of| self.home(*of) == Some(node)).collect();
        for organisation in own {
            if let Some(state) = self.organisations.get_mut(&organisation) {
                state.counted = Some(reported(&organisation));
                state.again = None;
            }
            self.work(now, organisation);
        }
    }

    /// Records the number of calls that the home has counted.
    fn granted(&mut self, organisation: OrganisationId, Granted { slots }: Granted, ticket: u64) {
        let Some(state) = self.organisations.get_mut(&organisation) else { return };
        (state.under_way, state.again) = (None, None);
        // Calls may have ended since the question.
        (state.counted, state.slots) = (Some(slots), slots.min(state.want()));
        self.decide(organisation, ticket, false);
    }

    /// The home was not reached, or lacks reports of other nodes.
    fn not_granted(&mut self, again: Instant, organisation: OrganisationId) {
        let Some(state) = self.organisations.get_mut(&organisation) else { return };
        (state.under_way, state.counted, state.again) = (None, None, Some(again));
    }

    /// Decides the callers up to a ticket.
    fn decide(&mut self, organisation: OrganisationId, ticket: u64, by_share: bool) {
        let Some(state) = self.organisations.get_mut(&organisation) else { return };
        if state.needs.waiting > 0 && ticket > state.decided {
            state.decided = ticket;
            let decision = Decision { organisation, slots: state.slots, ticket, by_share };
            self.outputs.push_back(Output::Decided(decision));
        }
        if !state.is_undecided() {
            // Callers that do not fit are refused; the others are active.
            state.needs.up = state.want().min(state.held());
            state.needs.waiting = 0;
        }
    }

    fn work_all(&mut self, now: Instant) {
        let organisations: Vec<OrganisationId> = self.organisations.keys().copied().collect();
        organisations.into_iter().for_each(|organisation| self.work(now, organisation));
    }

    /// Performs the pending action of an organisation.
    fn work(&mut self, now: Instant, organisation: OrganisationId) {
        let home = self.home(organisation);
        let Some(state) = self.organisations.get(&organisation).copied() else { return };
        let is_counted = !state.is_undecided() && state.counted == Some(state.want());
        if state.under_way.is_some() || (is_counted && self.heir_to_notify(organisation, &state).is_none()) {
            return;
        }
        let is_resting = state.again.is_some_and(|again| again > now);
        let Some(home) = home else { return self.by_share(organisation) };
        if home == self.node {
            let ask = self.ask(organisation, state);
            return match self.ledger.ask(&ask) {
                Some(granted) => self.take(now, organisation, granted),
                None => {
                    self.not_granted(now + UNREADY_FOR, organisation);
                    self.by_share(organisation);
                }
            };
        }
        if is_resting || !self.peers.get(&home).is_some_and(|peer| peer.has_report) {
            return self.by_share(organisation);
        }
        let ask = self.ask(organisation, state);
        let id = AskId(ask.seq);
        if let Some(state) = self.organisations.get_mut(&organisation) {
            state.under_way = Some(UnderWay { id, ticket: state.needs.ticket, takes: None });
        }
        self.outputs.push_back(Output::Ask(id, home, Question::Slots(ask)));
    }

    /// Takes the slots that this node has granted itself. Slots beyond the share must be reported to the next home
    /// first, so that the calls stay counted there if this node is cut off.
    fn take(&mut self, now: Instant, organisation: OrganisationId, granted: Granted) {
        let Some(state) = self.organisations.get(&organisation).copied() else { return };
        let (slots, ticket, is_resting) =
            (granted.slots, state.needs.ticket, state.again.is_some_and(|again| again > now));
        let after = State { slots, ..state };
        let (heir, held) = (self.heir_to_notify(organisation, &after), self.beyond_share(&after));
        let waits = heir.is_some() && held > state.known_to_heir.unwrap_or(0);
        if waits && is_resting {
            return self.by_share(organisation);
        }
        if !waits {
            self.granted(organisation, granted, ticket);
        }
        let Some(heir) = heir else { return };
        let state = self.organisations.get_mut(&organisation);
        if is_resting {
            return state.into_iter().for_each(|state| state.again = after.again);
        }
        self.seq += 1;
        let id = AskId(self.seq);
        state.into_iter().for_each(|state| {
            state.under_way = Some(UnderWay { id, ticket, takes: Some(Takes { held, slots }) });
        });
        let members = self.members.as_ref().map(Members::hash).unwrap_or_default();
        let slots = HomeSlots { node: self.node, run: self.run, seq: self.seq, members, organisation, held };
        self.outputs.push_back(Output::Ask(id, heir, Question::HomeSlots(slots)));
    }

    /// The member to notify of this node's slots as the home of a limit, if its record is out of date.
    fn heir_to_notify(&self, organisation: OrganisationId, state: &State) -> Option<NodeId> {
        let members = self.members.as_ref().filter(|_| self.home(organisation) == Some(self.node))?;
        let heir = heir_of(members, organisation.0, self.node)?;
        (state.known_to_heir != Some(self.beyond_share(state))).then_some(heir)
    }

    /// The slots that this node holds of a limit, if they exceed its share; otherwise 0.
    fn beyond_share(&self, state: &State) -> u32 {
        let share = self.members.as_ref().unwrap_or(&self.last).share(state.needs.limit);
        let held = state.held();
        if held > share { held } else { 0 }
    }

    /// Decides by this node's share of the limit.
    fn by_share(&mut self, organisation: OrganisationId) {
        let share = |limit| self.members.as_ref().unwrap_or(&self.last).share(limit);
        let Some(state) = self.organisations.get(&organisation).copied().filter(State::is_undecided) else {
            return;
        };
        let slots = share(state.needs.limit).min(state.want()).max(state.needs.up);
        if let Some(state) = self.organisations.get_mut(&organisation) {
            (state.slots, state.counted) = (slots, None);
        }
        self.decide(organisation, state.needs.ticket, true);
    }

    /// Reports this node's slots to the members that lack the report.
    fn report(&mut self, now: Instant) {
        let is_due = |peer: &Peer| {
            !peer.has_report && peer.under_way.is_none() && peer.again.is_none_or(|again| again <= now)
        };
        let due: Vec<NodeId> =
            self.peers.iter().filter(|(_, peer)| is_due(peer)).map(|(node, _)| *node).collect();
        for node in due {
            let held = self.held_of(node);
            let mut report = self.report_of(held.clone());
            report.absent = self.ledger.absent();
            let id = AskId(report.seq);
            if let Some(peer) = self.peers.get_mut(&node) {
                (peer.under_way, peer.again) = (Some((id, held)), None);
            }
            self.outputs.push_back(Output::Ask(id, node, Question::Report(report)));
        }
    }

    /// Requests the missing reports from members.
    fn recall(&mut self, now: Instant) {
        if self.recall_at.is_none_or(|at| at > now) {
            return;
        }
        let missing: Vec<NodeId> = self.ledger.missing().filter(|node| *node != self.node).collect();
        self.recall_at = (!missing.is_empty()).then(|| now + RECALL_AFTER);
        for node in missing {
            self.seq += 1;
            let question = Question::Recall(Recall { node: self.node });
            self.outputs.push_back(Output::Ask(AskId(self.seq), node, question));
        }
    }

    /// The slots that this node holds of the limits whose home is `home`.
    fn held_of(&self, home: NodeId) -> Vec<Held> {
        let own = self
            .organisations
            .iter()
            .filter(|(organisation, state)| state.held() > 0 && self.home(**organisation) == Some(home));
        own.map(|(organisation, state)| Held { organisation: *organisation, up: state.held() }).collect()
    }

    fn home(&self, organisation: OrganisationId) -> Option<NodeId> {
        home_of(self.members.as_ref()?, organisation.0)
    }

    fn report_of(&mut self, held: Vec<Held>) -> Report {
        self.seq += 1;
        let members = self.members.as_ref().map(Members::hash).unwrap_or_default();
        Report { node: self.node, run: self.run, seq: self.seq, members, held, absent: Vec::new() }
    }

    fn ask(&mut self, organisation: OrganisationId, state: State) -> Ask {
        self.seq += 1;
        let members = self.members.as_ref().map(Members::hash).unwrap_or_default();
        Ask {
            node: self.node,
            run: self.run,
            seq: self.seq,
            members,
            organisation,
            limit: state.needs.limit,
            up: state.needs.up,
            want: state.want(),
        }
    }
}

/// How long to wait for reports.
const RECALL_AFTER: Duration = Duration::from_millis(500);
/// How long a home that lacks reports is not asked again.
const UNREADY_FOR: Duration = Duration::from_millis(200);
/// How long a home that does not answer is not asked again; callers do not wait for it during that time.
const UNREACHABLE_FOR: Duration = Duration::from_secs(1);
