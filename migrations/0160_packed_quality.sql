-- The media quality of a call in a packed form, a tenth of its JSON: store/src/packed.rs says how. Where it is set, `body`
-- is empty; rows from before have their JSON in `body`.
ALTER TABLE cdr_quality ADD COLUMN packed BYTEA;
