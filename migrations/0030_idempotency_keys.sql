-- Requests that are carried out once however often they are sent. Without a status one is being carried out, by the
-- attempt that holds the lease; with one it is done, and the sealed body is what was answered.
CREATE TABLE idempotency_keys (
    id TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    node_id TEXT NOT NULL,
    attempt TEXT NOT NULL,
    leased_until_us BIGINT NOT NULL,
    expires_at_us BIGINT NOT NULL,
    status BIGINT,
    content_type TEXT,
    location TEXT,
    sealed_body TEXT
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at_us);
