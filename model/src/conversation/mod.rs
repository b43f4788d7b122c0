//! The conversation: what was said on a call that an agent, a person or a virtual one, took; who paid for the AI;
//! and what the review after the call found.
//!
//! A conversation grows while the call runs and is complete once it has an end. Completing it settles its price
//! and runs the review, once; both stay as they are from then on.

mod draft;
mod port;
mod resource;
mod review;
#[cfg(test)]
mod tests;
mod update;
mod view;

pub use draft::{ConversationDraft, LIMITS, Limits};
pub use port::{Conversations, FoundConversation, ReportedConversation, Reporter};
pub use resource::{
    AiBillingMode, AiUse, Charge, Conversation, Flag, FlagKind, KnowledgeBase, ReviewProfile, Turn, TurnRole,
};
pub use review::review;
pub use update::{Conflict, Update};
pub use view::{ConversationView, FlagView, Sight, TurnView};
