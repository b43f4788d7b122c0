-- The order in which events became visible: ids are made before their transactions end, and several nodes make
-- them, so that an event may become visible behind one with a greater id. Who reads by position misses none.
-- An event that is stored and not placed yet has none; see src/store/events.rs.
ALTER TABLE events ADD COLUMN position BIGINT;
-- Whose call it tells of; users who see one team alone see its events alone.
ALTER TABLE events ADD COLUMN team_id TEXT;

UPDATE events SET position = placed.position
FROM (SELECT id, ROW_NUMBER() OVER (ORDER BY id) AS position FROM events) AS placed
WHERE events.id = placed.id;

CREATE TABLE event_position (
    id BIGINT NOT NULL PRIMARY KEY,
    last BIGINT NOT NULL
);
INSERT INTO event_position (id, last) SELECT 1, COUNT(*) FROM events;

CREATE UNIQUE INDEX events_in_order ON events (position);
DROP INDEX events_by_organisation;
CREATE INDEX events_by_organisation ON events (organisation_id, position);
