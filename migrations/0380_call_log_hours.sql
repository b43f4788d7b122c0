-- How many records started in each hour, by organisation: the panel counts again only the hours that have changed, and
-- totals since a time are read. The period of the dimension 'hour' is of 3,600,000,000 microseconds since 1970.
INSERT INTO cdr_counts SELECT organisation_id, 'hour', '', started_at_us / 3600000000, COUNT(*)
    FROM cdrs GROUP BY 1, 4;
