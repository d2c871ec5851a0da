-- What is in quarantine is a copy under the mark's key, or the version itself, in place: under `original`, hidden by a
-- delete marker.
ALTER TABLE mark ADD COLUMN in_place BIGINT NOT NULL DEFAULT 0;
-- A purge that takes older versions along finds those that are in quarantine.
CREATE INDEX mark_in_place ON mark (store_id, original) WHERE active = 1 AND in_place = 1;
