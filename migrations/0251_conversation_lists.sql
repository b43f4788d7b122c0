-- Lists of conversations, newest first.
CREATE INDEX conversations_newest_first ON conversations (organisation_id, started_at_us, id);
CREATE INDEX conversations_newest_of_all ON conversations (started_at_us, id);
