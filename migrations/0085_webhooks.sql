-- Webhooks and what is delivered to them.

-- A secret is kept as it is: it signs. Events are patterns with commas between. `next_at_us` is when the first of the
-- webhook's deliveries is due, so that whoever sends finds those with something to do without reading any queue.
CREATE TABLE webhooks (
    id TEXT NOT NULL PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisations (id),
    url TEXT NOT NULL,
    events TEXT NOT NULL,
    description TEXT NOT NULL,
    active BIGINT NOT NULL,
    disabled_reason TEXT,
    secret TEXT NOT NULL,
    old_secret TEXT,
    old_secret_until_us BIGINT,
    failing_since_us BIGINT,
    next_at_us BIGINT,
    search TEXT NOT NULL,
    created_at_us BIGINT NOT NULL,
    updated_at_us BIGINT NOT NULL
);
CREATE INDEX webhooks_by_organisation ON webhooks (organisation_id, id);
CREATE INDEX webhooks_due ON webhooks (next_at_us) WHERE next_at_us IS NOT NULL;

-- One event on its way to one webhook. `body` is what is sent, byte for byte, whatever becomes of the event.
-- `next_at_us` is when it is tried next, NULL when it is not; while an attempt runs it is when its lease ends, and
-- `node_id` and `lease` say whose attempt it is. A round is the schedule since it was queued, or queued again.
CREATE TABLE webhook_deliveries (
    id TEXT NOT NULL PRIMARY KEY,
    webhook_id TEXT NOT NULL,
    organisation_id TEXT NOT NULL,
    event_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    next_at_us BIGINT,
    node_id TEXT,
    lease TEXT,
    round_at_us BIGINT NOT NULL,
    round_attempts BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    body TEXT NOT NULL,
    created_at_us BIGINT NOT NULL,
    updated_at_us BIGINT NOT NULL
);
CREATE UNIQUE INDEX webhook_deliveries_newest_first ON webhook_deliveries (webhook_id, event_id);
CREATE INDEX webhook_deliveries_by_status ON webhook_deliveries (webhook_id, status, event_id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, next_at_us) WHERE next_at_us IS NOT NULL;
CREATE INDEX webhook_deliveries_running ON webhook_deliveries (webhook_id, node_id) WHERE node_id IS NOT NULL;
CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries (created_at_us);

CREATE TABLE webhook_attempts (
    delivery_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    at_us BIGINT NOT NULL,
    status_code BIGINT,
    duration_ms BIGINT NOT NULL,
    error TEXT,
    answer TEXT,
    PRIMARY KEY (delivery_id, number)
);
