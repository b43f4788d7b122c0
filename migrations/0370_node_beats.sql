-- A count that a node of a cluster counts up while it lives: the sign of life of a node that NATS does not reach.
ALTER TABLE nodes ADD COLUMN beat BIGINT NOT NULL DEFAULT 0;
