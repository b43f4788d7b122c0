-- How long each person in a session talked; 0 in sessions from before.
ALTER TABLE conference_people ADD COLUMN talked_ms BIGINT NOT NULL DEFAULT 0;
