-- What the call log is searched and filtered by, in a form that indexes take.

-- Whether the codecs of the two legs differ.
ALTER TABLE cdrs ADD COLUMN transcoded BIGINT NOT NULL DEFAULT 0;
UPDATE cdrs SET transcoded = 1 WHERE LOWER(codec_a) <> LOWER(codec_b);

-- The texts of search and did_search where they are short enough for an index, else NULL: an entry of an index
-- has a bound on PostgreSQL (a third of a page), and what strangers dial has none.
ALTER TABLE cdrs ADD COLUMN search_key TEXT;
ALTER TABLE cdrs ADD COLUMN did_key TEXT;
UPDATE cdrs SET search_key = search, did_key = did_search WHERE LENGTH(search) <= 300;
