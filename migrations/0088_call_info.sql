-- The call-info URL of an organisation; empty is none. Its secret signs what is sent there, so it is kept as it is.
ALTER TABLE organisations ADD COLUMN call_info_url TEXT NOT NULL DEFAULT '';
ALTER TABLE organisations ADD COLUMN call_info_secret TEXT NOT NULL DEFAULT '';
