//! The schema: its migrations, and how PostgreSQL compares texts.

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

pub(super) static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../migrations");
/// Any number that no other lock of this schema has.
const COLLATION_LOCK: i64 = 0x5349_4445;
/// SQLite's substring search under the same name. It is inlined, so it costs no more than `strpos`.
const INSTR: &str = "
CREATE OR REPLACE FUNCTION instr(text, text) RETURNS INTEGER
LANGUAGE SQL IMMUTABLE STRICT PARALLEL SAFE AS 'SELECT strpos($1, $2)'";
/// Changes only columns that later migrations added: otherwise no table is locked or rewritten.
const TEXTS_COMPARE_BY_BYTES: &str = r#"
DO $$
DECLARE
    texts RECORD;
BEGIN
    FOR texts IN
        SELECT table_name,
               string_agg(format('ALTER COLUMN %I TYPE TEXT COLLATE "C"', column_name), ', ') AS changes
        FROM information_schema.columns
        WHERE table_schema = current_schema() AND data_type = 'text'
          AND collation_name IS DISTINCT FROM 'C' AND table_name <> '_sqlx_migrations'
        GROUP BY table_name
    LOOP
        EXECUTE format('ALTER TABLE %I %s', texts.table_name, texts.changes);
    END LOOP;
END $$"#;
