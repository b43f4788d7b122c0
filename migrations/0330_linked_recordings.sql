-- The other call of a recording that has the parties of two linked calls, as a transfer leaves them.
ALTER TABLE call_recordings ADD COLUMN linked_call_uuid TEXT;
CREATE INDEX call_recordings_of_linked_call ON call_recordings (linked_call_uuid) WHERE linked_call_uuid IS NOT NULL;
