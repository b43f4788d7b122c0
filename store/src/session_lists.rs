//! Reads the sessions of rooms.

use std::collections::HashMap;

use sidetone_model::access::Scope;
use sidetone_model::ids::{ConferenceSessionId, OrganisationId, RoomId};
use sidetone_model::page::{Page, Window};
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::room::session::{RoomSessions, SessionMember, SessionRecord, SessionRecording};
use sidetone_model::room::{Invite, InviteState, Role, RoomName};
use sidetone_model::time::Timestamp;

use crate::columns::{instant, instant_opt, number, number_opt, parsed, parsed_opt, word};
use crate::paging::{List, SortColumn, Sorting, rows};
use crate::sql::{Row, Transaction, sql};
use crate::statement::Statement;
use crate::{Store, StoreError};

impl RoomSessions for Store {
    fn sessions(
        &self,
        scope: Scope,
        room: RoomName,
        window: Window,
        now: Timestamp,
    ) -> PortFuture<'_, Page<SessionRecord>> {
        Box::pin(async move {
            let organisation = self.owner_of_sessions(scope, room).await?;
            Ok(self.sessions_of_room(organisation, room, window, now).await?)
        })
    }

    fn session(
        &self,
        scope: Scope,
        room: RoomName,
        session: ConferenceSessionId,
        now: Timestamp,
    ) -> PortFuture<'_, SessionRecord> {
        Box::pin(async move {
            let organisation = self.owner_of_sessions(scope, room).await?;
            let found = self.session_of_room(organisation, room, session, now).await?;
            found.ok_or_else(no_session)
        })
    }
}

impl Store {
    /// Returns the organisation of a room, for a caller who sees `scope`.
    ///
    /// # Errors
    /// As [`RoomSessions::sessions`].
    pub async fn owner_of_room(&self, scope: Scope, room: RoomId) -> Result<OrganisationId, Problem> {
        let query = sql("SELECT organisation_id FROM conference_rooms WHERE id = $1").bind(room.to_string());
        let owner = self.one(query, |row| parsed(row, "organisation_id")).await?;
        let owner = owner.ok_or_else(|| Problem::NotFound("there is no such conference room".to_owned()))?;
        // A room has no team. A user who sees one team reads live which rooms the team's members are in.
        if !scope.covers(owner, None) {
            return Err(Problem::Forbidden("the conference room is outside the caller's scope".to_owned()));
        }
        Ok(owner)
    }

    /// Returns the organisation of the sessions of a room, for a caller who sees `scope`. Merged calls have no stored
    /// room: their organisation is that of the first session.
    async fn owner_of_sessions(&self, scope: Scope, room: RoomName) -> Result<OrganisationId, Problem> {
        if let RoomName::Stored(id) = room {
            return self.owner_of_room(scope, id).await;
        }
        let query = sql("SELECT organisation_id FROM conference_sessions WHERE room_id IS NULL AND room = $1
             ORDER BY started_at_us, id LIMIT 1")
        .bind(room.to_string());
        let owner = self.one(query, |row| parsed(row, "organisation_id")).await?;
        let owner =
            owner.ok_or_else(|| Problem::NotFound("no calls were merged into such a room".to_owned()))?;
        if !scope.covers(owner, None) {
            return Err(Problem::Forbidden("the merged calls are outside the caller's scope".to_owned()));
        }
        Ok(owner)
    }

    /// Returns the recording of a session of a room, for a caller who sees `scope`; the returned value states
    /// whether there is a file.
    ///
    /// # Errors
    /// As [`RoomSessions::session`].
    pub async fn session_recording(
        &self,
        scope: Scope,
        room: impl Into<RoomName>,
        session: ConferenceSessionId,
    ) -> Result<SessionRecording, Problem> {
        let room = room.into();
        let organisation = self.owner_of_sessions(scope, room).await?;
        let query = sql("SELECT id, organisation_id, node_id, ended_at_us, is_recorded, recording_bytes
             FROM conference_sessions WHERE id = $1 AND organisation_id = $2 AND room = $3")
        .bind(session.to_string())
        .bind(organisation.to_string())
        .bind(room.to_string());
        self.one(query, recording).await?.ok_or_else(no_session)
    }

    async fn sessions_of_room(
        &self,
        organisation: OrganisationId,
        room: RoomName,
        window: Window,
        now: Timestamp,
    ) -> Result<Page<SessionRecord>, StoreError> {
        // All statements see one snapshot.
        let mut transaction = self.readers().begin_read().await?;
        let list = List {
            count: "SELECT COUNT(*) AS total FROM conference_sessions WHERE organisation_id = ",
            items: "SELECT * FROM conference_sessions WHERE organisation_id = ",
            matching: &|statement| {
                statement.bind("", organisation.to_string(), "");
                // With this condition, each query uses its index.
                match room {
                    RoomName::Merged(_) => {
                        statement.bind(" AND room_id IS NULL AND room = ", room.to_string(), "");
                    }
                    RoomName::Stored(id) => statement.bind(" AND room_id = ", id.to_string(), ""),
                }
            },
            sorting: Sorting::descending(&[SortColumn::Integer("started_at_us"), SortColumn::Text("id")]),
        };
        let page = rows(&mut transaction, &list, &window).await?;
        let records = records(&mut transaction, organisation, &page.items, now).await?;
        Ok(page.with(records))
    }

    async fn session_of_room(
        &self,
        organisation: OrganisationId,
        room: RoomName,
        session: ConferenceSessionId,
        now: Timestamp,
    ) -> Result<Option<SessionRecord>, StoreError> {
        let mut transaction = self.readers().begin_read().await?;
        let rows =
            sql("SELECT * FROM conference_sessions WHERE id = $1 AND organisation_id = $2 AND room = $3")
                .bind(session.to_string())
                .bind(organisation.to_string())
                .bind(room.to_string())
                .fetch_all(&mut *transaction)
                .await?;
        Ok(records(&mut transaction, organisation, &rows, now).await?.pop())
    }
}

async fn records(
    transaction: &mut Transaction,
    organisation: OrganisationId,
    rows: &[Row],
    now: Timestamp,
) -> Result<Vec<SessionRecord>, StoreError> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let mut people = Statement::new("SELECT * FROM conference_people WHERE organisation_id = ");
    of_sessions(&mut people, organisation, rows, " ORDER BY session_id, joined_at_us, member")?;
    let mut invites = Statement::new("SELECT * FROM conference_invites WHERE organisation_id = ");
    of_sessions(&mut invites, organisation, rows, " ORDER BY session_id, place")?;
    let mut members = grouped(people.query().fetch_all(&mut **transaction).await?, member)?;
    let mut invited = grouped(invites.query().fetch_all(&mut **transaction).await?, invite)?;
    let record = |row: &Row| {
        let id = parsed(row, "id")?;
        let found = (members.remove(&id).unwrap_or_default(), invited.remove(&id).unwrap_or_default());
        record(row, found, now)
    };
    rows.iter().map(record).collect()
}

fn of_sessions(
    statement: &mut Statement,
    organisation: OrganisationId,
    rows: &[Row],
    order: &'static str,
) -> Result<(), StoreError> {
    statement.bind("", organisation.to_string(), " AND session_id IN (");
    for (at, row) in rows.iter().enumerate() {
        statement.bind(if at == 0 { "" } else { ", " }, row.try_get::<String>("id")?, "");
    }
    statement.push(")");
    statement.push(order);
    Ok(())
}

fn grouped<T>(
    rows: Vec<Row>,
    read: fn(&Row) -> Result<T, StoreError>,
) -> Result<HashMap<ConferenceSessionId, Vec<T>>, StoreError> {
    let mut groups: HashMap<ConferenceSessionId, Vec<T>> = HashMap::new();
    for row in rows {
        groups.entry(parsed(&row, "session_id")?).or_default().push(read(&row)?);
    }
    Ok(groups)
}

fn record(
    row: &Row,
    (members, invites): (Vec<SessionMember>, Vec<Invite>),
    now: Timestamp,
) -> Result<SessionRecord, StoreError> {
    let (started_at, ended_at) = (instant(row, "started_at_us")?, instant_opt(row, "ended_at_us")?);
    let lasted = ended_at.unwrap_or(now).as_micros().saturating_sub(started_at.as_micros());
    let bytes: Option<u64> = number_opt(row, "recording_bytes")?;
    Ok(SessionRecord {
        id: parsed(row, "id")?,
        room: parsed(row, "room")?,
        room_id: parsed_opt(row, "room_id")?,
        started_at,
        ended_at,
        duration_seconds: u64::try_from(lasted / 1_000_000).unwrap_or(0),
        peak_members: number(row, "peak_members")?,
        members,
        invites,
        has_recording: bytes.is_some_and(|bytes| bytes > 0),
        recording_bytes: bytes.unwrap_or(0),
        recording_channels: number(row, "recording_channels")?,
        recording_error: row.try_get("recording_error")?,
    })
}

fn member(row: &Row) -> Result<SessionMember, StoreError> {
    Ok(SessionMember {
        member: number(row, "member")?,
        name: row.try_get("name")?,
        number: row.try_get("number")?,
        role: word(row, "role", Role::from_name)?,
        extension_id: parsed_opt(row, "extension_id")?,
        call_uuid: parsed(row, "call_uuid")?,
        joined_at: instant(row, "joined_at_us")?,
        left_at: instant_opt(row, "left_at_us")?,
        talk_seconds: number::<u64>(row, "talked_ms")? / 1_000,
    })
}

fn invite(row: &Row) -> Result<Invite, StoreError> {
    Ok(Invite {
        extension_id: parsed(row, "extension_id")?,
        number: row.try_get("number")?,
        name: row.try_get("name")?,
        state: word(row, "state", InviteState::from_name)?,
        last_reason: parsed(row, "last_reason")?,
    })
}

fn recording(row: &Row) -> Result<SessionRecording, StoreError> {
    Ok(SessionRecording {
        session: parsed(row, "id")?,
        organisation_id: parsed(row, "organisation_id")?,
        is_recorded: row.try_get::<i64>("is_recorded")? != 0,
        is_live: instant_opt(row, "ended_at_us")?.is_none(),
        bytes: number_opt(row, "recording_bytes")?,
        node: parsed(row, "node_id")?,
    })
}

fn no_session() -> Problem {
    Problem::NotFound("the room had no such session".to_owned())
}
