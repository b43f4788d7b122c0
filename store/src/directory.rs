//! The directory as the switch caches it: one consistent read of all routing data.

use sidetone_model::directory::{
    DirectorySnapshot, Extension, Ha1, Number, Numbering, Organisation, Secret, Srtp, StrictSource, Trunk,
    Video,
};
use sidetone_model::language::Language;

use crate::columns::{items, networks, number, number_opt, parsed, parsed_opt, word, word_opt};
use crate::extensions::{forwarding, message_waiting};
use crate::numbers::destination;
use crate::rooms::rooms;
use crate::sql::{Connection, Row, sql};
use crate::trunks::interop;
use crate::{Store, StoreError};

impl Store {
    /// Returns the revision, which grows with every change of the directory; cheap enough to read every
    /// second.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn directory_revision(&self) -> Result<i64, StoreError> {
        let row =
            sql("SELECT revision FROM directory_revision WHERE id = 1").fetch_one(self.readers()).await?;
        Ok(row.try_get("revision")?)
    }

    /// Returns the routing data of all organisations, as of one instant.
    ///
    /// # Errors
    /// When the database fails, or contains values that this version does not know.
    pub async fn directory(&self) -> Result<DirectorySnapshot, StoreError> {
        let mut transaction = self.readers().begin_read().await?;
        let row =
            sql("SELECT revision FROM directory_revision WHERE id = 1").fetch_one(&mut *transaction).await?;
        Ok(DirectorySnapshot {
            revision: row.try_get("revision")?,
            organisations: organisations(&mut transaction).await?,
            extensions: extensions(&mut transaction).await?,
            numbers: numbers(&mut transaction).await?,
            rooms: rooms(&mut transaction).await?,
            trunks: trunks(&mut transaction).await?,
        })
    }
}

async fn organisations(connection: &mut Connection) -> Result<Vec<Organisation>, StoreError> {
    let rows =
        sql("SELECT id, name, sip_domain, currency, country_code, national_prefix, international_prefix,
         max_outbound_calls, max_call_seconds, language, star_codes FROM organisations ORDER BY name")
        .fetch_all(connection)
        .await?;
    let organisation = |row: &Row| {
        Ok(Organisation {
            id: parsed(row, "id")?,
            name: row.try_get("name")?,
            sip_domain: row.try_get("sip_domain")?,
            currency: parsed(row, "currency")?,
            numbering: Numbering {
                country_code: row.try_get("country_code")?,
                national_prefix: row.try_get("national_prefix")?,
                international_prefix: row.try_get("international_prefix")?,
            },
            max_outbound_calls: number_opt(row, "max_outbound_calls")?,
            max_call_seconds: number_opt(row, "max_call_seconds")?,
            language: word(row, "language", Language::from_name)?,
            star_codes: row.try_get::<i64>("star_codes")? != 0,
        })
    };
    rows.iter().map(organisation).collect()
}

async fn extensions(connection: &mut Connection) -> Result<Vec<Extension>, StoreError> {
    let rows = sql("SELECT extensions.id, extensions.organisation_id, agents.id AS agent_id,
         COALESCE(agents.team_id, extensions.team_id) AS team_id, number, extensions.name, ha1_md5, ha1_sha256,
         codecs, strict_source, srtp, video, forward_always, forward_busy, forward_no_answer, forward_no_answer_seconds,
         forward_unregistered, do_not_disturb, language, max_registrations, notify_message_waiting, messages_new,
         messages_old, messages_urgent_new, messages_urgent_old
         FROM extensions LEFT JOIN agents ON agents.extension_id = extensions.id
         ORDER BY extensions.organisation_id, number")
    .fetch_all(connection)
    .await?;
    let extension = |row: &Row| {
        Ok(Extension {
            id: parsed(row, "id")?,
            organisation_id: parsed(row, "organisation_id")?,
            agent_id: parsed_opt(row, "agent_id")?,
            team_id: parsed_opt(row, "team_id")?,
            number: row.try_get("number")?,
            name: row.try_get("name")?,
            ha1: Ha1 { md5: row.try_get("ha1_md5")?, sha256: row.try_get("ha1_sha256")? },
            codecs: items(row, "codecs")?,
            strict_source: word_opt(row, "strict_source", StrictSource::from_name)?,
            srtp: word(row, "srtp", Srtp::from_name)?,
            video: word(row, "video", Video::from_name)?,
            forwarding: forwarding(row)?,
            do_not_disturb: row.try_get::<i64>("do_not_disturb")? != 0,
            language: word_opt(row, "language", Language::from_name)?,
            max_registrations: number(row, "max_registrations")?,
            notify_message_waiting: row.try_get::<i64>("notify_message_waiting")? != 0,
            message_waiting: message_waiting(row)?,
        })
    };
    rows.iter().map(extension).collect()
}

async fn numbers(connection: &mut Connection) -> Result<Vec<Number>, StoreError> {
    let rows =
        sql("SELECT id, organisation_id, number, destination, destination_id FROM numbers ORDER BY number")
            .fetch_all(connection)
            .await?;
    let number = |row: &Row| {
        Ok(Number {
            id: parsed(row, "id")?,
            organisation_id: parsed(row, "organisation_id")?,
            number: row.try_get("number")?,
            destination: destination(row)?,
        })
    };
    rows.iter().map(number).collect()
}

async fn trunks(connection: &mut Connection) -> Result<Vec<Trunk>, StoreError> {
    let rows = sql(
        "SELECT id, organisation_id, name, address, accept_from, priority, username, password, realm, register,
         short_numbers, strict_source, srtp, video, max_call_seconds, backup_addresses, outbound_proxy, from_domain,
         country_code, national_prefix, inbound_numbers, outbound_numbers, codecs, headers,
         progress_seconds, qualify_seconds, transfers
         FROM trunks ORDER BY created_at_us, id",
    )
    .fetch_all(connection)
    .await?;
    let trunk = |row: &Row| {
        Ok(Trunk {
            id: parsed(row, "id")?,
            organisation_id: parsed_opt(row, "organisation_id")?,
            name: row.try_get("name")?,
            address: row.try_get("address")?,
            accept_from: networks(row, "accept_from")?,
            priority: number(row, "priority")?,
            username: row.try_get("username")?,
            password: Secret(row.try_get("password")?),
            realm: row.try_get("realm")?,
            register: row.try_get::<i64>("register")? != 0,
            short_numbers: items(row, "short_numbers")?,
            strict_source: word_opt(row, "strict_source", StrictSource::from_name)?,
            srtp: word(row, "srtp", Srtp::from_name)?,
            video: word(row, "video", Video::from_name)?,
            max_call_seconds: number_opt(row, "max_call_seconds")?,
            interop: interop(row)?,
        })
    };
    rows.iter().map(trunk).collect()
}
