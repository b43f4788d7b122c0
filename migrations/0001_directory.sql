-- The standing things: who the tenants are, their phones, keys, numbers, and the trunks.
-- Ids are hyphenated lower-case UUIDs, instants are microseconds since 1970 UTC,
-- money is an exact count of 10^-8.

CREATE TABLE directory_revision (
    id BIGINT NOT NULL PRIMARY KEY,
    revision BIGINT NOT NULL
);
INSERT INTO directory_revision (id, revision) VALUES (1, 0);

CREATE TABLE nodes (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_at_us BIGINT NOT NULL
);

CREATE TABLE organisations (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    sip_domain TEXT NOT NULL UNIQUE,
    currency TEXT NOT NULL,
    credit_scaled BIGINT,
    created_at_us BIGINT NOT NULL,
    updated_at_us BIGINT NOT NULL
);

CREATE TABLE teams (
    id TEXT NOT NULL PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisations (id),
    name TEXT NOT NULL,
    created_at_us BIGINT NOT NULL,
    updated_at_us BIGINT NOT NULL,
    UNIQUE (organisation_id, name)
);

CREATE TABLE extensions (
    id TEXT NOT NULL PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisations (id),
    team_id TEXT REFERENCES teams (id),
    number TEXT NOT NULL,
    name TEXT NOT NULL,
    ha1_md5 TEXT NOT NULL,
    ha1_sha256 TEXT NOT NULL,
    codecs TEXT NOT NULL,
    created_at_us BIGINT NOT NULL,
    updated_at_us BIGINT NOT NULL,
    UNIQUE (organisation_id, number)
);

-- The key's secret is never stored: its SHA-256 is, and its last four characters for lists.
CREATE TABLE api_keys (
    id TEXT NOT NULL PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisations (id),
    name TEXT NOT NULL,
    prefix TEXT NOT NULL,
    short_id TEXT NOT NULL UNIQUE,
    secret_sha256 TEXT NOT NULL,
    last4 TEXT NOT NULL,
    permissions TEXT NOT NULL,
    allow TEXT NOT NULL,
    rate_per_minute BIGINT NOT NULL,
    created_at_us BIGINT NOT NULL,
    updated_at_us BIGINT NOT NULL,
    UNIQUE (organisation_id, name)
);

CREATE TABLE numbers (
    id TEXT NOT NULL PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisations (id),
    number TEXT NOT NULL UNIQUE,
    destination TEXT NOT NULL,
    destination_id TEXT,
    created_at_us BIGINT NOT NULL,
    updated_at_us BIGINT NOT NULL
);

CREATE TABLE trunks (
    id TEXT NOT NULL PRIMARY KEY,
    organisation_id TEXT REFERENCES organisations (id),
    name TEXT NOT NULL UNIQUE,
    address TEXT,
    accept_from TEXT NOT NULL,
    priority BIGINT NOT NULL,
    created_at_us BIGINT NOT NULL,
    updated_at_us BIGINT NOT NULL
);
