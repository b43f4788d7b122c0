-- The language of the built-in prompts: of an organisation, and of an extension that has another one.
ALTER TABLE organisations ADD COLUMN language TEXT NOT NULL DEFAULT 'en';
ALTER TABLE extensions ADD COLUMN language TEXT;
