-- Whether the call carried a fax (T.38); 0 in records from before.
ALTER TABLE cdrs ADD COLUMN fax BIGINT NOT NULL DEFAULT 0;
