-- The number that the extension of forwarded_by forwarded a call to.
ALTER TABLE cdrs ADD COLUMN forwarded_to TEXT;
