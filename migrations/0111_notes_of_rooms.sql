-- Notes that a conference room sends to the phones in it.
ALTER TABLE notes ADD COLUMN room_id TEXT;
CREATE INDEX notes_of_room ON notes (room_id, sent_at_us DESC, id DESC) WHERE room_id IS NOT NULL;
