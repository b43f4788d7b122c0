-- The messages that wait in the mailbox of an extension, as its organisation sets them, and whether its phones are notified of
-- them without a subscription.
ALTER TABLE extensions ADD COLUMN messages_new BIGINT NOT NULL DEFAULT 0;
ALTER TABLE extensions ADD COLUMN messages_old BIGINT NOT NULL DEFAULT 0;
ALTER TABLE extensions ADD COLUMN messages_urgent_new BIGINT NOT NULL DEFAULT 0;
ALTER TABLE extensions ADD COLUMN messages_urgent_old BIGINT NOT NULL DEFAULT 0;
ALTER TABLE extensions ADD COLUMN notify_message_waiting BIGINT NOT NULL DEFAULT 0;
