-- Conference rooms, who is rung when one opens, and who enters without a PIN.

CREATE TABLE conference_rooms (
    id TEXT NOT NULL PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisations (id),
    name TEXT NOT NULL,
    number TEXT NOT NULL,
    participant_pin TEXT NOT NULL,
    moderator_pin TEXT NOT NULL,
    wait_for_moderator BIGINT NOT NULL,
    end_when_moderator_leaves BIGINT NOT NULL,
    record BIGINT NOT NULL,
    max_members BIGINT NOT NULL,
    minutes_email TEXT NOT NULL,
    search TEXT NOT NULL,
    created_at_us BIGINT NOT NULL,
    updated_at_us BIGINT NOT NULL,
    UNIQUE (organisation_id, number)
);
CREATE INDEX conference_rooms_by_name ON conference_rooms (organisation_id, name);

-- An extension that goes is no member and no exception any more.
CREATE TABLE conference_room_members (
    room_id TEXT NOT NULL REFERENCES conference_rooms (id) ON DELETE CASCADE,
    organisation_id TEXT NOT NULL REFERENCES organisations (id),
    extension_id TEXT NOT NULL REFERENCES extensions (id) ON DELETE CASCADE,
    place BIGINT NOT NULL,
    PRIMARY KEY (room_id, extension_id)
);
CREATE INDEX conference_room_members_by_extension ON conference_room_members (extension_id);

CREATE TABLE conference_room_exemptions (
    room_id TEXT NOT NULL REFERENCES conference_rooms (id) ON DELETE CASCADE,
    organisation_id TEXT NOT NULL REFERENCES organisations (id),
    extension_id TEXT NOT NULL REFERENCES extensions (id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    PRIMARY KEY (room_id, extension_id)
);
CREATE INDEX conference_room_exemptions_by_extension ON conference_room_exemptions (extension_id);
