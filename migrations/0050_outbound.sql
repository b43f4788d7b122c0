-- Calls to the world: how an organisation writes numbers, and what a trunk asks of us.
-- A country code and a limit that are not set are NULL; texts that are not set are empty.

ALTER TABLE organisations ADD COLUMN country_code TEXT;
ALTER TABLE organisations ADD COLUMN national_prefix TEXT NOT NULL DEFAULT '0';
ALTER TABLE organisations ADD COLUMN international_prefix TEXT NOT NULL DEFAULT '00';
ALTER TABLE organisations ADD COLUMN max_outbound_calls BIGINT;

-- A carrier's password is kept as it is: its digest is made anew for every realm and nonce.
ALTER TABLE trunks ADD COLUMN username TEXT NOT NULL DEFAULT '';
ALTER TABLE trunks ADD COLUMN password TEXT NOT NULL DEFAULT '';
ALTER TABLE trunks ADD COLUMN realm TEXT NOT NULL DEFAULT '';
ALTER TABLE trunks ADD COLUMN register BIGINT NOT NULL DEFAULT 0;
ALTER TABLE trunks ADD COLUMN short_numbers TEXT NOT NULL DEFAULT '';
