-- People who log in, the sessions that were ended before their time, and the secret that signs sessions.

CREATE TABLE users (
    id TEXT NOT NULL PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisations (id),
    team_id TEXT REFERENCES teams (id),
    -- Lower case, so that one person is one row.
    email TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    -- argon2id in PHC form.
    password_hash TEXT NOT NULL,
    disabled BIGINT NOT NULL,
    -- Sessions of another version have ended.
    version BIGINT NOT NULL,
    search TEXT NOT NULL,
    created_at_us BIGINT NOT NULL,
    updated_at_us BIGINT NOT NULL
);
CREATE INDEX users_by_organisation ON users (organisation_id, email);

CREATE TABLE ended_sessions (
    id TEXT NOT NULL PRIMARY KEY,
    -- Nobody asks after this instant: the session is over anyway.
    expires_at_us BIGINT NOT NULL
);
CREATE INDEX ended_sessions_by_expiry ON ended_sessions (expires_at_us);

CREATE TABLE secrets (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL,
    created_at_us BIGINT NOT NULL
);
