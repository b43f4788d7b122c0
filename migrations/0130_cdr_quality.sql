-- What is known of the media of a call, as JSON: judgement, figures and rows by the second of both legs. One row for
-- each record whose call had media, written with the record and gone with it.
CREATE TABLE cdr_quality (
    call_uuid TEXT NOT NULL PRIMARY KEY REFERENCES cdrs (call_uuid) ON DELETE CASCADE,
    organisation_id TEXT NOT NULL,
    at_us BIGINT NOT NULL,
    -- Of the rules of the verdict; null when nothing was judged.
    rules_version TEXT,
    body TEXT NOT NULL
);
