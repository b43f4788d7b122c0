-- Days that an organisation's recordings are kept; 0 is for ever.
ALTER TABLE organisations ADD COLUMN recording_retention_days BIGINT NOT NULL DEFAULT 0;
