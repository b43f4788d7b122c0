-- The sessions of merged calls, which have no stored room, by the switch's name of their room.
CREATE INDEX conference_sessions_of_merged ON conference_sessions (room, started_at_us DESC, id DESC)
    WHERE room_id IS NULL;
