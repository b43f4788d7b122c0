-- Rooms that announce their members by name, and the names that extensions have spoken. `wav` is the file in Base64.
ALTER TABLE conference_rooms ADD COLUMN announce_names BIGINT NOT NULL DEFAULT 0;

CREATE TABLE spoken_names (
    organisation_id TEXT NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
    extension_id TEXT NOT NULL REFERENCES extensions (id) ON DELETE CASCADE,
    wav TEXT NOT NULL,
    recorded_at_us BIGINT NOT NULL,
    PRIMARY KEY (organisation_id, extension_id)
);

CREATE INDEX spoken_names_of_extension ON spoken_names (extension_id);
