-- What virtual agents made of the sessions of rooms. Lists are JSON: they are read and written whole.
CREATE TABLE meetings (
    session_id TEXT NOT NULL PRIMARY KEY,
    organisation_id TEXT NOT NULL,
    room_id TEXT NOT NULL,
    -- When the session began, by which the list is sorted.
    started_at_us BIGINT NOT NULL,
    agent_id TEXT NOT NULL,
    agent_name TEXT NOT NULL,
    state TEXT NOT NULL,
    minutes TEXT,
    minutes_error TEXT,
    notes TEXT NOT NULL,
    notes_count BIGINT NOT NULL,
    turns TEXT NOT NULL,
    turns_count BIGINT NOT NULL,
    replies_unheard TEXT NOT NULL,
    delivered_to TEXT NOT NULL,
    -- Whether the event that tells of the minutes was stored.
    is_told BIGINT NOT NULL,
    updated_at_us BIGINT NOT NULL
);
CREATE INDEX meetings_of_room ON meetings (room_id, started_at_us DESC, session_id DESC);
