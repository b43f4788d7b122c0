-- Whether the media of a leg is encrypted: off, optional or required.
ALTER TABLE extensions ADD COLUMN srtp TEXT NOT NULL DEFAULT 'off';
ALTER TABLE trunks ADD COLUMN srtp TEXT NOT NULL DEFAULT 'off';
