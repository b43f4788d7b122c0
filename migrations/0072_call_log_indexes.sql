-- One index for every filter of the call log, newest first within it, so that a rare value is found without reading the
-- records that do not have it. benches/README.md says what each of them costs. Ids that one organisation has alone lead
-- by themselves; words and ids that organisations share stand behind the organisation: other tenants' records cost a
-- list nothing.

-- The list itself, and the texts that q and did look at: a search reads this index alone.
DROP INDEX cdrs_newest_first;
CREATE INDEX cdrs_newest_first ON cdrs (organisation_id, started_at_us, call_uuid, search_key, did_key);
CREATE INDEX cdrs_newest_of_all ON cdrs (started_at_us, call_uuid);

CREATE INDEX cdrs_by_agent ON cdrs (agent_id, started_at_us, organisation_id) WHERE agent_id IS NOT NULL;
CREATE INDEX cdrs_by_campaign ON cdrs (campaign_id, started_at_us, organisation_id) WHERE campaign_id IS NOT NULL;
CREATE INDEX cdrs_by_extension ON cdrs (extension_id, started_at_us, organisation_id) WHERE extension_id IS NOT NULL;
CREATE INDEX cdrs_by_team ON cdrs (team_id, started_at_us) WHERE team_id IS NOT NULL;
CREATE INDEX cdrs_by_direction ON cdrs (organisation_id, direction, started_at_us);
CREATE INDEX cdrs_by_hangup_cause ON cdrs (organisation_id, hangup_cause, started_at_us);
CREATE INDEX cdrs_by_node ON cdrs (organisation_id, node_id, started_at_us);
CREATE INDEX cdrs_by_transcoded ON cdrs (organisation_id, transcoded, started_at_us);
CREATE INDEX cdrs_by_transport ON cdrs (organisation_id, transport, started_at_us);
CREATE INDEX cdrs_by_trunk ON cdrs (organisation_id, trunk_id, started_at_us) WHERE trunk_id IS NOT NULL;
-- min_billsec, and the sorts that are no filter.
CREATE INDEX cdrs_by_billsec ON cdrs (organisation_id, billsec, call_uuid);
CREATE INDEX cdrs_by_ended_at ON cdrs (organisation_id, ended_at_us, call_uuid);
CREATE INDEX cdrs_by_sell_amount ON cdrs (organisation_id, sell_scaled, call_uuid);
CREATE INDEX cdrs_sorted_by_direction ON cdrs (organisation_id, direction, call_uuid);
-- A prefix, for the reason that search_key has a bound. Where no text is longer the prefix is the number.
CREATE INDEX cdrs_sorted_by_caller ON cdrs (organisation_id, SUBSTR(caller_number, 1, 300), call_uuid);
CREATE INDEX cdrs_sorted_by_destination ON cdrs (organisation_id, SUBSTR(destination_number, 1, 300), call_uuid);
