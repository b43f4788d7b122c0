-- The searchable texts of records, those of many in one row: store/src/text_blocks says how. A search reads these
-- rows of its organisation, and the records themselves until all of them are in such rows.
CREATE TABLE cdr_text_blocks (
    organisation_id TEXT NOT NULL,
    -- The smallest id of the block's records.
    first_call_uuid TEXT NOT NULL,
    records BIGINT NOT NULL,
    -- Of the texts as they are searched.
    size_bytes BIGINT NOT NULL,
    first_started_us BIGINT NOT NULL,
    last_started_us BIGINT NOT NULL,
    call_keys BYTEA NOT NULL,
    texts BYTEA NOT NULL,
    PRIMARY KEY (organisation_id, first_call_uuid)
);

-- 1 for records that are stored together with their block. Those from before are put into blocks while the engine
-- runs, in the order of cdrs_newest_first.
ALTER TABLE cdrs ADD COLUMN search_packed BIGINT NOT NULL DEFAULT 0;
CREATE TABLE cdr_text_fill (
    id BIGINT PRIMARY KEY,
    -- The last record that is in a block.
    organisation_id TEXT NOT NULL,
    started_at_us BIGINT NOT NULL,
    call_uuid TEXT NOT NULL,
    is_done BIGINT NOT NULL
);
INSERT INTO cdr_text_fill SELECT 1, '', 0, '', CASE WHEN EXISTS (SELECT 1 FROM cdrs) THEN 0 ELSE 1 END;
