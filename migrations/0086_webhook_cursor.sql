-- Up to where the log of events is handed out to webhooks: moved in the transaction that queues the deliveries. There
-- is nobody yet whom the events until now could be for.
CREATE TABLE webhook_cursor (
    id BIGINT NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL
);
INSERT INTO webhook_cursor (id, position) SELECT 1, last FROM event_position WHERE id = 1;
