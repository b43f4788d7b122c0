-- Recordings of calls that programs begin: a row before anything is recorded, completed when the file is closed. `bytes`
-- is null until then, and 0 when there is no file, or no file any more.
CREATE TABLE call_recordings (
    id TEXT NOT NULL PRIMARY KEY,
    organisation_id TEXT NOT NULL,
    team_id TEXT,
    call_uuid TEXT NOT NULL,
    -- The node that has the file.
    node_id TEXT NOT NULL,
    started_at_us BIGINT NOT NULL,
    ended_at_us BIGINT,
    bytes BIGINT,
    error TEXT
);
CREATE INDEX call_recordings_of_call ON call_recordings (call_uuid, started_at_us);
CREATE INDEX call_recordings_kept ON call_recordings (node_id, ended_at_us) WHERE bytes > 0;
CREATE INDEX call_recordings_unfinished ON call_recordings (node_id) WHERE bytes IS NULL;
