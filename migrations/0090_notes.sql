-- Notes on phones: what was sent, and one receipt per phone. No foreign keys: a note outlives the call and the
-- extension that it went to. Kept for 30 days.
CREATE TABLE notes (
    id TEXT NOT NULL PRIMARY KEY,
    organisation_id TEXT NOT NULL,
    team_id TEXT,
    channel TEXT NOT NULL,
    call_uuid TEXT,
    extension_id TEXT,
    title TEXT NOT NULL,
    level TEXT NOT NULL,
    ack BIGINT NOT NULL,
    source TEXT NOT NULL,
    status TEXT NOT NULL,
    error TEXT,
    acked_count BIGINT NOT NULL,
    sent_at_us BIGINT NOT NULL,
    -- The JSON that the phones received; empty when there was none.
    payload TEXT NOT NULL
);
CREATE INDEX notes_of_call ON notes (call_uuid, sent_at_us DESC, id DESC) WHERE call_uuid IS NOT NULL;
CREATE INDEX notes_of_extension ON notes (extension_id, sent_at_us DESC, id DESC) WHERE extension_id IS NOT NULL;
CREATE INDEX notes_by_age ON notes (sent_at_us);

CREATE TABLE note_receipts (
    note_id TEXT NOT NULL,
    place BIGINT NOT NULL,
    -- The node that sends it, and alone hears what the phone answers.
    node_id TEXT NOT NULL,
    member TEXT NOT NULL,
    name TEXT NOT NULL,
    -- The contact that a device had registered; empty for a leg of a call.
    device TEXT NOT NULL,
    sent_at_us BIGINT NOT NULL,
    status TEXT NOT NULL,
    sip_status BIGINT,
    error TEXT,
    acked_at_us BIGINT,
    PRIMARY KEY (note_id, place)
);
CREATE INDEX note_receipts_pending ON note_receipts (sent_at_us, node_id) WHERE status = 'pending';
