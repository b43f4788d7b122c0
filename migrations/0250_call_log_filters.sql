-- The extension that was called, where it is not the record's own `extension_id`: internal calls. NULL in records from
-- before.
ALTER TABLE cdrs ADD COLUMN called_extension_id TEXT;
CREATE INDEX cdrs_by_called_extension ON cdrs (called_extension_id, started_at_us, organisation_id)
    WHERE called_extension_id IS NOT NULL;

-- The filter billing_mode, newest first within a mode, and its totals.
CREATE INDEX cdrs_by_billing_mode ON cdrs (organisation_id, billing_mode, started_at_us);
INSERT INTO cdr_counts SELECT organisation_id, 'billing_mode', billing_mode, started_at_us / 2419200000000, COUNT(*)
    FROM cdrs GROUP BY 1, 3, 4;

-- The sort by mos, and the filter mos_max.
CREATE INDEX cdrs_by_mos ON cdrs (organisation_id, mos_hundredths, call_uuid);

-- The filter room_id: the calls of the people who were in the sessions of a room. Sessions are found by
-- conference_sessions_of_room, their people by the primary key.
