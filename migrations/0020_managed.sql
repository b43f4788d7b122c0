-- What lists of organisations, extensions and trunks search: names in lower case. Rows from before fold ASCII
-- alone on SQLite.
ALTER TABLE organisations ADD COLUMN search TEXT NOT NULL DEFAULT '';
UPDATE organisations SET search = LOWER(name || '
' || sip_domain);
ALTER TABLE extensions ADD COLUMN search TEXT NOT NULL DEFAULT '';
UPDATE extensions SET search = LOWER(number || '
' || name);
ALTER TABLE trunks ADD COLUMN search TEXT NOT NULL DEFAULT '';
UPDATE trunks SET search = LOWER(name || '
' || COALESCE(address, ''));
CREATE INDEX numbers_by_destination ON numbers (destination_id);
