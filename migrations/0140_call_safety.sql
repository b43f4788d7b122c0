-- Settings that bound a call. NULL takes the node's own setting.
-- Which address the media of a leg must come from: sdp, signalling or any.
ALTER TABLE trunks ADD COLUMN strict_source TEXT;
ALTER TABLE extensions ADD COLUMN strict_source TEXT;
-- How long an answered call lasts at most.
ALTER TABLE organisations ADD COLUMN max_call_seconds BIGINT;
ALTER TABLE trunks ADD COLUMN max_call_seconds BIGINT;
