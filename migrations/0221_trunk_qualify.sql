-- The interval of OPTIONS to each address of a trunk's carrier; 0 sends none.
ALTER TABLE trunks ADD COLUMN qualify_seconds BIGINT NOT NULL DEFAULT 0;
