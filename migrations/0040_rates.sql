-- What calls cost and what was spent. Prices, rates and amounts are exact counts of 10^-8.

-- The revision of the rates, beside that of the directory: an extension that changes reads no price again.
INSERT INTO directory_revision (id, revision) VALUES (2, 0);

CREATE TABLE sell_rates (
    id TEXT NOT NULL PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisations (id),
    prefix TEXT NOT NULL,
    per_minute_scaled BIGINT NOT NULL,
    currency TEXT NOT NULL,
    first_s BIGINT NOT NULL,
    next_s BIGINT NOT NULL,
    from_time_us BIGINT NOT NULL,
    to_time_us BIGINT,
    created_at_us BIGINT NOT NULL,
    updated_at_us BIGINT NOT NULL,
    UNIQUE (organisation_id, prefix, from_time_us)
);

CREATE TABLE cost_rates (
    id TEXT NOT NULL PRIMARY KEY,
    trunk_id TEXT NOT NULL REFERENCES trunks (id),
    prefix TEXT NOT NULL,
    per_minute_scaled BIGINT NOT NULL,
    currency TEXT NOT NULL,
    first_s BIGINT NOT NULL,
    next_s BIGINT NOT NULL,
    from_time_us BIGINT NOT NULL,
    to_time_us BIGINT,
    created_at_us BIGINT NOT NULL,
    updated_at_us BIGINT NOT NULL,
    UNIQUE (trunk_id, prefix, from_time_us)
);

CREATE TABLE fx_rates (
    id TEXT NOT NULL PRIMARY KEY,
    from_currency TEXT NOT NULL,
    to_currency TEXT NOT NULL,
    rate_scaled BIGINT NOT NULL,
    from_time_us BIGINT NOT NULL,
    created_at_us BIGINT NOT NULL,
    updated_at_us BIGINT NOT NULL,
    UNIQUE (from_currency, to_currency, from_time_us)
);

-- What settled calls used in all, and what they had used when the present credit was granted.
ALTER TABLE organisations ADD COLUMN credit_used_scaled BIGINT NOT NULL DEFAULT 0;
ALTER TABLE organisations ADD COLUMN credit_used_before_scaled BIGINT NOT NULL DEFAULT 0;

-- What the carrier charged before conversion; without an fx_rate it was not converted.
ALTER TABLE cdrs ADD COLUMN cost_currency TEXT;
ALTER TABLE cdrs ADD COLUMN cost_original_scaled BIGINT;
ALTER TABLE cdrs ADD COLUMN fx_rate_scaled BIGINT;
