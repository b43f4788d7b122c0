//! Identifiers as distinct types, so that a leg's id cannot be used as a call's.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map($name)
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                $name(uuid)
            }
        }
    )*

        /// Returns every id's name and schema, for the API document.
        #[cfg(feature = "openapi")]
        pub fn schemas() -> Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)> {
            vec![$((<$name as utoipa::ToSchema>::name().into_owned(), <$name as utoipa::PartialSchema>::schema()),)*]
        }
    };
}

ids! {
    /// An agent: a person or a virtual agent that takes calls.
    AgentId;
    /// A price of an AI model.
    AiPriceId;
    /// A stored integration key; not the short id inside the key's text.
    ApiKeyId;
    /// A call and its record (`call_uuid`).
    CallId;
    /// The request of a program to place a call.
    CallRequestId;
    /// A recording of a call.
    CallRecordingId;
    /// A campaign that places calls.
    CampaignId;
    /// A session of a conference room.
    ConferenceSessionId;
    /// The customer of a call.
    ContactId;
    /// The transcript of one call.
    ConversationId;
    /// A cost rate.
    CostRateId;
    /// The delivery of one event to one webhook.
    DeliveryId;
    /// An event in the outbox.
    EventId;
    /// An extension of an organisation.
    ExtensionId;
    /// A conversion rate between two currencies.
    FxRateId;
    /// One party's side of a call.
    LegId;
    /// The switch node that carries a call (`fs_node_id` on the record).
    NodeId;
    /// A note that is shown on phones.
    NoteId;
    /// A phone number of an organisation.
    NumberId;
    /// A tenant.
    OrganisationId;
    /// A prompt that a program plays into a call.
    PlayId;
    /// A conference room.
    RoomId;
    /// A sell rate.
    SellRateId;
    /// A team of extensions and agents.
    TeamId;
    /// A carrier or peer that calls come from and go to.
    TrunkId;
    /// A person who logs in.
    UserId;
    /// The settings of a virtual agent.
    VirtualAgentProfileId;
    /// An endpoint that receives events of an organisation.
    WebhookId;
}
