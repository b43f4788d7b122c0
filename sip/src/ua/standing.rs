//! Classifies a message before it is parsed: messages of a call are never delayed, and stray messages cost little.

use crate::message::{Glance, Hop, Kind, Method};
use crate::ua::leg::LegKey;
use crate::ua::state::Ua;
use crate::ua::subscription_key::SubscriptionKey;

/// How a message relates to a user agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It belongs to a live dialog or transaction with this number.
    Live(u64),
    /// It belongs to no dialog or transaction yet.
    New,
    /// It is not SIP.
    NotSip,
    /// It cannot be accepted here.
    Stray,
}

impl Ua {
    /// Classifies a message from its glance.
    pub fn standing(&self, glance: &Glance<'_>) -> Standing {
        match &glance.kind {
            Kind::KeepAlive => Standing::New,
            Kind::NotSip => Standing::NotSip,
            Kind::Response => {
                let via = glance.via.and_then(|via| Hop::parse(via).ok());
                match via.and_then(|hop| hop.branch()).filter(|branch| self.layer.is_own_branch(branch)) {
                    // The number comes from its branch, which is unique.
                    Some(branch) => Standing::Live(number_of(branch)),
                    None => Standing::Stray,
                }
            }
            Kind::Request(method) => self.standing_of_request(method, glance),
        }
    }

    fn standing_of_request(&self, method: &Method, glance: &Glance<'_>) -> Standing {
        if let Some(LegKey(number)) = glance.to_tag.and_then(|tag| self.leg_of_tag(tag)) {
            return Standing::Live(number);
        }
        if let Some(SubscriptionKey(number)) = glance.to_tag.and_then(|tag| self.subscription_of_tag(tag)) {
            return Standing::Live(number);
        }
        // A request outside of dialogs may also be a retransmission; the rate limits of its source apply.
        if glance.to_tag.is_none() && *method != Method::Cancel && *method != Method::Ack {
            return Standing::New;
        }
        let via = glance.via.and_then(|via| Hop::parse(via).ok());
        let of = if *method == Method::Cancel { &Method::Invite } else { method };
        match via.and_then(|via| self.layer.transaction_of(&via, of)) {
            Some(number) => Standing::Live(number),
            // The ACK of a refusal that left no transaction. For RFC 2543 elements the Via does not show
            // that.
            None if *method == Method::Ack && via.is_some_and(|via| via.rfc3261_branch().is_some()) => {
                Standing::Stray
            }
            None => Standing::New,
        }
    }
}

fn number_of(branch: &str) -> u64 {
    let seal = branch.len().checked_sub(16).and_then(|at| branch.get(at..));
    seal.and_then(|seal| u64::from_str_radix(seal, 16).ok()).unwrap_or_default()
}
