-- Whether the phones of an organisation change forwarding and do not disturb by star codes.
ALTER TABLE organisations ADD COLUMN star_codes BIGINT NOT NULL DEFAULT 1;
