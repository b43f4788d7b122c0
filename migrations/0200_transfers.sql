-- Which side ended the call, and the calls that a transfer linked it with; NULL in records from before.
ALTER TABLE cdrs ADD COLUMN ended_by TEXT;
ALTER TABLE cdrs ADD COLUMN transferred_from TEXT;
ALTER TABLE cdrs ADD COLUMN transferred_to TEXT;
