-- The number dialled, lower-cased: what the filter `did` looks at. Records from before fold ASCII alone on
-- SQLite, which no number of theirs goes beyond.
ALTER TABLE cdrs ADD COLUMN did_search TEXT NOT NULL DEFAULT '';
UPDATE cdrs SET did_search = LOWER(COALESCE(destination_number, '') || '
' || COALESCE(dialled_number, ''));
