-- How the carrier of a trunk differs from others. Lists are separated by commas, headers by line feeds.
ALTER TABLE trunks ADD COLUMN backup_addresses TEXT NOT NULL DEFAULT '';
ALTER TABLE trunks ADD COLUMN outbound_proxy TEXT;
ALTER TABLE trunks ADD COLUMN from_domain TEXT NOT NULL DEFAULT '';
ALTER TABLE trunks ADD COLUMN country_code TEXT NOT NULL DEFAULT '';
ALTER TABLE trunks ADD COLUMN national_prefix TEXT NOT NULL DEFAULT '0';
ALTER TABLE trunks ADD COLUMN inbound_numbers TEXT NOT NULL DEFAULT 'international';
ALTER TABLE trunks ADD COLUMN outbound_numbers TEXT NOT NULL DEFAULT 'e164';
ALTER TABLE trunks ADD COLUMN codecs TEXT NOT NULL DEFAULT '';
ALTER TABLE trunks ADD COLUMN headers TEXT NOT NULL DEFAULT '';
ALTER TABLE trunks ADD COLUMN progress_seconds BIGINT NOT NULL DEFAULT 20;
