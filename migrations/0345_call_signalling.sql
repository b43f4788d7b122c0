-- The SIP messages of a call, without credentials: packed JSON, store/src/packed.rs says how. Stored half a minute after the
-- call ended, and only by nodes with [signalling] keep_days; `expires_at_us` comes from it.
CREATE TABLE call_signalling (
    call_uuid TEXT NOT NULL PRIMARY KEY,
    organisation_id TEXT NOT NULL,
    node_id TEXT NOT NULL,
    ended_at_us BIGINT NOT NULL,
    expires_at_us BIGINT NOT NULL,
    packed BYTEA NOT NULL
);
CREATE INDEX call_signalling_kept ON call_signalling (expires_at_us, call_uuid);
