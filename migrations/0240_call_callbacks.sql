-- Callbacks of calls that programs request: one row for each report, written with the change that it reports. `body` is
-- what is sent, byte for byte. Only the first report of a request that is not over has a `next_at_us`; the later ones
-- are `waiting`. While an attempt runs, `next_at_us` is when its lease ends. Kept as long as requests.
CREATE TABLE call_callbacks (
    id TEXT NOT NULL PRIMARY KEY,
    request_id TEXT NOT NULL,
    organisation_id TEXT NOT NULL,
    -- The order of the reports of a request.
    seq BIGINT NOT NULL,
    kind TEXT NOT NULL,
    url TEXT NOT NULL,
    body TEXT NOT NULL,
    status TEXT NOT NULL,
    next_at_us BIGINT,
    node_id TEXT,
    lease TEXT,
    -- When its schedule began.
    round_at_us BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    last_error TEXT,
    created_at_us BIGINT NOT NULL,
    updated_at_us BIGINT NOT NULL
);
CREATE UNIQUE INDEX call_callbacks_in_order ON call_callbacks (request_id, seq);
CREATE INDEX call_callbacks_due ON call_callbacks (organisation_id, next_at_us) WHERE next_at_us IS NOT NULL;
CREATE INDEX call_callbacks_running ON call_callbacks (node_id) WHERE node_id IS NOT NULL;
CREATE INDEX call_callbacks_by_age ON call_callbacks (created_at_us);

ALTER TABLE call_requests ADD COLUMN callback_url TEXT;

-- It signs the callbacks; empty when there is none.
ALTER TABLE organisations ADD COLUMN callback_secret TEXT NOT NULL DEFAULT '';
