-- Channels of a room's recordings: 1 for the whole mix, 2 with the moderators on the left.
ALTER TABLE conference_rooms ADD COLUMN record_channels BIGINT NOT NULL DEFAULT 1;
ALTER TABLE conference_sessions ADD COLUMN recording_channels BIGINT NOT NULL DEFAULT 1;
