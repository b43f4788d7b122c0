-- Media of the called party's leg beside those of the caller's; NULL in records from before, and where a call had no
-- called party.
ALTER TABLE cdrs ADD COLUMN jitter_ms_b_hundredths BIGINT;
ALTER TABLE cdrs ADD COLUMN loss_pct_b_hundredths BIGINT;
ALTER TABLE cdrs ADD COLUMN mean_interval_ms_b_hundredths BIGINT;
ALTER TABLE cdrs ADD COLUMN quality_pct_b_hundredths BIGINT;
ALTER TABLE cdrs ADD COLUMN mos_b_hundredths BIGINT;
ALTER TABLE cdrs ADD COLUMN media_verdict_b TEXT;

-- The filters of both, newest first within a verdict, and their totals.
CREATE INDEX cdrs_by_media_verdict ON cdrs (organisation_id, media_verdict, started_at_us)
    WHERE media_verdict IS NOT NULL;
CREATE INDEX cdrs_by_media_verdict_b ON cdrs (organisation_id, media_verdict_b, started_at_us)
    WHERE media_verdict_b IS NOT NULL;
INSERT INTO cdr_counts SELECT organisation_id, 'media_verdict', media_verdict, started_at_us / 2419200000000, COUNT(*)
    FROM cdrs WHERE media_verdict IS NOT NULL GROUP BY 1, 3, 4;
