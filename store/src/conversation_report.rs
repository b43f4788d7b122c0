//! Stores reports of conversations: the transcript, the charge, the event and the record's tokens in one
//! transaction.

use sidetone_model::ai_price::charge;
use sidetone_model::conversation::{
    AiBillingMode, Conversation, ConversationDraft, FoundConversation, ReportedConversation, Reporter, Turn,
    Update,
};
use sidetone_model::event::{Event, EventKind};
use sidetone_model::exact_json::ExactJson;
use sidetone_model::ids::{AgentId, ConversationId, OrganisationId, TeamId};
use sidetone_model::problem::{FieldProblem, Problem};
use sidetone_model::time::Timestamp;

use crate::ai_prices::prices_for;
use crate::ai_tokens_lock::{AiTokens, hold};
use crate::columns::{parsed, parsed_opt};
use crate::conversation_rows::{find, json_text};
use crate::credit::draw;
use crate::events::insert_event;
use crate::sql::{Connection, Query, Transaction, sql};
use crate::{Store, StoreError};

impl Store {
    /// Stores a report; see [`sidetone_model::conversation::Conversations::report`].
    pub(super) async fn report_conversation(
        &self,
        reporter: Reporter,
        id: ConversationId,
        draft: ConversationDraft,
        now: Timestamp,
    ) -> Result<ReportedConversation, Problem> {
        for _ in 0..ATTEMPTS_MAX {
            if let Some(reported) = self.try_report(reporter, id, draft.clone(), now).await? {
                return Ok(reported);
            }
        }
        Err(Problem::Conflict("the conversation is being reported by others, send it again".to_owned()))
    }

    /// One attempt; `None` when another first report of the conversation or the call was stored in the meantime.
    async fn try_report(
        &self,
        reporter: Reporter,
        id: ConversationId,
        draft: ConversationDraft,
        now: Timestamp,
    ) -> Result<Option<ReportedConversation>, Problem> {
        let mut transaction = self.writer().begin_write().await.map_err(StoreError::from)?;
        take_turn(&mut transaction, id).await?;
        let stored = find(&mut transaction, id).await?;
        let organisation = owner(&reporter, stored.as_ref())?;
        let known_agent = stored.as_ref().and_then(|stored| stored.conversation.agent_id);
        let record_team = team_of_record(&mut transaction, organisation, &draft).await?;
        let agent_team = team_of_agent(&mut transaction, organisation, &draft, known_agent).await?;
        let team = record_team.or(agent_team);
        if !reporter.scope.covers(organisation, team) {
            return Err(Problem::Forbidden("the call belongs to another team".to_owned()));
        }
        refuse_second(&mut transaction, organisation, id, &draft).await?;
        let stored = stored.map(|found| found.conversation);
        let mut update = Update::of(stored, id, organisation, draft)
            .map_err(|conflict| Problem::Conflict(conflict.to_string()))?;
        let created = update.created;
        if !update.changed {
            return Ok(Some(ReportedConversation { conversation: update.conversation, created }));
        }
        if update.completes {
            settle(&mut transaction, &mut update.conversation).await?;
        }
        if !write(&mut transaction, &update, team, now).await? {
            return Ok(None);
        }
        transaction.commit().await.map_err(StoreError::from)?;
        Ok(Some(ReportedConversation { conversation: update.conversation, created }))
    }
}

/// Serializes reports of one conversation: locks its row until the end of the transaction.
async fn take_turn(connection: &mut Connection, id: ConversationId) -> Result<(), StoreError> {
    sql("UPDATE conversations SET updated_at_us = updated_at_us WHERE id = $1")
        .bind(id.to_string())
        .execute(connection)
        .await?;
    Ok(())
}

/// Returns the organisation of the conversation, if the reporter may report on it.
fn owner(reporter: &Reporter, stored: Option<&FoundConversation>) -> Result<OrganisationId, Problem> {
    let foreign =
        || Problem::Forbidden("the conversation belongs to another organisation or team".to_owned());
    let Some(stored) = stored else { return Ok(reporter.named.unwrap_or(reporter.home)) };
    let organisation = stored.conversation.organisation_id;
    let named_another = reporter.named.is_some_and(|named| named != organisation);
    if named_another || !stored.is_in(reporter.scope) { Err(foreign()) } else { Ok(organisation) }
}

/// Returns the team of the call's record, if the record is stored; refuses a call of another organisation.
async fn team_of_record(
    connection: &mut Connection,
    organisation: OrganisationId,
    draft: &ConversationDraft,
) -> Result<Option<TeamId>, Problem> {
    let row = sql("SELECT organisation_id, team_id FROM cdrs WHERE call_uuid = $1")
        .bind(draft.call_uuid.to_string())
        .fetch_optional(connection)
        .await
        .map_err(StoreError::from)?;
    let Some(row) = row else { return Ok(None) };
    if parsed::<OrganisationId>(&row, "organisation_id")? != organisation {
        return Err(Problem::Forbidden("call_uuid is a call of another organisation".to_owned()));
    }
    Ok(parsed_opt(&row, "team_id")?)
}

/// Returns the team of the agent. Refuses an agent that the organisation does not have, unless the conversation is
/// stored with it already: an agent may be deleted while conversations remain.
async fn team_of_agent(
    connection: &mut Connection,
    organisation: OrganisationId,
    draft: &ConversationDraft,
    known: Option<AgentId>,
) -> Result<Option<TeamId>, Problem> {
    let Some(agent) = draft.agent_id else { return Ok(None) };
    let row = sql("SELECT team_id FROM agents WHERE id = $1 AND organisation_id = $2")
        .bind(agent.to_string())
        .bind(organisation.to_string())
        .fetch_optional(connection)
        .await
        .map_err(StoreError::from)?;
    match row {
        Some(row) => Ok(parsed_opt(&row, "team_id")?),
        None if known == Some(agent) => Ok(None),
        None => {
            let message = "the organisation has no such agent".to_owned();
            Err(Problem::InvalidRequest(vec![FieldProblem { field: "agent_id".to_owned(), message }]))
        }
    }
}

/// Refuses a second conversation of a call.
async fn refuse_second(
    connection: &mut Connection,
    organisation: OrganisationId,
    id: ConversationId,
    draft: &ConversationDraft,
) -> Result<(), Problem> {
    let row = sql("SELECT id FROM conversations WHERE call_uuid = $1 AND organisation_id = $2 AND id <> $3")
        .bind(draft.call_uuid.to_string())
        .bind(organisation.to_string())
        .bind(id.to_string())
        .fetch_optional(connection)
        .await
        .map_err(StoreError::from)?;
    match row {
        None => Ok(()),
        Some(row) => {
            let other: ConversationId = parsed(&row, "id")?;
            Err(Problem::Conflict(format!("the call already has the conversation {other}")))
        }
    }
}

/// Sets the price and the cost of the AI of a finished conversation.
async fn settle(connection: &mut Connection, conversation: &mut Conversation) -> Result<(), StoreError> {
    let Some(ai) = &conversation.ai else { return Ok(()) };
    if ai.billing_mode == AiBillingMode::Byo {
        return Ok(());
    }
    let (organisation, started_at) = (conversation.organisation_id, conversation.started_at);
    let prices = prices_for(connection, organisation, ai, started_at).await?;
    conversation.charge = charge(&prices, organisation, ai, started_at);
    Ok(())
}

/// Stores the changes; `false` when another transaction stored the conversation first.
async fn write(
    transaction: &mut Transaction,
    update: &Update,
    team: Option<TeamId>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let conversation = &update.conversation;
    if update.created {
        if !insert(transaction, conversation, now).await? {
            return Ok(false);
        }
    } else {
        change(transaction, conversation, now).await?;
    }
    for turn in &update.new_turns {
        insert_turn(transaction, conversation, turn).await?;
    }
    if update.completes {
        let at = conversation.ended_at.unwrap_or(conversation.started_at);
        let (organisation, data) = (conversation.organisation_id, conversation.completed_data());
        let event = Event::new(EventKind::ConversationCompleted, organisation, team, at, data);
        insert_event(transaction, &event).await?;
    }
    hold(transaction, AiTokens::Written).await?;
    sql("UPDATE cdrs SET ai_tokens = $1 WHERE call_uuid = $2 AND organisation_id = $3")
        .bind(conversation.ai_tokens().and_then(|tokens| i64::try_from(tokens).ok()))
        .bind(conversation.call_uuid.to_string())
        .bind(conversation.organisation_id.to_string())
        .execute(&mut **transaction)
        .await?;
    // Last, as in the transactions that store records: both lock the record before the organisation.
    if let (true, Some(sell)) = (update.completes, conversation.charge.sell) {
        draw(transaction, conversation.organisation_id, sell, conversation.started_at).await?;
    }
    Ok(true)
}

async fn insert(
    connection: &mut Connection,
    conversation: &Conversation,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let query = sql("INSERT INTO conversations (ended_at_us, agent_id, contact_id, contact_e164, summary, provider,
         model, ai_billing_mode, virtual_agent_profile_id, virtual_agent_profile_name, tokens_input,
         tokens_output, tokens_audio, audio_split_known, assembled_context, profile, flags, sell_scaled,
         sell_currency, cost_scaled, cost_currency, updated_at_us, id, organisation_id, call_uuid, direction,
         started_at_us, agent_kind, created_at_us)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
         $22, $23, $24, $25, $26, $27, $28, $22)
         ON CONFLICT DO NOTHING");
    let done = with_values(query, conversation, now)
        .bind(conversation.organisation_id.to_string())
        .bind(conversation.call_uuid.to_string())
        .bind(conversation.direction.as_str())
        .bind(conversation.started_at.as_micros())
        .bind(conversation.agent_kind.as_str())
        .execute(connection)
        .await?;
    Ok(done.rows_affected() == 1)
}

async fn change(
    connection: &mut Connection,
    conversation: &Conversation,
    now: Timestamp,
) -> Result<(), StoreError> {
    let query =
        sql("UPDATE conversations SET ended_at_us = $1, agent_id = $2, contact_id = $3, contact_e164 = $4,
         summary = $5, provider = $6, model = $7, ai_billing_mode = $8, virtual_agent_profile_id = $9,
         virtual_agent_profile_name = $10, tokens_input = $11, tokens_output = $12, tokens_audio = $13,
         audio_split_known = $14, assembled_context = $15, profile = $16, flags = $17, sell_scaled = $18,
         sell_currency = $19, cost_scaled = $20, cost_currency = $21, updated_at_us = $22
         WHERE id = $23 AND organisation_id = $24");
    with_values(query, conversation, now)
        .bind(conversation.organisation_id.to_string())
        .execute(connection)
        .await?;
    Ok(())
}

/// Binds `$1` to `$23`: the fields that a report may change, and the id.
fn with_values(query: Query, conversation: &Conversation, now: Timestamp) -> Query {
    let ai = conversation.ai.as_ref();
    let tokens = |tokens: Option<u64>| tokens.and_then(|tokens| i64::try_from(tokens).ok());
    let (sell, cost) = (conversation.charge.sell, conversation.charge.cost);
    query
        .bind(conversation.ended_at.map(Timestamp::as_micros))
        .bind(conversation.agent_id.map(|id| id.to_string()))
        .bind(conversation.contact_id.map(|id| id.to_string()))
        .bind(conversation.contact_e164.as_deref())
        .bind(conversation.summary.as_deref())
        .bind(ai.map(|ai| ai.provider.as_str()))
        .bind(ai.map(|ai| ai.model.as_str()))
        .bind(ai.map(|ai| ai.billing_mode.as_str()))
        .bind(ai.and_then(|ai| ai.profile_id).map(|id| id.to_string()))
        .bind(ai.and_then(|ai| ai.profile_name.as_deref()))
        .bind(tokens(ai.map(|ai| ai.tokens_input)))
        .bind(tokens(ai.map(|ai| ai.tokens_output)))
        .bind(tokens(ai.map(|ai| ai.tokens_audio)))
        .bind(ai.map(|ai| i64::from(ai.audio_split_known)))
        .bind(conversation.assembled_context.as_deref())
        .bind(json_text(&conversation.profile))
        .bind(json_text(&conversation.flags))
        .bind(sell.map(|(amount, _)| amount.scaled()))
        .bind(sell.map(|(_, currency)| currency.as_str().to_owned()))
        .bind(cost.map(|(amount, _)| amount.scaled()))
        .bind(cost.map(|(_, currency)| currency.as_str().to_owned()))
        .bind(now.as_micros())
        .bind(conversation.id.to_string())
}

async fn insert_turn(
    connection: &mut Connection,
    conversation: &Conversation,
    turn: &Turn,
) -> Result<(), StoreError> {
    sql("INSERT INTO conversation_turns (conversation_id, organisation_id, seq, at_us, role, speaker, text,
         tool_name, tool_args, tool_result) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)")
    .bind(conversation.id.to_string())
    .bind(conversation.organisation_id.to_string())
    .bind(i64::try_from(turn.seq).unwrap_or(i64::MAX))
    .bind(turn.at.as_micros())
    .bind(turn.role.as_str())
    .bind(&turn.speaker)
    .bind(&turn.text)
    .bind(turn.tool_name.as_deref())
    .bind(turn.tool_args.as_ref().map(ExactJson::as_str))
    .bind(turn.tool_result.as_ref().map(ExactJson::as_str))
    .execute(connection)
    .await?;
    Ok(())
}

/// How many other first reports of one conversation may be stored in the meantime; after more, the failure has
/// another cause.
const ATTEMPTS_MAX: usize = 5;
