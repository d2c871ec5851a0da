-- What people ask of a file: when it was confirmed, and since when it is deleted. NULL: it was not, or nobody noted it then.
ALTER TABLE file ADD COLUMN confirmed_at BIGINT;
ALTER TABLE file ADD COLUMN deleted_at BIGINT;
UPDATE file SET deleted_at = changed_at WHERE status = 4;

-- Marks of uploads that were never seen in their store: nobody asked for them, and a sweep by a cron line looks for them
-- between its ticks.
CREATE INDEX mark_unseen ON mark (store_id, next_at, id)
    WHERE next_at IS NOT NULL AND file_id IS NOT NULL AND etag = '' AND version = '' AND original IS NULL;

-- Of the marks that wait, those that people and rules made: a run's record says how many are left, and for how long they
-- have waited. Times are in seconds, so that their sum fits.
ALTER TABLE tally ADD COLUMN waiting BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tally ADD COLUMN waiting_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tally ADD COLUMN marked_at_s BIGINT NOT NULL DEFAULT 0;       -- the sum over them
INSERT INTO tally (lane, store_id, state, marks, bytes, waiting, waiting_bytes, marked_at_s)
    SELECT 0, store_id, state, 0, 0, COUNT(*), CAST(SUM(size_bytes) AS BIGINT), CAST(SUM(marked_at / 1000) AS BIGINT) FROM mark
    WHERE state IN (1, 2, 3) AND (file_id IS NULL OR etag <> '' OR version <> '' OR original IS NOT NULL)
    GROUP BY store_id, state
    ON CONFLICT (lane, store_id, state) DO UPDATE SET waiting = excluded.waiting, waiting_bytes = excluded.waiting_bytes,
        marked_at_s = excluded.marked_at_s;
CREATE INDEX mark_oldest ON mark (store_id, marked_at)
    WHERE next_at IS NOT NULL AND (file_id IS NULL OR etag <> '' OR version <> '' OR original IS NOT NULL);

-- How many errors a run had. NULL: its record is older than this, and its outcome says whether it had any.
ALTER TABLE run_record ADD COLUMN errors BIGINT;
DROP INDEX run_record_errors;
CREATE INDEX run_record_errors ON run_record (run_id) WHERE COALESCE(errors, CASE outcome WHEN 'done' THEN 0 ELSE 1 END) > 0;
-- When the last run of each name of a kind ended.
CREATE INDEX run_record_kind ON run_record (kind, name, run_id);
