//! Teams and the agents in them.

use serde::{Deserialize, Serialize};

use crate::access::Scope;
use crate::ids::{AgentId, ExtensionId, OrganisationId, TeamId, UserId};
use crate::listing::Listing;
use crate::page::Page;
use crate::port_future::PortFuture;
use crate::time::Timestamp;

/// A part of an organisation whose records its supervisors and agents see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Team {
    /// Primary key.
    pub id: TeamId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// Unique within the organisation.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// The last change.
    pub updated_at: Timestamp,
}

/// An agent, who takes the calls of an extension; `agent_id` on their records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Agent {
    /// Primary key.
    pub id: AgentId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// The team on the agent's call records; the extension's team when it is absent.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub team_id: Option<TeamId>,
    /// The display name.
    pub name: String,
    /// A person or a program.
    pub kind: AgentKind,
    /// The agent's extension; no other agent may have it.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub extension_id: Option<ExtensionId>,
    /// The user of a human agent; no other agent may have it.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub user_id: Option<UserId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// The last change.
    pub updated_at: Timestamp,
}

/// A person or a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// A person.
    Human,
    /// A program that talks.
    Virtual,
}

impl AgentKind {
    /// Every kind with its name.
    pub const ALL: [(&'static str, AgentKind); 2] =
        [("human", AgentKind::Human), ("virtual", AgentKind::Virtual)];

    /// The name that the API uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            AgentKind::Human => "human",
            AgentKind::Virtual => "virtual",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }
}

/// A new agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAgent {
    /// The owner; team, extension and user must belong to the same organisation.
    pub organisation_id: OrganisationId,
    /// See [`Agent`].
    pub team_id: Option<TeamId>,
    /// See [`Agent`].
    pub name: String,
    /// See [`Agent`].
    pub kind: AgentKind,
    /// See [`Agent`].
    pub extension_id: Option<ExtensionId>,
    /// See [`Agent`]; only for a human.
    pub user_id: Option<UserId>,
}

/// The changes of an agent; `None` keeps the stored value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentChange {
    /// Another team, or none.
    pub team_id: Option<Option<TeamId>>,
    /// The new name.
    pub name: Option<String>,
    /// A person or a program.
    pub kind: Option<AgentKind>,
    /// Another extension, or none.
    pub extension_id: Option<Option<ExtensionId>>,
    /// Another user, or none.
    pub user_id: Option<Option<UserId>>,
}

/// The stored teams.
pub trait Teams: Send + Sync {
    /// The teams inside `scope`, by name unless `listing` sets another sort.
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<Team>>;

    /// One team, of any organisation.
    fn find(&self, team: TeamId) -> PortFuture<'_, Option<Team>>;

    /// Creates a team. A conflict if the organisation has a team of that name.
    fn create(&self, organisation: OrganisationId, name: String, now: Timestamp) -> PortFuture<'_, Team>;

    /// Renames a team inside `scope`.
    fn rename(&self, scope: Scope, team: TeamId, name: String, now: Timestamp) -> PortFuture<'_, Team>;

    /// Removes a team inside `scope`. A conflict while something refers to it.
    fn delete(&self, scope: Scope, team: TeamId) -> PortFuture<'_, ()>;
}

/// The stored agents.
pub trait Agents: Send + Sync {
    /// The agents inside `scope`, by name unless `listing` sets another sort.
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<Agent>>;

    /// One agent, of any organisation.
    fn find(&self, agent: AgentId) -> PortFuture<'_, Option<Agent>>;

    /// Creates an agent. A conflict when another one has the extension or the user.
    fn create(&self, new: NewAgent, now: Timestamp) -> PortFuture<'_, Agent>;

    /// Changes an agent inside `scope`.
    fn change(
        &self,
        scope: Scope,
        agent: AgentId,
        change: AgentChange,
        now: Timestamp,
    ) -> PortFuture<'_, Agent>;

    /// Removes an agent inside `scope`; its records keep its id.
    fn delete(&self, scope: Scope, agent: AgentId) -> PortFuture<'_, ()>;
}
