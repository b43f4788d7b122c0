-- Whether video passes between the parties of a call: off or pass.
ALTER TABLE extensions ADD COLUMN video TEXT NOT NULL DEFAULT 'off';
ALTER TABLE trunks ADD COLUMN video TEXT NOT NULL DEFAULT 'off';
