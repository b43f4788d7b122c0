-- The teams and extensions whose users see an event of a live room: those of its members. Null for all other events.
ALTER TABLE events ADD COLUMN viewers TEXT;
