-- Calls that programs request: the request, written before anything rings, and how far its call has come. No foreign
-- keys: a request outlives its extension. Kept for 30 days.
CREATE TABLE call_requests (
    id TEXT NOT NULL PRIMARY KEY,
    call_uuid TEXT NOT NULL UNIQUE,
    organisation_id TEXT NOT NULL,
    team_id TEXT,
    extension_id TEXT NOT NULL,
    -- The node that places the call.
    node_id TEXT NOT NULL,
    caller TEXT NOT NULL,
    target TEXT NOT NULL,
    reference TEXT,
    -- A JSON object of texts.
    variables TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    created_at_us BIGINT NOT NULL,
    from_answered_at_us BIGINT,
    to_answered_at_us BIGINT,
    ended_at_us BIGINT
);
CREATE INDEX call_requests_newest_first ON call_requests (organisation_id, created_at_us DESC, id DESC);
CREATE INDEX call_requests_by_age ON call_requests (created_at_us);
CREATE INDEX call_requests_open ON call_requests (node_id) WHERE ended_at_us IS NULL;

-- The text that the program gave for its call.
ALTER TABLE cdrs ADD COLUMN reference TEXT;
CREATE INDEX cdrs_of_reference ON cdrs (organisation_id, reference, started_at_us, call_uuid) WHERE reference IS NOT NULL;
