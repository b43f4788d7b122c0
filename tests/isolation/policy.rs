//! The policy: one row per operation.

use serde_json::{Value, json};

use crate::isolation::fixture::{Tenant, ai_price, conversation, meeting};

/// The effect of an operation, which determines the response to a caller without access to its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Acts on one resource: another tenant's is refused.
    Act,
    /// Changes one resource: another tenant's is refused.
    Change,
    /// Creates a resource: in another tenant, or from another's resources, it is refused.
    Create,
    /// Deletes one resource: another tenant's is refused.
    Delete,
    /// Lists resources: another tenant's are not among them.
    List,
    /// Reads one resource: another tenant's is refused.
    One,
    /// For any client on this host, without a token.
    Local,
    /// For any client, with a token or without.
    Public,
    /// Creates or changes one resource under an id that the caller chooses.
    Put,
    /// For logged-in users, on themselves.
    Session,
    /// The same for every tenant: responds with this status to any caller with the permission.
    Shared(u16),
}

/// Who may use an operation, and how the test calls it.
pub struct Row {
    pub operation: &'static str,
    pub shape: Shape,
    /// The values for the path, by their names in the fixture, separated by spaces.
    id: &'static str,
    /// The part after the path.
    query: &'static str,
    body: fn(&Tenant) -> Value,
    /// Only for the operator.
    pub operator: bool,
    /// The status for a supervisor and an agent of another team, when it does not follow from the shape.
    team: Option<u16>,
    /// A resource of their own that they see in a list.
    team_sees: &'static str,
    right: Option<u16>,
    /// Another correct status.
    pub or: Option<u16>,
}

const fn row(operation: &'static str, shape: Shape, id: &'static str) -> Row {
    Row {
        operation,
        shape,
        id,
        query: "",
        body: |_| Value::Null,
        operator: false,
        team: None,
        team_sees: "redplant",
        right: None,
        or: None,
    }
}

impl Row {
    const fn body_of(self, body: fn(&Tenant) -> Value) -> Row {
        Row { body, ..self }
    }

    const fn with_query(self, query: &'static str) -> Row {
        Row { query, ..self }
    }

    const fn for_operators(self) -> Row {
        Row { operator: true, ..self }
    }

    const fn for_other_teams(self, status: u16) -> Row {
        Row { team: Some(status), ..self }
    }

    const fn shows_teams(self, own: &'static str) -> Row {
        Row { team_sees: own, ..self }
    }

    /// The call may be changing at that moment.
    const fn or(self, status: u16) -> Row {
        Row { or: Some(status), ..self }
    }

    const fn answers(self, status: u16) -> Row {
        Row { right: Some(status), ..self }
    }

    /// `GET`.
    pub fn method(&self) -> &'static str {
        self.operation.split(' ').next().unwrap()
    }

    /// The path with the ids of `tenant`.
    pub fn path(&self, tenant: &Tenant) -> String {
        let path = self.operation.split(' ').nth(1).unwrap();
        let mut names = self.id.split(' ');
        let mut filled = String::new();
        let mut rest = path;
        while let Some((before, after)) = rest.split_once('{') {
            filled += before;
            filled += &tenant.id(names.next().unwrap());
            rest = after.split_once('}').unwrap().1;
        }
        filled + rest + self.query
    }

    /// The valid body for `tenant`; null when there is none.
    pub fn body(&self, tenant: &Tenant) -> Value {
        (self.body)(tenant)
    }

    /// The resource for an id field of the body, by its name in the fixture.
    pub fn body_id(&self, field: &str) -> String {
        match field {
            "call_uuid" => "cdr_id",
            "destination_id" => "extension_id",
            "with" => "call_id",
            field => field,
        }
        .to_owned()
    }

    /// The status for a permitted caller.
    pub fn right(&self) -> u16 {
        self.right.unwrap_or(match self.shape {
            Shape::Create => 201,
            Shape::Delete => 204,
            Shape::Shared(status) => status,
            _ => 200,
        })
    }

    /// A resource of their own that they see in a list.
    pub fn team_sees(&self) -> &'static str {
        self.team_sees
    }

    /// The status for a supervisor and an agent of another team: they list their own team's resources, and write
    /// nothing.
    pub fn other_team(&self) -> u16 {
        self.team.unwrap_or(if self.shape == Shape::List { 200 } else { 403 })
    }
}

use Shape::{Act, Change, Create, Delete, List, Local, One, Public, Put, Session, Shared};

pub const ROWS: &[Row] = &[
    // The caller's own identity.
    row("POST /api/v1/auth/login", Public, "")
        .body_of(|tenant| json!({"email": tenant.user("member"), "password": crate::isolation::fixture::PASSWORD})),
    row("GET /api/v1/auth/me", Session, ""),
    row("POST /api/v1/auth/logout", Session, "").answers(204),
    row("POST /api/v1/auth/password", Session, "").answers(204).body_of(
        |_| json!({"old_password": crate::isolation::fixture::PASSWORD, "new_password": crate::isolation::fixture::PASSWORD}),
    ),
    // Calls that are up.
    row("GET /api/v1/calls", List, ""),
    row("GET /api/v1/calls/{uuid}", One, "call.blue"),
    row("GET /api/v1/calls/{uuid}/quality", One, "call.blue"),
    // Calls placed over the API.
    row("POST /api/v1/calls", Act, "")
        .with_query("?dry_run=true")
        .body_of(|tenant| json!({"from": tenant.id("extension.blue"), "to": "1003"})),
    row("GET /api/v1/call-requests", List, ""),
    row("GET /api/v1/call-requests/{id}", One, "request.blue"),
    row("DELETE /api/v1/call-requests/{id}", Act, "request.blue").answers(409),
    // Notes to phones.
    row("POST /api/v1/calls/{uuid}/conference", Act, "call.blue")
        .body_of(|tenant| json!({"with": tenant.id("call.blue")}))
        .answers(409),
    row("POST /api/v1/calls/{uuid}/transfer", Act, "call.blue")
        .body_of(|tenant| json!({"with": tenant.id("call.blue")}))
        .answers(422),
    row("POST /api/v1/calls/{uuid}/move-to-room", Act, "call.blue")
        .body_of(|tenant| json!({"room_id": tenant.id("room"), "leg": tenant.id("call.blue")}))
        .answers(422),
    row("POST /api/v1/calls/{uuid}/play", Act, "call.blue").body_of(|_| json!({"prompt": "goodbye"})).answers(202),
    row("DELETE /api/v1/calls/{uuid}/play", Act, "call.blue").answers(204),
    row("POST /api/v1/calls/{uuid}/record", Act, "call.blue").body_of(|_| json!({"action": "start"})),
    row("POST /api/v1/calls/{uuid}/pickup", Act, "call.blue")
        .body_of(|_| json!({"from": "1999"}))
        .answers(422),
    row("POST /api/v1/calls/{uuid}/hold", Act, "call.blue"),
    row("POST /api/v1/calls/{uuid}/unhold", Act, "call.blue"),
    row("POST /api/v1/calls/{uuid}/info", Change, "call.blue")
        .answers(202)
        .body_of(|tenant| json!({"title": format!("{} blueplant", tenant.plant)})),
    row("GET /api/v1/calls/{uuid}/infos", One, "call.blue"),
    row("GET /api/v1/calls/{uuid}/signalling", One, "call.blue"),
    row("POST /api/v1/extensions/{id}/message", Change, "extension.blue")
        .answers(202)
        .body_of(|tenant| json!({"title": format!("{} blueplant", tenant.plant)})),
    row("GET /api/v1/extensions/{id}/messages", One, "extension.blue"),
    // Last: the offers of `unhold` may still be in progress, and a parked call refuses the operations above.
    row("POST /api/v1/calls/{uuid}/park", Act, "call.blue").or(409),
    row("DELETE /api/v1/calls/{uuid}", Delete, "call.blue"),
    // The call log.
    row("GET /api/v1/cdrs", List, ""),
    row("GET /api/v1/cdrs/export", List, ""),
    row("GET /api/v1/cdrs/{uuid}", One, "cdr.blue"),
    row("GET /api/v1/cdrs/{uuid}/quality", One, "cdr.blue"),
    row("GET /api/v1/cdrs/{uuid}/recordings", One, "cdr.blue"),
    row("GET /api/v1/cdrs/{uuid}/recordings/{rid}/audio", One, "cdr.blue call.blue").answers(404),
    row("DELETE /api/v1/cdrs/{uuid}/recordings/{rid}", Delete, "cdr.blue call.blue").answers(404),
    row("GET /api/v1/cdrs/{uuid}/signalling", One, "cdr.blue"),
    row("GET /api/v1/cdrs/{uuid}/trace", One, "cdr.blue").answers(404),
    row("GET /api/v1/cdrs/totals", Shared(200), "").for_other_teams(200).shows_teams("\"count\":2"),
    row("GET /api/v1/cdrs/verdicts", Shared(200), "").for_other_teams(200).shows_teams("\"judged\":3"),
    // Conversations.
    row("GET /api/v1/cdrs/{uuid}/conversation", One, "cdr.blue"),
    row("GET /api/v1/conversations", List, ""),
    row("GET /api/v1/conversations/{id}", One, "conversation.blue"),
    row("PUT /api/v1/conversations/{id}", Put, "conversation.blue")
        .body_of(|tenant| conversation(&tenant.plant, &tenant.ids, "blue")),
    row("GET /api/v1/ai-prices", List, "").for_other_teams(403),
    row("POST /api/v1/ai-prices", Create, "").for_operators().body_of(|tenant| {
        let mut second = ai_price(&tenant.plant, &tenant.organisation);
        second["model"] = json!("second");
        second
    }),
    row("GET /api/v1/ai-prices/{id}", One, "price"),
    row("PATCH /api/v1/ai-prices/{id}", Change, "price")
        .for_operators()
        .body_of(|_| json!({"output_per_million": "3.00"})),
    row("DELETE /api/v1/ai-prices/{id}", Delete, "price").for_operators(),
    // The prices of calls.
    row("GET /api/v1/sell-rates", List, "").for_other_teams(403),
    row("POST /api/v1/sell-rates", Create, "").for_operators().body_of(|tenant| {
        json!({"organisation_id": tenant.organisation, "prefix": "+45", "per_minute": "0.02", "currency": "EUR"})
    }),
    row("GET /api/v1/sell-rates/{id}", One, "sell_rate"),
    row("PATCH /api/v1/sell-rates/{id}", Change, "sell_rate")
        .for_operators()
        .body_of(|_| json!({"per_minute": "0.03"})),
    row("DELETE /api/v1/sell-rates/{id}", Delete, "sell_rate").for_operators(),
    row("GET /api/v1/cost-rates", List, "").for_operators().for_other_teams(403),
    row("POST /api/v1/cost-rates", Create, "").for_operators().body_of(
        |tenant| json!({"trunk_id": tenant.id("trunk"), "prefix": "+45", "per_minute": "0.01", "currency": "EUR"}),
    ),
    row("GET /api/v1/cost-rates/{id}", One, "cost_rate").for_operators(),
    row("PATCH /api/v1/cost-rates/{id}", Change, "cost_rate")
        .for_operators()
        .body_of(|_| json!({"per_minute": "0.02"})),
    row("DELETE /api/v1/cost-rates/{id}", Delete, "cost_rate").for_operators(),
    row("GET /api/v1/fx-rates", List, "").for_operators().for_other_teams(403),
    row("POST /api/v1/fx-rates", Create, "").for_operators().body_of(
        |_| json!({"from": "CHF", "to": "EUR", "rate": "1.05", "from_time": "2026-01-01T00:00:00Z"}),
    ),
    row("GET /api/v1/fx-rates/{id}", One, "fx_rate").for_operators(),
    row("PATCH /api/v1/fx-rates/{id}", Change, "fx_rate").for_operators().body_of(|_| json!({"rate": "0.93"})),
    row("DELETE /api/v1/fx-rates/{id}", Delete, "fx_rate").for_operators(),
    // The history of conference rooms.
    row("GET /api/v1/conference-rooms/{id}/sessions", One, "room"),
    row("GET /api/v1/conference-rooms/{id}/sessions/{sid}", One, "room session"),
    row("GET /api/v1/conference-rooms/{id}/sessions/{sid}/recording/audio", One, "room session").answers(404),
    row("DELETE /api/v1/conference-rooms/{id}/sessions/{sid}/recording", Delete, "room session").answers(404),
    row("GET /api/v1/conference-rooms/{id}/sessions/{sid}/meeting", One, "room session"),
    row("GET /api/v1/conferences/{room}/sessions", One, "named_room"),
    row("GET /api/v1/conferences/{room}/sessions/{sid}", One, "named_room session"),
    row("GET /api/v1/conferences/{room}/sessions/{sid}/recording/audio", One, "named_room session").answers(404),
    row("DELETE /api/v1/conferences/{room}/sessions/{sid}/recording", Delete, "named_room session").answers(404),
    row("PUT /api/v1/conference-rooms/{id}/sessions/{sid}/meeting", Put, "room session")
        .body_of(|tenant| meeting(&tenant.plant, &tenant.id("agent.blue"))),
    row("GET /api/v1/conference-rooms/{id}/meetings", One, "room"),
    row("GET /api/v1/conference-rooms/{id}/messages", One, "room"),
    // The directory.
    row("GET /api/v1/organisations", List, "").shows_teams("acmeplant"),
    row("POST /api/v1/organisations", Create, "")
        .for_operators()
        .body_of(|_| json!({"name": "Corner", "sip_domain": "corner.test"})),
    row("GET /api/v1/organisations/{id}", One, "organisation").for_other_teams(200).shows_teams("acmeplant"),
    row("PATCH /api/v1/organisations/{id}", Change, "organisation").body_of(|_| json!({"national_prefix": "0"})),
    row("DELETE /api/v1/organisations/{id}", Delete, "organisation.empty").for_operators(),
    row("GET /api/v1/organisations/{id}/prompts", One, "organisation").for_other_teams(200).shows_teams("alone"),
    row("GET /api/v1/organisations/{id}/prompts/{name}", One, "organisation prompt")
        .for_other_teams(200)
        .shows_teams("RIFF"),
    row("PUT /api/v1/organisations/{id}/prompts/{name}", Put, "organisation prompt").answers(415),
    row("DELETE /api/v1/organisations/{id}/prompts/{name}", Delete, "organisation prompt").answers(404),
    row("GET /api/v1/extensions", List, ""),
    row("POST /api/v1/extensions", Create, "").body_of(
        |tenant| json!({"number": "3001", "team_id": tenant.id("team.red"), "organisation_id": tenant.organisation}),
    ),
    row("GET /api/v1/extensions/{id}", One, "extension.blue"),
    row("PATCH /api/v1/extensions/{id}", Change, "extension.blue")
        .body_of(|tenant| json!({"team_id": tenant.id("team.blue")})),
    row("GET /api/v1/extensions/{id}/spoken-name", One, "extension.blue").answers(404),
    row("DELETE /api/v1/extensions/{id}/spoken-name", Delete, "extension.blue").answers(404),
    row("GET /api/v1/extensions/{id}/message-waiting", One, "extension.blue"),
    row("PUT /api/v1/extensions/{id}/message-waiting", Put, "extension.blue").body_of(|_| json!({"new": 1})),
    row("DELETE /api/v1/extensions/{id}", Delete, "extension.spare"),
    row("GET /api/v1/registrations", List, ""),
    row("GET /api/v1/numbers", List, "").shows_teams("\"total\":0"),
    row("POST /api/v1/numbers", Create, "").body_of(|tenant| {
        json!({"number": "+442079460999", "destination": "extension", "destination_id": tenant.id("extension.red"),
            "organisation_id": tenant.organisation})
    }),
    row("GET /api/v1/numbers/{id}", One, "number"),
    row("PATCH /api/v1/numbers/{id}", Change, "number")
        .body_of(|tenant| json!({"destination": "extension", "destination_id": tenant.id("extension.blue")})),
    row("DELETE /api/v1/numbers/{id}", Delete, "number"),
    row("GET /api/v1/trunks", List, "").for_other_teams(403),
    row("POST /api/v1/trunks", Create, "").body_of(
        |tenant| json!({"name": "second", "address": "sip:192.0.2.77:5060", "organisation_id": tenant.organisation}),
    ),
    row("GET /api/v1/trunks/{id}", One, "trunk"),
    row("GET /api/v1/trunks/{id}/status", One, "trunk"),
    row("PATCH /api/v1/trunks/{id}", Change, "trunk").body_of(|_| json!({"priority": 3})),
    row("DELETE /api/v1/trunks/{id}", Delete, "trunk.spare"),
    // The live stream of events; stored events come first, so that there is something to read.
    row("GET /api/v1/events", List, "").with_query("?since=2026-01-01"),
    // Conference rooms.
    row("GET /api/v1/conference-rooms", List, "").shows_teams("\"total\":0"),
    row("POST /api/v1/conference-rooms", Create, "")
        .body_of(|tenant| json!({"name": "second", "number": "300", "organisation_id": tenant.organisation})),
    row("GET /api/v1/conference-rooms/{id}", One, "room"),
    row("PATCH /api/v1/conference-rooms/{id}", Change, "room").body_of(|_| json!({"max_members": 30})),
    row("DELETE /api/v1/conference-rooms/{id}", Delete, "room.spare"),
    row("GET /api/v1/conference-rooms/{id}/members", One, "room"),
    row("PUT /api/v1/conference-rooms/{id}/members", Put, "room")
        .body_of(|tenant| json!({"items": [{"extension_id": tenant.id("extension.blue")}]})),
    row("PUT /api/v1/conference-rooms/{id}/exemptions", Put, "room").body_of(
        |tenant| json!({"items": [{"extension_id": tenant.id("extension.blue"), "role": "moderator"}]}),
    ),
    row("POST /api/v1/conference-rooms/{id}/dial", Act, "room")
        .answers(202)
        .body_of(|_| json!({"kind": "extension", "target": "1003", "role": "participant"})),
    // Live conference rooms.
    row("GET /api/v1/conferences", List, ""),
    row("GET /api/v1/conferences/{room}", One, "live_room"),
    row("GET /api/v1/conferences/by-call/{uuid}", One, "call.room"),
    row("POST /api/v1/conferences/{room}/lock", Act, "live_room").answers(204),
    row("POST /api/v1/conferences/{room}/unlock", Act, "live_room").answers(204),
    row("POST /api/v1/conferences/{room}/members/{id}/mute", Act, "live_room member").answers(204),
    row("POST /api/v1/conferences/{room}/members/{id}/unmute", Act, "live_room member").answers(204),
    row("POST /api/v1/conferences/{room}/members/{id}/deaf", Act, "live_room member").answers(204),
    row("POST /api/v1/conferences/{room}/members/{id}/undeaf", Act, "live_room member").answers(204),
    row("POST /api/v1/conferences/{room}/members/{id}/gain", Act, "live_room member")
        .answers(204)
        .body_of(|_| json!({"gain_db": 6})),
    row("POST /api/v1/conferences/{room}/members/{id}/hold", Act, "live_room member").answers(204),
    row("POST /api/v1/conferences/{room}/members/{id}/unhold", Act, "live_room member").answers(204),
    row("POST /api/v1/conferences/{room}/members/{id}/lock-mute", Act, "live_room member").answers(204),
    // The member is alone in its room.
    row("POST /api/v1/conferences/{room}/members/{id}/whisper", Act, "live_room member")
        .answers(400)
        .body_of(|_| json!({"to": 7})),
    row("POST /api/v1/conferences/{room}/members/{id}/unwhisper", Act, "live_room member").answers(204),
    row("POST /api/v1/conferences/{room}/mute-all", Act, "live_room"),
    row("POST /api/v1/conferences/{room}/record", Act, "live_room")
        .answers(204)
        .body_of(|_| json!({"on": true})),
    row("POST /api/v1/conferences/{room}/play", Act, "live_room")
        .answers(422)
        .body_of(|_| json!({"prompt": "own-none"})),
    row("POST /api/v1/conferences/{room}/stop-playing", Act, "live_room").answers(204),
    row("POST /api/v1/conferences/{room}/members/{id}/kick", Act, "live_room member").answers(204),
    row("POST /api/v1/conferences/{room}/end", Act, "live_room").answers(204),
    // Users and keys, and their teams.
    row("GET /api/v1/teams", List, ""),
    row("POST /api/v1/teams", Create, "")
        .body_of(|tenant| json!({"name": "green", "organisation_id": tenant.organisation})),
    row("GET /api/v1/teams/{id}", One, "team.blue"),
    row("PATCH /api/v1/teams/{id}", Change, "team.blue").body_of(|tenant| json!({"name": format!("{} deep blueplant", tenant.plant)})),
    row("DELETE /api/v1/teams/{id}", Delete, "team.empty"),
    row("GET /api/v1/agents", List, ""),
    row("POST /api/v1/agents", Create, "").body_of(|tenant| {
        json!({"name": "second", "kind": "human", "team_id": tenant.id("team.red"),
            "extension_id": tenant.id("extension.red"), "user_id": tenant.id("user.supervisor"),
            "organisation_id": tenant.organisation})
    }),
    row("GET /api/v1/agents/{id}", One, "agent.blue"),
    row("PATCH /api/v1/agents/{id}", Change, "agent.blue")
        .body_of(|tenant| json!({"team_id": tenant.id("team.blue"), "extension_id": tenant.id("extension.blue"),
            "user_id": tenant.id("user.spare")})),
    row("DELETE /api/v1/agents/{id}", Delete, "agent.spare"),
    row("GET /api/v1/users", List, "").for_other_teams(403),
    row("POST /api/v1/users", Create, "").body_of(|tenant| {
        json!({"email": format!("new@{}.test", tenant.plant), "role": "agent", "team_id": tenant.id("team.red"),
            "organisation_id": tenant.organisation})
    }),
    row("GET /api/v1/users/{id}", One, "user.spare"),
    row("PATCH /api/v1/users/{id}", Change, "user.spare").body_of(|tenant| json!({"team_id": tenant.id("team.blue")})),
    row("DELETE /api/v1/users/{id}", Delete, "user.gone"),
    row("GET /api/v1/api-keys", List, "").for_other_teams(403),
    row("POST /api/v1/api-keys", Create, "").body_of(|tenant| {
        json!({"name": "third", "preset": "read_only", "allow": ["127.0.0.1"], "organisation_id": tenant.organisation})
    }),
    row("GET /api/v1/api-keys/{id}", One, "key"),
    row("PATCH /api/v1/api-keys/{id}", Change, "key").body_of(|_| json!({"rate_per_minute": 100})),
    row("DELETE /api/v1/api-keys/{id}", Delete, "key"),
    // Webhooks.
    row("GET /api/v1/webhooks", List, "").for_other_teams(403),
    row("POST /api/v1/webhooks", Create, "").body_of(
        |tenant| json!({"url": "https://127.0.0.1/new", "events": ["*"], "organisation_id": tenant.organisation}),
    ),
    row("GET /api/v1/webhooks/{id}", One, "webhook"),
    row("PATCH /api/v1/webhooks/{id}", Change, "webhook").body_of(|_| json!({"events": ["call.*"]})),
    row("DELETE /api/v1/webhooks/{id}", Delete, "webhook.spare"),
    row("POST /api/v1/webhooks/{id}/rotate-secret", Act, "webhook"),
    row("POST /api/v1/webhooks/{id}/test", Act, "webhook").answers(202),
    row("GET /api/v1/webhooks/{id}/deliveries", One, "webhook"),
    row("GET /api/v1/webhooks/{id}/deliveries/{delivery_id}", One, "webhook delivery"),
    row("POST /api/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver", Act, "webhook delivery")
        .answers(202),
    // The API reference, and probes of the process.
    row("GET /api/v1/docs", Public, ""),
    row("GET /api/v1/docs/style.css", Public, ""),
    row("GET /api/v1/nodes", Shared(200), "").for_operators().for_other_teams(403),
    row("GET /api/v1/openapi.json", Public, ""),
    row("GET /", Public, ""),
    row("GET /healthz", Public, ""),
    row("GET /readyz", Public, ""),
    row("GET /metrics", Local, ""),
];
