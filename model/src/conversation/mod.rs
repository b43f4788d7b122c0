//! Conversations: the transcript of a call that a human or virtual agent handled, who paid for the AI, and
//! the findings of the review after the call.
//!
//! A conversation grows during the call and is complete once it has an end. Completing it settles its price
//! and runs the review, once; both are final.

mod draft;
mod port;
mod resource;
mod review;
#[cfg(test)]
mod tests;
mod update;
mod view;

pub use draft::{ConversationDraft, LIMITS, Limits};
pub use port::{
    ConversationQuery, Conversations, FoundConversation, ListedConversation, ReportedConversation, Reporter,
};
pub use resource::{
    AiBillingMode, AiUse, Charge, Conversation, Flag, FlagKind, KnowledgeBase, ReviewProfile, Turn, TurnRole,
};
pub use review::review;
pub use update::{Conflict, Update};
pub use view::{ConversationItem, ConversationView, FlagView, Sight, TurnView};
