-- What each node of a cluster has reserved of an organisation's credit. A stored call of the node takes its charge out of
-- it; without a cluster there are no rows.
CREATE TABLE credit_reserves (
    organisation_id TEXT NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
    node_id TEXT NOT NULL,
    reserved_scaled BIGINT NOT NULL,
    -- When the node reserved last; one that is silent for longer than any call lasts has lost it.
    updated_at_us BIGINT NOT NULL,
    PRIMARY KEY (organisation_id, node_id)
);
