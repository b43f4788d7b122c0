//! Reads the notes that were sent.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use sidetone_model::exact_json::ExactJson;
use sidetone_model::ids::{CallId, ExtensionId, NoteId, OrganisationId, RoomId};
use sidetone_model::note::{
    NoteChannel, NoteLevel, NoteQuery, NoteReceipt, NoteRecord, NoteSource, NoteStatus,
};
use sidetone_model::page::Page;
use sidetone_model::time::Timestamp;

use crate::columns::{instant, instant_opt, number, number_opt, parsed, parsed_opt, word};
use crate::paging::{List, SortColumn, Sorting, rows};
use crate::sql::{Row, Transaction};
use crate::statement::Statement;
use crate::{Store, StoreError};

/// The object whose notes are listed.
#[derive(Clone, Copy)]
enum Of {
    Call(CallId),
    Extension(ExtensionId),
    Room(RoomId),
}

impl Store {
    /// The notes that were sent into a call of an organisation, newest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn notes_of_call(
        &self,
        organisation: OrganisationId,
        call: CallId,
        query: &NoteQuery,
    ) -> Result<Page<NoteRecord>, StoreError> {
        self.page_of_notes(organisation, Of::Call(call), query).await
    }

    /// The notes that were sent to an extension of an organisation, newest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn notes_of_extension(
        &self,
        organisation: OrganisationId,
        extension: ExtensionId,
        query: &NoteQuery,
    ) -> Result<Page<NoteRecord>, StoreError> {
        self.page_of_notes(organisation, Of::Extension(extension), query).await
    }

    /// The notes that a room of an organisation sent, newest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn notes_of_room(
        &self,
        organisation: OrganisationId,
        room: RoomId,
        query: &NoteQuery,
    ) -> Result<Page<NoteRecord>, StoreError> {
        self.page_of_notes(organisation, Of::Room(room), query).await
    }

    async fn page_of_notes(
        &self,
        organisation: OrganisationId,
        of: Of,
        query: &NoteQuery,
    ) -> Result<Page<NoteRecord>, StoreError> {
        let list = List {
            count: "SELECT COUNT(*) AS total FROM notes WHERE organisation_id = ",
            items: "SELECT * FROM notes WHERE organisation_id = ",
            matching: &|statement| matching(statement, organisation, of, query),
            sorting: Sorting::descending(&[SortColumn::Integer("sent_at_us"), SortColumn::Text("id")]),
        };
        // All statements see one snapshot.
        let mut transaction = self.readers().begin_read().await?;
        let page = rows(&mut transaction, &list, &query.window).await?;
        let mut receipts = receipts_of(&mut transaction, &page.items).await?;
        page.try_map(|row| record(&row, &mut receipts))
    }
}

fn matching(statement: &mut Statement, organisation: OrganisationId, of: Of, query: &NoteQuery) {
    statement.bind("", organisation.to_string(), "");
    match of {
        Of::Call(call) => statement.bind(" AND call_uuid = ", call.to_string(), ""),
        Of::Extension(extension) => statement.bind(" AND extension_id = ", extension.to_string(), ""),
        Of::Room(room) => statement.bind(" AND room_id = ", room.to_string(), ""),
    }
    statement.bind_text(" AND status = ", query.status);
    statement.bind_text(" AND level = ", query.level);
    statement.bind_text(" AND source = ", query.source);
    match query.acked {
        Some(true) => statement.push(" AND acked_count > 0"),
        Some(false) => statement.push(" AND acked_count = 0"),
        None => {}
    }
    if let Some(since) = query.since {
        statement.bind(" AND sent_at_us >= ", since.as_micros(), "");
    }
}

/// The receipts of the notes in `rows`, in their order.
async fn receipts_of(
    transaction: &mut Transaction,
    rows: &[Row],
) -> Result<HashMap<NoteId, Vec<NoteReceipt>>, StoreError> {
    let mut receipts: HashMap<NoteId, Vec<NoteReceipt>> = HashMap::with_capacity(rows.len());
    let mut statement = Statement::new("SELECT * FROM note_receipts WHERE note_id IN (");
    for (at, row) in rows.iter().enumerate() {
        statement.bind(if at == 0 { "" } else { ", " }, row.try_get::<String>("id")?, "");
    }
    statement.push(") ORDER BY note_id, place");
    if rows.is_empty() {
        return Ok(receipts);
    }
    for row in statement.query().fetch_all(&mut **transaction).await? {
        receipts.entry(parsed(&row, "note_id")?).or_default().push(receipt(&row)?);
    }
    Ok(receipts)
}

fn record(row: &Row, receipts: &mut HashMap<NoteId, Vec<NoteReceipt>>) -> Result<NoteRecord, StoreError> {
    let id: NoteId = parsed(row, "id")?;
    let recipients = receipts.remove(&id).unwrap_or_default();
    let (payload, body) = payload(row)?;
    Ok(NoteRecord {
        id,
        channel: word(row, "channel", NoteChannel::from_name)?,
        call_uuid: parsed_opt(row, "call_uuid")?,
        extension_id: parsed_opt(row, "extension_id")?,
        room_id: parsed_opt(row, "room_id")?,
        title: row.try_get("title")?,
        body,
        level: word(row, "level", NoteLevel::from_name)?,
        ack: row.try_get::<i64>("ack")? != 0,
        source: word(row, "source", NoteSource::from_name)?,
        status: word(row, "status", NoteStatus::from_name)?,
        error: row.try_get("error")?,
        recipient_count: u32::try_from(recipients.len()).unwrap_or(u32::MAX),
        recipients,
        acked_count: number(row, "acked_count")?,
        sent_at: instant(row, "sent_at_us")?,
        payload,
    })
}

/// The payload, and the text in its field `body`.
fn payload(row: &Row) -> Result<(ExactJson, String), StoreError> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(default)]
        body: Value,
    }
    let corrupt = |_| StoreError::Corrupt { column: "payload" };
    let text: String = row.try_get("payload")?;
    let text = if text.is_empty() { "{}".to_owned() } else { text };
    let Body { body } = serde_json::from_str(&text).map_err(corrupt)?;
    Ok((ExactJson::parse(text).map_err(corrupt)?, body.as_str().unwrap_or_default().to_owned()))
}

fn receipt(row: &Row) -> Result<NoteReceipt, StoreError> {
    let acked_at: Option<Timestamp> = instant_opt(row, "acked_at_us")?;
    Ok(NoteReceipt {
        member: row.try_get("member")?,
        name: row.try_get("name")?,
        device: Some(row.try_get::<String>("device")?).filter(|device| !device.is_empty()),
        sent_at: instant(row, "sent_at_us")?,
        acked_at,
        status: word(row, "status", NoteStatus::from_name)?,
        sip_status: number_opt(row, "sip_status")?,
        error: row.try_get("error")?,
    })
}
