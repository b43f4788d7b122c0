-- How many phones may be registered for an extension at once.
ALTER TABLE extensions ADD COLUMN max_registrations BIGINT NOT NULL DEFAULT 10;
