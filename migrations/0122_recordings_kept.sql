-- Whether a recording is under way, whose length is not known then, and whether its event was stored.
ALTER TABLE conference_sessions ADD COLUMN is_recording BIGINT NOT NULL DEFAULT 0;
ALTER TABLE conference_sessions ADD COLUMN is_recording_told BIGINT NOT NULL DEFAULT 0;
-- What was kept for as long as it is kept.
CREATE INDEX conference_recordings ON conference_sessions (node_id, ended_at_us, id) WHERE recording_bytes > 0;
