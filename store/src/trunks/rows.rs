//! Reads and writes the rows of trunks.

use sidetone_model::directory::{Secret, Srtp, StrictSource, Video};
use sidetone_model::trunk::TrunkRecord;
use sidetone_model::trunk_interop::{InboundNumbers, OutboundNumbers, TrunkInterop};

use crate::columns::{
    instant, items, networks, networks_text, number, number_opt, parsed, parsed_opt, word, word_opt,
};
use crate::search::searchable;
use crate::sql::{Query, Row, sql};
use crate::{Change, StoreError, WriteTransaction};

impl WriteTransaction {
    pub(super) async fn insert_trunk(
        &mut self,
        trunk: &TrunkRecord,
        password: &Secret,
    ) -> Result<(), StoreError> {
        let statement = sql("INSERT INTO trunks (id, organisation_id, name, address, accept_from, priority,
             username, password, realm, register, short_numbers, search, created_at_us,
             updated_at_us, strict_source, max_call_seconds, srtp, backup_addresses, outbound_proxy, from_domain,
             country_code, national_prefix, inbound_numbers, outbound_numbers, codecs, headers,
             progress_seconds, qualify_seconds, transfers, video)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, $14, $15, $16, $17, $18, $19, $20,
             $21, $22, $23, $24, $25, $26, $27, $28, $29)");
        self.write_trunk(statement, trunk, password, Change::Created).await
    }

    pub(super) async fn update_trunk(
        &mut self,
        trunk: &TrunkRecord,
        password: &Secret,
    ) -> Result<(), StoreError> {
        let statement = sql("UPDATE trunks SET organisation_id = $2, name = $3, address = $4, accept_from = $5,
             priority = $6, username = $7, password = $8, realm = $9, register = $10, short_numbers = $11, search = $12,
             updated_at_us = $13, strict_source = $14, max_call_seconds = $15, srtp = $16,
             backup_addresses = $17, outbound_proxy = $18, from_domain = $19, country_code = $20,
             national_prefix = $21, inbound_numbers = $22, outbound_numbers = $23, codecs = $24, headers = $25,
             progress_seconds = $26, qualify_seconds = $27, transfers = $28, video = $29
             WHERE id = $1");
        self.write_trunk(statement, trunk, password, Change::Changed).await
    }

    /// Binds the columns in the order of both statements; a new trunk was created when it was updated.
    async fn write_trunk(
        &mut self,
        statement: Query,
        trunk: &TrunkRecord,
        password: &Secret,
        change: Change,
    ) -> Result<(), StoreError> {
        statement
            .bind(trunk.id.to_string())
            .bind(trunk.organisation_id.map(|owner| owner.to_string()))
            .bind(&trunk.name)
            .bind(&trunk.address)
            .bind(networks_text(&trunk.accept_from))
            .bind(i64::from(trunk.priority))
            .bind(&trunk.username)
            .bind(&password.0)
            .bind(&trunk.realm)
            .bind(trunk.register)
            .bind(trunk.short_numbers.join(","))
            .bind(search(trunk))
            .bind(trunk.updated_at.as_micros())
            .bind(trunk.strict_source.map(StrictSource::as_str))
            .bind(trunk.max_call_seconds.map(i64::from))
            .bind(trunk.srtp.as_str())
            .bind(trunk.interop.backup_addresses.join(","))
            .bind(&trunk.interop.outbound_proxy)
            .bind(&trunk.interop.from_domain)
            .bind(&trunk.interop.country_code)
            .bind(&trunk.interop.national_prefix)
            .bind(trunk.interop.inbound_numbers.as_str())
            .bind(trunk.interop.outbound_numbers.as_str())
            .bind(trunk.interop.codecs.join(","))
            .bind(trunk.interop.headers.join("\n"))
            .bind(i64::from(trunk.interop.progress_seconds))
            .bind(i64::from(trunk.interop.qualify_seconds))
            .bind(i64::from(trunk.interop.transfers))
            .bind(trunk.video.as_str())
            .execute(&mut *self.transaction)
            .await?;
        self.note(change);
        Ok(())
    }
}

/// The text that a search in a list of trunks covers.
fn search(trunk: &TrunkRecord) -> String {
    searchable([Some(trunk.name.as_str()), trunk.address.as_deref()])
}

/// A trunk with its password.
pub(super) fn trunk_with_password(row: &Row) -> Result<(TrunkRecord, Secret), StoreError> {
    Ok((trunk(row)?, Secret(row.try_get("password")?)))
}

pub(super) fn trunk(row: &Row) -> Result<TrunkRecord, StoreError> {
    Ok(TrunkRecord {
        id: parsed(row, "id")?,
        organisation_id: parsed_opt(row, "organisation_id")?,
        name: row.try_get("name")?,
        address: row.try_get("address")?,
        accept_from: networks(row, "accept_from")?,
        priority: number(row, "priority")?,
        username: row.try_get("username")?,
        has_password: !row.try_get::<&str>("password")?.is_empty(),
        realm: row.try_get("realm")?,
        register: row.try_get::<i64>("register")? != 0,
        short_numbers: items(row, "short_numbers")?,
        strict_source: word_opt(row, "strict_source", StrictSource::from_name)?,
        srtp: word(row, "srtp", Srtp::from_name)?,
        video: word(row, "video", Video::from_name)?,
        max_call_seconds: number_opt(row, "max_call_seconds")?,
        interop: interop(row)?,
        created_at: instant(row, "created_at_us")?,
        updated_at: instant(row, "updated_at_us")?,
    })
}

/// The settings for a carrier that deviates from the usual behaviour.
pub(crate) fn interop(row: &Row) -> Result<TrunkInterop, StoreError> {
    Ok(TrunkInterop {
        backup_addresses: items(row, "backup_addresses")?,
        outbound_proxy: row.try_get("outbound_proxy")?,
        from_domain: row.try_get("from_domain")?,
        country_code: row.try_get("country_code")?,
        national_prefix: row.try_get("national_prefix")?,
        inbound_numbers: word(row, "inbound_numbers", InboundNumbers::from_name)?,
        outbound_numbers: word(row, "outbound_numbers", OutboundNumbers::from_name)?,
        codecs: items(row, "codecs")?,
        headers: row.try_get::<&str>("headers")?.lines().map(str::to_owned).collect(),
        progress_seconds: number(row, "progress_seconds")?,
        qualify_seconds: number(row, "qualify_seconds")?,
        transfers: row.try_get::<i64>("transfers")? != 0,
    })
}
