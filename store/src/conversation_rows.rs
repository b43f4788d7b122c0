//! Reads the rows of a conversation and its turns.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sidetone_model::call::Direction;
use sidetone_model::conversation::{
    AiBillingMode, AiUse, Charge, Conversation, FoundConversation, Turn, TurnRole,
};
use sidetone_model::exact_json::ExactJson;
use sidetone_model::ids::ConversationId;
use sidetone_model::money::{Amount, Currency};
use sidetone_model::team::AgentKind;

use crate::StoreError;
use crate::columns::{instant, instant_opt, number, parsed, parsed_opt, word, word_opt};
use crate::sql::{Connection, Row, sql};

/// A conversation with its turns, of any organisation.
pub(super) async fn find(
    connection: &mut Connection,
    id: ConversationId,
) -> Result<Option<FoundConversation>, StoreError> {
    let row =
        sql("SELECT conversations.*, COALESCE(cdrs.team_id, agents.team_id) AS team_id FROM conversations
         LEFT JOIN cdrs ON cdrs.call_uuid = conversations.call_uuid
                       AND cdrs.organisation_id = conversations.organisation_id
         LEFT JOIN agents ON agents.id = conversations.agent_id
                         AND agents.organisation_id = conversations.organisation_id
         WHERE conversations.id = $1")
        .bind(id.to_string())
        .fetch_optional(&mut *connection)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let turns = sql("SELECT seq, at_us, role, speaker, text, tool_name, tool_args, tool_result
         FROM conversation_turns WHERE conversation_id = $1 AND organisation_id = $2 ORDER BY seq")
    .bind(id.to_string())
    .bind(row.try_get::<&str>("organisation_id")?)
    .fetch_all(connection)
    .await?;
    let turns = turns.iter().map(turn).collect::<Result<_, _>>()?;
    Ok(Some(FoundConversation {
        conversation: conversation(&row, turns)?,
        team_id: parsed_opt(&row, "team_id")?,
    }))
}

/// The conversation in a row, with these turns.
pub(super) fn conversation(row: &Row, turns: Vec<Turn>) -> Result<Conversation, StoreError> {
    Ok(Conversation {
        id: parsed(row, "id")?,
        organisation_id: parsed(row, "organisation_id")?,
        call_uuid: parsed(row, "call_uuid")?,
        direction: word(row, "direction", Direction::from_name)?,
        started_at: instant(row, "started_at_us")?,
        ended_at: instant_opt(row, "ended_at_us")?,
        agent_id: parsed_opt(row, "agent_id")?,
        agent_kind: word(row, "agent_kind", AgentKind::from_name)?,
        contact_id: parsed_opt(row, "contact_id")?,
        contact_e164: row.try_get("contact_e164")?,
        summary: row.try_get("summary")?,
        ai: ai(row)?,
        assembled_context: row.try_get("assembled_context")?,
        profile: json(row, "profile")?,
        charge: Charge {
            sell: money(row, "sell_scaled", "sell_currency")?,
            cost: money(row, "cost_scaled", "cost_currency")?,
        },
        flags: json(row, "flags")?,
        turns,
    })
}

fn ai(row: &Row) -> Result<Option<AiUse>, StoreError> {
    let Some(billing_mode) = word_opt(row, "ai_billing_mode", AiBillingMode::from_name)? else {
        return Ok(None);
    };
    Ok(Some(AiUse {
        provider: row.try_get("provider")?,
        model: row.try_get("model")?,
        billing_mode,
        profile_id: parsed_opt(row, "virtual_agent_profile_id")?,
        profile_name: row.try_get("virtual_agent_profile_name")?,
        tokens_input: number(row, "tokens_input")?,
        tokens_output: number(row, "tokens_output")?,
        tokens_audio: number(row, "tokens_audio")?,
        audio_split_known: row.try_get::<i64>("audio_split_known")? != 0,
    }))
}

fn turn(row: &Row) -> Result<Turn, StoreError> {
    Ok(Turn {
        seq: number(row, "seq")?,
        at: instant(row, "at_us")?,
        role: word(row, "role", TurnRole::from_name)?,
        speaker: row.try_get("speaker")?,
        text: row.try_get("text")?,
        tool_name: row.try_get("tool_name")?,
        tool_args: exact_opt(row, "tool_args")?,
        tool_result: exact_opt(row, "tool_result")?,
    })
}

fn money(
    row: &Row,
    scaled: &'static str,
    currency: &'static str,
) -> Result<Option<(Amount, Currency)>, StoreError> {
    let scaled: Option<i64> = row.try_get(scaled)?;
    Ok(scaled.map(Amount::from_scaled).zip(parsed_opt(row, currency)?))
}

fn json<T: DeserializeOwned>(row: &Row, column: &'static str) -> Result<T, StoreError> {
    json_opt(row, column)?.ok_or(StoreError::Corrupt { column })
}

fn json_opt<T: DeserializeOwned>(row: &Row, column: &'static str) -> Result<Option<T>, StoreError> {
    let text: Option<&str> = row.try_get(column)?;
    text.map(|text| serde_json::from_str(text).map_err(|_| StoreError::Corrupt { column })).transpose()
}

fn exact_opt(row: &Row, column: &'static str) -> Result<Option<ExactJson>, StoreError> {
    let text: Option<String> = row.try_get(column)?;
    text.map(|text| ExactJson::parse(text).map_err(|_| StoreError::Corrupt { column })).transpose()
}

/// Writes the form that [`json`] reads.
pub(super) fn json_text(value: &impl Serialize) -> String {
    // Maps with text keys and plain values can always be written.
    serde_json::to_string(value).unwrap_or_default()
}
