//! Reads and writes the rows of extensions.

use sidetone_model::directory::{Ha1, Srtp, StrictSource, Video};
use sidetone_model::extension::ExtensionRecord;
use sidetone_model::forwarding::Forwarding;
use sidetone_model::language::Language;

use crate::columns::{instant, number, parsed, parsed_opt, word, word_opt};
use crate::search::searchable;
use crate::sql::{Row, sql};
use crate::{Change, StoreError, WriteTransaction};

impl WriteTransaction {
    pub(super) async fn insert_extension(
        &mut self,
        made: &ExtensionRecord,
        ha1: &Ha1,
    ) -> Result<(), StoreError> {
        sql(
            "INSERT INTO extensions (id, organisation_id, team_id, number, name, ha1_md5, ha1_sha256, codecs,
             search, created_at_us, updated_at_us, strict_source, srtp, forward_always, forward_busy,
             forward_no_answer, forward_no_answer_seconds, forward_unregistered, do_not_disturb, language,
             max_registrations, notify_message_waiting, video)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
             $22)",
        )
        .bind(made.id.to_string())
        .bind(made.organisation_id.to_string())
        .bind(made.team_id.map(|team| team.to_string()))
        .bind(&made.number)
        .bind(&made.name)
        .bind(&ha1.md5)
        .bind(&ha1.sha256)
        .bind(&made.codec_string)
        .bind(search(made))
        .bind(made.created_at.as_micros())
        .bind(made.strict_source.map(StrictSource::as_str))
        .bind(made.srtp.as_str())
        .bind(&made.forwarding.always)
        .bind(&made.forwarding.busy)
        .bind(&made.forwarding.no_answer)
        .bind(i64::from(made.forwarding.no_answer_seconds))
        .bind(&made.forwarding.unregistered)
        .bind(i64::from(made.do_not_disturb))
        .bind(made.language.map(Language::as_str))
        .bind(i64::from(made.max_registrations))
        .bind(i64::from(made.notify_message_waiting))
        .bind(made.video.as_str())
        .execute(&mut *self.transaction)
        .await?;
        self.note(Change::Created);
        Ok(())
    }

    pub(super) async fn update_extension(
        &mut self,
        after: &ExtensionRecord,
        ha1: &Ha1,
    ) -> Result<(), StoreError> {
        sql("UPDATE extensions SET team_id = $1, number = $2, name = $3, ha1_md5 = $4, ha1_sha256 = $5,
             codecs = $6, search = $7, updated_at_us = $8, strict_source = $11, srtp = $12,
             forward_always = $13, forward_busy = $14, forward_no_answer = $15, forward_no_answer_seconds = $16,
             forward_unregistered = $17, do_not_disturb = $18, language = $19, max_registrations = $20,
             notify_message_waiting = $21, video = $22
             WHERE id = $9 AND organisation_id = $10")
        .bind(after.team_id.map(|team| team.to_string()))
        .bind(&after.number)
        .bind(&after.name)
        .bind(&ha1.md5)
        .bind(&ha1.sha256)
        .bind(&after.codec_string)
        .bind(search(after))
        .bind(after.updated_at.as_micros())
        .bind(after.id.to_string())
        .bind(after.organisation_id.to_string())
        .bind(after.strict_source.map(StrictSource::as_str))
        .bind(after.srtp.as_str())
        .bind(&after.forwarding.always)
        .bind(&after.forwarding.busy)
        .bind(&after.forwarding.no_answer)
        .bind(i64::from(after.forwarding.no_answer_seconds))
        .bind(&after.forwarding.unregistered)
        .bind(i64::from(after.do_not_disturb))
        .bind(after.language.map(Language::as_str))
        .bind(i64::from(after.max_registrations))
        .bind(i64::from(after.notify_message_waiting))
        .bind(after.video.as_str())
        .execute(&mut *self.transaction)
        .await?;
        self.note(Change::Changed);
        Ok(())
    }
}

/// The text that a search in a list of extensions covers.
fn search(extension: &ExtensionRecord) -> String {
    searchable([Some(extension.number.as_str()), Some(&extension.name)])
}

/// An extension with its credential.
pub(super) fn extension_with_ha1(row: &Row) -> Result<(ExtensionRecord, Ha1), StoreError> {
    let ha1 = Ha1 { md5: row.try_get("ha1_md5")?, sha256: row.try_get("ha1_sha256")? };
    Ok((extension(row)?, ha1))
}

pub(super) fn extension(row: &Row) -> Result<ExtensionRecord, StoreError> {
    Ok(ExtensionRecord {
        id: parsed(row, "id")?,
        organisation_id: parsed(row, "organisation_id")?,
        team_id: parsed_opt(row, "team_id")?,
        number: row.try_get("number")?,
        name: row.try_get("name")?,
        codec_string: row.try_get("codecs")?,
        strict_source: word_opt(row, "strict_source", StrictSource::from_name)?,
        srtp: word(row, "srtp", Srtp::from_name)?,
        video: word(row, "video", Video::from_name)?,
        forwarding: forwarding(row)?,
        do_not_disturb: row.try_get::<i64>("do_not_disturb")? != 0,
        language: word_opt(row, "language", Language::from_name)?,
        max_registrations: number(row, "max_registrations")?,
        notify_message_waiting: row.try_get::<i64>("notify_message_waiting")? != 0,
        created_at: instant(row, "created_at_us")?,
        updated_at: instant(row, "updated_at_us")?,
    })
}

/// The forwarding of an extension.
pub(crate) fn forwarding(row: &Row) -> Result<Forwarding, StoreError> {
    Ok(Forwarding {
        always: row.try_get("forward_always")?,
        busy: row.try_get("forward_busy")?,
        no_answer: row.try_get("forward_no_answer")?,
        no_answer_seconds: number(row, "forward_no_answer_seconds")?,
        unregistered: row.try_get("forward_unregistered")?,
    })
}
