-- Agents, and what lists of teams and keys search and show.

CREATE TABLE agents (
    id TEXT NOT NULL PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisations (id),
    team_id TEXT REFERENCES teams (id),
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    -- One agent takes the calls of an extension: the agent of a record is never a guess.
    extension_id TEXT UNIQUE REFERENCES extensions (id),
    user_id TEXT UNIQUE REFERENCES users (id),
    search TEXT NOT NULL,
    created_at_us BIGINT NOT NULL,
    updated_at_us BIGINT NOT NULL
);
CREATE INDEX agents_by_organisation ON agents (organisation_id, name);

-- Rows from before fold ASCII alone on SQLite.
ALTER TABLE teams ADD COLUMN search TEXT NOT NULL DEFAULT '';
UPDATE teams SET search = LOWER(name);
ALTER TABLE api_keys ADD COLUMN search TEXT NOT NULL DEFAULT '';
UPDATE api_keys SET search = LOWER(name);
-- The preset that the permissions were copied from; a later change of the preset does not change the key.
ALTER TABLE api_keys ADD COLUMN preset TEXT;
