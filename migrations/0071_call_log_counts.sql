-- How many records each filter of the call log finds by itself, by organisation and 28 days: totals are read here and not
-- counted. Kept in the transaction that stores the records.

CREATE TABLE cdr_counts (
    organisation_id TEXT NOT NULL,
    -- The filter, or 'all'; 'billsec' has no periods, its period is 0, and its values are whole minutes.
    dimension TEXT NOT NULL,
    value TEXT NOT NULL,
    -- Of 2,419,200,000,000 microseconds since 1970, by started_at_us.
    period BIGINT NOT NULL,
    records BIGINT NOT NULL,
    PRIMARY KEY (organisation_id, dimension, value, period)
);
-- Those who see all organisations ask across them.
CREATE INDEX cdr_counts_of_all ON cdr_counts (dimension, value, period);

INSERT INTO cdr_counts SELECT organisation_id, 'all', '', started_at_us / 2419200000000, COUNT(*)
    FROM cdrs GROUP BY 1, 4;
INSERT INTO cdr_counts SELECT organisation_id, 'direction', direction, started_at_us / 2419200000000, COUNT(*)
    FROM cdrs GROUP BY 1, 3, 4;
INSERT INTO cdr_counts SELECT organisation_id, 'hangup_cause', hangup_cause, started_at_us / 2419200000000, COUNT(*)
    FROM cdrs WHERE hangup_cause IS NOT NULL GROUP BY 1, 3, 4;
INSERT INTO cdr_counts SELECT organisation_id, 'node_id', node_id, started_at_us / 2419200000000, COUNT(*)
    FROM cdrs WHERE node_id IS NOT NULL GROUP BY 1, 3, 4;
INSERT INTO cdr_counts SELECT organisation_id, 'team_id', team_id, started_at_us / 2419200000000, COUNT(*)
    FROM cdrs WHERE team_id IS NOT NULL GROUP BY 1, 3, 4;
INSERT INTO cdr_counts SELECT organisation_id, 'transcoded', CAST(transcoded AS TEXT), started_at_us / 2419200000000,
    COUNT(*) FROM cdrs GROUP BY 1, 3, 4;
INSERT INTO cdr_counts SELECT organisation_id, 'transport', transport, started_at_us / 2419200000000, COUNT(*)
    FROM cdrs GROUP BY 1, 3, 4;
INSERT INTO cdr_counts SELECT organisation_id, 'trunk_id', trunk_id, started_at_us / 2419200000000, COUNT(*)
    FROM cdrs WHERE trunk_id IS NOT NULL GROUP BY 1, 3, 4;
-- Ten digits, so that texts compare as the numbers do.
INSERT INTO cdr_counts SELECT organisation_id, 'billsec',
    SUBSTR('0000000000' || (billsec / 60), LENGTH('' || (billsec / 60)) + 1), 0, COUNT(*) FROM cdrs GROUP BY 1, 3;
INSERT INTO cdr_counts SELECT organisation_id, 'long_search', '', 0, COUNT(*)
    FROM cdrs WHERE search_key IS NULL GROUP BY 1;
