-- Call records and the events that tell of them. No foreign keys: a record outlives what it
-- was made of, and storing one must never fail.

CREATE TABLE cdrs (
    call_uuid TEXT NOT NULL PRIMARY KEY,
    organisation_id TEXT NOT NULL,
    extension_id TEXT,
    trunk_id TEXT,
    direction TEXT NOT NULL,
    transport TEXT NOT NULL,
    started_at_us BIGINT NOT NULL,
    answered_at_us BIGINT,
    ended_at_us BIGINT,
    billsec BIGINT NOT NULL,
    billing_mode TEXT NOT NULL,
    codec_a TEXT,
    codec_b TEXT,
    caller_number TEXT,
    destination_number TEXT,
    dialled_number TEXT,
    agent_id TEXT,
    team_id TEXT,
    campaign_id TEXT,
    contact_id TEXT,
    node_id TEXT,
    hangup_cause TEXT,
    bridge_cause TEXT,
    sip_status BIGINT,
    sell_scaled BIGINT NOT NULL,
    cost_scaled BIGINT NOT NULL,
    currency TEXT,
    jitter_ms_hundredths BIGINT,
    loss_pct_hundredths BIGINT,
    mean_interval_ms_hundredths BIGINT,
    quality_pct_hundredths BIGINT,
    mos_hundredths BIGINT,
    media_verdict TEXT,
    -- Lower-cased texts that a free search looks at: lower() folds ASCII alone on SQLite.
    search TEXT NOT NULL
);
CREATE INDEX cdrs_newest_first ON cdrs (organisation_id, started_at_us DESC, call_uuid DESC);

-- The outbox: written with what it tells of, in one transaction. Ids are UUIDv7, so they sort.
CREATE TABLE events (
    id TEXT NOT NULL PRIMARY KEY,
    organisation_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    at_us BIGINT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX events_by_organisation ON events (organisation_id, id);
