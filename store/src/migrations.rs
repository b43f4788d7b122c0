//! The schema: its migrations, and how PostgreSQL compares texts.

use std::sync::LazyLock;

use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::PgPool;

/// Runs the migrations, and sets every text column to compare by bytes: texts then sort as they do on SQLite,
/// independent of the server's collation.
pub(super) async fn migrate_postgres(writer: &PgPool) -> Result<(), sqlx::migrate::MigrateError> {
    MIGRATIONS.run(writer).await?;
    let mut transaction = writer.begin().await?;
    // Another node may start at the same time.
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(COLLATION_LOCK).execute(&mut *transaction).await?;
    sqlx::query(TEXTS_COMPARE_BY_BYTES).execute(&mut *transaction).await?;
    sqlx::query(INSTR).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(())
}

/// The names and texts of the files in `migrations/`, built in. `sqlx::migrate!` would do the same, but it compiles the
/// drivers of the databases a second time, for the compiler.
macro_rules! files {
    ($($name:literal,)*) => {
        [$(($name, include_str!(concat!("../../migrations/", $name, ".sql")))),*]
    };
}

/// Every migration, in the order of their versions.
pub(super) static MIGRATIONS: LazyLock<Migrator> =
    LazyLock::new(|| Migrator::with_migrations(FILES.iter().filter_map(migration).collect()));

/// A migration of its file, as sqlx reads it from a folder; `None` if the name does not begin with a version.
fn migration(&(name, sql): &(&'static str, &'static str)) -> Option<Migration> {
    let (version, description) = name.split_once('_')?;
    let description = description.replace('_', " ").into();
    Some(Migration::new(version.parse().ok()?, description, MigrationType::Simple, sql.into_sql_str(), false))
}

/// Any number that no other lock of this schema has.
const COLLATION_LOCK: i64 = 0x5349_4445;
/// SQLite's substring search under the same name. It is inlined, so it costs no more than `strpos`.
const INSTR: &str = "
CREATE OR REPLACE FUNCTION instr(text, text) RETURNS INTEGER
LANGUAGE SQL IMMUTABLE STRICT PARALLEL SAFE AS 'SELECT strpos($1, $2)'";
/// Changes only columns that later migrations added: otherwise no table is locked or rewritten. `information_schema`
/// would take five times as long, at every start.
const TEXTS_COMPARE_BY_BYTES: &str = r#"
DO $$
DECLARE
    texts RECORD;
BEGIN
    FOR texts IN
        SELECT relname AS table_name,
               string_agg(format('ALTER COLUMN %I TYPE TEXT COLLATE "C"', attname), ', ') AS changes
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname <> '_sqlx_migrations'
          AND attnum > 0 AND NOT attisdropped AND atttypid = 'text'::regtype
          AND attcollation NOT IN (SELECT oid FROM pg_collation WHERE collname = 'C')
        GROUP BY relname
    LOOP
        EXECUTE format('ALTER TABLE %I %s', texts.table_name, texts.changes);
    END LOOP;
END $$"#;
/// A new file is added here.
static FILES: [(&str, &str); 59] = files![
    "0001_directory",
    "0002_records",
    "0003_call_log",
    "0010_users",
    "0011_agents",
    "0020_managed",
    "0030_idempotency_keys",
    "0040_rates",
    "0050_outbound",
    "0060_conversations",
    "0070_call_log_search",
    "0071_call_log_counts",
    "0072_call_log_indexes",
    "0080_event_position",
    "0085_webhooks",
    "0086_webhook_cursor",
    "0088_call_info",
    "0090_notes",
    "0100_conference_rooms",
    "0110_conference_sessions",
    "0111_notes_of_rooms",
    "0112_meetings",
    "0120_prompts",
    "0121_recording_retention",
    "0122_recordings_kept",
    "0130_cdr_quality",
    "0140_call_safety",
    "0150_callee_media",
    "0160_packed_quality",
    "0180_srtp",
    "0190_call_log_texts",
    "0200_transfers",
    "0210_call_requests",
    "0220_trunk_interop",
    "0221_trunk_qualify",
    "0230_forwarding",
    "0240_call_callbacks",
    "0250_call_log_filters",
    "0251_conversation_lists",
    "0260_call_recordings",
    "0270_talk_time",
    "0290_merged_sessions",
    "0300_recording_channels",
    "0301_languages",
    "0310_event_viewers",
    "0311_max_registrations",
    "0312_message_waiting",
    "0320_star_codes",
    "0321_trunk_transfers",
    "0330_linked_recordings",
    "0335_spoken_names",
    "0345_call_signalling",
    "0350_devices",
    "0360_fax",
    "0370_node_beats",
    "0380_call_log_hours",
    "0390_video",
    "0395_credit_reserves",
    "0397_forwarded_to",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_file_of_the_folder_is_built_in_as_sqlx_reads_it() {
        let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations"));
        let read = Migrator::new(folder).await.unwrap();
        let shown = |migrator: &Migrator| {
            let every = migrator.iter().map(|it| {
                (it.version, it.description.clone(), it.migration_type, it.checksum.clone(), it.no_tx)
            });
            every.collect::<Vec<_>>()
        };
        assert_eq!(shown(&MIGRATIONS), shown(&read));
    }
}
