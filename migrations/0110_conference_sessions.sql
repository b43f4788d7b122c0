-- What rooms leave behind: a session is one occupancy of a room, with the people who were in it and the default members
-- it rang. No foreign keys: a session outlives its room, the calls and the extensions.
CREATE TABLE conference_sessions (
    id TEXT NOT NULL PRIMARY KEY,
    organisation_id TEXT NOT NULL,
    -- The node that it is on, which alone writes it while it is live.
    node_id TEXT NOT NULL,
    room TEXT NOT NULL,
    room_id TEXT,
    room_name TEXT NOT NULL,
    started_at_us BIGINT NOT NULL,
    ended_at_us BIGINT,
    -- When something was heard of it last: after a crash, its end.
    seen_at_us BIGINT NOT NULL,
    peak_members BIGINT NOT NULL,
    is_recorded BIGINT NOT NULL,
    -- Null while and when there is no complete recording.
    recording_bytes BIGINT,
    recording_error TEXT,
    -- How many events tell of it, so that none is stored twice.
    events BIGINT NOT NULL,
    revision BIGINT NOT NULL
);
CREATE INDEX conference_sessions_of_room ON conference_sessions (room_id, started_at_us DESC, id DESC)
    WHERE room_id IS NOT NULL;
CREATE INDEX conference_sessions_live ON conference_sessions (node_id, seen_at_us) WHERE ended_at_us IS NULL;

CREATE TABLE conference_people (
    session_id TEXT NOT NULL,
    organisation_id TEXT NOT NULL,
    member BIGINT NOT NULL,
    name TEXT NOT NULL,
    number TEXT NOT NULL,
    role TEXT NOT NULL,
    extension_id TEXT,
    call_uuid TEXT NOT NULL,
    leg TEXT NOT NULL,
    joined_at_us BIGINT NOT NULL,
    left_at_us BIGINT,
    PRIMARY KEY (session_id, member)
);

CREATE TABLE conference_invites (
    session_id TEXT NOT NULL,
    organisation_id TEXT NOT NULL,
    place BIGINT NOT NULL,
    extension_id TEXT NOT NULL,
    number TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    last_reason TEXT NOT NULL,
    PRIMARY KEY (session_id, place)
);
