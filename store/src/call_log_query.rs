//! The parts of statements over the call log.
//!
//! Statements are assembled only here: with every filter optional, there are too many combinations for one literal
//! each, and one literal with `$n IS NULL OR …` keeps the database from using an index. A `+` before a column keeps
//! both databases from using an index for it.

use sidetone_model::access::Scope;
use sidetone_model::call::{BillingMode, Direction, Transport};
use sidetone_model::call_log::{CdrFilter, CdrSort};
use sidetone_model::ids::{ExtensionId, RoomId};
use sidetone_model::page::Order;
use sidetone_model::quality::MediaVerdict;
use sidetone_model::time::Timestamp;

use crate::scope::within;
use crate::search::folded;
use crate::statement::Statement;

/// The records to read, and facts about them that are already available.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    pub(super) scope: Scope,
    pub(super) filter: &'a CdrFilter,
    pub(super) texts: Texts,
    /// The ids of the records that satisfy `q` and `did`, at least one, if they were found before the records are
    /// read.
    pub(super) calls: Option<&'a [String]>,
    /// Their number, if it was found before they are read.
    pub(super) known: Option<u64>,
    /// Whether the index of `mos` is used to find the records of `mos_max`: because they are few, or because they are
    /// counted.
    pub(super) is_rare: bool,
    /// Which records of the extension in `extension_id` are read.
    pub(super) extension: ExtensionRecords,
}

/// Records of an extension. No record is both its own and one of a call to it. So each kind can be read with its own
/// index, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExtensionRecords {
    All,
    /// Records of calls to it that are not its own.
    Called,
    Own,
}

/// Where texts are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Texts {
    /// In the search index, which contains all of them.
    Indexed,
    /// In the records.
    Whole,
}

/// How the records are sorted.
pub(super) struct Sorting {
    /// The ORDER BY clause.
    pub(super) clause: &'static str,
    /// For a column that may be NULL: the condition for rows with a value, the condition for rows without,
    /// and the clause that sorts the latter. These are two statements and not `NULLS LAST`, because a
    /// PostgreSQL index has its NULLs at one end, and SQLite's SQL has no syntax to choose which.
    pub(super) nullable: Option<(&'static str, &'static str, &'static str)>,
}

impl<'a> Reading<'a> {
    /// Complete records, so that a search index saves nothing.
    pub(super) fn whole(scope: Scope, filter: &'a CdrFilter) -> Self {
        Self {
            scope,
            filter,
            texts: Texts::Whole,
            calls: None,
            known: None,
            is_rare: false,
            extension: ExtensionRecords::All,
        }
    }

    /// The two kinds of records of an extension, where each is read separately.
    pub(super) fn by_extension(&self) -> Option<[Self; 2]> {
        let is_apart = self.filter.extension_id.is_some() && self.calls.is_none();
        is_apart.then(|| {
            [ExtensionRecords::Own, ExtensionRecords::Called].map(|extension| Self { extension, ..*self })
        })
    }

    /// Whether `min_billsec` leaves so few records that sorting them is faster than searching from the newest on.
    pub(super) fn is_few(&self) -> bool {
        self.filter.min_billsec.is_some() && self.known.is_some_and(|total| total <= FEW)
    }

    /// Whether another index finds so few records that they are sorted afterwards.
    pub(super) fn is_sorted_late(&self) -> bool {
        self.is_few() || (self.filter.mos_max.is_some() && self.is_rare)
    }

    /// The clause for newest or oldest first, for records that another index finds.
    pub(super) fn few_first(&self, order: Order) -> &'static str {
        match order {
            Order::Ascending => " ORDER BY +started_at_us ASC, call_uuid ASC",
            Order::Descending => " ORDER BY +started_at_us DESC, call_uuid DESC",
        }
    }
}

/// Adds the condition: inside the scope, and every part of the filter.
pub(super) fn matching(statement: &mut Statement, reading: &Reading<'_>) {
    // Fields are listed explicitly, so that no filter is forgotten.
    let CdrFilter {
        agent_id,
        billing_mode,
        campaign_id,
        did,
        direction,
        extension_id,
        from,
        hangup_cause,
        media_verdict,
        media_verdict_b,
        min_billsec,
        mos_max,
        network,
        node_id,
        organisation_id,
        q,
        reference,
        room_id,
        team_id,
        to,
        transcoded,
        transport,
        trunk_id,
        user_agent,
    } = reading.filter;
    within(statement, reading.scope);
    statement.bind_text(" AND organisation_id = ", *organisation_id);
    statement.bind_text(" AND agent_id = ", *agent_id);
    statement.bind_text(" AND billing_mode = ", billing_mode.map(BillingMode::as_str));
    statement.bind_text(" AND campaign_id = ", *campaign_id);
    statement.bind_text(" AND direction = ", direction.map(Direction::as_str));
    statement.bind_text(" AND hangup_cause = ", hangup_cause.as_deref());
    statement.bind_text(" AND media_verdict = ", media_verdict.map(MediaVerdict::as_str));
    statement.bind_text(" AND media_verdict_b = ", media_verdict_b.map(MediaVerdict::as_str));
    statement.bind_text(" AND node_id = ", *node_id);
    statement.bind_text(" AND reference = ", reference.as_deref());
    statement.bind_text(" AND team_id = ", *team_id);
    statement.bind_text(" AND transport = ", transport.map(Transport::as_str));
    statement.bind_text(" AND trunk_id = ", *trunk_id);
    if let Some(transcoded) = *transcoded {
        statement.bind(" AND transcoded = ", i64::from(transcoded), "");
    }
    if let Some(from) = from.map(Timestamp::as_micros) {
        statement.bind(" AND started_at_us >= ", from, "");
    }
    if let Some(to) = to.map(Timestamp::as_micros) {
        statement.bind(" AND started_at_us < ", to, "");
    }
    if let Some(billsec) = *min_billsec {
        let before = if reading.is_few() { " AND billsec >= " } else { " AND +billsec >= " };
        statement.bind(before, i64::try_from(billsec).unwrap_or(i64::MAX), "");
    }
    if let Some(mos) = *mos_max {
        let before = if reading.is_rare { " AND mos_hundredths <= " } else { " AND +mos_hundredths <= " };
        statement.bind(before, mos.0, "");
    }
    of_device(statement, network.as_deref(), user_agent.as_deref());
    of_extension(statement, *extension_id, reading.extension);
    of_room(statement, *room_id);
    if let Some(calls) = reading.calls {
        statement.push(" AND call_uuid IN (");
        statement.list(calls.iter().map(|call| call.as_str().into()));
        statement.push(")");
        return;
    }
    with_texts(statement, reading.texts, did.as_deref(), q.as_deref());
}

/// Adds the condition: a party in that network, and a party with that User-Agent.
fn of_device(statement: &mut Statement, network: Option<&str>, user_agent: Option<&str>) {
    if let Some(network) = network {
        statement.bind(" AND (network_a = ", network.to_owned(), "");
        statement.bind(" OR network_b = ", network.to_owned(), ")");
    }
    if let Some(user_agent) = user_agent {
        statement.bind(" AND (user_agent_a = ", user_agent.to_owned(), "");
        statement.bind(" OR user_agent_b = ", user_agent.to_owned(), ")");
    }
}

/// Adds the condition: calls of the extension, calls to it, or both.
fn of_extension(statement: &mut Statement, extension: Option<ExtensionId>, records: ExtensionRecords) {
    let Some(extension) = extension.map(|id| id.to_string()) else { return };
    match records {
        ExtensionRecords::All => {
            statement.bind(" AND (extension_id = ", extension.clone(), "");
            statement.bind(" OR called_extension_id = ", extension, ")");
        }
        ExtensionRecords::Called => statement.bind(" AND called_extension_id = ", extension, ""),
        ExtensionRecords::Own => statement.bind(" AND extension_id = ", extension, ""),
    }
}

/// Adds the condition: calls that were in a conference room. The records are within a scope already, so the people of
/// the room's sessions need no scope condition.
fn of_room(statement: &mut Statement, room: Option<RoomId>) {
    if let Some(room) = room {
        statement.bind(
            " AND call_uuid IN (SELECT people.call_uuid FROM conference_sessions AS sessions
             JOIN conference_people AS people ON people.session_id = sessions.id
             AND people.organisation_id = sessions.organisation_id
             WHERE sessions.organisation_id = cdrs.organisation_id AND sessions.room_id = ",
            room.to_string(),
            ")",
        );
    }
}

/// Adds the substring searches.
fn with_texts(statement: &mut Statement, texts: Texts, did: Option<&str>, q: Option<&str>) {
    if let Some(did) = did {
        let before = match texts {
            Texts::Indexed => " AND INSTR(did_key, ",
            Texts::Whole => " AND INSTR(did_search, ",
        };
        statement.bind(before, folded(did), ") > 0");
    }
    if let Some(q) = q {
        let before = match texts {
            Texts::Indexed => " AND INSTR(search_key, ",
            Texts::Whole => " AND INSTR(search, ",
        };
        statement.bind(before, folded(q), ") > 0");
    }
}

/// The literal clause of every sort, in both orders.
pub(super) fn order_by(sort: CdrSort, order: Order, texts: Texts) -> Sorting {
    use CdrSort::*;
    use Order::*;
    let clause = match (sort, order, texts) {
        (Billsec, Ascending, _) => " ORDER BY billsec ASC, call_uuid ASC",
        (Billsec, Descending, _) => " ORDER BY billsec DESC, call_uuid DESC",
        (CallerNumber, Ascending, Texts::Indexed) => {
            " ORDER BY SUBSTR(caller_number, 1, 300) ASC, call_uuid ASC"
        }
        (CallerNumber, Descending, Texts::Indexed) => {
            " ORDER BY SUBSTR(caller_number, 1, 300) DESC, call_uuid DESC"
        }
        (CallerNumber, Ascending, Texts::Whole) => " ORDER BY caller_number ASC, call_uuid ASC",
        (CallerNumber, Descending, Texts::Whole) => " ORDER BY caller_number DESC, call_uuid DESC",
        (DestinationNumber, Ascending, Texts::Indexed) => {
            " ORDER BY SUBSTR(destination_number, 1, 300) ASC, call_uuid ASC"
        }
        (DestinationNumber, Descending, Texts::Indexed) => {
            " ORDER BY SUBSTR(destination_number, 1, 300) DESC, call_uuid DESC"
        }
        (DestinationNumber, Ascending, Texts::Whole) => " ORDER BY destination_number ASC, call_uuid ASC",
        (DestinationNumber, Descending, Texts::Whole) => " ORDER BY destination_number DESC, call_uuid DESC",
        (Direction, Ascending, _) => " ORDER BY direction ASC, call_uuid ASC",
        (Direction, Descending, _) => " ORDER BY direction DESC, call_uuid DESC",
        (EndedAt, Ascending, _) => " ORDER BY ended_at_us ASC, call_uuid ASC",
        (EndedAt, Descending, _) => " ORDER BY ended_at_us DESC, call_uuid DESC",
        (Mos, Ascending, _) => " ORDER BY mos_hundredths ASC, call_uuid ASC",
        (Mos, Descending, _) => " ORDER BY mos_hundredths DESC, call_uuid DESC",
        (SellAmount, Ascending, _) => " ORDER BY sell_scaled ASC, call_uuid ASC",
        (SellAmount, Descending, _) => " ORDER BY sell_scaled DESC, call_uuid DESC",
        (StartedAt, Ascending, _) => " ORDER BY started_at_us ASC, call_uuid ASC",
        (StartedAt, Descending, _) => " ORDER BY started_at_us DESC, call_uuid DESC",
    };
    let missing_clause = match order {
        Ascending => " ORDER BY call_uuid ASC",
        Descending => " ORDER BY call_uuid DESC",
    };
    let nullable = match sort {
        CallerNumber => {
            Some((" AND caller_number IS NOT NULL", " AND caller_number IS NULL", missing_clause))
        }
        DestinationNumber => {
            Some((" AND destination_number IS NOT NULL", " AND destination_number IS NULL", missing_clause))
        }
        EndedAt => Some((" AND ended_at_us IS NOT NULL", " AND ended_at_us IS NULL", missing_clause)),
        Mos => Some((" AND mos_hundredths IS NOT NULL", " AND mos_hundredths IS NULL", missing_clause)),
        Billsec | CdrSort::Direction | SellAmount | StartedAt => None,
    };
    Sorting { clause, nullable }
}

/// Few enough records that sorting them costs nothing noticeable.
pub(super) const FEW: u64 = 10_000;
