-- Where calls to an extension go instead of its phones, and whether it refuses calls.
ALTER TABLE extensions ADD COLUMN forward_always TEXT;
ALTER TABLE extensions ADD COLUMN forward_busy TEXT;
ALTER TABLE extensions ADD COLUMN forward_no_answer TEXT;
ALTER TABLE extensions ADD COLUMN forward_no_answer_seconds BIGINT NOT NULL DEFAULT 20;
ALTER TABLE extensions ADD COLUMN forward_unregistered TEXT;
ALTER TABLE extensions ADD COLUMN do_not_disturb BIGINT NOT NULL DEFAULT 0;

-- Which extension forwarded a call last, and why.
ALTER TABLE cdrs ADD COLUMN forwarded_by TEXT;
ALTER TABLE cdrs ADD COLUMN forward_reason TEXT;
