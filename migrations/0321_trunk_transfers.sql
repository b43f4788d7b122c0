-- Whether the carrier of a trunk may transfer calls by REFER.
ALTER TABLE trunks ADD COLUMN transfers BIGINT NOT NULL DEFAULT 0;
