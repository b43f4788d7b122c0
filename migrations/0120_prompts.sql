-- Sounds that organisations have instead of the built-in ones. `wav` is the uploaded file in Base64: every node reads
-- it from here. `revision` is that of the sounds when it was stored, so that a node reads again only what is new.

CREATE TABLE prompts (
    organisation_id TEXT NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    wav TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    updated_at_us BIGINT NOT NULL,
    PRIMARY KEY (organisation_id, name)
);

-- Beside the revisions of the directory and of the rates.
INSERT INTO directory_revision (id, revision) VALUES (3, 0);
